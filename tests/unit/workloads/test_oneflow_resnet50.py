# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""oneflow_resnet50: what its logs mean, on genuine ones, and the command line of its trainer."""

import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from cases import cluster, plan
from declared import with_settings
from dlperf_logs import exit_record, stamped
from in_english import log_record, run_record
from node_logs import JOB
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/oneflow_resnet50"
WORKLOAD = declaration("oneflow_resnet50")

trainer_flags = load("oneflow_resnet50", "trainer_flags")


def case(nodes=1, warmup=1, window=5, **other):
    values = {"workload": "oneflow_resnet50", "model": "resnet50", "bsz": 1, **other}
    return make_case(nodes=nodes, warmup=warmup, window=window, **values)


def imported(name, **of_case):
    return log_record(LOGS / name, case(**of_case), 1, WORKLOAD, name)


# Genuine logs


def test_a_genuine_log_of_two_ranks_gives_the_rate_of_its_time_stamps():
    """Rank 0's lines of steps 1 and 6, 02:42:27.316 and 02:43:12.478; five steps of one image per rank."""
    read = imported("2p_ddp.log", gpus=2)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(10 / 45.162)


def test_the_printed_throughput_is_one_ranks():
    """The harmonic mean of rank 0's 0.14, 0.16, 0.08, 0.11 and 0.09, times two."""
    read = imported("2p_ddp.log", gpus=2)
    mean = 5 / (1 / 0.14 + 1 / 0.16 + 1 / 0.08 + 1 / 0.11 + 1 / 0.09)
    assert (read["rate_scope"], measure(read)["second"]["rate"]) == ("rank", pytest.approx(2 * mean))


def test_a_log_of_another_batch_is_refused():
    read = imported("2p_ddp.log", gpus=1)
    assert (read["status"], "shows global_batch 2" in read["reason"]) == ("refused", True)


def record(tmp_path, name, **of_case):
    text = stamped((LOGS / name).read_text(), every=0.5, exit_record=exit_record())
    (tmp_path / "NODE1.log").write_text(text)
    return run_record(tmp_path, case(**of_case), 1, WORKLOAD, ["NODE1"], JOB)


def test_the_trainers_log_alone_is_refused(tmp_path):
    """It has no world size and does not show that the ranks have the same weights."""
    read = record(tmp_path, "2p_ddp.log", gpus=2)
    assert (read["status"], "does not show devices" in read["reason"]) == ("refused", True)


def campaign(tmp_path, nodes, change=("", ""), kind="", **of_case):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    names = [f"NODE{index}" for index in range(1, nodes + 1)]
    for name in names:
        text = (LOGS / f"{nodes}n_{kind}{name}.log").read_text()
        (tmp_path / f"{name}.log").write_text(text.replace(*change) if name == names[-1] else text)
    return run_record(tmp_path, case(nodes, window=3, **of_case), 1, WORKLOAD, names, JOB)


@pytest.mark.parametrize(
    ("nodes", "kind", "seconds"),
    [(1, "", 20.143), (2, "", 18.854), (2, "records_", 3.773), (1, "graph_", 1.557)],
)
def test_a_run_of_a_campaign_counts(tmp_path, nodes, kind, seconds):
    """Three steps of one image on each node."""
    read = campaign(tmp_path, nodes, kind=kind)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(3 * nodes / seconds)


def test_a_log_of_another_precision_is_refused(tmp_path):
    """The trainer says itself what it computes in: our line would repeat what was asked for."""
    read = campaign(
        tmp_path, 1, ("use_fp16 ........................................ False", "use_fp16 .. True")
    )
    assert (read["status"], "shows precision True, the case has dtype fp32" in read["reason"]) == (
        "refused",
        True,
    )


def test_a_graph_that_computed_in_fp32_does_not_count_as_fp16(tmp_path):
    read = campaign(tmp_path, 1, kind="graph_", dtype="fp16")
    assert (read["status"], "shows dtype fp32, the case has dtype fp16" in read["reason"]) == (
        "refused",
        True,
    )


def test_a_graph_whose_learning_rate_is_0_is_refused(tmp_path):
    """The trainer does not print it in its lines of steps then."""
    read = campaign(tmp_path, 1, ("lr=0.001000", "lr=0.000000"), kind="graph_")
    assert (read["status"], "does not show learning_rate" in read["reason"]) == ("refused", True)


@pytest.mark.parametrize("change", [("identity=88f97e", "identity=88f97f"), ("files=4 ", "files=5 ")])
def test_nodes_with_different_files_of_records_are_refused(tmp_path, change):
    read = campaign(tmp_path, 2, change, kind="records_")
    assert (read["status"], "shows data records files=" in read["reason"]) == ("refused", True)


def test_a_rank_whose_weights_are_not_the_others_is_refused(tmp_path):
    read = campaign(tmp_path, 1, ("ONEFLOW_RESNET50 weights=agree end=true", ""))
    assert (read["status"], "does not show weights" in read["reason"]) == ("refused", True)


def test_a_run_whose_learning_rate_is_0_is_refused(tmp_path):
    """The trainer's default warm-up of five epochs: the loss is 7.26614 in all steps."""
    shown = (
        "ONEFLOW_RESNET50 world_size=1 nodes=1 node_rank=0 oneflow=0.9.0\n"
        "ONEFLOW_RESNET50 dtype=fp32 mode=eager device=cpu data=synthetic-random\n"
        "ONEFLOW_RESNET50 steps_done=12\nONEFLOW_RESNET50 weights=agree end=true\n"
    )
    text = (LOGS / "1p_eager.log").read_text().replace("rc=124 401s\n", "")
    text = text.replace("iter: 11/12", "iter: 12/12") + shown
    (tmp_path / "NODE1.log").write_text(stamped(text, every=0.5, exit_record=exit_record()))
    read = run_record(tmp_path, case(warmup=2, window=10, bsz=2), 1, WORKLOAD, ["NODE1"], JOB)
    assert (read["status"], "does not show learning_rate" in read["reason"]) == ("refused", True)


def test_dlperfs_table_has_rows_of_this_model():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    names = WORKLOAD.dlperf
    wanted = f"{names.frameworks[0]},{names.models['resnet50']},"
    assert sum(row.startswith(wanted) for row in rows) == 15


def test_fp16_is_planned_for_a_graph_alone():
    declared = with_settings(WORKLOAD, mode="eager", data="", images=0)
    made = plan({"gpus": 1, "dtype": "fp32,fp16"}, declared, cluster(1), "oneflow_resnet50", "gpu")
    assert [case["dtype"] for case in made["cases"]] == ["fp32"]
    assert [skipped["reason"] for skipped in made["skipped"]] == [
        "the trainer has mixed precision with nn.Graph only: use oneflow_resnet50_mode=graph"
    ]


# The command line of its trainer


def words(world=2, files=0, **other):
    values = {"batch": 4, "steps": 120, "devices_per_node": 1, "mode": "eager", "dtype": "fp32", "data": ""}
    return trainer_flags.flags(SimpleNamespace(learning_rate=0.001, **{**values, **other}), world, files)


def test_data_are_synthetic_unless_a_directory_is_named():
    assert "--synthetic-data" in words()
    given = words(data="/data", files=256)
    assert "--ofrecord-path /data --ofrecord-part-num 256" in " ".join(given)
    assert "--synthetic-data" not in given


def test_several_ranks_train_with_ddp():
    assert "--ddp" in words()
    assert "--ddp" not in words(world=1)


def test_a_graph_divides_its_gradients_by_the_ranks():
    assert {"--graph", "--scale-grad"} <= set(words(mode="graph"))
    assert "--ddp" not in words(mode="graph")


def test_the_learning_rate_is_the_same_in_all_steps():
    given = " ".join(words())
    assert "--warmup-epochs 0 --lr-decay-type none --lr 0.001" in given


def test_several_nodes_are_not_named_to_a_trainer_that_refuses_them():
    """config.py: NOT support num_nodes > 1. The ranks come from the process group nevertheless."""
    assert "--num-nodes" not in words()


def test_an_epoch_is_the_run():
    given = " ".join(words())
    assert "--batches-per-epoch 120 --samples-per-epoch 960 " in given
    assert "--print-interval 1 --num-epochs 1 " in given


# What surrounds the trainer


@pytest.fixture
def run_trainer(monkeypatch):
    """Return run_trainer.py without OneFlow."""
    for name in (
        "oneflow",
        "oneflow_run",
        "trainer_kit",
        "trainer_flags",
        "labelled_images",
        "ofrecord_files",
    ):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    monkeypatch.setattr(sys, "path", list(sys.path))
    return load("oneflow_resnet50", "run_trainer")


@pytest.mark.parametrize("check", ["describe", "check_enough"])
def test_the_report_gets_the_reason_of_a_refusal(run_trainer, check):
    error = ValueError("/data has 5 images, and a step of all processes takes 6")
    run_trainer.labelled_images.ImageError = ValueError
    run_trainer.trainer_kit.refuse.side_effect = SystemExit
    getattr(run_trainer.ofrecord_files, check).side_effect = error
    with pytest.raises(SystemExit):
        run_trainer.data(SimpleNamespace(data="/data", batch=3), 2)
    run_trainer.trainer_kit.refuse.assert_called_once_with(error)


def test_the_log_shows_what_the_images_are(run_trainer):
    run_trainer.ofrecord_files.describe.return_value = {"files": 2, "identity": "0" * 64}
    shown = run_trainer.data(SimpleNamespace(data="/data", batch=3), 2)
    assert shown == {"data": "records", "files": 2, "identity": "0" * 64}
    run_trainer.ofrecord_files.check_enough.assert_called_once_with("/data", 2, 3)


def test_with_a_graph_the_log_shows_what_products_have_in_it(run_trainer):
    shown = run_trainer.oneflow_run.product_dtype
    trainer = SimpleNamespace(graph=True, train_graph="graph")
    assert run_trainer.precision(trainer, "gpu") == shown.return_value
    shown.assert_called_once_with("graph", "gpu")


@pytest.mark.parametrize(("dtype", "name"), [("float32", "fp32"), ("float16", "fp16")])
def test_without_a_graph_the_log_shows_the_dtype_of_the_weights(run_trainer, dtype, name):
    weight = SimpleNamespace(dtype=getattr(run_trainer.flow, dtype))
    trainer = SimpleNamespace(graph=False, model=SimpleNamespace(parameters=lambda: [weight]))
    assert run_trainer.precision(trainer, "cpu") == name
