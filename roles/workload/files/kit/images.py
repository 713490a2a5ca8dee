# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Batches of images on the device: invented ones, those of files, or those of arrays."""

from typing import Any, List, Tuple

import image_folder
import numpy as np
import torch
import torch_batches
import trainer_kit
from torch.utils.data import DataLoader

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


class Normalised:
    """Bytes of images to numbers about 0, on the device: so the host copies a quarter of the memory."""

    def __init__(self, device: torch.device, **form: Any) -> None:
        self.form = form
        self.mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        self.scale = 1 / torch.tensor(DEVIATION, device=device).view(1, 3, 1, 1)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Return the numbers."""
        return ((images - self.mean) * self.scale).to(**self.form)


def tensors(samples: List[Tuple[Any, int]]) -> Batch:
    """Return samples as a batch of tensors, which a worker of a loader passes on in shared memory."""
    images, labels = image_folder.stack(samples)
    return torch.from_numpy(images), torch.from_numpy(labels)


def begin_worker(number: int) -> None:
    """Let a worker of a loader end with the trainer, however that ends."""
    trainer_kit.die_with_parent()


class Files:
    """Endless batches of random parts of images; `workers` processes prepare them."""

    def __init__(
        self,
        pictures: image_folder.Pictures,
        turns: image_folder.Turns,
        workers: int,
        device: torch.device,
        **form: Any,
    ) -> None:
        loader: Any = DataLoader(
            pictures,
            batch_sampler=turns,
            num_workers=workers,
            collate_fn=tensors,
            pin_memory=device.type == "cuda",
            worker_init_fn=begin_worker,
        )
        self.pairs = torch_batches.Ahead(iter(loader), device)
        self.normalised = Normalised(device, **form)

    def __next__(self) -> Batch:
        images, labels = next(self.pairs)
        # The colours of a pixel lie next to each other, which is what channels_last means.
        return self.normalised(images.permute(0, 3, 1, 2)), labels


class Arrays:
    """Endless batches of arrays (images, labels) that lie in memory; `place` is (rank, number of ranks)."""

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
        self.pairs = torch_batches.Batches(self._pair, len(self.labels), batch, place, seed, device)
        self.normalised = Normalised(device, **form)

    def _pair(self, rows: Any) -> Batch:
        return torch.from_numpy(self.images[rows]), torch.from_numpy(self.labels[rows].astype(np.int64))

    def __next__(self) -> Batch:
        images, labels = next(self.pairs)
        return self.normalised(images), labels
