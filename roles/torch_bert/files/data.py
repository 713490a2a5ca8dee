# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Samples from memory-mapped arrays to the device, a batch ahead of the training."""

import collections
import os
import queue
import threading

import numpy as np
import torch

Batch = collections.namedtuple("Batch", "words segments lengths positions labels following")

NAMES = ("words", "segments", "lengths", "positions", "labels", "following")
AHEAD = 4  # batches made on the host before they are wanted


class Loader:
    """Endless (Batch, keys) of one rank, on `device`.

    A thread gathers the rows of a batch into one pinned int32 buffer; one copy brings it to the device on
    a stream of its own while the step before computes. `sites` is the number of dropout keys a step needs.
    Ranks see different samples: the same permutation, dealt in turn. `lengths` is None where nothing is
    padded.
    """

    def __init__(self, directory, batch, sites, rank, world, seed, device):
        self.arrays = [np.load(os.path.join(directory, n + ".npy"), mmap_mode="r") for n in NAMES]
        self.widths = [1 if array.ndim == 1 else array.shape[1] for array in self.arrays]
        self.full = int(self.arrays[2].min()) == self.widths[0]
        self.batch, self.sites, self.device = batch, sites, device
        self.order = np.random.RandomState(seed).permutation(len(self.arrays[0]))
        self.rng = np.random.RandomState(seed + 1 + rank)
        self.rank, self.world = rank, world
        self.ready = queue.Queue(AHEAD)
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        threading.Thread(target=self._fill, daemon=True).start()
        self.next = self._fetch()

    def _fill(self):
        turn = self.rank
        while True:
            rows = self.order[np.arange(turn * self.batch, (turn + 1) * self.batch) % len(self.order)]
            turn += self.world
            columns = [array[rows].reshape(self.batch, -1).astype(np.int32) for array in self.arrays]
            keys = self.rng.randint(-(2**31), 2**31, (self.sites, 2)).astype(np.int32)
            whole = torch.from_numpy(np.concatenate([part.ravel() for part in (*columns, keys)]))
            self.ready.put(whole.pin_memory() if self.stream else whole)

    def _fetch(self):
        whole = self.ready.get()
        if self.stream:
            with torch.cuda.stream(self.stream):
                whole = whole.to(self.device, non_blocking=True)
        return whole

    def __next__(self):
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
