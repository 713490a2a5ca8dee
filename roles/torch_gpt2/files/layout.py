# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which devices hold one model together, and what follows from it: norms, sums and comparisons of weights."""

from typing import Any, Dict, List

import pipeline_parallel
import sharding
import tensor_parallel
import torch
import torch.distributed as dist
from torch import nn

# What a device holds of a parameter: all of it as others do, a part of its own, or what another one counts.
WHOLE, PART, COPY = "whole", "part", "copy"


def local(tensor: Any) -> Any:
    """Return this device's share of a tensor that fully_shard has split, another tensor as it is."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class Layout:
    """The groups of this device.

    `group` holds one model together, each device a part of it; it is None where each device has all of it.
    `replicas` hold the same as this device, and train other samples. `tied` is the pair of the first and the
    last stage of a pipeline.
    """

    def __init__(self, tensor: int, pipeline: int, sharded: bool) -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        self.tensor, self.pipeline, self.sharded = tensor, pipeline, sharded
        self.group, self.replicas, self.tied = None, dist.group.WORLD, None
        self.stage, self.replica, self.replica_count = 0, rank, world
        share = tensor * pipeline
        if sharded:
            # Each device trains samples of its own, and holds what no other does.
            self.group, self.replicas, self.replica_count = dist.group.WORLD, None, 1
        elif share > 1:
            # Every process forms all groups, in the same order.
            firsts, parts = range(0, world, share), range(share)
            models = [dist.new_group(list(range(first, first + share))) for first in firsts]
            replicas = [dist.new_group(list(range(part, world, share))) for part in parts]
            self.replica, part = divmod(rank, share)
            self.group, self.replicas = models[self.replica], replicas[part]
            self.replica_count = world // share
            if pipeline > 1:
                self.stage = part
                pairs = [dist.new_group([first, first + share - 1]) for first in firsts]
                self.tied = pairs[self.replica] if part in (0, share - 1) else None

    def holding(self, name: str) -> str:
        """Return what this device holds of the parameter with this name."""
        if self.pipeline > 1:
            return COPY if name == pipeline_parallel.TIED and self.stage > 0 else PART
        if self.tensor > 1:
            return PART if tensor_parallel.is_split(name) else WHOLE
        return PART if self.sharded else WHOLE

    def by_holding(self, tensors: Dict[str, Any]) -> Dict[str, List[Any]]:
        """Return tensors by the name of their parameter as lists by what this device holds of it."""
        kinds: Dict[str, List[Any]] = {WHOLE: [], PART: [], COPY: []}
        for name, tensor in tensors.items():
            kinds[self.holding(name)].append(local(tensor))
        return kinds


def norm(model: nn.Module, layout: Layout) -> torch.Tensor:
    """Return the norm of the gradients of the whole model, a tensor on the device."""
    kinds = layout.by_holding({name: parameter.grad for name, parameter in model.named_parameters()})

    def squares(gradients: List[Any]) -> torch.Tensor:
        return torch.stack(torch._foreach_norm(gradients)).square().sum()

    if layout.group is None:
        return squares(kinds[WHOLE]).sqrt()
    total = squares(kinds[PART])
    dist.all_reduce(total, group=layout.group)
    return (total + squares(kinds[WHOLE]) if kinds[WHOLE] else total).sqrt()


def clip(model: nn.Module, norm: torch.Tensor, largest: float) -> None:
    """Scale the gradients of this device to `largest`, where `norm`, that of the whole model, is more."""
    factor = (largest / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_([local(parameter.grad) for parameter in model.parameters()], factor)


def share_overflow(model: nn.Module, layout: Layout) -> None:
    """Make a gradient that is not finite on one device known to its group, which then skips that step."""
    gradient = next(p.grad for p in model.parameters() if p.grad is not None)
    gradient.add_(0 * norm(model, layout))  # NaN where the norm is not finite


def sums(model: nn.Module, layout: Layout, device: torch.device) -> List[float]:
    """Return the sum and the sum of squares of all weights of a model, each counted once."""
    kinds = layout.by_holding(dict(model.named_parameters()))
    parts = _sums(kinds[PART], device)
    if layout.group is not None:
        dist.all_reduce(parts, group=layout.group)
    return [float(value) for value in parts + _sums(kinds[WHOLE], device)]


def agree(model: nn.Module, layout: Layout, device: torch.device) -> bool:
    """Return whether weights that several devices hold are equal on them, and split ones are held once."""
    if layout.sharded:
        return sharding.once(model, device)
    parameters = dict(model.named_parameters())
    kinds = {kind: _sums(weights, device) for kind, weights in layout.by_holding(parameters).items()}
    compared = [(layout.replicas, torch.cat(list(kinds.values()))), (layout.group, kinds[WHOLE])]
    if layout.tied is not None:
        compared.append((layout.tied, _sums([parameters[pipeline_parallel.TIED]], device)))
    same = True
    for group, values in compared:
        if group is None:
            continue
        low, high = values.clone(), values.clone()
        dist.all_reduce(low, dist.ReduceOp.MIN, group=group)
        dist.all_reduce(high, dist.ReduceOp.MAX, group=group)
        same = same and torch.equal(low, high)
    verdict = torch.tensor([int(same)], device=device)
    dist.all_reduce(verdict, dist.ReduceOp.MIN)
    return bool(verdict.item())


@torch.no_grad()
def _sums(weights: List[Any], device: torch.device) -> torch.Tensor:
    total = torch.zeros(2, dtype=torch.float64, device=device)
    for each in weights:
        exact = each.double()
        total += torch.stack([exact.sum(), exact.square().sum()])
    return total
