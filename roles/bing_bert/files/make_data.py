# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make the data that bing_bert reads with --use_nvidia_dataset: HDF5 files of samples, and vocabularies.

    python make_data.py DATA VOCABULARY FILES SAMPLES LENGTH PREDICTIONS SEED

DATA gets a directory per size of vocabulary, with FILES files of SAMPLES samples each: a rank reads one,
ranks beyond FILES share them. VOCABULARY gets a NAME-vocab.txt per model where there is none; an existing one
stays. Prints ``made``, or ``unchanged`` where the same data exists already.

The layout is that of NVIDIA's DeepLearningExamples, which bing_bert's provider reads: input_ids, input_mask,
segment_ids [samples, LENGTH], masked_lm_positions, masked_lm_ids [samples, PREDICTIONS], next_sentence_labels
[samples]. The frequency of words falls as in a language. The same arguments give the same bytes. Needs h5py
and numpy, Python 3.6 or newer.
"""

import os
import sys
from typing import Any, Dict, Tuple

import bert_sizes
import data_stamp
import h5py
import numpy as np
import trainer_flags

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # [PAD] is word 0, as the provider pads
PAD, _, CLS, SEP, MASK = range(len(SPECIAL))
VERSION = 1  # of the data that this program makes


def draw_words(random: Any, shape: Tuple[int, ...], vocabulary: int) -> Any:
    """Return word numbers [*shape]; the frequency of the n-th word is proportional to 1/n."""
    ranks = np.exp(random.random_sample(shape) * np.log(vocabulary - len(SPECIAL)))
    return (ranks.astype(np.int32) - 1 + len(SPECIAL)).clip(len(SPECIAL), vocabulary - 1)


def draw_samples(random: Any, count: int, length: int, predictions: int, vocabulary: int) -> Dict[str, Any]:
    """Return the arrays of one file by their names; every sample is full."""
    text = draw_words(random, (count, length), vocabulary)
    middle = length // 2
    text[:, 0], text[:, middle], text[:, -1] = CLS, SEP, SEP
    free = np.array([at for at in range(1, length - 1) if at != middle], np.int32)
    order = np.argsort(random.random_sample((count, len(free))), axis=1)[:, :predictions]
    places = np.sort(free[order], axis=1)
    rows = np.arange(count)[:, None]
    masked = text[rows, places].copy()
    text[rows, places] = MASK
    segments = np.zeros((count, length), np.int8)
    segments[:, middle + 1 :] = 1
    return {
        "input_ids": text,
        "input_mask": np.ones((count, length), np.int8),
        "segment_ids": segments,
        "masked_lm_positions": places.astype(np.int32),
        "masked_lm_ids": masked,
        "next_sentence_labels": random.randint(0, 2, count).astype(np.int8),
    }


def write(path: str, arrays: Dict[str, Any]) -> None:
    """Write one file of samples, completely or not at all."""
    with h5py.File(path + ".part", "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip", compression_opts=1)
    os.replace(path + ".part", path)


def vocabulary(folder: str, model: str, size: int) -> str:
    """Write a model's vocabulary where there is none; return its path."""
    name = trainer_flags.NAMES.get(model, "bert-" + model)
    path = os.path.join(folder, name + "-vocab.txt")
    if os.path.exists(path):
        return path
    letters = ["w" + "".join("abcdefghijklmnop"[n >> at & 15] for at in (12, 8, 4, 0)) for n in range(size)]
    with open(path + ".part", "w", encoding="utf-8", newline="\n") as file:
        file.write("".join(word + "\n" for word in SPECIAL + letters[: size - len(SPECIAL)]))
    os.replace(path + ".part", path)
    return path


def main() -> None:
    """Write the files."""
    data, vocabularies = sys.argv[1:3]
    files, count, length, predictions, seed = (int(argument) for argument in sys.argv[3:])
    values: Dict[str, Any] = {"version": VERSION, "files": files, "samples": count}
    values.update({"length": length, "predictions": predictions, "seed": seed})
    for folder in (data, vocabularies):
        if not os.path.isdir(folder):
            os.makedirs(folder)
    for name, model in sorted(bert_sizes.MODELS.items()):
        vocabulary(vocabularies, name, model["vocabulary"])
    if data_stamp.read(data) == values:
        print("unchanged")
        return
    for size in sorted({model["vocabulary"] for model in bert_sizes.MODELS.values()}):
        folder = os.path.join(data, str(size))
        if not os.path.isdir(folder):
            os.makedirs(folder)
        for name in os.listdir(folder):  # made with other arguments; bing_bert reads every file
            os.unlink(os.path.join(folder, name))
        for number in range(files):
            random = np.random.RandomState([seed, number])
            write(
                os.path.join(folder, "training_%03d.hdf5" % number),
                draw_samples(random, count, length, predictions, size),
            )
    data_stamp.write(data, values)
    print("made")


if __name__ == "__main__":
    main()
