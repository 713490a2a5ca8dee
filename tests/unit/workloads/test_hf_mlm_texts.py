# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_mlm: which of a user's texts are selected, and what is refused."""

import sys
from types import ModuleType

import pytest
from role_files import load

texts = load("hf_mlm", "make_data")


@pytest.fixture
def lines(tmp_path):
    """Two text files of 30 lines, with blank lines between them, and a pattern that matches both."""
    for name in ("a", "b"):
        text = "\n\n".join(f"{name} {number}" for number in range(15))
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return str(tmp_path / "*.txt")


def test_a_line_that_is_not_blank_is_a_sample(lines):
    assert sorted(texts.read_lines(lines)) == sorted(
        f"{name} {number}" for name in "ab" for number in range(15)
    )


def test_both_parts_have_no_sample_in_common(lines):
    parts = texts.select(lines, 20, 10, 42)
    assert [len(parts["train"]), len(set(parts["train"] + parts["eval"]))] == [20, 30]


def test_a_seed_selects_the_same_samples_again_and_another_seed_others(lines):
    first = texts.select(lines, 8, 4, 42)
    assert (texts.select(lines, 8, 4, 42) == first, texts.select(lines, 8, 4, 43) == first) == (True, False)


def test_too_few_samples_are_refused_with_how_many_are_expected(lines):
    with pytest.raises(texts.RefusedError, match="30 samples, expected 31 for hf_mlm_train_samples=21 and"):
        texts.select(lines, 21, 10, 42)


def test_a_path_without_text_is_refused_by_its_variable(tmp_path):
    with pytest.raises(texts.RefusedError, match=f"hf_mlm_own_data={tmp_path}: found neither"):
        texts.text_files(str(tmp_path))


def test_bytes_that_are_not_utf8_are_refused_by_their_file(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(texts.RefusedError, match=r"a\.txt: found bytes that are not UTF-8"):
        texts.read_lines(str(tmp_path / "a.txt"))


# Data sets: the package datasets is in the environment of the role only.


class Split:
    """What is used of datasets.Dataset."""

    def __init__(self, name, count, column="text"):
        self.column_names = [column]
        self.rows = [f"{name} {number}" for number in range(count)]

    def __len__(self):
        return len(self.rows)

    def select(self, indices):
        return {"text": [self.rows[index] for index in indices]}


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A function that makes a directory give these splits."""
    (tmp_path / "state.json").write_text("{}")
    package = ModuleType("datasets")
    monkeypatch.setitem(sys.modules, "datasets", package)

    def save(splits):
        package.load_from_disk = lambda path: splits
        return str(tmp_path)

    return save


@pytest.mark.parametrize("name", ["validation", "test"])
def test_the_evaluation_is_of_its_own_split(saved, name):
    parts = texts.select(saved({"train": Split("t", 9), name: Split("e", 5)}), 9, 5, 42)
    assert ({text[0] for text in parts["train"]}, {text[0] for text in parts["eval"]}) == ({"t"}, {"e"})


def test_a_data_set_without_splits_gives_both_parts(saved):
    parts = texts.select(saved(Split("t", 12)), 8, 4, 42)
    assert len(set(parts["train"] + parts["eval"])) == 12


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ({"all": Split("t", 9)}, "found the splits all, expected train"),
        ({"train": Split("t", 9, "sentence")}, "found the columns sentence, expected text"),
        (
            {"train": Split("t", 9), "test": Split("e", 3)},
            "found 3 samples, expected 4 for hf_mlm_eval_samples=4",
        ),
    ],
)
def test_a_data_set_of_another_shape_is_refused(saved, splits, said):
    with pytest.raises(texts.RefusedError, match=said):
        texts.select(saved(splits), 8, 4, 42)


def test_a_missing_package_is_named(saved, monkeypatch):
    path = saved(Split("t", 12))
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(texts.RefusedError, match="the interpreter has no package datasets"):
        texts.select(path, 8, 4, 42)
