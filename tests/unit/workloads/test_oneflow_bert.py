# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""oneflow_bert: what its logs mean, on genuine ones, and the copy of its trainer for OneFlow 0.9."""

import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import h5py
import numpy as np
import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from dlperf_logs import exit_record, stamped
from in_english import log_record, run_record
from model_operations import flops_of_bert
from node_logs import JOB, kept_run
from role_files import ROLES, declaration, load

ROOT = ROLES.parent
LOGS = ROOT / "tests/data/oneflow_bert"
WORKLOAD = declaration("oneflow_bert")
# The seconds from the line of step 10 to that of step 30, by number of nodes.
SECONDS = [(1, 12.749210), (2, 26.711527)]
RATES = (25.652, 5.834, 5.674, 8.133, 17.920, 10.051, 12.540, 17.776, 7.945, 8.120)

# The modules import those of the kit, which are installed next to them.
sys.path.append(str(ROLES / "workload/files/kit"))
bert_copy = load("oneflow_bert", "bert_copy")
bert_flags = load("oneflow_bert", "bert_flags")
bert_sizes = load("workload", "bert_sizes")


def case(nodes=1, warmup=19, window=40, bsz=4, seq_length=128, **other):
    settings = {"seq_length": seq_length, "predictions": 20}
    values = {"workload": "oneflow_bert", "model": "tiny", "settings": settings, **other}
    return make_case(nodes=nodes, warmup=warmup, window=window, bsz=bsz, **values)


def imported(name, **of_case):
    return log_record(LOGS / name, case(**of_case), 1, WORKLOAD, name)


# The log of the trainer alone, which counts steps from 0 and here printed every fourth


def test_a_genuine_log_gives_the_rate_of_its_time_stamps():
    """The lines of steps 19 and 59, 1795402459.0404 and 1795402475.8387754; 40 steps of 4 samples."""
    read = imported("1p_graph.log")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(160 / 16.798375, rel=1e-6)


def test_the_printed_throughput_is_that_of_all_ranks():
    read = imported("1p_graph.log")
    mean = len(RATES) / sum(1 / rate for rate in RATES)
    assert (read["rate_scope"], measure(read)["second"]["rate"]) == ("global", pytest.approx(mean))
    assert measure(read)["differs"] < 0.001


def test_the_trainers_log_alone_does_not_count(tmp_path):
    """It ends with status 1 after the last step: its validation leaves out masked_lm_positions."""
    text = stamped((LOGS / "1p_graph.log").read_text(), every=0.5, exit_record=exit_record(1))
    (tmp_path / "NODE1.log").write_text(text)
    job = {**JOB, "rc": 1}
    read = run_record(tmp_path, case(), 1, WORKLOAD, ["NODE1"], job)
    assert read["status"] != "ok"


# Genuine runs of campaigns, on one and two simulated nodes


def campaign(tmp_path, nodes, change=("", "")):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    return kept_run(tmp_path, LOGS, case(nodes, warmup=10, window=20, bsz=4), WORKLOAD, change)


@pytest.mark.parametrize(("nodes", "seconds"), SECONDS)
def test_a_run_of_a_campaign_counts(tmp_path, nodes, seconds):
    """Twenty steps of four samples on each node."""
    read = campaign(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(80 * nodes / seconds, rel=1e-4)
    assert measure(read)["differs"] < 0.01


@pytest.mark.parametrize(
    ("shown", "other", "name"),
    [
        ("weights=agree end=true", "", "weights"),
        ("weights_on=cpu", "weights_on=gpu", "device"),
        ("world_size=2", "world_size=1", "devices"),
        ("nodes=2", "nodes=1", "nodes"),
    ],
)
def test_a_node_that_did_not_take_part_is_refused(tmp_path, shown, other, name):
    read = campaign(tmp_path, 2, (shown, other))
    assert (read["status"], name in read["reason"]) == ("refused", True)


# The precision that a log shows


def test_a_run_that_computed_in_fp32_does_not_count_as_fp16(tmp_path):
    made = case(warmup=10, window=20, dtype="fp16")
    read = kept_run(tmp_path, LOGS, made, WORKLOAD, ("", ""))
    assert (read["status"], "shows dtype fp32" in read["reason"]) == ("refused", True)


class Numbers(float):
    """One number as a tensor of OneFlow."""

    to_local = numpy = max = lambda self: self


class Graph:
    """nn.Graph of OneFlow on a device that has fp16 or lacks it."""

    has_fp16 = True

    def __init__(self):
        self.proto = SimpleNamespace(enable_auto_mixed_precision=False)
        self.config = SimpleNamespace(proto=self.proto, enable_amp=self.enable_amp)

    def enable_amp(self, mixed):
        self.proto.enable_auto_mixed_precision = mixed

    def __call__(self, *numbers):
        if self.proto.enable_auto_mixed_precision and self.has_fp16:
            numbers = [struct.unpack("e", struct.pack("e", number))[0] for number in numbers]
        return Numbers(self.build(*numbers))


@pytest.fixture
def oneflow_run(monkeypatch):
    flow = SimpleNamespace(nn=SimpleNamespace(Graph=Graph), matmul=lambda a, b: a * b, float32=None)
    flow.placement = SimpleNamespace(all=lambda kind: kind)
    flow.sbp = SimpleNamespace(broadcast=None)
    flow.full = lambda _, value, **where: value
    monkeypatch.setitem(sys.modules, "oneflow", flow)
    return load("oneflow", "oneflow_run")


@pytest.mark.parametrize(
    ("mixed", "has_fp16", "shown"), [(False, True, "fp32"), (True, True, "fp16"), (True, False, "fp32")]
)
def test_the_precision_is_that_of_products_whatever_was_asked_for(
    oneflow_run, monkeypatch, mixed, has_fp16, shown
):
    """OneFlow's automatic mixed precision does nothing on CPUs, and does not say so."""
    monkeypatch.setattr(Graph, "has_fp16", has_fp16)
    graph = Graph()
    graph.enable_amp(mixed)
    assert oneflow_run.product_dtype(graph, "gpu") == shown


def test_the_trainers_own_graph_is_looked_at_once_before_its_first_step(monkeypatch):
    for name in ("oneflow", "oneflow_run", "bert_data", "trainer_kit"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    monkeypatch.setattr(sys, "path", list(sys.path))
    run_trainer = load("oneflow_bert", "run_trainer")
    seen = []
    trainer = SimpleNamespace(pretrain=lambda graph, _: seen.append("step"))
    run_trainer.before_first_step(trainer, seen.append)
    for _ in range(2):
        trainer.pretrain("graph", False)
    assert seen == ["graph", "step", "step"]


# The data set


class Record(dict):
    """A record of OneFlow, as text."""

    def __init__(self, **fields):
        super().__init__(fields)

    def SerializeToString(self):
        return repr(self).encode()


@pytest.fixture
def bert_data(monkeypatch):
    made = SimpleNamespace(OFRecord=Record, Feature=Record, Int32List=Record, FloatList=Record)
    monkeypatch.setitem(sys.modules, "oneflow.core.record", SimpleNamespace(record_pb2=made))
    return load("oneflow_bert", "bert_data")


def test_ranks_of_a_node_make_the_same_data_set_in_one_directory(bert_data, tmp_path):
    """Rank 0's graph has the path, and ranks on other nodes open their file there."""
    made = []
    for _ in range(2):
        bert_data.write(str(tmp_path / "data"), 4, bert_data.invented(8, 2020, 16, 2, 100))
        made.append({path.name: path.read_bytes() for path in (tmp_path / "data").iterdir()})
    assert made[0] == made[1]
    assert sorted(made[0]) == ["part-0", "part-1", "part-2", "part-3"]


@pytest.fixture
def hdf5(tmp_path, monkeypatch):
    """Three samples in NVIDIA's layout, of which the second one has one masked word and is padded."""
    samples = {
        "input_ids": [[2, 9, 9, 3], [2, 9, 3, 0], [2, 8, 8, 3]],
        "input_mask": [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1]],
        "segment_ids": [[0, 0, 1, 1]] * 3,
        "masked_lm_positions": [[1, 2], [1, 0], [1, 2]],
        "masked_lm_ids": [[7, 6], [5, 0], [7, 6]],
        "next_sentence_labels": [0, 1, 0],
    }
    with h5py.File(tmp_path / "training_000.hdf5", "w") as file:
        for key, values in samples.items():
            file[key] = np.array(values, np.int32)
    monkeypatch.setitem(sys.modules, "nvidia_hdf5", load("workload", "nvidia_hdf5"))
    return tmp_path


def test_samples_of_texts_have_their_masked_words_and_padding(bert_data, hdf5):
    first, second = bert_data.of_texts(str(hdf5), 2, 10)
    assert (first["masked_lm_weights"], second["masked_lm_weights"]) == ([1.0, 1.0], [1.0, 0.0])
    assert (second["input_mask"], second["next_sentence_labels"]) == ([1, 1, 1, 0], [1])


def test_texts_of_a_larger_vocabulary_are_refused(bert_data, hdf5):
    with pytest.raises(SystemExit, match="the texts have the token 9, this model has those below 9"):
        list(bert_data.of_texts(str(hdf5), 2, 9))


# The copy for OneFlow 0.9

RENAMED = {name: "\n".join(old * count for old, _, count in edits) for name, edits in bert_copy.EDITS.items()}


@pytest.fixture
def trainer(tmp_path):
    folder = tmp_path / "trainer"
    for name in {*RENAMED, *bert_copy.DEVICE_FILES}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(RENAMED[name] + '\ndevice = "cuda"\n')
    return folder


def test_names_of_older_versions_are_replaced(trainer, tmp_path):
    assert bert_copy.main(["", str(trainer), str(tmp_path / "copy"), "gpu"]) == 0
    copies = {path.name: path.read_text() for path in (tmp_path / "copy").rglob("*.py")}
    assert not any("consistent" in text for text in copies.values())
    assert all('"cuda"' in copies[Path(name).name] for name in bert_copy.DEVICE_FILES)


def test_for_cpus_the_device_is_replaced_too(trainer, tmp_path):
    assert bert_copy.main(["", str(trainer), str(tmp_path / "copy"), "cpu"]) == 0
    assert '"cpu"' in (tmp_path / "copy/run_pretraining.py").read_text()


def test_another_commit_is_refused(trainer, tmp_path, capsys):
    (trainer / "utils/comm.py").write_text("tensor.is_global\n")
    assert bert_copy.main(["", str(trainer), str(tmp_path / "copy"), "gpu"]) == 1
    assert "comm.py has 0 times 'tensor.is_consistent', not 2: another commit" in capsys.readouterr().err


# The command line of the trainer


def words(world=2, **other):
    values = {"batch": 4, "steps": 120, "model": "base", "dtype": "fp32", "learning_rate": 0.0001}
    values.update(dropout=0.1, seq_length=128, predictions=20)
    return bert_flags.flags(SimpleNamespace(**{**values, **other}), world, "data")


def value(given, flag):
    return given[given.index(flag) + 1]


def test_the_data_set_has_the_batches_of_the_run():
    assert value(words(), "--train-dataset-size") == str(120 * 4 * 2)


@pytest.mark.parametrize(("world", "parts"), [(1, 4), (2, 4), (3, 6), (32, 32)])
def test_every_rank_reads_as_many_files_as_the_others(world, parts):
    assert bert_flags.parts(world) == parts


@pytest.mark.parametrize("model", WORKLOAD.model_names)
def test_the_trainers_model_has_the_sizes_that_the_declaration_counts(model):
    """The trainer's heads have a width of 64, and its layers four times the width of the model."""
    given, sizes = words(model=model), WORKLOAD.flops.models[model]
    hidden = 64 * int(value(given, "--num_attention_heads"))
    assert {**sizes, "hidden": hidden, "intermediate": 4 * hidden} == sizes
    assert int(value(given, "--num_hidden_layers")) == sizes["layers"]
    assert int(value(given, "--vocab_size")) == sizes["vocabulary"]


def test_the_operations_of_a_sample_are_those_of_torch_bert():
    of_case = {"model": "base", "settings": {"seq_length": 128, "predictions": 20}}
    expected = flops_of_bert(bert_sizes.MODELS["base"], 128, 20)
    assert flops.of_case(WORKLOAD.flops, of_case) == expected


def test_dlperfs_table_has_rows_of_this_model():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    names = WORKLOAD.dlperf
    wanted = tuple(f"{name},{names.models['base']}," for name in names.frameworks)
    assert sum(row.startswith(wanted) for row in rows) == 84


TEXT = "/datasets/corpus/text/**"


@pytest.mark.parametrize(
    ("text", "status"), [(TEXT, "ok"), ("", "refused"), ("/datasets/wiki/**", "refused")]
)
def test_a_genuine_log_of_texts_is_one_of_a_case_with_these_texts(tmp_path, text, status):
    """Losses of both workloads on the corpus fall from 7.63 to 7.53 in 24 steps."""
    settings = {"seq_length": 128, "predictions": 20, "text": text}
    of_texts = {**case(2, warmup=4, window=20), "settings": settings}
    read = kept_run(tmp_path, LOGS, of_texts, WORKLOAD, named="texts_2n_")
    assert (read["status"], "shows text" in str(read["reason"])) == (status, status != "ok")
