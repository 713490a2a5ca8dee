# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Copy samples from memory-mapped arrays to the device, one batch ahead of the training."""

import collections
import os
import queue
import threading
from typing import Tuple

import numpy as np
import torch

Batch = collections.namedtuple("Batch", "words segments lengths positions labels following")

NAMES = ("words", "segments", "lengths", "positions", "labels", "following")
AHEAD = 4  # batches that the host prepares in advance


def shape(directory: str) -> Tuple[int, int]:
    """Return (tokens, predictions) of a sample in a directory of arrays."""
    arrays = [
        np.load(os.path.join(directory, name + ".npy"), mmap_mode="r") for name in ("words", "positions")
    ]
    return arrays[0].shape[1], arrays[1].shape[1]


class Loader:
    """Endless iterator over the (Batch, keys) of one rank, on `device`.

    A thread collects the rows of a batch in one pinned int32 buffer. A single copy moves the buffer to the
    device, on a separate stream, during the previous step. `sites` is the number of dropout keys per step.
    All ranks use the same permutation and take its batches in turn, so that no two ranks get the same
    samples. `lengths` of a batch is None if no sample is padded.
    """

    def __init__(
        self,
        directory: str,
        batch: int,
        sites: int,
        rank: int,
        world: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self.arrays = [np.load(os.path.join(directory, n + ".npy"), mmap_mode="r") for n in NAMES]
        self.widths = [1 if array.ndim == 1 else array.shape[1] for array in self.arrays]
        self.full = int(self.arrays[2].min()) == self.widths[0]
        self.batch, self.sites, self.device = batch, sites, device
        self.order = np.random.RandomState(seed).permutation(len(self.arrays[0]))
        self.rng = np.random.RandomState(seed + 1 + rank)
        self.rank, self.world = rank, world
        self.ready: "queue.Queue[torch.Tensor]" = queue.Queue(AHEAD)
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        threading.Thread(target=self._fill, daemon=True).start()
        self.next = self._fetch()

    def _fill(self) -> None:
        turn = self.rank
        while True:
            rows = self.order[np.arange(turn * self.batch, (turn + 1) * self.batch) % len(self.order)]
            turn += self.world
            columns = [array[rows].reshape(self.batch, -1).astype(np.int32) for array in self.arrays]
            keys = self.rng.randint(-(2**31), 2**31, (self.sites, 2)).astype(np.int32)
            whole = torch.from_numpy(np.concatenate([part.ravel() for part in (*columns, keys)]))
            self.ready.put(whole.pin_memory() if self.stream else whole)

    def _fetch(self) -> torch.Tensor:
        whole = self.ready.get()
        if self.stream:
            with torch.cuda.stream(self.stream):
                whole = whole.to(self.device, non_blocking=True)
        return whole

    def __next__(self) -> Tuple[Batch, torch.Tensor]:
        whole = self.next
        if self.stream:
            torch.cuda.current_stream().wait_stream(self.stream)
            whole.record_stream(torch.cuda.current_stream())
        self.next = self._fetch()
        parts = whole.split([self.batch * width for width in self.widths] + [self.sites * 2])
        words, segments, lengths, positions, labels, following = (
            part.view(self.batch, width) if width > 1 else part
            for part, width in zip(parts, self.widths, strict=False)
        )
        batch = Batch(words, segments, None if self.full else lengths, positions, labels, following)
        return batch, parts[-1].view(self.sites, 2)
