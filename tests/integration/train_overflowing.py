# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Under torchrun: train torch_gpt2 with a gradient that overflows in the second step, on one device.

torchrun --nproc_per_node 2 train_overflowing.py CODE OPTIONS-OF-TRAIN
"""

import sys

sys.path.insert(0, sys.argv.pop(1))

import tensor_parallel  # noqa: E402
import torch.distributed as dist  # noqa: E402
import train  # noqa: E402

split = tensor_parallel.split


def split_and_overflow(model, group, heads):
    split(model, group, heads)
    steps = []

    def overflow(gradient):
        steps.append(gradient)
        return gradient * float("inf") if len(steps) == 2 else gradient

    if dist.get_rank() + 1 == dist.get_world_size():
        model.layers[0].up.weight.register_hook(overflow)


tensor_parallel.split = split_and_overflow
train.main()
