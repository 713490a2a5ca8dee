# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Check the user's own HDF5 files and link them to where bing_bert reads its data.

    python own_data.py DATA VOCABULARY LENGTH PREDICTIONS OWN

DATA gets a directory per size of vocabulary, as from make_data.py, with links to the files of the directory
OWN where their tokens are in the vocabulary of the models of this size. Files that are unchanged since are
not read again. Prints {"changed": bool, "samples": int, "identity": str}: the samples of the smallest file,
and a checksum that is the same on two nodes with the same files.

Exit status 3: the files were refused; the reason is on standard error. Python 3.6 or newer, with h5py.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
from typing import Any, Dict, List

import bert_sizes
import data_stamp
import make_data
import nvidia_hdf5


def vocabularies(folder: str) -> Dict[int, int]:
    """Return how many tokens all models of a size of vocabulary know, by that size; make missing files."""
    tokens_by_size: Dict[int, int] = {}
    for name, model in bert_sizes.MODELS.items():
        size = model["vocabulary"]
        with open(make_data.vocabulary(folder, name, size), encoding="utf-8") as file:
            tokens_by_size[size] = min(tokens_by_size.get(size, sys.maxsize), sum(1 for _ in file))
    return tokens_by_size


def link(data: str, paths: List[str], largest: int, tokens_by_size: Dict[int, int]) -> None:
    """Link the files to the directory of each vocabulary that has their largest token."""
    if largest >= max(tokens_by_size.values()):
        raise nvidia_hdf5.RefusedError(
            "%s: input_ids: found the token %d, expected tokens below %d, the lines of the largest vocabulary"
            " (bing_bert_vocabulary)" % (os.path.dirname(paths[0]), largest, max(tokens_by_size.values()))
        )
    for size, tokens in tokens_by_size.items():
        folder = os.path.join(data, str(size))
        shutil.rmtree(folder, ignore_errors=True)
        if largest < tokens:
            os.makedirs(folder)
            for path in paths:
                os.symlink(path, os.path.join(folder, os.path.basename(path)))


def prepare(data: str, folder: str, length: int, predictions: int, own: str) -> Dict[str, Any]:
    """Check and link the files unless they are unchanged; return what the program prints."""
    paths = nvidia_hdf5.files(own)
    if not paths:
        raise nvidia_hdf5.RefusedError(
            "bing_bert_own_data=%s: found no file *training*.hdf5 in this directory, expected one or more"
            % own
        )
    tokens_by_size = vocabularies(folder)
    wanted: Dict[str, Any] = {"own": own, "length": length, "predictions": predictions}
    wanted["tokens"] = sorted(tokens_by_size.items())
    wanted["files"] = [nvidia_hdf5.stamp(path) for path in paths]
    # As JSON gives them back.
    wanted = json.loads(json.dumps(wanted))
    found = data_stamp.read(data)
    if found and found.get("wanted") == wanted:
        return {"changed": False, "samples": found["samples"], "identity": found["identity"]}
    samples = min(nvidia_hdf5.check(path, length, predictions) for path in paths)
    link(data, paths, max(nvidia_hdf5.largest_token(path) for path in paths), tokens_by_size)
    sums = [(os.path.basename(path), nvidia_hdf5.sha256(path)) for path in paths]
    identity = hashlib.sha256(json.dumps(sums).encode()).hexdigest()
    data_stamp.write(data, {"wanted": wanted, "samples": samples, "identity": identity})
    return {"changed": True, "samples": samples, "identity": identity}


def main() -> None:
    """Check the files of the command line."""
    data, folder, length, predictions, own = sys.argv[1:]
    for directory in (data, folder):
        if not os.path.isdir(directory):
            os.makedirs(directory)
    try:
        # Simulated nodes share one directory.
        with open(os.path.join(data, "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            print(json.dumps(prepare(data, folder, int(length), int(predictions), own)))
    except nvidia_hdf5.RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
