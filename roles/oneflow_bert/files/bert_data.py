# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The data set of a run, in OneFlow's format of records: of texts, or of random words, some of them masked.

All ranks make the same files in the same directory, so that each finds its own, whichever node it is on.
"""

import os
import random
import struct
import sys
from typing import Any, Dict, Iterable, Iterator, List, Sequence

from oneflow.core.record import record_pb2 as records

FIRST_WORD = 5  # below are [PAD], [UNK], [CLS], [SEP] and [MASK]


def invented(
    samples: int, seed: int, seq: int, predictions: int, vocabulary: int
) -> Iterator[Dict[str, Sequence[Any]]]:
    """Yield the fields of samples of random words."""
    chance = random.Random(seed)

    def word_names(count: int) -> List[int]:
        return [chance.randrange(FIRST_WORD, vocabulary) for _ in range(count)]

    for _ in range(samples):
        yield {
            "input_ids": word_names(seq),
            "input_mask": [1] * seq,
            "segment_ids": [0] * (seq // 2) + [1] * (seq - seq // 2),
            "masked_lm_positions": sorted(chance.sample(range(1, seq), predictions)),
            "masked_lm_ids": word_names(predictions),
            "masked_lm_weights": [1.0] * predictions,
            "next_sentence_labels": [chance.randrange(2)],
        }


def of_texts(directory: str, samples: int, vocabulary: int) -> Iterator[Dict[str, Sequence[Any]]]:
    """Yield the fields of the first samples of the HDF5 files of texts."""
    import nvidia_hdf5

    arrays = nvidia_hdf5.first(directory, samples)
    most = int(max(arrays["input_ids"].max(), arrays["masked_lm_ids"].max()))
    if most >= vocabulary:
        sys.exit("the texts have the token %d, this model has those below %d" % (most, vocabulary))
    arrays["masked_lm_weights"] = nvidia_hdf5.filled(arrays["masked_lm_positions"]).astype(float)
    arrays["next_sentence_labels"] = arrays["next_sentence_labels"].reshape(-1, 1)
    for row in range(len(arrays["input_ids"])):
        yield {name: array[row].tolist() for name, array in arrays.items()}


def feature(values: Sequence[Any]) -> Any:
    """Return a field of a record."""
    if isinstance(values[0], float):
        return records.Feature(float_list=records.FloatList(value=values))
    return records.Feature(int32_list=records.Int32List(value=values))


def write(folder: str, parts: int, samples: Iterable[Dict[str, Sequence[Any]]]) -> None:
    """Make `folder` with the samples in `parts` files; other ranks may do so at the same time."""
    os.makedirs(folder, exist_ok=True)
    every = list(samples)
    for part in range(parts):
        path = os.path.join(folder, "part-%d" % part)
        unfinished = "%s.%d" % (path, os.getpid())
        with open(unfinished, "wb") as file:
            for fields in every[part::parts] or every:
                record = records.OFRecord(feature={name: feature(each) for name, each in fields.items()})
                data = record.SerializeToString()
                file.write(struct.pack("<q", len(data)) + data)
        os.replace(unfinished, path)
