# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make tfrecord files of the HDF5 files that make_hdf5.py has made: the same samples in the same order.

    python make_tfrecord.py '<JSON of the request>'

Prints {"changed": bool, "samples": int, "identity": str}.

The request has hdf5 (the directory of the HDF5 files), data (that of the tfrecord files), seq_length,
predictions, processes (0: one for each core), workload (for messages) and check (nothing is written).

A record is a tf.train.Example with the features that create_pretraining_data.py of tensorflow/models writes.
Numbers of a feature take the same number of bytes, with a varint's leading zeros where they are small. All
records have one size then, and NumPy makes many at a time. A file and the record of its samples and checksum
get their names when they are complete, so that a run that was interrupted goes on with those that are
missing; one that does not fit its record, or whose HDF5 file is another one, is made again. At the end all
are read once more and compared with their records; manifest.json is written last.

Exit status 3: the request was refused; the reason is on standard error. Python 3.6 or newer, h5py and NumPy.
"""

import fcntl
import hashlib
import json
import os
import re
import struct
from typing import Any, Dict, List, Tuple

import make_hdf5
import numpy as np
import nvidia_hdf5
from make_hdf5 import RefusedError, complete, read_json, say, write_json

VERSION = 1  # of the records that this program makes
AT_ONCE = 8192
"""Samples that become records together."""
SUFFIX = ".tfrecord"
OURS = re.compile(r"(training_\d{3}\.tfrecord)(\.json|\.part|\.json\.part)?$")
# The bytes of a number: a vocabulary is below 2 ** 21, a sample has at most 512 tokens.
BYTES = {
    "input_ids": 3,
    "input_mask": 1,
    "segment_ids": 1,
    "masked_lm_positions": 2,
    "masked_lm_ids": 3,
    "next_sentence_labels": 1,
}


# Records


def _checksum_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


TABLE = _checksum_table()


def checksums(rows: np.ndarray) -> np.ndarray:
    """Return the masked CRC-32C of each row of bytes, as tfrecord files have it."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        crc = TABLE[(crc ^ column) & 0xFF] ^ (crc >> 8)
    crc = ~crc
    return ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)


def varint(number: int) -> bytes:
    """Return a number as protocol buffers write it."""
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def varints(numbers: np.ndarray, size: int) -> np.ndarray:
    """Return a row of bytes for each row of numbers, every number as a varint of `size` bytes."""
    shifted = numbers.astype(np.int64)[..., None] >> (7 * np.arange(size))
    more = np.where(np.arange(size) < size - 1, 0x80, 0)
    return (shifted & 0x7F | more).astype(np.uint8).reshape(len(numbers), -1)


def _field(number: int, size: int) -> bytes:
    """Return the head of a field of this many bytes."""
    return bytes([number << 3 | 2]) + varint(size)


def feature(name: str, kind: int, values: np.ndarray) -> np.ndarray:
    """Return an entry of tf.train.Features for each row of `values`; kind 2 is FloatList, 3 Int64List."""
    packed = _field(1, values.shape[1])
    listed = _field(kind, len(packed) + values.shape[1]) + packed
    value = _field(2, len(listed) + values.shape[1]) + listed
    key = _field(1, len(name)) + name.encode()
    head = _field(1, len(key) + len(value) + values.shape[1]) + key + value
    return np.hstack([np.tile(np.frombuffer(head, np.uint8), (len(values), 1)), values])


def records(samples: Dict[str, np.ndarray]) -> bytes:
    """Return the records of samples, as a tfrecord file has them."""
    entries = [
        feature(name, 3, varints(samples[name].reshape(len(samples[name]), -1), size))
        for name, size in BYTES.items()
    ]
    # The first position of 0 ends the list of a sample.
    weights = np.cumprod(samples["masked_lm_positions"] > 0, axis=1).astype("<f4")
    entries.append(feature("masked_lm_weights", 2, weights.view(np.uint8).reshape(len(weights), -1)))
    body = np.hstack(entries)
    example = np.frombuffer(_field(1, body.shape[1]), np.uint8)
    body = np.hstack([np.tile(example, (len(body), 1)), body])
    size = np.tile(np.frombuffer(struct.pack("<Q", body.shape[1]), np.uint8), (len(body), 1))
    ends = [checksums(part).astype("<u4").view(np.uint8).reshape(-1, 4) for part in (size, body)]
    framed: bytes = np.hstack([size, ends[0], body, ends[1]]).tobytes()
    return framed


# Files


def parameters(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return all that determines the content of the files: the HDF5 files and their checksums."""
    manifest = read_json(os.path.join(request["hdf5"], "manifest.json"))
    if not manifest:
        raise RefusedError("%s: has no manifest.json, so its files are not complete" % request["hdf5"])
    paths = nvidia_hdf5.files(request["hdf5"])
    return {
        "version": VERSION,
        "samples": manifest["identity"],
        "files": [
            [os.path.basename(path), read_json(make_hdf5.record_path(path))["sha256"]] for path in paths
        ],
        "seq_length": request["seq_length"],
        "predictions": request["predictions"],
    }


def target(data: str, name: str) -> str:
    """Return the path of the tfrecord file of an HDF5 file."""
    return os.path.join(data, name[: -len(nvidia_hdf5.SUFFIX)] + SUFFIX)


def make(source: str, path: str, checksum: str) -> None:
    """Make a tfrecord file and its record."""
    digest, count = hashlib.sha256(), 0
    with open(path + ".part", "wb") as stream:
        for samples in nvidia_hdf5.parts(source, AT_ONCE):
            record_bytes = records(samples)
            digest.update(record_bytes)
            stream.write(record_bytes)
            count += len(samples["input_ids"])
    write_json(path + ".json", {"samples": count, "sha256": digest.hexdigest(), "of": checksum})
    os.replace(path + ".part", path)


def fits(path: str, checksum: str) -> bool:
    """Return whether a tfrecord file is the one of its record, made of the HDF5 file with this checksum."""
    record = read_json(path + ".json")
    return (
        bool(record)
        and record["of"] == checksum
        and os.path.exists(path)
        and nvidia_hdf5.sha256(path) == record["sha256"]
    )


def _stamps(data: str, expected: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [nvidia_hdf5.stamp(target(data, name)) for name, _ in expected["files"]]


def make_all(data: str, expected: Dict[str, Any], request: Dict[str, Any]) -> Dict[str, Any]:
    """Make the files that are missing or damaged; return the manifest of all."""
    own_names = {os.path.basename(target(data, name)) for name, _ in expected["files"]}
    for name in os.listdir(data):
        match = OURS.match(name)
        if match and match.group(1) not in own_names:
            os.unlink(os.path.join(data, name))  # of a text that was longer
    missing: List[Tuple[Any, ...]] = [
        (name, make, os.path.join(request["hdf5"], name), target(data, name), checksum)
        for name, checksum in expected["files"]
        if not fits(target(data, name), checksum)
    ]

    def ended(count: int, name: str) -> None:
        say(data, "tfrecord file %d of %d made: %s" % (count, len(missing), os.path.basename(name)))

    make_hdf5.run_all(request["processes"] or len(os.sched_getaffinity(0)), missing, ended)
    records_by_name = []
    for name, checksum in expected["files"]:
        path = target(data, name)
        if not fits(path, checksum):
            raise RefusedError("%s: differs from what was written; run it again" % path)
        records_by_name.append([os.path.basename(path), read_json(path + ".json")])
    return {
        "parameters": expected,
        "stamps": _stamps(data, expected),
        "samples": sum(record["samples"] for _, record in records_by_name),
        "identity": hashlib.sha256(json.dumps(records_by_name, sort_keys=True).encode()).hexdigest(),
    }


def prepare(request: Dict[str, Any]) -> Dict[str, Any]:
    """Make the files unless they are complete; return what the program prints."""
    data = request["data"]
    if request["check"] and not os.path.exists(os.path.join(request["hdf5"], "manifest.json")):
        return {"changed": True}  # the HDF5 files will be made first
    expected = parameters(request)
    manifest = complete(data, expected, _stamps)
    if manifest or request["check"]:
        return dict(manifest or {}, changed=not manifest)
    os.makedirs(data, exist_ok=True)
    # Simulated nodes share a directory. Where others can write too, a link may wait under this name.
    with os.fdopen(os.open(data + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = complete(data, expected, _stamps)
        if manifest:
            return dict(manifest, changed=False)
        manifest = make_all(data, expected, request)
        write_json(os.path.join(data, "manifest.json"), manifest)
        say(data, "%d samples in %d tfrecord files, checked" % (manifest["samples"], len(expected["files"])))
    return dict(manifest, changed=True)


if __name__ == "__main__":
    make_hdf5.answer(prepare)
