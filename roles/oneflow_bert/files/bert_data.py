# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The synthetic data set of a run, in OneFlow's format of records: random words, some of them masked.

All ranks make the same files in the same directory, so that each finds its own, whichever node it is on.
"""

import os
import random
import struct
from typing import Any, Dict, List, Sequence

from oneflow.core.record import record_pb2 as records

FIRST_WORD = 5  # below are [PAD], [UNK], [CLS], [SEP] and [MASK]


def sample(chance: random.Random, seq: int, predictions: int, vocabulary: int) -> Dict[str, Sequence[Any]]:
    """Return the fields of one sample."""

    def word_names(count: int) -> List[int]:
        return [chance.randrange(FIRST_WORD, vocabulary) for _ in range(count)]

    return {
        "input_ids": word_names(seq),
        "input_mask": [1] * seq,
        "segment_ids": [0] * (seq // 2) + [1] * (seq - seq // 2),
        "masked_lm_positions": sorted(chance.sample(range(1, seq), predictions)),
        "masked_lm_ids": word_names(predictions),
        "masked_lm_weights": [1.0] * predictions,
        "next_sentence_labels": [chance.randrange(2)],
    }


def feature(values: Sequence[Any]) -> Any:
    """Return a field of a record."""
    if isinstance(values[0], float):
        return records.Feature(float_list=records.FloatList(value=values))
    return records.Feature(int32_list=records.Int32List(value=values))


def write(folder: str, parts: int, samples: int, seed: int, **sizes: int) -> None:
    """Make `folder` with `samples` samples in `parts` files; other ranks may do so at the same time."""
    os.makedirs(folder, exist_ok=True)
    chance = random.Random(seed)
    for part in range(parts):
        path = os.path.join(folder, "part-%d" % part)
        unfinished = "%s.%d" % (path, os.getpid())
        with open(unfinished, "wb") as file:
            for _ in range(-(-samples // parts)):
                fields = sample(chance, **sizes)
                record = records.OFRecord(feature={name: feature(each) for name, each in fields.items()})
                data = record.SerializeToString()
                file.write(struct.pack("<q", len(data)) + data)
        os.replace(unfinished, path)
