# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tfrecord files for BERT of HDF5 files: the same samples, resumed, checked."""

import json
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
import role_files

make_tfrecord = role_files.load("workload", "make_tfrecord")
make_hdf5, nvidia_hdf5 = make_tfrecord.make_hdf5, make_tfrecord.nvidia_hdf5
LENGTH, PREDICTIONS = 32, 5
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture
def job(tmp_path):
    """A request for the samples of four HDF5 files."""
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "a", "b", "."]) + "\n")
    (tmp_path / "text.txt").write_text(("a b a b .\n" * 9 + "\n") * 20)
    values = {"seq_length": LENGTH, "predictions": PREDICTIONS, "processes": 1}
    values |= {"workload": "tf2_bert", "check": False}
    text = {"text_files": [f"{tmp_path}/text.txt"], "vocab_file": f"{tmp_path}/vocab.txt"}
    make_hdf5.prepare({**values, **text, "data": f"{tmp_path}/hdf5", "seed": 2020, "files": 4})
    return {**values, "hdf5": f"{tmp_path}/hdf5", "data": f"{tmp_path}/tfrecord"}


def made(job, **other):
    return make_tfrecord.prepare({**job, **other})


def varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 0x7F) << shift, shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Return the fields of a message, by number: those that have a length."""
    at, found = 0, {}
    while at < len(data):
        tag, at = varint(data, at)
        assert tag & 7 == 2
        size, at = varint(data, at)
        found.setdefault(tag >> 3, []).append(data[at : at + size])
        at += size
    return found


def numbers(data):
    at, found = 0, []
    while at < len(data):
        number, at = varint(data, at)
        found.append(number)
    return found


def examples(path):
    """Yield the features of each record, as the definitions of tfrecord and tf.train.Example have them."""
    data, at = Path(path).read_bytes(), 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + size]
        sample = {}
        for entry in fields(fields(body)[1][0])[1]:
            name, value = fields(entry)[1][0].decode(), fields(fields(entry)[2][0])
            packed = fields(next(iter(value.values()))[0])[1][0]
            sample[name] = numbers(packed) if 3 in value else list(np.frombuffer(packed, "<f4"))
        yield sample
        at += size + 16


def test_the_checksum_is_that_of_the_definition():
    # CRC-32C of 123456789 is E3069283, which every definition of it names.
    row = np.frombuffer(b"123456789", np.uint8)[None]
    crc = 0xE3069283
    expected = ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
    assert make_tfrecord.checksums(row)[0] == expected


def test_a_record_has_the_sample_of_the_hdf5_file(job):
    made(job)
    found = list(examples(f"{job['data']}/training_001.tfrecord"))
    with h5py.File(f"{job['hdf5']}/training_001.hdf5") as stream:
        arrays = {key: np.asarray(stream[key]) for key in stream}
    for key, values in arrays.items():
        assert [sample[key] for sample in found] == values.reshape(len(values), -1).tolist()


def test_a_masked_token_weighs_one_and_padding_nothing(job):
    made(job)
    for sample in examples(f"{job['data']}/training_000.tfrecord"):
        assert sample["masked_lm_weights"] == [float(place > 0) for place in sample["masked_lm_positions"]]


def test_a_large_vocabulary_has_room():
    values = np.array([[30521, 0, 2**21 - 1]])
    assert numbers(make_tfrecord.varints(values, 3).tobytes()) == values[0].tolist()


def test_any_number_of_processes_makes_the_same_files_once(job, tmp_path):
    one = made(job)
    assert made(job) == {**one, "changed": False}
    three = made(job, data=f"{tmp_path}/other", processes=3)
    assert three["identity"] == one["identity"]


def test_a_damaged_file_alone_is_made_again(job):
    identity = made(job)["identity"]
    path = Path(job["data"], "training_002.tfrecord")
    others = {other: other.stat().st_ino for other in path.parent.glob("*.tfrecord") if other != path}
    path.write_bytes(path.read_bytes()[:-1])
    again = made(job)
    assert (again["changed"], again["identity"]) == (True, identity)
    assert {other: other.stat().st_ino for other in others} == others


def test_files_of_another_text_are_made_again_and_superfluous_ones_removed(job, tmp_path):
    made(job)
    request = json.loads(Path(job["hdf5"], "parameters.json").read_text())
    text = {"text_files": [f"{tmp_path}/text.txt"], "vocab_file": f"{tmp_path}/vocab.txt", "seed": 1}
    make_hdf5.prepare({**job, **text, "data": job["hdf5"], "files": request["files"] - 1})
    assert made(job)["changed"]
    assert len(list(Path(job["data"]).glob("*.tfrecord"))) == 3


def test_incomplete_hdf5_files_are_refused(job):
    Path(job["hdf5"], "manifest.json").unlink()
    with pytest.raises(make_hdf5.RefusedError, match=r"has no manifest\.json"):
        made(job)


def test_a_check_writes_nothing(job):
    assert made(job, check=True) == {"changed": True}
    assert not Path(job["data"]).exists()
