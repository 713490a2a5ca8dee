# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The user's own texts: text files with a sample a line, or a directory that `datasets` wrote (save_to_disk).

A seed selects the samples. Text files, and a data set without a split for evaluation, give both parts, which
have no sample in common.
"""

import glob
import os
from typing import Any, Dict, List, Tuple

import numpy as np

COLUMN = "text"
EVALUATION = ("validation", "test")
"""Splits of a data set that the samples of the evaluation are taken from; the first that it has."""


class RefusedError(ValueError):
    """Data that cannot be used; the message names the path, what was found and what is expected."""


def is_dataset(path: str) -> bool:
    """Return whether `datasets` wrote a directory."""
    return any(os.path.exists(os.path.join(path, name)) for name in ("state.json", "dataset_dict.json"))


def files(path: str) -> List[str]:
    """Return the files of a data set or those that a pattern matches, in order."""
    if is_dataset(path):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    else:
        found = [name for name in glob.glob(path) if os.path.isfile(name)]
    if not found:
        raise RefusedError(
            "hf_mlm_own_data=%s: found neither text files nor a directory of save_to_disk (datasets)" % path
        )
    return sorted(found)


def stamp(path: str) -> List[Any]:
    """Return path, size and time of a file: they show that it is unchanged, without reading it."""
    status = os.stat(path)
    return [path, status.st_size, status.st_mtime_ns]


def read_lines(path: str) -> List[str]:
    """Return the lines of text files that are not blank."""
    lines: List[str] = []
    for name in files(path):
        try:
            with open(name, encoding="utf-8") as file:
                lines += [line.strip() for line in file if line.strip()]
        except UnicodeDecodeError as error:
            raise RefusedError("%s: found bytes that are not UTF-8 (%s)" % (name, error)) from error
    return lines


def read_dataset(path: str) -> Dict[str, Any]:
    """Return the splits that samples are taken from, as `train` and, if there is one, `eval`."""
    try:
        import datasets
    except ImportError as error:
        raise RefusedError(
            "%s: the interpreter has no package datasets, which reads this directory: %s" % (path, error)
        ) from error
    found = datasets.load_from_disk(path)
    splits = dict(found) if isinstance(found, dict) else {"train": found}
    if "train" not in splits:
        raise RefusedError("%s: found the splits %s, expected train" % (path, ", ".join(sorted(splits))))
    held = [splits[name] for name in EVALUATION if name in splits][:1]
    parts = dict(zip(("train", "eval"), [splits["train"], *held], strict=False))
    for part in parts.values():
        if COLUMN not in part.column_names:
            raise RefusedError(
                "%s: found the columns %s, expected %s" % (path, ", ".join(part.column_names), COLUMN)
            )
    return parts


def choose(path: str, pool: Any, seed: int, *counts: Tuple[str, int]) -> Dict[str, Any]:
    """Return indices of samples by the name of their part, each sample once; `counts` has how many."""
    count = sum(number for _, number in counts)
    if len(pool) < count:
        names = " and ".join("hf_mlm_%s_samples=%d" % pair for pair in counts)
        raise RefusedError("%s: found %d samples, expected %d for %s" % (path, len(pool), count, names))
    order = np.random.RandomState(seed).permutation(len(pool)).tolist()
    chosen = {}
    for name, number in counts:
        chosen[name], order = order[:number], order[number:]
    return chosen


def select(path: str, train: int, evaluation: int, seed: int) -> Dict[str, List[str]]:
    """Return the texts of both parts, `train` and `eval`."""
    if not is_dataset(path):
        lines = read_lines(path)
        chosen = choose(path, lines, seed, ("train", train), ("eval", evaluation))
        return {part: [lines[index] for index in indices] for part, indices in chosen.items()}
    pools = read_dataset(path)
    if "eval" in pools:
        chosen = choose(path, pools["train"], seed, ("train", train))
        chosen.update(choose(path, pools["eval"], seed, ("eval", evaluation)))
    else:
        chosen = choose(path, pools["train"], seed, ("train", train), ("eval", evaluation))
    return {
        part: pools.get(part, pools["train"]).select(indices)[COLUMN][:] for part, indices in chosen.items()
    }
