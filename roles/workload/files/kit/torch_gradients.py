# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The gradients of a model in one tensor, so that one operation sums them over the ranks.

For a model that is compiled as one graph: its gradients come all at once at the end of the backward pass, so
DistributedDataParallel has nothing to overlap with, and starts a copy for each of them.
"""

from typing import Iterable

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
