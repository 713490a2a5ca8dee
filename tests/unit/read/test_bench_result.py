# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The module bench_result: files beside the logs, and a result short enough for a terminal."""

import json
import os
from pathlib import Path

import pytest
from cases import case
from dlperf_logs import WORKLOAD, log_text, step_times
from node_logs import JOB, node_log
from run_module import call_action


def run(**options):
    return call_action("bench_result", **options)


@pytest.fixture
def one_run(tmp_path):
    (tmp_path / "NODE1.log").write_text(node_log())
    return {
        "run_dir": str(tmp_path),
        "case": case(),
        "repeat": 2,
        "nodes": ["NODE1"],
        "job": JOB,
        "workload": WORKLOAD.as_data(),
    }


def test_a_run_gets_its_files(one_run, tmp_path):
    result = run(**one_run)
    assert (result["changed"], result["status"], result["rate"]) == (True, "ok", 32.0)
    record = json.loads((tmp_path / "result.json").read_text())
    assert len(record["nodes"][0]["steps"]) == 120
    exits = json.loads((tmp_path / "exit.json").read_text())
    assert exits["job"]["rc"] == 0 and exits["nodes"]["NODE1"]["rc"] == 0


def test_the_result_has_no_lists_of_steps(one_run):
    result = run(**one_run)
    assert set(result["record"]["nodes"][0]) == {
        "node",
        "task_index",
        "log",
        "sha256",
        "bytes",
        "loss",
        "shown",
        "exit",
    }


def test_a_second_time_nothing_changes(one_run):
    run(**one_run)
    assert run(**one_run)["changed"] is False


def test_check_mode_writes_nothing(one_run, tmp_path):
    result = run(**one_run, check=True)
    assert (result["changed"], result["rate"]) == (True, 32.0)
    assert [path.name for path in tmp_path.iterdir()] == ["NODE1.log"]


SOCKETS = """host1:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
host1:7:9 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x2 - Init COMPLETE
host1:7:9 [0] NCCL INFO 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels
host1:7:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
"""


@pytest.mark.parametrize(("network", "status"), [("fastest", "refused"), ("any", "ok")])
def test_sockets_beside_roce_count_only_where_any_network_is_accepted(one_run, tmp_path, network, status):
    (tmp_path / "NODE1.log").write_text(node_log(text=SOCKETS + log_text(step_times(0.5), devices=2)))
    machine = [{"nodes": ["NODE1"], "networks": [{"name": "mlx5_0", "kind": "RoCE"}]}]
    of = case(1, 2, device="gpu")
    assert run(**{**one_run, "case": of}, hardware=machine, network=network)["status"] == status


def test_a_record_has_the_machines_of_its_nodes_alone(one_run, tmp_path):
    machines = {"NODE1": {"machine": "m1", "boot": "b1"}, "NODE2": {"machine": "m2"}}
    run(**one_run, machines=machines)
    assert json.loads((tmp_path / "result.json").read_text())["machines"] == {"NODE1": machines["NODE1"]}


def test_a_record_has_the_command_of_the_process_that_made_it(one_run, tmp_path):
    place = tmp_path / "runs/case/2"
    place.mkdir(parents=True)
    (place / "NODE1.log").write_text(node_log())
    (tmp_path / "plan.json").write_text(
        '{"parameters": {"bsz": 64}, "variables": {}, "inventory": "another"}'
    )
    run(**{**one_run, "run_dir": str(place)}, command="ansible-playbook -i mine bench.yml")
    assert json.loads((place / "result.json").read_text())["command"] == "ansible-playbook -i mine bench.yml"


def test_a_run_that_does_not_count_does_not_fail_the_task(one_run, tmp_path):
    text = log_text(step_times(0.5, count=60), last=120)
    (tmp_path / "NODE1.log").write_text(node_log(text=text))
    result = run(**one_run)
    assert (result["status"], result["rate"]) == ("incomplete", None)
    assert result["reason"] == "NODE1.log stops at step 60, step 120 is required"


def test_a_wrong_declaration_fails_the_task_by_its_key(one_run):
    result = run(**{**one_run, "workload": {**WORKLOAD.data, "log": {"literal": "x", "step": "("}}})
    assert result["failed"] is True
    assert result["msg"].startswith("log.step: '(' is not a regular expression")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "missing required arguments: case, nodes, run_dir"),
        ({"run_dir": "/x"}, "missing required arguments: case, nodes"),
    ],
)
def test_missing_arguments_are_refused(args, message):
    result = run(workload=WORKLOAD.as_data(), **args)
    assert (result["failed"], result["msg"]) == (True, message)


def test_a_record_says_what_the_campaign_ran_with(one_run, tmp_path):
    run_dir = tmp_path / "runs" / "case" / "2"
    run_dir.mkdir(parents=True)
    (tmp_path / "NODE1.log").rename(run_dir / "NODE1.log")
    facts = {"framework": "tensorflow 2.3.0", "cuda": "10.1.243", "nccl": "2.7.3"}
    provenance = {
        "scalebook": {"commit": "11d4e8c"},
        "workloads": {"tf2_bert": dict.fromkeys(("NODE1", "NODE2"), facts), "torch_bert": {}},
    }
    (tmp_path / "provenance.json").write_text(json.dumps(provenance))
    (tmp_path / "plan.json").write_text(json.dumps({"parameters": {"bsz": [64]}}))
    run(**{**one_run, "run_dir": str(run_dir)})
    record = json.loads((run_dir / "result.json").read_text())
    assert record["software"] == [{"nodes": ["NODE1"], **facts}]
    assert record["scalebook"] == {"commit": "11d4e8c"}
    assert record["command"] == 'ansible-playbook bench.yml -e "bsz=64"'


@pytest.fixture
def synced(monkeypatch):
    """The paths that were written to the disk, in this order; a temporary file has the final name."""
    paths, fsync = [], os.fsync

    def record(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        paths.append(path.with_name(path.name[1:].rpartition(".")[0]) if path.name.startswith(".") else path)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    return paths


def test_a_record_is_written_after_its_logs_and_directories_are_on_the_disk(one_run, tmp_path, synced):
    folder = tmp_path / "campaign/runs/case/1"
    folder.mkdir(parents=True)
    (tmp_path / "NODE1.log").rename(folder / "NODE1.log")
    assert run(**{**one_run, "run_dir": str(folder)})["status"] == "ok"
    place = synced.index(folder / "result.json")
    assert {folder / "NODE1.log", folder / "exit.json", folder, *list(folder.parents)[:3]} <= set(
        synced[:place]
    )
    assert folder in synced[place:]


def test_a_campaign_whose_directory_was_moved_away_is_not_recorded(one_run, tmp_path):
    folder = tmp_path / "campaign/runs/case/1"
    result = run(**{**one_run, "run_dir": str(folder), "planned": True})
    assert "plan.json is not there any more" in result["msg"]
    assert not folder.exists()
