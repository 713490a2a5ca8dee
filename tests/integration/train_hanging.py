# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Exchange data over gloo until the third rank no longer takes part."""

import time

import torch
import torch.distributed as dist


def exchange(step):
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 2 and step == 3:
        stay_away()
    dist.barrier()


def stay_away():
    time.sleep(1000)


dist.init_process_group("gloo")
for step in range(10):
    exchange(step)
    if dist.get_rank() == 0:
        print("step", step, flush=True)
