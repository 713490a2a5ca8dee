# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Samples, invented or the user's own, masked as BERT does. A seed gives the same samples everywhere."""

import os
from typing import Any, Dict, List

import numpy as np
import torch

PAD, CLS, SEP, MASK, FIRST_WORD = 0, 2, 3, 4, 5
MASKED = 0.15
IGNORED = -100  # the label that transformers uses for words that are not predicted


def invented(count: int, length: int, vocabulary: int, seed: int) -> Any:
    """Return `count` full sequences of an invented language; NumPy guarantees the numbers of RandomState."""
    usable = vocabulary - FIRST_WORD
    # A log-uniform rank: the frequency of a word is proportional to 1/rank (Zipf's law).
    rank = usable ** np.random.RandomState(seed).random_sample((count, length))
    words = FIRST_WORD + np.minimum(rank.astype(np.int64) - 1, usable - 1)
    words[:, 0], words[:, -1] = CLS, SEP
    return words


def own(directory: str, model: str, part: str) -> Any:
    """Return the user's samples for a model that make_data.py made, `train` or `eval`."""
    return np.load(os.path.join(directory, model, part + ".npy")).astype(np.int64)


class Samples(torch.utils.data.Dataset):
    """Sequences of words, each an array of the same length."""

    def __init__(self, words: Any) -> None:
        self.words = torch.from_numpy(words)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self.words[index]


class Masker:
    """Make a batch of samples: of the words to predict, 80 % are masked, 10 % replaced, 10 % unchanged."""

    def __init__(self, vocabulary: int, padded: bool) -> None:
        self.vocabulary, self.padded = vocabulary, padded

    def __call__(self, rows: List[torch.Tensor]) -> Dict[str, torch.Tensor]:
        """Return {"input_ids", "labels"}, and "attention_mask" of padded samples, each [samples, length]."""
        words = torch.stack(rows)
        chosen = (torch.rand(words.shape) < MASKED) & (words >= FIRST_WORD)
        labels = words.masked_fill(~chosen, IGNORED)
        dice = torch.rand(words.shape)
        others = torch.randint(FIRST_WORD, self.vocabulary, words.shape)
        masked = words.masked_fill(chosen & (dice < 0.8), MASK)
        batch = {"input_ids": torch.where(chosen & (dice >= 0.9), others, masked), "labels": labels}
        return {**batch, "attention_mask": (words != PAD).long()} if self.padded else batch
