# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sentences of an artificial language in two classes; the same seed gives the same sentences everywhere."""

from typing import Sequence, Tuple

import numpy as np
import torch

CLS, SEP, FIRST_WORD = 2, 3, 4
SIGNAL = 0.5  # share of the words that depend on the class


class Samples:
    """`count` sentences of `length` words of an even `vocabulary`; numpy's RandomState is stable."""

    def __init__(self, count: int, length: int, vocabulary: int, seed: int) -> None:
        random = np.random.RandomState(seed)
        # A log-uniform rank: the frequency of a word falls as 1/rank (Zipf's law).
        pairs = (vocabulary - FIRST_WORD) // 2
        rank = pairs ** random.random_sample((count, length))
        words = FIRST_WORD + 2 * np.minimum(rank.astype(np.int64) - 1, pairs - 1)
        self.labels = random.randint(0, 2, count)
        # Each pair has a word of each class.
        signal = random.random_sample((count, length)) < SIGNAL
        words += np.where(signal, self.labels[:, None], random.randint(0, 2, (count, length)))
        words[:, 0], words[:, -1] = CLS, SEP
        self.words = words
        self.order = random.permutation(count)

    def batch(self, number: int, size: int, device: torch.device) -> Tuple[torch.Tensor, ...]:
        """Return (words [size, length], labels [size]) of a batch; after the last sentence, the first."""
        return self.rows(self.order[np.arange(number * size, (number + 1) * size) % len(self.order)], device)

    def rows(self, rows: Sequence[int], device: torch.device) -> Tuple[torch.Tensor, ...]:
        """Return (words [rows, length], labels [rows]) of these sentences."""
        return tuple(torch.from_numpy(part[rows]).to(device) for part in (self.words, self.labels))
