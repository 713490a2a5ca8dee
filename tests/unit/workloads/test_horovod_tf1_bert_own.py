# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_tf1_bert: the user's own data, read by the reader of a fork, and the models for its vocabulary."""

import json
import os
import re
import subprocess
import sys

import pytest
from role_files import ROLES

FILES = ROLES / "horovod_tf1_bert/files"
KIT = ROLES / "workload/files/kit"

# The shape of run_classifier.py, without TensorFlow.
FORK = """
import os
from collections import namedtuple
Example = namedtuple("Example", "label")
class MytaskProcessor:
    def get_labels(self):
        return ["0", "1"]
    def _read(self, folder, name):
        with open(os.path.join(folder, name)) as file:
            return [Example(line.split("\\t")[1].strip()) for line in file]
    def get_train_examples(self, folder):
        return self._read(folder, "train.tsv")
    def get_dev_examples(self, folder):
        return self._read(folder, "dev.tsv")
def main():
  processors = {
      "mrpc": MrpcProcessor,
      "mytask": MytaskProcessor,
  }
"""


@pytest.fixture
def own(tmp_path):
    """A directory with a fork, the data of a task of its own, and as many words as the Chinese BERT's."""
    for name, text in {
        "bert/run_classifier.py": FORK,
        "data/train.tsv": "a\t0\nb\t1\nc\t1\n",
        "data/dev.tsv": "d\t0\n",
        "vocab.txt": "w\n" * 21128,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(own, task="mytask"):
    words = [own / "made", 64, 16, 1, own / "data", task, own / "vocab.txt", ""]
    argv = [sys.executable, str(FILES / "own_data.py"), *map(str, words)]
    env = {**os.environ, "PYTHONPATH": str(KIT)}
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=False)


def accepted(own):
    done = run(own)
    assert done.returncode == 0, done.stderr
    return re.fullmatch(
        r"own data, samples=(?P<samples>\d+) identity=(?P<identity>[0-9a-f]{64})\n", done.stdout
    )


def test_the_samples_are_those_that_the_fork_reads(own):
    assert accepted(own)["samples"] == "3"


@pytest.mark.parametrize("model", ["tiny", "base", "large"])
def test_the_size_of_a_model_follows_the_vocabulary(own, model):
    accepted(own)
    config = json.loads((own / f"made/bert_config_{model}.json").read_text())
    words = (own / f"made/vocab_{model}.txt").read_text().splitlines()
    assert (config["vocab_size"], len(words)) == (21128, 21128)


def test_files_that_are_unchanged_are_not_read_again(own):
    accepted(own)
    made = (own / "made/made.json").stat().st_mtime_ns
    accepted(own)
    assert (own / "made/made.json").stat().st_mtime_ns == made


def test_changed_files_have_another_identity(own):
    first = accepted(own)
    (own / "data/train.tsv").write_text("a\t1\nb\t1\n")
    second = accepted(own)
    assert (second["samples"], second["identity"] == first["identity"]) == ("2", False)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("data/train.tsv", "a,0\n", "the reader of task mytask cannot read its train data (IndexError: "),
        ("data/train.tsv", "a\t2\n", "train data of task mytask: found the label '2', expected samples with"),
        (
            "data/dev.tsv",
            "",
            "dev data of task mytask: found no samples, expected samples with the labels 0, 1",
        ),
    ],
)
def test_data_of_another_shape_are_refused(own, name, text, said):
    (own / name).write_text(text)
    done = run(own)
    assert (done.returncode, f"refused: {own}/data: {said}" in done.stderr) == (3, True), done.stderr


def test_a_missing_file_of_the_task_is_named(own):
    (own / "data/dev.tsv").unlink()
    assert "cannot read its dev data (FileNotFoundError: " in run(own).stderr


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("vocab.txt", "horovod_tf1_bert_vocabulary={}/vocab.txt: found nothing there"),
        ("data", "horovod_tf1_bert_data_dir={}/data: found nothing there"),
    ],
)
def test_a_path_with_nothing_is_refused_by_its_variable(own, gone, said):
    (own / gone).rename(own / "gone")
    assert said.format(own) in run(own).stderr


def test_a_task_that_the_fork_does_not_know_is_refused_with_those_it_knows(own):
    assert "horovod_tf1_bert_task=sst: found the tasks mrpc, mytask in " in run(own, "sst").stderr
