# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The end of a run with torch.distributed: compare the weights of all ranks, print their sums, then leave.

Runs on the nodes, with torch.
"""

import atexit
import os
import sys
from typing import Callable, Dict

import torch
import torch.distributed as dist


def weights_sum(model: torch.nn.Module) -> torch.Tensor:
    """Return the sum of the weights that this rank holds."""
    return torch.stack([p.detach().double().sum() for p in model.parameters()]).sum()


def agree(model: torch.nn.Module, device: torch.device) -> bool:
    """Return whether all ranks hold the same weights, which shows that gradients were summed."""
    total = weights_sum(model).to(device)
    low, high = total.clone(), total.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    same: bool = low.item() == high.item()
    return same


def print_sums(
    say: Callable[..., None], whole: Dict[str, torch.nn.Module], split: Dict[str, torch.Tensor]
) -> None:
    """Print sums of weights, by which runs with other numbers of ranks can be compared.

    `whole` are modules that each rank has; `split` are this rank's sums of what is split over all ranks.
    """
    sums = {name: weights_sum(module) for name, module in whole.items()}
    for name, own in split.items():
        sums[name] = own.clone()
        dist.all_reduce(sums[name])
    if os.environ["LOCAL_RANK"] == "0":
        say(**{name + "_sum": "%.9e" % total for name, total in sums.items()})


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
