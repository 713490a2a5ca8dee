# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Tables of vectors whose rows are split over all devices, and the exchange of rows and vectors.

Row r is row r // world of device r % world. A step asks the owners of its rows for their vectors, and sends
them the gradients: three all-to-alls of as many values as a device has for each other one. The owner updates
the rows that the step has, by Adam, and no others. Nothing waits for the device but for the numbers of
values, which are known before the step begins where the Request was made during the step before.
"""

from typing import List, Optional

import torch
import torch.distributed as dist
from samples import fraction, mixed

BETAS = (0.9, 0.999)
EPSILON = 1e-8
WIDEST = 0.05  # of the first vectors, as those of OneFlow-Benchmark's wdl_train_eval.py
CHUNK = 1 << 20  # rows that are filled together
COPIES = 3  # of a table: its vectors, and the two means of Adam


def share(rows: int, rank: int, world: int) -> int:
    """Return how many of `rows` a device has."""
    return (rows - rank + world - 1) // world


def mebibytes(rows: int, width: int) -> int:
    """Return the memory of `rows` of a table with its means, in MiB."""
    return ((rows + 1) * width * 4 * COPIES >> 20) + 1


def _exchange(values: torch.Tensor, outgoing: List[int], incoming: List[int]) -> torch.Tensor:
    """Return what all devices have for this one; `values` are in the order of the devices.

    `outgoing` and `incoming` are the numbers of values for each device, and of each.
    """
    result = values.new_empty(sum(incoming), *values.shape[1:])
    dist.all_to_all_single(result, values, incoming, outgoing)
    return result


class Request:
    """The rows that a batch needs, by owner."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.world = dist.get_world_size()
        self.rows = rows.flatten()
        self.outgoing: Optional[List[int]] = None
        if self.world == 1:
            return
        owners, self.order = (self.rows % self.world).to(torch.int32).sort(stable=True)
        self.rows = (self.rows // self.world)[self.order]
        bounds = torch.arange(self.world + 1, dtype=torch.int32, device=rows.device)
        counts = torch.empty(2, self.world, dtype=torch.int64, device=rows.device)
        counts[0] = torch.searchsorted(owners, bounds).diff()
        dist.all_to_all_single(counts[1], counts[0])
        self.counts, self.ready = counts, None
        if rows.is_cuda:
            self.counts = torch.empty(counts.shape, dtype=torch.int64, pin_memory=True)
            self.counts.copy_(counts, non_blocking=True)
            self.ready = torch.cuda.Event()
            self.ready.record()

    def deliver(self) -> None:
        """Send the rows to their owners: from now on `rows` are those that this device is asked for."""
        if self.world == 1:
            return
        if self.ready is not None:
            self.ready.synchronize()
        self.outgoing, self.incoming = self.counts.tolist()
        self.rows = _exchange(self.rows, self.outgoing, self.incoming)

    def answer(self, vectors: torch.Tensor) -> torch.Tensor:
        """Send the vectors of `rows` to those who asked; return those of the batch, in its order."""
        if self.outgoing is None:
            return vectors
        answers = _exchange(vectors, self.incoming, self.outgoing)
        return torch.empty_like(answers).index_copy_(0, self.order, answers)

    def collect(self, gradients: torch.Tensor) -> torch.Tensor:
        """Send the gradients of the vectors of the batch to their owners; return those of `rows`."""
        if self.outgoing is None:
            return gradients
        return _exchange(gradients[self.order], self.outgoing, self.incoming)


class Table:
    """This device's rows of a table."""

    def __init__(self, rows: int, width: int, seed: int, device: torch.device) -> None:
        rank, world = dist.get_rank(), dist.get_world_size()
        self.rows = share(rows, rank, world)
        # One more row, which takes the updates of none.
        self.vectors = torch.zeros(self.rows + 1, width, device=device)
        self.mean, self.square = torch.zeros_like(self.vectors), torch.zeros_like(self.vectors)
        # The same numbers however many devices have them.
        columns = torch.arange(width, device=device) + mixed(torch.tensor(seed, device=device))
        for start in range(0, self.rows, CHUNK):
            own = torch.arange(start, min(start + CHUNK, self.rows), device=device) * world + rank
            numbers = fraction(mixed(own[:, None] * width + columns))
            self.vectors[start : start + len(own)] = (2 * numbers - 1) * WIDEST

    def look_up(self, request: Request, dtype: torch.dtype) -> torch.Tensor:
        """Return the vectors of the rows of a batch, [rows, width], which gather a gradient."""
        request.deliver()
        return request.answer(self.vectors[request.rows].to(dtype)).requires_grad_()

    def update(self, request: Request, gradients: torch.Tensor, scale: float, rate: float, step: int) -> None:
        """Take a step of Adam with the rows of a request, of which `gradients` are `scale` times too large.

        Sizes are known, so nothing waits for the device.
        """
        rows, order = request.rows.sort()
        gradients = request.collect(gradients)[order].float() / scale
        if not len(rows):
            return  # nobody asked this device
        # Each different row has one place; the places that are left stand for the row of none.
        differs = rows.diff(prepend=rows[:1] - 1) != 0
        places = differs.cumsum(0) - 1
        total = torch.zeros_like(gradients).index_add_(0, places, gradients)
        which = torch.full_like(rows, self.rows).scatter_(0, places, rows)
        mean = self.mean[which].lerp_(total, 1 - BETAS[0])
        square = self.square[which].lerp_(total.square_(), 1 - BETAS[1])
        self.mean.index_copy_(0, which, mean)
        self.square.index_copy_(0, which, square)
        size = (square / (1 - BETAS[1] ** step)).sqrt_().add_(EPSILON)
        self.vectors.index_add_(0, which, mean.div_(size), alpha=-rate / (1 - BETAS[0] ** step))

    def sum(self) -> torch.Tensor:
        """Return the sum of the vectors of this device."""
        return self.vectors[:-1].sum(dtype=torch.float64)
