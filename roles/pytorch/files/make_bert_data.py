# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Generate or check pre-tokenized pretraining samples: NumPy arrays that the trainer maps into memory.

    python3 make_data.py '<JSON of the request>'      prints {"changed": bool, "manifest": {...}}

There is one directory per vocabulary. It holds words.npy [samples, seq], segments.npy [samples, seq],
lengths.npy [samples], positions.npy and labels.npy [samples, predictions], and following.npy [samples].
Arrays of your own in this format are used unchanged. HDF5 files of your own, as NVIDIA's DeepLearningExamples
make them, are converted. Both are for the models whose vocabulary has all their tokens. Generated samples are
of an invented language: word
frequencies follow Zipf's law, every document has a topic that shifts which words are frequent, half of the
second sentences have another topic, and 15 % of the words are masked as BERT does. Samples are not padded.
The same seed gives the same samples on every machine, because NumPy guarantees the numbers of RandomState.
manifest.json is written last.

Exit status 3: the request was refused; the reason is on standard error.

Requires Python 3.6 or later and NumPy; for HDF5 files, h5py and nvidia_hdf5.py of the kit.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
from typing import Any, Dict, List, Optional

import numpy as np

SCHEMA = 1
NOTHING = -1  # the label of a place where the model has nothing to predict
PAD, CLS, SEP, MASK, FIRST_WORD = 0, 2, 3, 4, 5
TOPICS = 16
FORMS = {
    "words": ("seq_length", np.uint16),
    "segments": ("seq_length", np.uint8),
    "lengths": (None, np.uint16),
    "positions": ("predictions", np.uint16),
    "labels": ("predictions", np.uint16),
    "following": (None, np.uint8),
}


class RefusedError(ValueError):
    """The arrays cannot be generated or used as requested; the message says why."""


def make(request: Dict[str, Any], vocabulary: int) -> Dict[str, np.ndarray]:
    """Return the arrays of one vocabulary, by name."""
    rng = np.random.RandomState(request["seed"])
    count, seq, masked = request["samples"], request["seq_length"], request["predictions"]
    usable = vocabulary - FIRST_WORD
    following = rng.randint(0, 2, count)
    first = rng.randint(0, TOPICS, count)
    other = (first + rng.randint(1, TOPICS, count)) % TOPICS
    # [CLS] A [SEP] B [SEP]; A ends within the middle half.
    border = rng.randint(seq // 4, seq - seq // 4, count)
    place = np.arange(seq)[None, :]
    segments = (place > border[:, None]).astype(np.uint8)
    topic = np.where(segments == 1, np.where(following == 0, first, other)[:, None], first[:, None])
    # A log-uniform rank: the frequency of a word is proportional to 1/rank.
    rank = np.minimum((usable ** rng.random_sample((count, seq))).astype(np.int64) - 1, usable - 1)
    words = FIRST_WORD + (rank + topic * (usable // TOPICS)) % usable
    words[:, 0] = CLS
    words[:, -1] = SEP
    words[np.arange(count), border] = SEP
    # Mask words at random positions, never [CLS] or [SEP].
    order = rng.random_sample((count, seq))
    order[(words == CLS) | (words == SEP)] = 2
    positions = np.sort(np.argsort(order, axis=1, kind="stable")[:, :masked], axis=1)
    labels = np.take_along_axis(words, positions, 1)
    dice = rng.random_sample((count, masked))
    strange = FIRST_WORD + rng.randint(0, usable, (count, masked))
    inputs = np.where(dice < 0.8, MASK, np.where(dice < 0.9, strange, labels))
    np.put_along_axis(words, positions, inputs, 1)
    arrays = {
        "words": words,
        "segments": segments,
        "lengths": np.full(count, seq),
        "positions": positions,
        "labels": labels,
        "following": following,
    }
    return {name: arrays[name].astype(kind) for name, (_, kind) in FORMS.items()}


def digest(path: str) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal."""
    value = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            value.update(block)
    return value.hexdigest()


def check_arrays(directory: str, request: Dict[str, Any]) -> int:
    """Return the largest number of a token; raise RefusedError if the trainer cannot use the arrays."""
    counts, largest = set(), 0
    for name, (axis, _) in FORMS.items():
        path = os.path.join(directory, name + ".npy")
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as exc:
            raise RefusedError("%s: %s" % (path, exc)) from exc
        expected_shape = () if axis is None else (request[axis],)
        if array.dtype.kind not in "iu" or array.shape[1:] != expected_shape:
            raise RefusedError(
                "%s: is %s %s, must be whole numbers [samples%s]"
                % (path, array.dtype, list(array.shape), ", %d" % expected_shape if expected_shape else "")
            )
        counts.add(len(array))
        lowest, highest = (int(array.min()), int(array.max())) if len(array) else (0, 0)
        if lowest < (NOTHING if name == "labels" else 0):
            raise RefusedError("%s: holds %d, must be 0 or more" % (path, lowest))
        if name == "positions" and highest >= request["seq_length"]:
            raise RefusedError("%s: holds %d, must be below %d" % (path, highest, request["seq_length"]))
        if name in ("words", "labels"):
            largest = max(largest, highest)
    if len(counts) != 1 or not counts.pop():
        raise RefusedError("%s: the arrays hold different numbers of samples, or none" % directory)
    return largest


def is_hdf5(request: Dict[str, Any]) -> bool:
    """Return whether the user's own data are HDF5 files and not arrays."""
    return bool(request["own"]) and not os.path.exists(os.path.join(request["own"], "words.npy"))


def hdf5() -> Any:
    """Return the module that reads HDF5 files; raise RefusedError where the interpreter has no h5py."""
    try:
        import nvidia_hdf5
    except ImportError as exc:
        raise RefusedError("%s: HDF5 files need h5py: %s" % (sys.executable, exc)) from exc
    return nvidia_hdf5


def convert(request: Dict[str, Any]) -> Dict[str, np.ndarray]:
    """Return the arrays of the first samples of the user's HDF5 files, by name."""
    files = hdf5()
    paths = files.files(request["own"])
    if not paths:
        raise RefusedError(
            "%s=%s: found neither words.npy nor a file *training*.hdf5 in this directory"
            % (request["own_variable"], request["own"])
        )
    parts: Dict[str, List[np.ndarray]] = {name: [] for name in FORMS}
    missing = request["samples"]
    for path in paths:
        try:
            files.check(path, request["seq_length"], request["predictions"])
        except files.RefusedError as exc:
            raise RefusedError(str(exc)) from exc
        if missing:
            file_arrays = files.read(path, missing)
            missing -= len(file_arrays["input_ids"])
            filled = files.filled(file_arrays["masked_lm_positions"])
            parts["words"].append(file_arrays["input_ids"])
            parts["segments"].append(file_arrays["segment_ids"])
            parts["lengths"].append(file_arrays["input_mask"].astype(np.int64).sum(axis=1))
            parts["positions"].append(np.where(filled, file_arrays["masked_lm_positions"], 0))
            parts["labels"].append(np.where(filled, file_arrays["masked_lm_ids"], NOTHING))
            parts["following"].append(file_arrays["next_sentence_labels"])
    return {name: np.concatenate(arrays).astype(np.int32) for name, arrays in parts.items()}


def wanted_parameters(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return all parameters that determine the content of the data."""
    keys = ("seq_length", "predictions", "seed", "samples", "vocabularies", "own")
    parameters = dict({key: request[key] for key in keys}, schema=SCHEMA)
    if is_hdf5(request):
        files = hdf5()
        parameters["hdf5"] = [files.stamp(path) for path in files.files(request["own"])]
    return parameters


def complete(request: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the manifest if the data are complete and fit the request, otherwise None."""
    try:
        with open(os.path.join(request["data"], "manifest.json"), encoding="utf-8") as stream:
            manifest: Dict[str, Any] = json.load(stream)
        if manifest["parameters"] != wanted_parameters(request):
            return None
        for name, entry in manifest["files"].items():
            status = os.stat(os.path.join(request["data"], name))
            if [status.st_size, status.st_mtime_ns] != [entry["bytes"], entry["modified"]]:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no manifest, or not one of ours: generate the data again
    return manifest


def save(directory: str, arrays: Dict[str, np.ndarray]) -> None:
    """Write arrays into a new directory."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    for name, array in arrays.items():
        np.save(os.path.join(directory, name + ".npy"), array)


def fill(request: Dict[str, Any]) -> Dict[str, Any]:
    """Write the arrays of every vocabulary and the manifest; return the manifest."""
    files: Dict[str, Dict[str, Any]] = {}
    source, largest = request["own"], -1
    converted = os.path.join(request["data"], "converted")
    shutil.rmtree(converted, ignore_errors=True)
    if is_hdf5(request):
        source = converted
        save(source, convert(request))
    if source:
        largest = check_arrays(source, request)
        if largest >= max(request["vocabularies"]):
            raise RefusedError(
                "%s: holds the token %d; the largest vocabulary of a model has those below %d"
                % (request["own"], largest, max(request["vocabularies"]))
            )
    for vocabulary in request["vocabularies"]:
        directory = os.path.join(request["data"], str(vocabulary))
        shutil.rmtree(directory, ignore_errors=True)
        if largest >= vocabulary:
            continue
        if source:
            os.makedirs(directory)
            for name in FORMS:
                os.symlink(os.path.join(source, name + ".npy"), os.path.join(directory, name + ".npy"))
        else:
            save(directory, make(request, vocabulary))
        for name in FORMS:
            path = os.path.join(directory, name + ".npy")
            status = os.stat(path)
            files["%d/%s.npy" % (vocabulary, name)] = {
                "bytes": status.st_size,
                "modified": status.st_mtime_ns,
                "sha256": digest(path),
            }
    sums = {name: entry["sha256"] for name, entry in files.items()}
    identity = hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()
    manifest = {"parameters": wanted_parameters(request), "files": files, "identity": identity}
    path = os.path.join(request["data"], "manifest.json")
    with open(path + ".new", "w", encoding="utf-8") as stream:
        json.dump(manifest, stream, indent=1, sort_keys=True)
    os.replace(path + ".new", path)
    return manifest


def refuse_foreign(request: Dict[str, Any]) -> None:
    """Raise RefusedError where something of a directory would be removed that this program has not begun."""
    names = os.listdir(request["data"])
    ours = ["converted"] + [str(vocabulary) for vocabulary in request["vocabularies"]]
    foreign = [name for name in ours if name in names]
    if foreign and not {"lock", "manifest.json"} & set(names):
        path = os.path.join(request["data"], foreign[0])
        raise RefusedError(
            "%s would be removed, and is not a data set of scalebook; name a new directory" % path
        )


def main(argv: List[str]) -> None:
    """Generate or check the data of the request in argv[1]."""
    request = json.loads(argv[1])
    manifest = complete(request)
    changed = manifest is None
    if changed and not request["check"]:
        os.makedirs(request["data"], exist_ok=True)
        refuse_foreign(request)
        # Simulated nodes share one directory.
        with open(os.path.join(request["data"], "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = complete(request) or fill(request)
    print(json.dumps({"changed": changed, "manifest": manifest or {}}))


if __name__ == "__main__":
    try:
        main(sys.argv)
    except RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)
