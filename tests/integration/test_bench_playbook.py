# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""bench.yml from the command to the records, with real gangs of a scripted trainer on local nodes."""

import json
import re
import shutil
import tempfile
from pathlib import Path

import ansible_runner
import pytest
from ansible.module_utils.scalebook import proof
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


def play(playbook, private, extra="", cmdline=""):
    # A fresh one each time: the runner keeps and merges what an earlier start was given.
    return Played(
        ansible_runner.run(
            private_data_dir=tempfile.mkdtemp(dir=private),
            project_dir=str(ROOT),
            inventory=str(ROOT / "inventory" / "local"),
            playbook=playbook,
            cmdline=f'{cmdline} -e "{extra}"' if extra else cmdline,
            envvars=ENVIRONMENT,
            quiet=True,
        )
    )


@pytest.fixture(scope="module")
def mpirun(tmp_path_factory):
    """Install Open MPI on the local nodes; the scripted trainer needs nothing else."""
    for node in (ROOT / ".scalebook/work").glob("NODE?"):
        shutil.rmtree(node / "test", ignore_errors=True)
    with turn():
        played = play("provision.yml", tmp_path_factory.mktemp("provision"), "framework=scripted")
    assert played.rc == 0, played.failures


def bench(root, extra, cmdline=""):
    places = f"campaign=test campaign_results={root}/results campaign_port=24100"
    return play("bench.yml", root, f"framework=scripted scripted_step=0.003 {places} {extra}", cmdline)


def records(root, repeat=1):
    found = (root / "results/test/runs").glob(f"*/{repeat}/result.json")
    loaded = [json.loads(path.read_text()) for path in found]
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


def test_every_node_had_its_own_task_index_and_port(resumed):
    work = ROOT / ".scalebook/work"
    (first,) = work.glob("NODE1/test/*2n1g*/1/job.env")
    (second,) = work.glob("NODE2/test/*2n1g*/1/job.env")
    jobs = [dict(line.split("=", 1) for line in path.read_text().splitlines()) for path in (first, second)]
    assert [(job["TASK_INDEX"], job["PORT"]) for job in jobs] == [("0", "24100"), ("1", "24101")]
    assert jobs[0]["WORKER_HOSTS"] == jobs[1]["WORKER_HOSTS"] == "127.0.0.1:24100,127.0.0.1:24101"


def test_the_two_readings_of_the_clock_agree(mpirun, tmp_path):
    """In a window of three seconds: in a shorter one a busy machine's hiccup is more than 2 %."""
    bench(tmp_path, "nodes=1 repeats=1 scripted_step=0.03")
    (record,) = records(tmp_path).values()
    assert record["status"] == "ok", record["reason"]
    assert len(record["nodes"][0]["received"]) > 100
    assert record["notes"] == []


def test_the_record_says_where_it_was_measured(resumed):
    provenance = json.loads((resumed[0] / "results/test/provenance.json").read_text())
    assert set(provenance["nodes"]) == {"NODE1", "NODE2", "NODE3", "NODE4"}
    about = provenance["nodes"]["NODE1"]
    assert about["cores"] > 0
    assert about["mpi"].startswith("Open MPI 4.")
    assert re.fullmatch("[0-9a-f]{64}", about["script"])
    assert [key for key in proof.KEYS if key not in about] == []


def test_the_report_is_there(resumed):
    assert (resumed[0] / "results/test/report/report.html").exists()


def test_a_run_that_never_ends_is_ended_by_the_hard_limit(mpirun, tmp_path):
    played = bench(tmp_path, "nodes=1 repeats=1 campaign_timeout=3 scripted_step=5")
    (result,) = played.of("bench_result")
    assert result["status"] != "ok"
    assert played.rc != 0


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("bsz=0", "bsz=0: allowed are whole numbers from 1 to 1000000"),
        ("bzs=64", "did you mean bsz?"),
        ("nodes=9", "nodes=9: allowed are 1 to 4"),
        ("scripted_step=0", "scripted_step=0: allowed are seconds above 0"),
    ],
)
def test_a_bad_value_is_refused_before_anything_starts(tmp_path, extra, said):
    played = bench(tmp_path, extra)
    assert played.rc != 0
    assert said in played.failures[-1]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("extra", "cmdline"), [("plan_only=true", ""), ("bsz=8", "--check")])
def test_a_plan_is_shown_and_nothing_launched(tmp_path, extra, cmdline):
    played = bench(tmp_path, f"nodes=1,2 {extra}", cmdline)
    assert played.rc == 0
    assert "2 cases x 3 repeats = 6 runs" in played.shown
    assert not (tmp_path / "results").exists()
    assert played.of("job_dir") == []


def test_a_matrix_of_which_nothing_can_run_says_why_and_ends_well(tmp_path):
    played = bench(tmp_path, "dtype=fp16 nodes=1")
    assert played.rc == 0
    assert "fp16 does not run on a cpu" in played.shown
