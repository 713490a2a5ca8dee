# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Generate or check pre-tokenized pretraining samples: NumPy arrays that the trainer maps into memory.

    python3 make_data.py '<JSON of the job>'      prints {"changed": bool, "manifest": {...}}

There is one directory per vocabulary. It holds words.npy [samples, seq], segments.npy [samples, seq],
lengths.npy [samples], positions.npy and labels.npy [samples, predictions], and following.npy [samples].
Arrays of your own in this format are used unchanged. Generated samples are of an invented language: word
frequencies follow Zipf's law, every document has a topic that shifts which words are frequent, half of the
second sentences have another topic, and 15 % of the words are masked as BERT does. Samples are not padded.
The same seed gives the same samples on every machine, because NumPy guarantees the numbers of RandomState.
manifest.json is written last.

Exit status 3: the request was refused; the reason is on standard error.

Requires Python 3.6 or later and NumPy.
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


def make(job: Dict[str, Any], vocabulary: int) -> Dict[str, np.ndarray]:
    """Return the arrays of one vocabulary, by name."""
    rng = np.random.RandomState(job["seed"])
    count, seq, masked = job["samples"], job["seq_length"], job["predictions"]
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
    shown = np.where(dice < 0.8, MASK, np.where(dice < 0.9, strange, labels))
    np.put_along_axis(words, positions, shown, 1)
    made = {
        "words": words,
        "segments": segments,
        "lengths": np.full(count, seq),
        "positions": positions,
        "labels": labels,
        "following": following,
    }
    return {name: made[name].astype(kind) for name, (_, kind) in FORMS.items()}


def digest(path: str) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal."""
    value = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            value.update(block)
    return value.hexdigest()


def check_arrays(directory: str, job: Dict[str, Any], vocabulary: int) -> None:
    """Raise RefusedError if the trainer cannot use the arrays."""
    counts = set()
    for name, (axis, _) in FORMS.items():
        path = os.path.join(directory, name + ".npy")
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as exc:
            raise RefusedError("%s: %s" % (path, exc)) from exc
        wanted = () if axis is None else (job[axis],)
        if array.dtype.kind not in "iu" or array.shape[1:] != wanted:
            raise RefusedError(
                "%s: is %s %s, must be whole numbers [samples%s]"
                % (path, array.dtype, list(array.shape), ", %d" % wanted if wanted else "")
            )
        counts.add(len(array))
        top = {"words": vocabulary, "labels": vocabulary, "positions": job["seq_length"]}.get(name)
        if top and len(array) and int(array.max()) >= top:
            raise RefusedError("%s: holds %d, must be below %d" % (path, int(array.max()), top))
    if len(counts) != 1 or not counts.pop():
        raise RefusedError("%s: the arrays hold different numbers of samples, or none" % directory)


def wanted_parameters(job: Dict[str, Any]) -> Dict[str, Any]:
    """Return all parameters that determine the content of the data."""
    keys = ("seq_length", "predictions", "seed", "samples", "vocabularies", "own")
    return dict({key: job[key] for key in keys}, schema=SCHEMA)


def complete(job: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the manifest if the data are complete and fit the job, otherwise None."""
    try:
        with open(os.path.join(job["data"], "manifest.json"), encoding="utf-8") as stream:
            manifest: Dict[str, Any] = json.load(stream)
        if manifest["parameters"] != wanted_parameters(job):
            return None
        for name, entry in manifest["files"].items():
            status = os.stat(os.path.join(job["data"], name))
            if [status.st_size, status.st_mtime_ns] != [entry["bytes"], entry["modified"]]:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no manifest, or not one of ours: generate the data again
    return manifest


def fill(job: Dict[str, Any]) -> Dict[str, Any]:
    """Write the arrays of every vocabulary and the manifest; return the manifest."""
    files: Dict[str, Dict[str, Any]] = {}
    for vocabulary in job["vocabularies"]:
        directory = os.path.join(job["data"], str(vocabulary))
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        if job["own"]:
            source = job["own"]
            check_arrays(source, job, vocabulary)
            for name in FORMS:
                os.symlink(os.path.join(source, name + ".npy"), os.path.join(directory, name + ".npy"))
        else:
            for name, array in make(job, vocabulary).items():
                np.save(os.path.join(directory, name + ".npy"), array)
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
    manifest = {"parameters": wanted_parameters(job), "files": files, "identity": identity}
    path = os.path.join(job["data"], "manifest.json")
    with open(path + ".new", "w", encoding="utf-8") as stream:
        json.dump(manifest, stream, indent=1, sort_keys=True)
    os.replace(path + ".new", path)
    return manifest


def main(argv: List[str]) -> None:
    """Generate or check the data of the job in argv[1]."""
    job = json.loads(argv[1])
    manifest = complete(job)
    changed = manifest is None
    if changed and not job["check"]:
        os.makedirs(job["data"], exist_ok=True)
        # Simulated nodes share one directory.
        with open(os.path.join(job["data"], "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = complete(job) or fill(job)
    print(json.dumps({"changed": changed, "manifest": manifest or {}}))


if __name__ == "__main__":
    try:
        main(sys.argv)
    except RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)
