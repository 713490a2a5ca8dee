# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Split the matrix products of a layer over the devices of a group (Shoeybi et al. 2019, arXiv:1909.08053).

The first product of a pair is split by its outputs, the second by its inputs: heads of the attention and the
inner part of the feed-forward stay on one device. Each pair needs one sum forward and one backward. The
weights are ordinary tensors, so that DistributedDataParallel sums their gradients over the groups.
"""

from typing import Any, Optional, Tuple

import torch
import torch.distributed as dist
from torch import nn

Group = Optional[Any]


class _Copied(torch.autograd.Function):
    """The input of the first product: itself forward, the sum of the gradients backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[torch.Tensor, None]:
        grad = grad.contiguous()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class _Summed(torch.autograd.Function):
    """The output of the second product: the sum forward, the gradient as it is backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        x = x.contiguous()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[torch.Tensor, None]:
        return grad, None


def copied(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Return the input of products that are split by their outputs over `group`; None: not split."""
    return x if group is None else _Copied.apply(x, group)


def summed(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Return the whole output of a product that is split by its inputs over `group`."""
    return x if group is None else _Summed.apply(x, group)


def split(model: nn.Module, group: Any, heads: int) -> None:
    """Keep this device's share of the weights of `model`, which is equal on all devices of `group`."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    for layer in model.layers:
        hidden = layer.qkv.in_features
        # Rows of query, key and value of whole heads.
        rows = torch.arange(3 * hidden).view(3, heads, -1).chunk(size, 1)[rank].reshape(-1)
        _keep(layer.qkv, layer.qkv.weight[rows.to(layer.qkv.weight.device)], layer.qkv.bias[rows])
        _keep(layer.up, *(part.chunk(size, 0)[rank] for part in (layer.up.weight, layer.up.bias)))
        for second in (layer.projection, layer.down):
            _keep(second, second.weight.chunk(size, 1)[rank], second.bias)
        layer.group, layer.heads = group, heads // size


def _keep(product: nn.Linear, weight: torch.Tensor, bias: torch.Tensor) -> None:
    product.weight = nn.Parameter(weight.detach().clone())
    product.bias = nn.Parameter(bias.detach().clone())
    product.out_features, product.in_features = weight.shape


def is_split(name: str) -> bool:
    """Return whether the parameter with this name differs between the devices of a group."""
    return any(
        name.endswith(part)
        for part in ("qkv.weight", "qkv.bias", "up.weight", "up.bias", "projection.weight", "down.weight")
    )
