# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Split the layers of one model over the devices of a group, with torch.distributed.pipelining and 1F1B.

A micro-batch goes from stage to stage, and its gradients come back. After its first forward passes a stage
takes one forward and one backward pass in turn (Narayanan et al. 2019, PipeDream), so that it keeps the
activations of at most as many micro-batches as there are stages. The first stage embeds the words, the last
one projects to them with a copy of the same weights: their gradients are summed.
"""

from typing import Any, List

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

TIED = "words.weight"  # what the first and the last stage hold both


def split(model: nn.Module, stage: int, layers: List[int]) -> None:
    """Keep the part of `model` that a stage computes; `layers` are the numbers of layers of all stages."""
    before, last = sum(layers[:stage]), stage + 1 == len(layers)
    model.layers = nn.ModuleList(list(model.layers)[before : before + layers[stage]])
    if stage > 0:
        model.positions = None
    if not last:
        model.head = None
    if stage > 0 and not last:
        model.words = None


class Pipeline:
    """The schedule of one stage; `runner` is its part of the model, with or without DistributedDataParallel.

    `shape` is [batch, seq, hidden] of a micro-batch. `tied` is the group of the first and the last stage, or
    None on another one.
    """

    def __init__(
        self, runner: nn.Module, group: Any, tied: Any, shape: List[int], micro_batches: int, device: Any
    ) -> None:
        self.group, self.tied, self.device = group, tied, device
        stage, stages = dist.get_rank(group), dist.get_world_size(group)
        # The residual is fp32 under autocast too. With both given, no stage asks another one for shapes.
        hidden = torch.empty(shape, device="meta", requires_grad=True)
        words = torch.empty(shape[:2], dtype=torch.int64, device="meta")
        loss = torch.empty((), device="meta", requires_grad=True)
        self.stage = PipelineStage(
            runner,
            stage,
            stages,
            device,
            input_args=(hidden if stage else words,),
            output_args=(hidden if stage + 1 < stages else loss,),
            group=group,
        )
        # The loss of a micro-batch is a mean: the gradients are divided by their number.
        self.schedule = Schedule1F1B(self.stage, micro_batches, loss_fn=lambda loss, _following: loss)
        self.micro_batches = micro_batches
        # NCCL connects all stages here, not in the first exchange between two of them.
        dist.all_reduce(torch.zeros(1, device=device), group=group)

    def step(self, words: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """Compute the gradients of all micro-batches; return their mean loss, which every stage gets."""
        losses: List[torch.Tensor] = []
        inputs = (words,) if self.stage.is_first else ()
        self.schedule.step(
            *inputs, target=following, following=following, losses=losses, return_outputs=False
        )
        if self.tied is not None:
            dist.all_reduce(self._tied_gradient(), group=self.tied)
        loss = torch.stack(losses).mean().detach() if losses else torch.zeros((), device=self.device)
        dist.all_reduce(loss, group=self.group)
        return loss

    def _tied_gradient(self) -> torch.Tensor:
        runner = self.stage.submod
        gradient: torch.Tensor = getattr(runner, "module", runner).words.weight.grad
        return gradient
