# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The end of a run with torch.distributed: compare the weights of all ranks, then leave.

Runs on the nodes, with torch.
"""

import atexit
import os
import sys
from typing import Callable

import torch
import torch.distributed as dist


def agree(model: torch.nn.Module, device: torch.device) -> bool:
    """Return whether all ranks hold the same weights, which shows that gradients were summed."""
    total = torch.stack([p.detach().double().sum() for p in model.parameters()]).sum().to(device)
    low, high = total.clone(), total.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    same: bool = low.item() == high.item()
    return same


def finish(say: Callable[..., None], same: bool, steps: int) -> None:
    """Print the closing lines of a node and leave. Exit with a message where the ranks' weights differ."""
    if not same:
        sys.exit("the ranks hold different weights: the gradients were not summed")
    if os.environ["LOCAL_RANK"] == "0":
        say(steps_done=steps)
        say(weights="agree", end="true")
    leave()


def leave() -> None:
    """Wait for all ranks, run the exit handlers and exit with status 0, without the interpreter's shutdown.

    A thread of gloo may hold a tensor until then, and freeing it during the shutdown aborts the process
    (pytorch/pytorch#190489): a run that did everything would count as failed.
    """
    dist.barrier()
    dist.destroy_process_group()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
