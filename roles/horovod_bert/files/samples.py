# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sentences of an invented language in two classes, the same everywhere for the same seed."""

import numpy as np
import torch

CLS, SEP, FIRST_WORD = 2, 3, 4
TELLING = 0.5  # share of the words that tell the class


class Samples:
    """`count` sentences of `length` words of an even `vocabulary`; numpy promises RandomState's numbers."""

    def __init__(self, count, length, vocabulary, seed):
        dice = np.random.RandomState(seed)
        # Log-uniform rank: the frequency of a word falls as 1/rank, by Zipf's law.
        pairs = (vocabulary - FIRST_WORD) // 2
        rank = pairs ** dice.random_sample((count, length))
        words = FIRST_WORD + 2 * np.minimum(rank.astype(np.int64) - 1, pairs - 1)
        self.labels = dice.randint(0, 2, count)
        # Each pair has a word of either class.
        telling = dice.random_sample((count, length)) < TELLING
        words += np.where(telling, self.labels[:, None], dice.randint(0, 2, (count, length)))
        words[:, 0], words[:, -1] = CLS, SEP
        self.words = words
        self.order = dice.permutation(count)

    def batch(self, turn, size, device):
        """Return (words [size, length], labels [size]) of a turn; behind the last sentence is the first."""
        rows = self.order[np.arange(turn * size, (turn + 1) * size) % len(self.order)]
        return tuple(torch.from_numpy(part[rows]).to(device) for part in (self.words, self.labels))
