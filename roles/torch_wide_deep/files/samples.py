# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Invented samples of the form of Criteo's logs: 13 numbers, 26 categories, and whether there was a click.

A value follows from the seed, the number of the batch, and the place of its sample in the batch of all
devices, so that any number of devices trains on the same samples. A category is hashed into a row of a table.
"""

from typing import Tuple

import torch

NUMBERS = 13
CATEGORIES = 26
CROSSES = 2  # pairs of categories that the wide part sees, as HugeCTR's samples/wdl has them
POOL = 32  # batches that are made once and take turns
EFFECT = 0.6  # largest effect of a category on the logarithm of the odds of a click
BIAS = -1.2  # so that fewer than half are clicked

Batch = Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _shifted(x: torch.Tensor, by: int) -> torch.Tensor:
    """Return 64-bit integers shifted to the right, as if they had no sign."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def mixed(x: torch.Tensor) -> torch.Tensor:
    """Return hashes of 64-bit integers: the finalizer of splitmix64 (Steele et al. 2014)."""
    x = (x ^ _shifted(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shifted(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shifted(x, 31)


def fraction(hashes: torch.Tensor) -> torch.Tensor:
    """Return numbers from 0 to below 1 of hashes."""
    return _shifted(hashes, 11).double() / (1 << 53)


def _effect(hashes: torch.Tensor) -> torch.Tensor:
    """Return the sum of the effects of the categories of each sample."""
    return EFFECT * (2 * fraction(mixed(hashes + 1)) - 1).sum(1)


def batch_of(number: int, places: torch.Tensor, rows: int, seed: int) -> Batch:
    """Return (numbers, rows of the deep table, rows of the wide table, labels) of batch `number`.

    `places` are the places of its samples in the batch of all devices.
    """
    device = places.device
    key = mixed(places + mixed(torch.tensor(number + (seed << 20), device=device)))
    columns = torch.arange(NUMBERS + CATEGORIES + 1, device=device) << 40
    draws = fraction(mixed(key[:, None] + columns))
    numbers = 2 * draws[:, :NUMBERS] - 1
    # The logarithm of a value is uniform: the frequency of a value falls as 1/value (Zipf's law).
    values = (rows // CATEGORIES) ** draws[:, NUMBERS : NUMBERS + CATEGORIES]
    hashes = mixed(values.long() + columns[1 : 1 + CATEGORIES])
    crosses = mixed(hashes[:, 0 : 2 * CROSSES : 2] + mixed(hashes[:, 1 : 2 * CROSSES : 2]))
    odds = numbers @ torch.linspace(-1, 1, NUMBERS, dtype=torch.double, device=device)
    chance = torch.sigmoid(odds + _effect(hashes) + _effect(crosses) + BIAS)
    labels = draws[:, -1] < chance
    return numbers.float(), hashes % rows, crosses % rows, labels.float()


class Samples:
    """Endless batches of one device, which stay on it."""

    def __init__(self, batch: int, rank: int, rows: int, seed: int, device: torch.device) -> None:
        places = torch.arange(rank * batch, (rank + 1) * batch, device=device)
        self.pool = [batch_of(number, places, rows, seed) for number in range(POOL)]
        self.turn = -1

    def __next__(self) -> Batch:
        self.turn += 1
        return self.pool[self.turn % POOL]
