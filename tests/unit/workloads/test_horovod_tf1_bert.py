# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_tf1_bert: its logs, with genuine ones, the data and the command line of the fork."""

import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.launch.jobs import processes_of
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from declared import with_settings
from in_english import run_record
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
FILES = ROOT / "roles/horovod_tf1_bert/files"
LOGS = ROOT / "tests/data/horovod_tf1_bert"
WORKLOAD = with_settings(declaration("horovod_tf1_bert"), launcher="mpirun")

flags = load("horovod_tf1_bert", "classifier_flags")


def case(nodes):
    given = {"nodes": nodes, "gpus": 1, "bsz": 16, "dtype": "fp32"}
    return plan(given, WORKLOAD, cluster(4, slots=2), "horovod_tf1_bert", "cpu")["cases"][0]


def record(folder, nodes, change=("", "")):
    """Return the record of the genuine logs of a run, one text of the first node's log changed."""
    names = [f"NODE{i}" for i in range(1, nodes + 1)]
    for name in names:
        shutil.copy(LOGS / f"{nodes}n1g-{name}.log", folder / f"{name}.log")
    text = (folder / "NODE1.log").read_text()
    assert change[0] in text
    (folder / "NODE1.log").write_text(text.replace(*change))
    return run_record(folder, case(nodes), 1, WORKLOAD, names, {"rc": 0})


# -- genuine logs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "rate"), [(1, 548.05), (2, 1289.91)])
def test_a_genuine_log_gives_the_rate_of_the_window(tmp_path, nodes, rate):
    read = record(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.005)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("devices", ("world_size=2 ", "world_size=1 ")),
        ("nodes", (" nodes=2 ", " nodes=1 ")),
        ("backend", (" backend=mpi ", " backend=none ")),
        ("global_batch", ("global_batch=32 ", "global_batch=16 ")),
        ("steps", ("steps_done=120 loss=finite", "steps_done=119 loss=finite")),
        ("weights", ("HOROVOD_BERT weights=agree end=true", "")),
    ],
)
def test_a_log_that_contradicts_its_case_is_refused(tmp_path, name, change):
    read = record(tmp_path, 2, change)
    assert (read["status"], f" {name}" in read["reason"]) == ("refused", True)


# As horovodrun wrote it: 2 processes of TensorFlow 1.15.5 and Horovod 0.19.5, 20 steps of 16 of 640 pairs.
CLOSING = "eval_accuracy=0.4531 eval_loss=0.6955 train_seconds=222.3 epochs=1.000 epoch_seconds=52.9"
END = "HOROVOD_BERT weights=agree end=true"


def test_the_accuracy_and_the_time_of_the_training_are_read(tmp_path):
    read = record(tmp_path, 1, (END, f"HOROVOD_BERT {CLOSING}\n{END}"))
    assert read["self_reported"] == dict(word.split("=") for word in CLOSING.split())


def test_a_log_of_horovodrun_is_read_behind_its_tags(tmp_path):
    plain = measure(record(tmp_path, 1))["rate"]
    read = record(tmp_path, 1, ("HOROVOD_BERT ", "[1,0]<stdout>:HOROVOD_BERT "))
    assert (read["status"], measure(read)["rate"]) == ("ok", plain)


@pytest.mark.parametrize(("launcher", "processes"), [("mpirun", 2), ("horovodrun", 1)])
def test_horovodrun_starts_the_processes_of_a_node_itself(launcher, processes):
    workload = with_settings(WORKLOAD, launcher=launcher)
    assert processes_of({"gpus": 2}, workload) == processes


def test_horovodrun_on_several_nodes_is_refused_before_anything_runs():
    workload = with_settings(WORKLOAD, launcher="horovodrun")
    made = plan({"nodes": [1, 2], "gpus": 1}, workload, cluster(4, slots=2), "horovod_tf1_bert", "cpu")
    assert [each["nodes"] for each in made["cases"]] == [1]
    (skipped,) = made["skipped"]
    assert "launcher=horovodrun is for one node: mpirun starts the processes of several" in skipped["reason"]


def test_a_dtype_that_the_fork_does_not_know_is_refused():
    with pytest.raises(ValueError, match="dtype=fp16: allowed is fp32"):
        plan({"dtype": "fp16"}, WORKLOAD, cluster(4, slots=2), "horovod_tf1_bert", "cpu")


def make(folder, *numbers):
    """Run the program that makes the data; return its output."""
    values = [str(number) for number in numbers or (256, 64, 2020)]
    argv = [sys.executable, FILES / "make_data.py", folder, *values]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "roles/workload/files/kit")}
    return subprocess.run(argv, check=True, capture_output=True, text=True, env=env).stdout.strip()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    assert make(folder) == "made"
    return folder


# -- data ------------------------------------------------------------------------------------------------


def test_the_data_is_the_same_everywhere(data):
    """These sums were made on Python 3.6 and 3.7 as well as on 3.11."""
    sums = {
        name: hashlib.sha256((data / name).read_bytes()).hexdigest()[:16] for name in ("train.tsv", "dev.tsv")
    }
    assert sums == {"train.tsv": "a67cad6ec67bdc39", "dev.tsv": "d374f09877a57e13"}


def test_existing_data_is_not_made_again(data):
    assert make(data) == "unchanged"


def test_incomplete_data_is_made_again(data):
    (data / "made.json").unlink()
    assert make(data) == "made"


def test_other_numbers_make_other_data(data, tmp_path):
    make(tmp_path, 256, 64, 2021)
    assert (tmp_path / "train.tsv").read_text() != (data / "train.tsv").read_text()


def test_a_pair_fills_the_length_with_the_words_that_the_fork_adds(data):
    heading, *lines = (data / "train.tsv").read_text().splitlines()
    assert heading.count("\t") == 4
    assert {
        len(first.split()) + len(second.split()) for *_, first, second in (line.split("\t") for line in lines)
    } == {
        60  # of 61: both are of the same size, and the fork adds [CLS] and two [SEP]
    }


def test_both_answers_are_there(data):
    assert {line[0] for line in (data / "train.tsv").read_text().splitlines()[1:]} == {"0", "1"}


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_every_word_is_in_the_vocabulary_of_the_model(data, model):
    known = (data / f"vocab_{model}.txt").read_text().split()
    config = json.loads((data / f"bert_config_{model}.json").read_text())
    assert (len(known), known[0]) == (config["vocab_size"], "[PAD]")
    lines = (data / "train.tsv").read_text().splitlines()[1:]
    assert {word for line in lines for part in line.split("\t")[3:] for word in part.split()} <= set(known)


# -- command line ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8, 125])
@pytest.mark.parametrize("batch", [1, 7, 16, 64, 96])
@pytest.mark.parametrize("samples", [512, 1000, 8192])
def test_the_fork_takes_the_steps_of_the_run(devices, batch, samples):
    """As run_classifier.py counts them: main(), num_train_steps."""
    for steps in (1, 120, 999):
        epochs = float(repr(flags.epochs(steps, devices, batch, samples)))
        assert math.floor(samples / batch * epochs) // devices == steps


def command(**other):
    args = {
        "data": "/data",
        "data_dir": "/own",
        "task": "mrpc",
        "model": "base",
        "length": 64,
        "batch": 64,
        "learning_rate": 2e-5,
    }
    run = {"steps": 128, "devices": 1, "samples": 8192, "checkpoint": ""}
    return flags.flags(Namespace(**{**args, **run, **other}), "/out")


def test_the_fork_gets_the_flags_of_its_mrpc_task():
    """One epoch is 128 steps of 64 in 8192 pairs, and half a step."""
    assert command(checkpoint="/bert/bert_model.ckpt") == [
        "--data_dir=/own",
        "--task_name=mrpc",
        "--vocab_file=/data/vocab_base.txt",
        "--bert_config_file=/data/bert_config_base.json",
        "--output_dir=/out",
        "--do_train=true",
        "--do_eval=true",
        "--max_seq_length=64",
        "--train_batch_size=64",
        "--learning_rate=2e-05",
        "--num_train_epochs=1.00390625",
        "--use_multi_gpu=true",
        "--init_checkpoint=/bert/bert_model.ckpt",
    ]


def test_without_weights_the_fork_makes_new_ones():
    assert not [word for word in command() if word.startswith("--init_checkpoint")]
