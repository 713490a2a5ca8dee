# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Batches that a thread prepares, on the device one step ahead of the training.

Runs on the nodes, with torch.
"""

import queue
import threading
from typing import Any, Callable, Iterator, Tuple

import numpy as np
import torch

Tensors = Tuple[torch.Tensor, ...]

AHEAD = 4  # batches that the host prepares in advance


class Ahead:
    """The tensors of `source` on the device: copied on a separate stream, during the previous step.

    For a GPU they are in pinned memory.
    """

    def __init__(self, source: Iterator[Tensors], device: torch.device) -> None:
        self.source, self.device = source, device
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        self.next = self._fetch()

    def _fetch(self) -> Tensors:
        parts = next(self.source)
        if not self.stream:
            return parts
        with torch.cuda.stream(self.stream):
            return tuple(part.to(self.device, non_blocking=True) for part in parts)

    def __next__(self) -> Tensors:
        batch = self.next
        if self.stream:
            current = torch.cuda.current_stream()
            current.wait_stream(self.stream)
            for part in batch:
                part.record_stream(current)
        self.next = self._fetch()
        return batch


class Batches(Ahead):
    """Endless iterator over the batches of one rank.

    A thread calls `make` with the rows (an array of `batch` numbers below `samples`) and keeps the tensors
    that it returns in pinned memory. All ranks use the permutation of `seed` and take its batches in turn, so
    that no two get the same rows; `place` is (rank, number of ranks).
    """

    def __init__(
        self,
        make: Callable[[Any], Tensors],
        samples: int,
        batch: int,
        place: Tuple[int, int],
        seed: int,
        device: torch.device,
    ) -> None:
        self.make, self.batch, self.pinned = make, batch, device.type == "cuda"
        self.order = np.random.RandomState(seed).permutation(samples)
        self.rank, self.world = place
        self.ready: "queue.Queue[Tensors]" = queue.Queue(AHEAD)
        threading.Thread(target=self._fill, daemon=True).start()
        super().__init__(self._prepared(), device)

    def _fill(self) -> None:
        turn = self.rank
        while True:
            rows = self.order[np.arange(turn * self.batch, (turn + 1) * self.batch) % len(self.order)]
            turn += self.world
            parts = self.make(rows)
            self.ready.put(tuple(part.pin_memory() for part in parts) if self.pinned else parts)

    def _prepared(self) -> Iterator[Tensors]:
        while True:
            yield self.ready.get()
