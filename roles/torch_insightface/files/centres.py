# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The centres of the classes, split over all devices, and the softmax with a margin of all of them.

Partial FC (An et al. 2022, arXiv:2203.15565): a device has a part of the classes. It takes the embeddings of
the batch of all devices, and compares them with its centres: all of them, or those of the batch and a random
sample of the others. Devices exchange embeddings, and three numbers for each picture: the largest logit, the
sum of the exponentials, and the logit of its own class. Only the centres that were compared are updated.
Nothing waits for the device: how many centres are taken is known before.
"""

import math
from typing import Any, Tuple

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from faces import generator

SCALE = 64.0  # of cosines (Deng et al. 2019, arXiv:1801.07698, section 4.1)
MARGINS = {
    "arcface": 0.5,
    "cosface": 0.4,
}  # losses.py of recognition/arcface_torch of deepinsight/insightface
WIDTH = 0.01  # standard deviation of the first centres, as there
MOMENTUM = 0.9
BLOCK = 1024  # classes whose centres are drawn together
SPARE = 64

# The names that torch has for them since 2.13, and before.
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def share(classes: int, rank: int, world: int) -> Tuple[int, int]:
    """Return (the first class of a device, how many it has)."""
    each, more = divmod(classes, world)
    return each * rank + min(rank, more), each + (rank < more)


def sampled(own: int, rate: float, batch: int) -> int:
    """Return how many of its `own` centres a device compares with: at least all of those of a batch.

    Of `batch` pictures a device, those of its classes are about as many; twice as many are never met.
    """
    return own if rate == 1 else min(own, max(int(rate * own), 2 * batch + SPARE))


def moved(cosines: torch.Tensor, margin: str) -> Tuple[torch.Tensor, torch.Tensor]:
    """Return the cosines of pictures and their own classes with the margin, and the derivative of that."""
    by = MARGINS[margin]
    if margin == "cosface":
        return cosines - by, torch.ones_like(cosines)
    sines = (1 - cosines.square()).clamp_min(1e-6).sqrt()
    turned = cosines * math.cos(by) - sines * math.sin(by)
    slope = math.cos(by) + cosines / sines * math.sin(by)
    # Beyond half a turn the cosine would rise again.
    near = cosines > -math.cos(by)
    return (
        torch.where(near, turned, cosines - by * math.sin(by)),
        torch.where(near, slope, torch.ones_like(slope)),
    )


class Gather(torch.autograd.Function):
    """The embeddings of this device -> those of all, in the order of the devices.

    Backward, the gradients of all devices are added up, times `factor`.
    """

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, factor: int) -> torch.Tensor:
        """See the class."""
        ctx.factor = factor
        return gathered(own)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[torch.Tensor, None]:
        """See the class."""
        world = dist.get_world_size()
        if world > 1:
            total = gradient.new_empty(len(gradient) // world, gradient.shape[1])
            reduce_scatter(total, gradient.contiguous())
            gradient = total
        return gradient * ctx.factor, None


def gathered(own: torch.Tensor) -> torch.Tensor:
    """Return what all devices have for `own`, in their order."""
    world = dist.get_world_size()
    if world == 1:
        return own
    result = own.new_empty(world * len(own), *own.shape[1:])
    all_gather(result, own.contiguous())
    return result


class MarginLoss(torch.autograd.Function):
    """(cosines [pictures, centres of this device], column of each picture, whether it is here) -> mean loss.

    The cross entropy over the classes of all devices; only the cosines get a gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, cosines: torch.Tensor, columns: torch.Tensor, here: torch.Tensor, margin: str
    ) -> torch.Tensor:
        """See the class."""
        logits = cosines.float().clamp(-1, 1)
        old = logits.gather(1, columns)
        new, slope = moved(old, margin)
        logits = logits.scatter_(1, columns, torch.where(here, new, old)).mul_(SCALE)
        high = logits.amax(1, keepdim=True)
        if dist.get_world_size() > 1:
            dist.all_reduce(high, dist.ReduceOp.MAX)
        logits.sub_(high)
        parts = torch.cat([torch.where(here, logits.gather(1, columns), 0), logits.exp_().sum(1, True)], 1)
        if dist.get_world_size() > 1:
            dist.all_reduce(parts)
        own, total = parts.split(1, 1)
        ctx.dtype = cosines.dtype
        ctx.save_for_backward(logits.div_(total), columns, here, torch.where(here, slope, 1))
        return (total.log() - own).mean()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[torch.Tensor, None, None, None]:
        """See the class."""
        shares, columns, here, slope = ctx.saved_tensors
        own = (shares.gather(1, columns) - here.float()) * slope
        result = shares.scatter(1, columns, own).mul_(gradient * (SCALE / len(shares)))
        return result.to(ctx.dtype), None, None, None


class Centres:
    """This device's centres."""

    def __init__(
        self, classes: int, width: int, rate: float, margin: str, batch: int, seed: int, device: torch.device
    ) -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        self.first, self.own = share(classes, rank, world)
        self.count, self.margin = sampled(self.own, rate, batch), margin
        self.centres = torch.empty(self.own, width, device=device)
        self.momenta = torch.zeros_like(self.centres)
        # The same numbers however many devices have them.
        for block in range(self.first // BLOCK, (self.first + self.own - 1) // BLOCK + 1):
            numbers = torch.randn(BLOCK, width, generator=generator(seed, block)) * WIDTH
            start = block * BLOCK - self.first
            part = numbers[max(-start, 0) : self.own - start]
            self.centres[max(start, 0) : max(start, 0) + len(part)] = part.to(device)
        self.random = torch.Generator(device).manual_seed(seed + rank)
        self.lost = torch.zeros((), dtype=torch.int64, device=device)

    def choose(self, labels: torch.Tensor) -> None:
        """Choose the centres of a step; `labels` are those of this device."""
        places = gathered(labels)[:, None] - self.first
        self.here = (places >= 0) & (places < self.own)
        self.columns = torch.where(self.here, places, 0)
        self.chosen = None
        centres = self.centres
        if self.count < self.own:
            scores = torch.rand(self.own + 1, device=centres.device, generator=self.random)
            # The last one stands for the classes of other devices.
            scores.index_fill_(0, torch.where(self.here, places, self.own).flatten(), 2.0)
            self.chosen = scores[:-1].topk(self.count).indices.sort().values
            self.columns = torch.searchsorted(self.chosen, self.columns).clamp_max(self.count - 1)
            self.lost += (self.here & (self.chosen[self.columns] != places)).sum()
            centres = centres[self.chosen]
        self.compared = centres.detach().requires_grad_()

    def loss(self, embeddings: torch.Tensor, factor: int) -> torch.Tensor:
        """Return the mean loss of the batch of all devices; see Gather for `factor`."""
        everyone = functional.normalize(Gather.apply(embeddings, factor))
        cosines = functional.linear(everyone, functional.normalize(self.compared))
        return MarginLoss.apply(cosines, self.columns, self.here, self.margin)

    @torch.no_grad()
    def update(self, scale: float, rate: float, decay: float) -> None:
        """Take a step of SGD with the centres of this step; their gradients are `scale` times too large."""
        momenta = self.momenta if self.chosen is None else self.momenta[self.chosen]
        momenta.mul_(MOMENTUM).add_(self.compared.grad, alpha=1 / scale).add_(self.compared, alpha=decay)
        new = self.compared.detach().add_(momenta, alpha=-rate)
        if self.chosen is not None:
            self.centres.index_copy_(0, self.chosen, new)
            self.momenta.index_copy_(0, self.chosen, momenta)

    def sum(self) -> torch.Tensor:
        """Return the sum of the centres of this device."""
        return self.centres.sum(dtype=torch.float64)
