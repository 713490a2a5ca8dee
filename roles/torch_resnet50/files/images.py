# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Batches of images on the device: invented ones, or those of arrays."""

import queue
import threading
from typing import Any, Tuple

import numpy as np
import torch

Batch = Tuple[torch.Tensor, torch.Tensor]

AHEAD = 4  # batches that the host prepares in advance
POOL = 4  # invented batches that take turns
# Of ImageNet's training images, red, green, blue, of 255.
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)


class Synthetic:
    """Endless batches of noise and random labels, made once and kept on the device; each rank has its own."""

    def __init__(
        self, batch: int, size: int, classes: int, seed: int, device: torch.device, **form: Any
    ) -> None:
        random = torch.Generator(device).manual_seed(seed)
        self.batches = []
        for _ in range(POOL):
            images = torch.randn((batch, 3, size, size), generator=random, device=device).to(**form)
            labels = torch.randint(0, classes, (batch,), generator=random, device=device)
            self.batches.append((images, labels))
        self.turn = 0

    def __next__(self) -> Batch:
        self.turn += 1
        return self.batches[self.turn % POOL]


class Arrays:
    """Endless batches of image_files.arrays, prepared by a thread and copied during the previous step.

    All ranks take the batches of one permutation in turn, so that no two get the same images.
    """

    def __init__(
        self,
        arrays: Tuple[Any, Any],
        batch: int,
        place: Tuple[int, int],
        seed: int,
        device: torch.device,
        **form: Any,
    ) -> None:
        self.images, self.labels = arrays
        self.batch, self.device, self.form = batch, device, form
        self.order = np.random.RandomState(seed).permutation(len(self.labels))
        self.rank, self.world = place
        self.mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        self.scale = 1 / torch.tensor(DEVIATION, device=device).view(1, 3, 1, 1)
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        self.ready: "queue.Queue[Batch]" = queue.Queue(AHEAD)
        threading.Thread(target=self._fill, daemon=True).start()
        self.next = self._fetch()

    def _fill(self) -> None:
        turn = self.rank
        while True:
            rows = self.order[np.arange(turn * self.batch, (turn + 1) * self.batch) % len(self.order)]
            turn += self.world
            pair = torch.from_numpy(self.images[rows]), torch.from_numpy(self.labels[rows].astype(np.int64))
            self.ready.put((pair[0].pin_memory(), pair[1].pin_memory()) if self.stream else pair)

    def _fetch(self) -> Batch:
        images, labels = self.ready.get()
        if self.stream:
            with torch.cuda.stream(self.stream):
                images = images.to(self.device, non_blocking=True)
                labels = labels.to(self.device, non_blocking=True)
        return images, labels

    def __next__(self) -> Batch:
        images, labels = self.next
        if self.stream:
            torch.cuda.current_stream().wait_stream(self.stream)
            images.record_stream(torch.cuda.current_stream())
            labels.record_stream(torch.cuda.current_stream())
        self.next = self._fetch()
        return ((images - self.mean) * self.scale).to(**self.form), labels
