# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make or check what bing_bert reads with --use_nvidia_dataset: HDF5 files of samples, and vocabularies.

    python make_data.py '<JSON of the request>'
    prints {"changed": bool, "samples": int, "identity": str}

The request has data and vocabulary (directories), own (a directory of the user's HDF5 files, or ""), values
(what the data are made with), make (whether data of other values are replaced, or refused) and check (nothing
is written). data gets a directory per size of vocabulary: with links to the user's files where their tokens
are in the vocabulary of the models of this size, else with values["files"] files of values["samples"]
samples each, drawn with values["seed"]. A rank reads one; ranks beyond their number share them. vocabulary
gets a NAME-vocab.txt per model where there is none; an existing one stays.

samples are those of the smallest file, identity is a checksum that is the same on two nodes with the same
files. Files that are unchanged since are not read again. The layout is that of nvidia_hdf5.py; the frequency
of words falls as in a language. The same values give the same bytes.

Exit status 3: the request was refused; the reason is on standard error. Python 3.6 or newer, h5py and numpy.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
from typing import Any, Dict, List, Tuple

import bert_sizes
import data_stamp
import h5py
import numpy as np
import nvidia_hdf5
import trainer_flags

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # [PAD] is word 0, as the provider pads
PAD, _, CLS, SEP, MASK = range(len(SPECIAL))
VERSION = 1  # of the samples that this program draws


def draw_words(random: Any, shape: Tuple[int, ...], vocabulary: int) -> Any:
    """Return word numbers [*shape]; the frequency of the n-th word is proportional to 1/n."""
    ranks = np.exp(random.random_sample(shape) * np.log(vocabulary - len(SPECIAL)))
    return (ranks.astype(np.int32) - 1 + len(SPECIAL)).clip(len(SPECIAL), vocabulary - 1)


def draw_samples(random: Any, count: int, length: int, predictions: int, vocabulary: int) -> Dict[str, Any]:
    """Return the arrays of one file by their names; every sample is full."""
    text = draw_words(random, (count, length), vocabulary)
    middle = length // 2
    text[:, 0], text[:, middle], text[:, -1] = CLS, SEP, SEP
    free = np.array([position for position in range(1, length - 1) if position != middle], np.int32)
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


def vocabulary(folder: str, model: str, size: int, check: bool) -> str:
    """Return the text of a model's vocabulary; where there is none, write one unless `check` is true."""
    path = os.path.join(folder, trainer_flags.NAMES.get(model, "bert-" + model) + "-vocab.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return file.read()
    letters = [
        "w" + "".join("abcdefghijklmnop"[n >> shift & 15] for shift in (12, 8, 4, 0)) for n in range(size)
    ]
    text = "".join(word + "\n" for word in SPECIAL + letters[: size - len(SPECIAL)])
    if not check:
        with open(path + ".part", "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(path + ".part", path)
    return text


def empty(folder: str) -> str:
    """Return this directory without its files: bing_bert reads every file."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def draw(data: str, values: Dict[str, Any]) -> str:
    """Write the files of invented samples; return their identity."""
    for size in sorted({model["vocabulary"] for model in bert_sizes.MODELS.values()}):
        folder = empty(os.path.join(data, str(size)))
        for number in range(values["files"]):
            random = np.random.RandomState([values["seed"], number])
            form = (values["samples"], values["length"], values["predictions"], size)
            write(os.path.join(folder, "training_%03d.hdf5" % number), draw_samples(random, *form))
    return checksum([VERSION, values])


def link(data: str, paths: List[str], tokens_by_size: Dict[int, int]) -> str:
    """Link the user's files to the directory of each vocabulary that has their largest token.

    Return their identity.
    """
    largest = max(nvidia_hdf5.largest_token(path) for path in paths)
    if largest >= max(tokens_by_size.values()):
        raise nvidia_hdf5.RefusedError(
            "%s: input_ids: found the token %d, expected tokens below %d, the lines of the largest vocabulary"
            " (bing_bert_vocabulary)" % (os.path.dirname(paths[0]), largest, max(tokens_by_size.values()))
        )
    for size, tokens in tokens_by_size.items():
        folder = empty(os.path.join(data, str(size)))
        for path in paths:
            os.symlink(path, os.path.join(folder, os.path.basename(path)))
        if largest >= tokens:
            shutil.rmtree(folder)
    return checksum([(os.path.basename(path), nvidia_hdf5.sha256(path)) for path in paths])


def checksum(value: Any) -> str:
    """Return the SHA-256 checksum of a value's JSON, in hexadecimal."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def own_files(own: str) -> List[str]:
    """Return the paths of the user's files; raise RefusedError where there are none."""
    paths = nvidia_hdf5.files(own)
    if not paths:
        raise nvidia_hdf5.RefusedError(
            "bing_bert_own_data=%s: found no file *training*.hdf5 in this directory, expected one or more"
            % own
        )
    return paths


def refuse_other_values(data: str, stamp: Dict[str, Any], values: Dict[str, Any]) -> None:
    """Raise RefusedError where the data were made with other values."""
    if stamp.get("values") != values:
        present, required = (json.dumps(each, sort_keys=True) for each in (stamp.get("values"), values))
        raise nvidia_hdf5.RefusedError(
            "The data in %s was made with %s (bing_bert_files, _samples, _seq_length, _predictions, _seed,"
            " _own_data, _text, _vocab_file), required is %s: run ansible-playbook provision.yml with the"
            " same values first" % (data, present, required)
        )


def read_vocabularies(folder: str, check: bool) -> Dict[int, int]:
    """Return how many tokens all models of a size of vocabulary know, by that size; make missing files."""
    tokens_by_size: Dict[int, int] = {}
    for name, model in bert_sizes.MODELS.items():
        size = model["vocabulary"]
        tokens = len(vocabulary(folder, name, size, check).splitlines())
        tokens_by_size[size] = min(tokens_by_size.get(size, tokens), tokens)
    return tokens_by_size


def prepare(request: Dict[str, Any]) -> Dict[str, Any]:
    """Make the data unless they are unchanged; return what the program prints."""
    data, values, check = request["data"], request["values"], request["check"]
    stamp: Dict[str, Any] = data_stamp.read(data) or {}
    if not request["make"]:
        refuse_other_values(data, stamp, values)
    if check and stamp.get("values") != values:
        return {"changed": True, "samples": 0, "identity": ""}
    paths = own_files(request["own"]) if request["own"] else []
    tokens_by_size = read_vocabularies(request["vocabulary"], check)
    source: List[Any] = [VERSION]
    if paths:
        # Lists, as JSON gives them back.
        source = [[list(each) for each in sorted(tokens_by_size.items())]]
        source += [nvidia_hdf5.stamp(path) for path in paths]
    changed = (stamp.get("values"), stamp.get("source")) != (values, source)
    if changed and not check:
        form = (values["length"], values["predictions"])
        samples = min(nvidia_hdf5.check(path, *form) for path in paths) if paths else values["samples"]
        data_stamp.write(data, None)  # the files are incomplete from here on
        identity = link(data, paths, tokens_by_size) if paths else draw(data, values)
        stamp = {"values": values, "source": source, "samples": samples, "identity": identity}
        data_stamp.write(data, stamp)
    return {"changed": changed, "samples": stamp["samples"], "identity": stamp["identity"]}


def main() -> None:
    """Make or check the data of the request."""
    request = json.loads(sys.argv[1])
    try:
        if request["check"]:
            print(json.dumps(prepare(request)))
            return
        for directory in (request["data"], request["vocabulary"]):
            os.makedirs(directory, exist_ok=True)
        # Simulated nodes share one directory.
        with open(os.path.join(request["data"], "lock"), "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            print(json.dumps(prepare(request)))
    except nvidia_hdf5.RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
