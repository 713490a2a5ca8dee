# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""HDF5 files of a user for bing_bert, deepspeed_bert and torch_bert: what is read, and what is refused."""

import contextlib
import io
import json
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from role_files import ROLES

KIT = ROLES / "workload/files/kit"
LENGTH, PREDICTIONS = 32, 5


def samples(count=6, tokens=30522, seed=1):
    """Return the arrays of a file as create_pretraining_data.py of NVIDIA writes them: padded, few masked."""
    random = np.random.RandomState(seed)
    ids = random.randint(1000, tokens, (count, LENGTH)).astype("i4")
    mask = np.ones((count, LENGTH), "i1")
    ids[:, 20:], mask[:, 20:] = 0, 0
    positions = np.zeros((count, PREDICTIONS), "i4")
    positions[:, :3] = [2, 5, 9]
    masked = np.where(positions, ids[:, :PREDICTIONS], 0).astype("i4")
    segments = np.zeros((count, LENGTH), "i1")
    segments[:, 10:20] = 1
    following = (np.arange(count) % 2).astype("i1")
    return {
        "input_ids": ids,
        "input_mask": mask,
        "segment_ids": segments,
        "masked_lm_positions": positions,
        "masked_lm_ids": masked,
        "next_sentence_labels": following,
    }


def write(folder, name="wikicorpus_en_training_0.hdf5", arrays=None):
    folder.mkdir(exist_ok=True)
    with h5py.File(folder / name, "w") as file:
        for key, array in (arrays or samples()).items():
            file.create_dataset(key, data=array, compression="gzip")
    return folder / name


@pytest.fixture
def own(tmp_path):
    """A directory of two training files, and one for tests, which is not read."""
    write(tmp_path / "own")
    write(tmp_path / "own", "wikicorpus_en_training_1.hdf5", samples(4, seed=2))
    write(tmp_path / "own", "wikicorpus_en_test_0.hdf5", {"other": np.zeros(1)})
    return tmp_path / "own"


class Torch:
    """make_data.py of role torch_bert, which deepspeed_bert uses too."""

    name = "deepspeed_bert_own_data"

    def run(self, folder, own, **other):
        job = {"data": str(folder / "data"), "seed": 1, "samples": 8, "seq_length": LENGTH}
        job |= {"predictions": PREDICTIONS, "vocabularies": [1024, 30522], "check": False}
        job |= {"own": str(own), "own_variable": self.name, **other}
        return call(ROLES / "pytorch/files/make_bert_data.py", json.dumps(job))


class Bing:
    """make_data.py of role bing_bert."""

    name = "bing_bert_own_data"

    def run(self, folder, own):
        values = {"own": str(own), "length": LENGTH, "predictions": PREDICTIONS}
        return self.make(folder, str(own), values)

    def make(self, folder, own, values):
        job = {"data": str(folder / "data"), "vocabulary": str(folder / "words"), "own": own}
        job |= {"values": values, "make": True, "check": False}
        return call(ROLES / "bing_bert/files/make_data.py", json.dumps(job))


def call(program, *words):
    """Run a program of a role here, where NumPy and h5py are loaded; return what one of its own would say."""
    out, errors, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(program), *map(str, words)])
        patch.setattr(sys, "path", [str(program.parent), str(KIT), *sys.path])
        # Another role's file of the same name must not be taken for one that is loaded already.
        patch.setattr(sys, "modules", dict(sys.modules))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                runpy.run_path(str(program), run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=errors.getvalue())


def accepted(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


both = pytest.mark.parametrize("role", [Torch(), Bing()], ids=["torch_bert", "bing_bert"])


# What is refused


@both
@pytest.mark.parametrize(
    ("key", "change", "said"),
    [
        ("segment_ids", lambda _: None, "found no such key, only input_ids, .*expected NVIDIA's layout"),
        ("input_ids", lambda a: a[:, :16], r"found int32 \[6, 16\], expected whole numbers \[6, 32\]"),
        ("masked_lm_ids", lambda a: a[:, :4], r"found int32 \[6, 4\], expected whole numbers \[6, 5\]"),
        ("next_sentence_labels", lambda a: a[:5], r"found int8 \[5\], expected whole numbers \[6\]"),
        ("input_mask", lambda a: a.astype("f4"), r"found float32 \[6, 32\], expected whole numbers"),
    ],
)
def test_a_file_of_another_shape_is_refused_by_its_name_and_key(tmp_path, own, role, key, change, said):
    arrays = samples()
    arrays[key] = change(arrays[key])
    path = write(own, "x_training_2.hdf5", {name: a for name, a in arrays.items() if a is not None})
    done = role.run(tmp_path, own)
    assert done.returncode == 3
    assert f"refused: {path}: {key}: " in done.stderr
    assert re.search(said, done.stderr), done.stderr


@both
def test_a_file_that_is_no_hdf5_is_refused(tmp_path, own, role):
    (own / "x_training_2.hdf5").write_text("text")
    done = role.run(tmp_path, own)
    assert (done.returncode, "x_training_2.hdf5: found no HDF5 file" in done.stderr) == (3, True)


@both
def test_a_directory_without_training_files_is_refused_by_its_variable(tmp_path, role):
    write(tmp_path / "own", "wikicorpus_en_test_0.hdf5")
    done = role.run(tmp_path, tmp_path / "own")
    assert (done.returncode, f"refused: {role.name}={tmp_path}/own: found " in done.stderr) == (3, True)


@both
def test_a_token_beyond_every_vocabulary_is_refused(tmp_path, own, role):
    write(own, arrays=samples(tokens=40000, seed=3))
    done = role.run(tmp_path, own)
    assert done.returncode == 3
    assert "30522" in done.stderr


# What is read


@both
def test_only_models_that_know_the_tokens_get_the_data(tmp_path, own, role):
    accepted(role.run(tmp_path, own))
    folders = [path.name for path in (tmp_path / "data").iterdir() if path.is_dir()]
    assert sorted(set(folders) - {"converted"}) == ["30522"]


@both
def test_files_that_are_unchanged_are_not_read_again(tmp_path, own, role):
    first, second = accepted(role.run(tmp_path, own)), accepted(role.run(tmp_path, own))
    assert (first["changed"], second["changed"]) == (True, False)


@both
def test_changed_files_are_read_again(tmp_path, own, role):
    first = identity(accepted(role.run(tmp_path, own)))
    write(own, arrays=samples(seed=9))
    second = accepted(role.run(tmp_path, own))
    assert (second["changed"], identity(second) != first) == (True, True)


@both
def test_the_same_files_elsewhere_have_the_same_identity(tmp_path, own, role):
    first = identity(accepted(role.run(tmp_path, own)))
    (tmp_path / "moved").mkdir()
    moved = own.rename(tmp_path / "moved/own")
    assert identity(accepted(role.run(tmp_path / "moved", moved))) == first


def identity(output):
    return output.get("manifest", output)["identity"]


def test_bing_bert_reads_the_files_themselves(tmp_path, own):
    done = accepted(Bing().run(tmp_path, own))
    links = {path.name: path.resolve() for path in (tmp_path / "data/30522").iterdir()}
    assert links == {path.name: path for path in own.iterdir() if "training" in path.name}
    assert done["samples"] == 4  # of the smallest file: a rank reads one


def test_a_smaller_vocabulary_of_the_user_refuses_tokens_beyond_it(tmp_path, own):
    (tmp_path / "words").mkdir()
    for name in ("base", "large"):
        (tmp_path / f"words/bert-{name}-uncased-vocab.txt").write_text("w\n" * 21128)
    done = Bing().run(tmp_path, own)
    assert (done.returncode, "expected tokens below 21128" in done.stderr) == (3, True)


def test_invented_data_replace_links_and_leave_the_files(tmp_path, own):
    accepted(Bing().run(tmp_path, own))
    values = {"files": 1, "samples": 40, "length": LENGTH, "predictions": PREDICTIONS, "seed": 7}
    assert accepted(Bing().make(tmp_path, "", values))["changed"]
    assert [path.name for path in (tmp_path / "data/30522").iterdir()] == ["training_000.hdf5"]
    assert len(list(own.iterdir())) == 3


@pytest.fixture
def arrays(tmp_path, own):
    accepted(Torch().run(tmp_path, own))
    return {path.stem: np.load(path) for path in (tmp_path / "data/30522").iterdir()}


def test_the_first_samples_are_taken_in_the_order_of_the_files(arrays):
    both = np.concatenate([samples()["input_ids"], samples(4, seed=2)["input_ids"][:2]])
    assert (arrays["words"] == both).all()


def test_a_masked_position_of_0_ends_the_list(arrays):
    assert (arrays["positions"][0].tolist(), arrays["labels"][0, 3:].tolist()) == ([2, 5, 9, 0, 0], [-1, -1])
    assert (arrays["labels"][0, :3] == samples()["masked_lm_ids"][0, :3]).all()


def test_padding_is_not_part_of_a_sample(arrays):
    assert set(arrays["lengths"].tolist()) == {20}


def test_arrays_of_a_user_are_for_the_models_that_know_their_tokens(tmp_path, arrays):
    own = (tmp_path / "arrays").resolve()
    Path(tmp_path / "data/converted").rename(own)
    manifest = accepted(Torch().run(tmp_path, own))["manifest"]
    assert sorted({name.split("/")[0] for name in manifest["files"]}) == ["30522"]
