# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Copy samples from memory-mapped arrays to the device, one batch ahead of the training."""

import collections
import os
from typing import Any, Tuple

import numpy as np
import torch
import torch_batches

Batch = collections.namedtuple("Batch", "words segments lengths positions labels following")

NAMES = ("words", "segments", "lengths", "positions", "labels", "following")


def shape(directory: str) -> Tuple[int, int]:
    """Return (tokens, predictions) of a sample in a directory of arrays."""
    arrays = [
        np.load(os.path.join(directory, name + ".npy"), mmap_mode="r") for name in ("words", "positions")
    ]
    return arrays[0].shape[1], arrays[1].shape[1]


class Loader:
    """Endless iterator over the (Batch, keys) of one rank, on `device`.

    The rows of a batch and its dropout keys, `sites` per step, are one int32 buffer: one copy to the device.
    `lengths` of a batch is None if no sample is padded.
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
        self.batch, self.sites = batch, sites
        self.rng = np.random.RandomState(seed + 1 + rank)
        samples = len(self.arrays[0])
        self.buffers = torch_batches.Batches(self._buffer, samples, batch, (rank, world), seed, device)

    def _buffer(self, rows: Any) -> Tuple[torch.Tensor]:
        columns = [array[rows].reshape(self.batch, -1).astype(np.int32) for array in self.arrays]
        keys = self.rng.randint(-(2**31), 2**31, (self.sites, 2)).astype(np.int32)
        return (torch.from_numpy(np.concatenate([part.ravel() for part in (*columns, keys)])),)

    def __next__(self) -> Tuple[Batch, torch.Tensor]:
        (whole,) = next(self.buffers)
        parts = whole.split([self.batch * width for width in self.widths] + [self.sites * 2])
        words, segments, lengths, positions, labels, following = (
            part.view(self.batch, width) if width > 1 else part
            for part, width in zip(parts, self.widths, strict=False)
        )
        batch = Batch(words, segments, None if self.full else lengths, positions, labels, following)
        return batch, parts[-1].view(self.sites, 2)
