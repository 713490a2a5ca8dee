# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Batches of images on the device: one invented batch, or those of files."""

from typing import Any, Tuple

import image_folder
import paddle
import trainer_kit

Batch = Tuple[Any, Any]

# Of ImageNet's training images, red, green, blue, of 255.
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)


class Synthetic:
    """One batch of random images and labels, made on the device before the first step."""

    def __init__(self, batch: int, size: int, classes: int) -> None:
        self.images = paddle.randn([batch, 3, size, size])
        self.labels = paddle.randint(0, classes, [batch])

    def __next__(self) -> Batch:
        return self.images, self.labels


def begin_worker(number: int) -> None:
    """Let a worker of a loader end with the trainer, however that ends."""
    trainer_kit.die_with_parent()


class Files:
    """Endless batches of random parts of images; `workers` processes prepare them."""

    def __init__(self, pictures: image_folder.Pictures, turns: image_folder.Turns, workers: int) -> None:
        loader = paddle.io.DataLoader(
            pictures,
            batch_sampler=turns,
            collate_fn=image_folder.stack,
            num_workers=workers,
            worker_init_fn=begin_worker,
        )
        self.pairs = iter(loader)
        self.mean = paddle.to_tensor(MEAN)
        self.scale = 1 / paddle.to_tensor(DEVIATION)

    def __next__(self) -> Batch:
        images, labels = next(self.pairs)
        # Bytes until here: so the host copies a quarter of the memory to the device.
        images = (images.astype("float32") - self.mean) * self.scale
        return images.transpose([0, 3, 1, 2]), labels
