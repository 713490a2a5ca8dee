# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_bert: its logs, with genuine ones, and how steps and rate are divided. Needs no Horovod."""

import shutil
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.launch import jobs
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from in_english import run_record
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/horovod_bert"
WORKLOAD = declaration("horovod_bert")


schedule = load("horovod_bert", "schedule")


def case(nodes=1, **other):
    given = {"nodes": nodes, "gpus": 1, "bsz": 4, "dtype": "fp32", **other}
    return plan(given, WORKLOAD, cluster(4, slots=2), "horovod_bert", "cpu")["cases"][0]


def record(tmp_path, nodes, made=None, change=("", "")):
    names = [f"NODE{i}" for i in range(1, nodes + 1)]
    for name in names:
        shutil.copy(LOGS / f"{nodes}n1g-{name}.log", tmp_path / f"{name}.log")
    text = (tmp_path / "NODE1.log").read_text()
    assert change[0] in text
    (tmp_path / "NODE1.log").write_text(text.replace(*change))
    return run_record(tmp_path, made or case(nodes), 1, WORKLOAD, names, {"rc": 0})


# -- genuine logs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "rate"), [(1, 97.06), (2, 142.59)])
def test_a_genuine_log_gives_the_rate_of_the_window(tmp_path, nodes, rate):
    read = record(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize(("shown", "status"), [("false", "refused"), ("true", "ok")])
def test_gradients_are_summed_where_they_were_asked_to_be(tmp_path, shown, status):
    made = case()
    made["settings"]["through_host"] = True
    read = record(tmp_path, 1, made, (" tf32=true", f" tf32=true through_host={shown}"))
    assert read["status"] == status
    assert (status == "ok") is ("through_host" not in (read["reason"] or ""))


def test_the_second_reading_agrees(tmp_path):
    assert measure(record(tmp_path, 1))["differs"] < 0.01


def test_every_node_tells_its_own_steps(tmp_path):
    assert [node["steps"] for node in record(tmp_path, 2)["nodes"]] == [list(range(1, 121))] * 2


@pytest.mark.parametrize("wrong", [{"nodes": 2}, {"dtype": "bf16"}, {"bsz": 8}, {"accumulation": 2}])
def test_a_log_of_another_run_is_refused(tmp_path, wrong):
    """Processes that a foreign mpirun started find no one else, and each trains alone."""
    shutil.copy(LOGS / "1n1g-NODE1.log", tmp_path / "NODE2.log")
    assert record(tmp_path, 1, case(**wrong))["status"] == "refused"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("devices", (" world_size=2 ", " world_size=1 ")),
        ("nodes", (" nodes=2 ", " nodes=1 ")),
        ("task", (" node_rank=0 ", " node_rank=1 ")),
        ("backend", (" backend=mpi ", " backend=none ")),
        ("host", (" host=", " place=")),
        ("model", (" model=tiny ", " model=base ")),
        ("steps", ("steps_done=120 loss=finite", "steps_done=119 loss=finite")),
        ("steps", ("steps_done=120 loss=finite", "steps_done=120 loss=nan")),
        ("weights", ("HOROVOD_BERT weights=agree end=true", "")),
    ],
)
def test_what_is_not_as_it_was_asked_for_is_refused(tmp_path, name, change):
    read = record(tmp_path, 2, change=change)
    assert (read["status"], f" {name}" in read["reason"]) == ("refused", True)


def test_the_declaration_can_be_used():
    assert WORKLOAD.need == 120


# -- one process per device, mpirun's own ------------------------------------------------------------------


def test_the_job_is_started_with_a_process_for_each_device():
    assert WORKLOAD.processes_per_node == "gpus"
    made = case(nodes=2, gpus=2)
    members = [
        {"name": f"NODE{i}", "host": f"NODE{i}", "address": f"10.11.0.{i + 1}",
         "machine": f"10.11.0.{i + 1}", "work": "/work"}
        for i in (1, 2)
    ]  # fmt: skip
    job = jobs.make_jobs(made, 1, "night", members, 11111)
    command = jobs.job_command(job, members, "mpirun", ["run_node.py"], made["gpus"])
    assert command[1:7] == ["--host", "10.11.0.2:2,10.11.0.3:2", "-np", "4", "--map-by", "ppr:2:node"]


# -- the fork's rule of steps and rate ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "divided"), [(1, (240, 24, 2e-5)), (2, (120, 12, 4e-5)), (7, (34, 3, 14e-5))]
)
def test_several_devices_take_their_part_of_the_steps_at_as_many_times_the_rate(size, divided):
    assert schedule.divide(240, 2e-5, size) == pytest.approx(divided)


def test_a_training_too_short_for_its_devices_is_refused():
    with pytest.raises(ValueError, match="3 steps of one device leave none to each of 4 processes"):
        schedule.divide(3, 2e-5, 4)


def test_the_rate_rises_over_a_tenth_and_falls_to_the_end():
    rates = [schedule.rate_at(done, 120, 12, 1.0) for done in (0, 6, 12, 60, 119)]
    assert rates == pytest.approx([0.0, 0.5, 0.9, 0.5, 1 / 120])


def test_a_training_too_short_for_a_rise_begins_at_its_line():
    assert schedule.rate_at(0, 5, 0, 1.0) == 1.0
