# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The gradients of a model that each rank has whole are summed over the ranks.

While the backward pass runs by DistributedDataParallel, or after it, in one tensor: the gradients of a model
that is compiled as one graph come all at once at the end of the backward pass, so DistributedDataParallel has
nothing to overlap with, and starts a copy for each of them.
"""

import warnings
from typing import Any, Iterable, Optional, Tuple

import torch
import torch.distributed as dist


class Gradients:
    """One tensor with the gradients of `parameters`, each in the layout of its parameter.

    The caller divides the loss by the number of ranks: gloo sums, it has no mean.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        self.parameters = list(parameters)
        counts = [p.numel() for p in self.parameters]
        self.flat = torch.zeros(sum(counts), dtype=self.parameters[0].dtype, device=self.parameters[0].device)
        pieces = zip(self.flat.split(counts), self.parameters)  # noqa: B905
        self.views = [piece.as_strided(p.size(), p.stride()) for piece, p in pieces]

    @torch.no_grad()
    def sum(self) -> None:
        """Replace the gradient of each parameter by the sum over the ranks."""
        torch._foreach_copy_(self.views, [p.grad for p in self.parameters])
        dist.all_reduce(self.flat)
        for p, view in zip(self.parameters, self.views):  # noqa: B905
            p.grad = view


def data_parallel(model: torch.nn.Module, compiled: bool, **options: Any) -> Tuple[Any, Optional[Gradients]]:
    """Return what runs the model, and its Gradients where they are summed after the backward pass, else None.

    `options` are those of DistributedDataParallel, which divides the sum by the number of ranks.
    """
    if dist.get_world_size() == 1:
        return model, None
    if compiled:
        return model, Gradients(p for p in model.parameters() if p.requires_grad)
    # The name of today's torch, forward_sync_buffers, is not known to that of a year ago.
    warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
    runner = torch.nn.parallel.DistributedDataParallel(
        model,
        broadcast_buffers=False,  # the running means of norms, which training does not read
        gradient_as_bucket_view=True,
        **options,
    )
    return runner, None
