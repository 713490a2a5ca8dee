# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Samples of an invented language, the same everywhere for the same seed, and BERT's masking of them."""

import numpy as np
import torch

CLS, SEP, MASK, FIRST_WORD = 2, 3, 4, 5
MASKED = 0.15
IGNORED = -100  # transformers' label of a place that is not predicted


class Samples(torch.utils.data.Dataset):
    """`count` full sequences of `length` words; numpy promises RandomState's numbers."""

    def __init__(self, count, length, vocabulary, seed):
        usable = vocabulary - FIRST_WORD
        # Log-uniform rank: the frequency of a word falls as 1/rank, by Zipf's law.
        rank = usable ** np.random.RandomState(seed).random_sample((count, length))
        words = FIRST_WORD + np.minimum(rank.astype(np.int64) - 1, usable - 1)
        words[:, 0], words[:, -1] = CLS, SEP
        self.words = torch.from_numpy(words)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return self.words[index]


class Masker:
    """Makes a batch of samples: of the words to predict 80 % are masked, 10 % are others, 10 % stay."""

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def __call__(self, rows):
        """Return {"input_ids", "labels"}, each [samples, length]."""
        words = torch.stack(rows)
        chosen = (torch.rand(words.shape) < MASKED) & (words >= FIRST_WORD)
        labels = words.masked_fill(~chosen, IGNORED)
        dice = torch.rand(words.shape)
        others = torch.randint(FIRST_WORD, self.vocabulary, words.shape)
        shown = words.masked_fill(chosen & (dice < 0.8), MASK)
        return {"input_ids": torch.where(chosen & (dice >= 0.9), others, shown), "labels": labels}
