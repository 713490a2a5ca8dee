# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Batches of images on the device: invented ones, or those of arrays."""

from typing import Any, Tuple

import numpy as np
import torch
import torch_batches

Batch = Tuple[torch.Tensor, torch.Tensor]

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
    """Endless batches of image_files.arrays; `place` is (rank, number of ranks)."""

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
        self.form = form
        self.mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        self.scale = 1 / torch.tensor(DEVIATION, device=device).view(1, 3, 1, 1)
        self.pairs = torch_batches.Batches(self._pair, len(self.labels), batch, place, seed, device)

    def _pair(self, rows: Any) -> Batch:
        return torch.from_numpy(self.images[rows]), torch.from_numpy(self.labels[rows].astype(np.int64))

    def __next__(self) -> Batch:
        images, labels = next(self.pairs)
        return ((images - self.mean) * self.scale).to(**self.form), labels
