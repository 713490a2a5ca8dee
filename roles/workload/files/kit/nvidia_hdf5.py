# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Samples for BERT in HDF5 files, as NVIDIA's DeepLearningExamples make and name them.

input_ids, input_mask and segment_ids are [samples, tokens], masked_lm_positions and masked_lm_ids [samples,
predictions], next_sentence_labels [samples]. A masked position of 0 ends the list of a sample. A file has
`training` in its name; those for tests have not. Runs on the nodes, Python 3.6 or newer, with h5py and NumPy.
"""

import hashlib
import os
from typing import Any, Dict, Iterator, List, Tuple

import h5py
import numpy as np

SUFFIX = ".hdf5"
AT_ONCE = 65536
"""Samples that are read together."""


class RefusedError(ValueError):
    """A file that a run cannot use; the message names it, the key, what was found and what is expected."""


def files(directory: str) -> List[str]:
    """Return the paths of a directory's training files, in order; none where there is no such directory."""
    if not os.path.isdir(directory):
        return []
    names = [name for name in os.listdir(directory) if "training" in name and name.endswith(SUFFIX)]
    return [os.path.join(directory, name) for name in sorted(names)]


def sha256(path: str) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def stamp(path: str) -> Dict[str, Any]:
    """Return size and time of a file: they show that it is unchanged, without reading it."""
    status = os.stat(path)
    return {"path": path, "bytes": status.st_size, "modified": status.st_mtime_ns}


def forms(length: int, predictions: int) -> Dict[str, Tuple[int, ...]]:
    """Return the shape of a sample under each key."""
    return {
        "input_ids": (length,),
        "input_mask": (length,),
        "segment_ids": (length,),
        "masked_lm_positions": (predictions,),
        "masked_lm_ids": (predictions,),
        "next_sentence_labels": (),
    }


def check(path: str, length: int, predictions: int) -> int:
    """Return the number of samples of a file; raise RefusedError where a run cannot use its shape."""
    try:
        with h5py.File(path, "r") as file:
            return _check_keys(path, file, forms(length, predictions))
    except OSError as error:
        raise RefusedError("%s: found no HDF5 file (%s), expected one" % (path, error)) from error


def _check_keys(path: str, file: Any, expected: Dict[str, Tuple[int, ...]]) -> int:
    count = None
    for key, shape in expected.items():
        if key not in file:
            raise RefusedError(
                "%s: %s: found no such key, only %s; expected NVIDIA's layout: %s"
                % (path, key, ", ".join(sorted(file)) or "an empty file", ", ".join(expected))
            )
        dataset = file[key]
        count = dataset.shape[0] if count is None and dataset.shape else count
        if dataset.dtype.kind not in "iu" or dataset.shape != (count, *shape):
            raise RefusedError(
                "%s: %s: found %s %s, expected whole numbers %s"
                % (path, key, dataset.dtype, list(dataset.shape), [count or "samples", *shape])
            )
    if not count:
        raise RefusedError("%s: input_ids: found no samples, expected one or more" % path)
    return int(count)


def largest_token(path: str) -> int:
    """Return the largest number of a token in a file."""
    highest = 0
    with h5py.File(path, "r") as file:
        for key in ("input_ids", "masked_lm_ids"):
            for start in range(0, len(file[key]), AT_ONCE):
                highest = max(highest, int(file[key][start : start + AT_ONCE].max()))
    return highest


def read(path: str, most: int) -> Dict[str, Any]:
    """Return the first samples of a checked file, at most `most`, as NumPy arrays by their keys."""
    with h5py.File(path, "r") as file:
        return {key: np.asarray(file[key][:most]) for key in forms(0, 0)}


def first(directory: str, most: int) -> Dict[str, Any]:
    """Return the first samples of a directory's checked files, at most `most`, as arrays by their keys."""
    arrays: List[Dict[str, Any]] = []
    for path in files(directory):
        if most > 0:
            arrays.append(read(path, most))
            most -= len(arrays[-1]["input_ids"])
    return {key: np.concatenate([each[key] for each in arrays]) for key in forms(0, 0)}


def filled(positions: Any) -> Any:
    """Return which places of masked positions [samples, predictions] are filled: those before a 0."""
    return np.cumsum(positions == 0, axis=1) == 0


def parts(path: str, size: int) -> Iterator[Dict[str, Any]]:
    """Yield all samples of a checked file, `size` at a time, as NumPy arrays by their keys."""
    with h5py.File(path, "r") as file:
        for start in range(0, len(file["input_ids"]), size):
            yield {key: np.asarray(file[key][start : start + size]) for key in forms(0, 0)}
