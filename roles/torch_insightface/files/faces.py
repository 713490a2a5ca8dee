# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Invented pictures of faces and whose they are, which stay on the device.

A picture follows from the seed, the number of the batch, and its place in the batch of all devices, so that
any number of devices trains on the same pictures.
"""

import zlib
from typing import Any, Tuple

import torch

POOL = 8  # batches that are made once and take turns


def generator(*parts: int) -> torch.Generator:
    """Return a source of random numbers on the CPU that follows from `parts`.

    torch takes 32 bits of a seed there and no more.
    """
    return torch.Generator().manual_seed(zlib.crc32(repr(parts).encode()))


def face(seed: int, number: int, place: int, classes: int, pixels: int) -> Tuple[torch.Tensor, torch.Tensor]:
    """Return the picture at a place of batch `number`, and its class."""
    numbers = generator(seed, number, place)
    return torch.randn(3, pixels, pixels, generator=numbers), torch.randint(classes, (), generator=numbers)


class Faces:
    """Endless batches of one device."""

    def __init__(self, batch: int, rank: int, classes: int, pixels: int, seed: int, **form: Any) -> None:
        self.pool = []
        for number in range(POOL):
            faces = [face(seed, number, rank * batch + i, classes, pixels) for i in range(batch)]
            pictures, labels = (torch.stack(each) for each in zip(*faces))  # noqa: B905
            self.pool.append((pictures.to(**form), labels.to(form["device"])))
        self.turn = -1

    def __next__(self) -> Tuple[torch.Tensor, torch.Tensor]:
        self.turn += 1
        return self.pool[self.turn % POOL]
