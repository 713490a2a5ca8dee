# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the BERT models, the number of their parameters and of the operations per sample, and their data.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import os
import sys
from typing import Dict

VOCABULARY = 30522  # BERT's uncased vocabulary
PADDED_TO = 64  # rows of the embedding table: aligned matrices of the projection, for tensor cores

MODELS = {
    "tiny": {"hidden": 64, "layers": 2, "heads": 2, "intermediate": 256, "vocabulary": 1024},
    "base": {"hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072, "vocabulary": VOCABULARY},
    "large": {"hidden": 1024, "layers": 24, "heads": 16, "intermediate": 4096, "vocabulary": VOCABULARY},
}
POSITIONS = 512
SEGMENTS = 2


def data_of(directory: str, model: str) -> str:
    """Return the part of a data set for a model's vocabulary; exit where it has none."""
    vocabulary = MODELS[model]["vocabulary"]
    part = os.path.join(directory, str(vocabulary))
    if not os.path.isdir(part):
        sys.exit(
            "model=%s: the data in %s have tokens beyond its %d: choose a model with a larger vocabulary"
            % (model, directory, vocabulary)
        )
    return part


def padded(vocabulary: int) -> int:
    """Return the rows of the embedding table: the vocabulary rounded up to PADDED_TO."""
    return -(-vocabulary // PADDED_TO) * PADDED_TO


def parameters(model: Dict[str, int]) -> int:
    """Return the parameters of a model with both heads, decoder and embedding tied, without padding rows.

    110,106,428 for base, as the BertForPreTraining of transformers counts them.
    """
    h, i, v = model["hidden"], model["intermediate"], model["vocabulary"]
    norm = 2 * h
    embedding = (v + POSITIONS + SEGMENTS) * h + norm
    layer = 4 * (h * h + h) + (h * i + i) + (i * h + h) + 2 * norm
    mlm = h * h + h + norm + v  # transform, its norm, the decoder's bias
    nsp = h * h + h + 2 * h + 2  # pooler and classifier
    return embedding + model["layers"] * layer + mlm + nsp
