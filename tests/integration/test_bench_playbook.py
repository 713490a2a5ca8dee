# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""bench.yml from the command to the records, with real jobs of a scripted trainer on simulated nodes."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import ansible_runner
import pytest
from ansible.module_utils.scalebook.provision import stack_table
from in_english import in_english
from local_nodes import turn

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    "ANSIBLE_ROLES_PATH": f"{ROOT}/roles:{ROOT}/tests/roles",
}

pytestmark = pytest.mark.slow


class Played:
    """What became of one ansible-playbook."""

    def __init__(self, runner):
        self.rc, self.stats = runner.rc, runner.stats
        events = [event for event in runner.events if event["event"] in ("runner_on_ok", "runner_on_failed")]
        self.results = [
            (event["event_data"]["task_action"], event["event_data"].get("res") or {}) for event in events
        ]
        failed = [event for event in events if event["event"] == "runner_on_failed"]
        self.failures = [event["event_data"]["res"].get("msg", "") for event in failed]
        self.shown = "\n".join(res["display"] for _, res in self.results if res.get("display"))

    def of(self, action):
        return [res for name, res in self.results if name == action]


def play(playbook, private, extra="", cmdline="", roles=None, inventory=ROOT / "inventory/local", path=""):
    # A fresh one each time: the runner keeps and merges what an earlier start was given.
    return Played(
        ansible_runner.run(
            private_data_dir=tempfile.mkdtemp(dir=private),
            project_dir=str(ROOT),
            inventory=str(inventory),
            playbook=playbook,
            cmdline=f'{cmdline} -e "{extra}"' if extra else cmdline,
            envvars={
                **ENVIRONMENT,
                "ANSIBLE_ROLES_PATH": f"{ENVIRONMENT['ANSIBLE_ROLES_PATH']}:{roles or ''}",
                "PATH": os.pathsep.join([*([str(path)] if path else []), os.environ["PATH"]]),
            },
            quiet=True,
        )
    )


@pytest.fixture(scope="module")
def mpirun(tmp_path_factory):
    """Install Open MPI on the local nodes; the scripted trainer needs nothing else."""
    for node in (ROOT / ".scalebook/work").glob("NODE?"):
        shutil.rmtree(node / "test", ignore_errors=True)
    with turn():
        played = play("provision.yml", tmp_path_factory.mktemp("provision"), "workload=scripted")
    assert played.rc == 0, played.failures


def bench(root, extra, cmdline="", roles=None, **played):
    places = f"campaign=test campaign_results={root}/results campaign_port=24100"
    given = f"workload=scripted scripted_step=0.003 {places} {extra}"
    return play("bench.yml", root, given, cmdline, roles, **played)


def records(root, repeat=1):
    found = (root / "results/test/runs").glob(f"*/{repeat}/result.json")
    loaded = [in_english(json.loads(path.read_text())) for path in found]
    return {record["case"]["label"]: record for record in loaded}


FAULTS = {
    "die:NODE2:30": ("failed", "SIGKILL"),
    "alone:NODE2:0": ("refused", "devices"),
    "nan:NODE2:50": ("refused", "loss"),
    "short:NODE2:60": ("incomplete", "60"),
    "hang:NODE2:40": ("hung", "no output for 2 s"),
    "exit:NODE2:40": ("failed", "3"),
    "oom:NODE2:40": ("oom", "memory"),
}
"""What NODE2 does in the first repeat, the second and so on, and what the record says of it."""

REPEATS = len(FAULTS) + 1  # after the last NODE2 would be well


@pytest.fixture(scope="module")
def interrupted(mpirun, tmp_path_factory):
    """A campaign in which NODE2 goes wrong in every run it takes part in."""
    root = tmp_path_factory.mktemp("interrupted")
    faults = ",".join(FAULTS)
    played = bench(root, f"nodes=1,2 repeats={REPEATS} campaign_stall=2 scripted_fault={faults}")
    return played, {repeat: records(root, repeat) for repeat in range(1, REPEATS + 1)}, root


@pytest.fixture(scope="module")
def resumed(interrupted):
    """The same campaign started again, NODE2 well; what ran out of memory is tried again by force alone."""
    root = interrupted[2]
    return root, bench(root, f"nodes=1,2 repeats={REPEATS} force=true")


@pytest.mark.parametrize(("repeat", "fault"), list(enumerate(FAULTS, start=1)))
def test_a_run_that_proves_nothing_is_not_counted(interrupted, repeat, fault):
    record = interrupted[1][repeat]["2n1g"]
    status, said = FAULTS[fault]
    assert record["status"] == status, record["reason"]
    assert said in record["reason"]
    assert "NODE2" in record["reason"]


def test_what_ran_out_of_memory_is_not_tried_again(interrupted):
    record = interrupted[1][REPEATS]["2n1g"]
    assert (record["status"], record["reason"]) == ("skipped", "batch 16 ran out of memory")


def test_a_failed_run_costs_the_others_nothing(interrupted):
    assert {labels["1n1g"]["status"] for labels in interrupted[1].values()} == {"ok"}
    assert "1n1g" in interrupted[0].shown


def test_a_campaign_with_a_failed_run_fails_in_the_end(interrupted):
    assert interrupted[0].rc != 0
    assert "8 runs of the campaign do not count" in interrupted[0].failures[-1]


def test_a_second_start_measures_only_what_is_missing(resumed):
    assert "16 runs, 8 already measured" in resumed[1].shown
    assert [res["status"] for res in resumed[1].of("bench_result")] == ["ok"] * 8
    assert resumed[1].rc == 0


def test_what_a_failed_run_left_is_kept_aside(resumed):
    root, _ = resumed
    kept = [json.loads(path.read_text()) for path in (root / "results/test/failed").glob("*/*/result.json")]
    assert sorted(record["status"] for record in kept) == sorted(status for status, _ in FAULTS.values())


def test_a_finished_campaign_launches_nothing(resumed):
    played = bench(resumed[0], f"nodes=1,2 repeats={REPEATS}")
    assert played.rc == 0
    assert played.of("bench_result") == []
    assert "16 already measured" in played.shown


def test_another_inventory_is_refused_the_numbers_of_this_one(resumed, tmp_path):
    """Nothing is provisioned for its hosts, and nothing is measured or reported under their names."""
    other = tmp_path / "other.yml"
    other.write_text((ROOT / "inventory/local/hosts.yml").read_text().replace("NODE", "GPUHOST"))
    results = resumed[0] / "results/test"
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    played = bench(resumed[0], f"nodes=1,2 repeats={REPEATS}", inventory=other)
    assert played.rc != 0
    assert "it was measured on NODE1, NODE2 (inventory/local)" in played.failures[-1]
    assert f"the nodes of today are GPUHOST1, GPUHOST2 ({other})" in played.failures[-1]
    assert played.of("speedup_report") == []
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before


def test_a_driver_that_does_not_answer_is_no_host_without_gpus(tmp_path):
    smi = tmp_path / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n")
    smi.chmod(0o755)
    played = bench(tmp_path, "nodes=1", path=smi.parent)
    assert played.rc != 0
    assert "NODE1: nvidia-smi ended with status 18: Failed to initialize NVML" in played.failures[-1]
    assert "device cpu" in bench(tmp_path, "nodes=1 device=cpu plan_only=true", path=smi.parent).shown


def test_a_template_of_the_inventory_is_evaluated_before_its_limit_is_checked(tmp_path):
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text(
        'scripted_memory: 8\nscripted_step: "{{ scripted_memory - 8 }}"\n'
    )
    inventory = tmp_path / "hosts.yml"
    inventory.write_text((ROOT / "inventory/local/hosts.yml").read_text())
    played = play("bench.yml", tmp_path, "workload=scripted plan_only=true", inventory=inventory)
    assert "scripted_step=0: allowed are seconds above 0" in played.failures[-1]
    assert f"{inventory.parent}/group_vars/all.yml sets scripted_step" in played.failures[-1]


def test_limits_are_those_of_the_stack_that_the_gpus_need(tmp_path):
    smi = tmp_path / "bin/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho 6.0\n")
    smi.chmod(0o755)
    played = play("bench.yml", tmp_path, "workload=torch_examples_resnet50 plan_only=true", path=smi.parent)
    assert played.failures[-1].startswith("torch_examples_resnet50_data=: allowed are a directory of images")


def test_every_node_had_its_own_task_index_and_port(resumed):
    work = ROOT / ".scalebook/work"
    (first,) = work.glob("NODE1/test/*2n1g*/1/job.env")
    (second,) = work.glob("NODE2/test/*2n1g*/1/job.env")
    jobs = [dict(line.split("=", 1) for line in path.read_text().splitlines()) for path in (first, second)]
    assert [(job["TASK_INDEX"], job["PORT"]) for job in jobs] == [("0", "24100"), ("1", "24101")]
    assert jobs[0]["WORKER_HOSTS"] == jobs[1]["WORKER_HOSTS"] == "127.0.0.1:24100,127.0.0.1:24101"


@pytest.fixture(scope="module")
def largest(mpirun, tmp_path_factory):
    """A campaign that searches for the largest batch of a trainer whose memory is full above 24."""
    root = tmp_path_factory.mktemp("largest")
    return root, bench(root, "nodes=1 repeats=1 scripted_step=0.03 bsz=max scripted_memory=24")


def test_the_largest_batch_is_searched_and_then_measured(largest):
    root, played = largest
    assert played.rc == 0, played.failures
    tried = [(res["record"]["case"]["bsz"], res["status"]) for res in played.of("bench_result")]
    assert tried == [(16, "ok"), (32, "oom"), (24, "ok"), (24, "ok")]
    assert len(list((root / "results/test/search").glob("*/1/result.json"))) == 3
    assert "24 per device (out of memory with: 32 (1n1g); search runs: 3)" in played.shown


def test_the_two_readings_of_the_clock_agree(largest):
    """In a window of three seconds: in a shorter one a busy machine's hiccup is more than 2 %."""
    (record,) = records(largest[0]).values()
    assert record["status"] == "ok", record["reason"]
    assert len(record["nodes"][0]["received"]) > 100
    assert record["notes"] == []


def test_the_record_says_where_it_was_measured(resumed):
    provenance = json.loads((resumed[0] / "results/test/provenance.json").read_text())
    assert set(provenance["nodes"]) == {"NODE1", "NODE2", "NODE3", "NODE4"}
    about = provenance["nodes"]["NODE1"]
    assert about["mpi"].startswith("Open MPI 4.")
    assert re.fullmatch("[0-9a-f]{64}", about["script"])
    assert [key for key in stack_table.KEYS if key not in about] == []


def test_each_record_has_the_hardware_of_its_nodes(resumed):
    for path in (resumed[0] / "results/test/runs").glob("*/*/result.json"):
        record = json.loads(path.read_text())
        (hardware,) = record["hardware"]
        assert hardware["nodes"] == [node["node"] for node in record["nodes"]]
        assert hardware["threads"] > 0


def test_each_record_names_its_software_and_the_command(resumed):
    for path in (resumed[0] / "results/test/runs").glob("*/*/result.json"):
        record = json.loads(path.read_text())
        (software,) = record["software"]
        assert software["nodes"] == [node["node"] for node in record["nodes"]]
        assert software["mpi"].startswith("Open MPI 4.")
        assert re.fullmatch("[0-9a-f]{40}(-dirty)?", record["scalebook"]["commit"])
        assert record["command"].startswith("ansible-playbook -i inventory/local bench.yml -e ")
        assert " scripted_step=0.003" in record["command"]


def test_the_report_is_there(resumed):
    assert (resumed[0] / "results/test/report/report.html").exists()


def test_a_run_that_never_ends_is_ended_by_the_hard_limit(mpirun, tmp_path):
    played = bench(tmp_path, "nodes=1 repeats=1 campaign_timeout=3 scripted_step=5")
    (result,) = played.of("bench_result")
    assert result["status"] != "ok"
    assert played.rc != 0


@pytest.mark.parametrize(
    "mistakes",
    [
        {
            "bsz=0": "bsz=0: allowed are whole numbers from 1 to 1000000",
            "bzs=64": "did you mean bsz?",
            "plan_only=ture": "plan_only=ture: allowed are true and false",
            "preflight=flase": "preflight=flase: allowed are true and false",
            "campaign_takeover=jes": "campaign_takeover=jes: allowed are true and false",
            "framework=scripted": "framework: use workload=scripted",
        },
        {"nodes=9": "nodes=9: allowed are 1 to 4"},
        {"topology=1n2g": "topology=1n2g: the only allowed value is 1, devices of each node"},
        {"scripted_step=0": "scripted_step=0: allowed are seconds above 0"},
    ],
)
def test_bad_values_are_refused_together_before_anything_starts(tmp_path, mistakes):
    played = bench(tmp_path, " ".join(mistakes))
    assert played.rc != 0
    assert [said for said in mistakes.values() if said not in played.failures[-1]] == []
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("extra", "cmdline"), [("plan_only=true", ""), ("bsz=8", "--check")])
def test_a_plan_is_shown_and_nothing_launched(tmp_path, extra, cmdline):
    played = bench(tmp_path, f"nodes=1,2 {extra}", cmdline)
    assert played.rc == 0
    assert "2 cases x 5 repeats = 10 runs" in played.shown
    assert not (tmp_path / "results").exists()
    assert played.of("job_dir") == []


@pytest.mark.parametrize("more", ["plan_only=true", ""])
def test_a_wrong_baseline_is_refused_before_anything_runs(tmp_path, more):
    played = bench(tmp_path, f"nodes=1 baseline=nope {more}")
    assert played.rc != 0
    assert played.failures[-1].startswith("baseline=nope: must be the path of a results.json")
    assert not (tmp_path / "results").exists()
    assert played.of("job_dir") == []


def test_a_matrix_with_nothing_to_run_is_an_error_that_says_why(tmp_path):
    played = bench(tmp_path, "dtype=fp16 nodes=1")
    assert played.rc != 0
    assert "There is nothing to run. scripted: fp16 does not run on a cpu" in played.failures[-1]
    assert not (tmp_path / "results").exists()


def test_the_plan_of_a_matrix_with_nothing_to_run_is_shown(tmp_path):
    played = bench(tmp_path, "dtype=fp16 nodes=1 plan_only=true")
    assert played.rc == 0
    assert "fp16 does not run on a cpu" in played.shown


def test_a_plan_shows_the_launch_command_of_its_first_case(tmp_path):
    played = bench(tmp_path, "nodes=2 plan_only=true device=cpu")
    assert "launch of 2n1g: mpirun --host localhost:2 " in played.shown
    assert "estimate: none" in played.shown


def test_a_campaign_that_an_earlier_version_planned_is_refused(tmp_path):
    plan = tmp_path / "results/test/plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_text('{"schema": 1, "campaign": "test"}')
    played = bench(tmp_path, "nodes=1")
    assert played.rc != 0
    assert "planned by an earlier version" in played.failures[-1]
    assert plan.read_text() == '{"schema": 1, "campaign": "test"}'


# Several workloads: the scripted trainer once more under another name, with another stack and other dtypes


@pytest.fixture(scope="module")
def two_workloads(mpirun, tmp_path_factory):
    """A campaign of two workloads, and the same command once more."""
    root = tmp_path_factory.mktemp("two")
    second = root / "roles/second"
    shutil.copytree(ROOT / "tests/roles/scripted", second)
    for path in second.rglob("*"):
        if path.is_file():
            path.write_text(path.read_text().replace("scripted", "second"))
    declaration = second / "meta/workload.yml"
    text = declaration.read_text().replace("stack: dlperf2020", "stack: modern")
    declaration.write_text(text.replace("cpu: [fp32]", "cpu: [fp32, bf16]"))
    with turn():
        provisioned = play("provision.yml", root, "workload=scripted,second", roles=root / "roles")
    assert provisioned.rc == 0, provisioned.failures
    given = "workload=scripted,second topology=1n1g,2n1g dtype=fp32,bf16 repeats=2 second_step=0.002"
    plays = [bench(root, given, roles=root / "roles") for _ in range(2)]
    return root / "results/test", plays


def test_a_campaign_measures_several_workloads(two_workloads):
    directory, (first, _) = two_workloads
    assert first.rc == 0, first.failures
    found = [json.loads(path.read_text()) for path in directory.glob("runs/*/*/result.json")]
    measured = [
        (record["case"]["workload"], record["case"]["dtype"], record["case"]["label"]) for record in found
    ]
    assert sorted(measured) == sorted(
        [
            (workload, dtype, label)
            for workload, dtype in (("scripted", "fp32"), ("second", "fp32"), ("second", "bf16"))
            for label in ("1n1g", "2n1g")
        ]
        * 2
    )
    assert {record["status"] for record in found} == {"ok"}


def test_what_only_one_of_them_has_is_skipped_with_the_reason(two_workloads):
    assert "scripted has no bf16: it has fp32, fp16" in two_workloads[1][0].shown


def test_the_runs_of_all_workloads_are_interleaved(two_workloads):
    order = [res["record"]["repeat"] for res in two_workloads[1][0].of("bench_result")]
    assert order == [1] * 6 + [2] * 6


def test_each_workload_has_its_own_stack_and_provenance(two_workloads):
    provenance = json.loads((two_workloads[0] / "provenance.json").read_text())
    stacks = {name: nodes["NODE1"]["stack"] for name, nodes in provenance["workloads"].items()}
    assert stacks == {"scripted": "dlperf2020", "second": "modern"}


def test_a_finished_campaign_of_several_workloads_launches_nothing(two_workloads):
    second = two_workloads[1][1]
    assert second.rc == 0
    assert second.of("bench_result") == []
    assert "12 already measured" in second.shown
