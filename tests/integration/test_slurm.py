# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Runs that srun starts, on a Slurm of four nodes on this machine: order, records, and every way to end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.launch.srun import step_command
from local_nodes import WORK, provision
from one_host_slurm import NODES, one_host_slurm

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "roles/campaign/files"
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def slurm():
    with one_host_slurm() as cluster:
        yield cluster


@pytest.fixture
def allocation(slurm):
    """One allocation for all tests, and another one where a test has ended it."""
    return slurm.run("squeue", "--noheader", "--states=running", "--format=%i").strip() or slurm.allocate()


class Run:
    """The node jobs of a run of `script` on `nodes`, and the program that starts them."""

    def __init__(self, slurm, allocation, place, script, nodes=NODES, processes=1, gpus=0, options=()):
        self.slurm, self.dirs = slurm, {}
        for index, node in enumerate(nodes):
            self.dirs[node] = directory = place / node / "c/case/1"
            directory.mkdir(parents=True)
            devices = ",".join(map(str, range(gpus)))
            env = {
                "SCALEBOOK_RUN": "c/case/1",
                "NODE": node,
                "TASK_INDEX": index,
                "PORT": 0,
                "JOB_DIR": directory,
            }
            env |= {"CUDA_VISIBLE_DEVICES": devices, "HOSTS": ",".join(["127.0.0.1"] * len(nodes))}
            (directory / "job.env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
            (directory / "run.sh").write_text(script)
        jobs = [{"node": node, "dir": str(self.dirs[node])} for node in nodes]
        members = [{"name": node} for node in nodes]
        words = [PYTHON, str(PROGRAMS / "run_node.py")]
        self.command = step_command(jobs, members, words, processes, options, allocation)

    def start(self, timeout=60):
        """Start run_job."""
        first = next(iter(self.dirs.values()))
        argv = [sys.executable, PROGRAMS / "run_job.py", "--dir", first, "--timeout", str(timeout)]
        return subprocess.Popen(
            [*argv, "--", *self.command], env=self.slurm.env, stdout=subprocess.PIPE, text=True
        )

    def result(self, **options):
        """Return what run_job reports."""
        return json.loads(self.start(**options).communicate(timeout=90)[0])

    def record(self, node, name="exit.json"):
        """Return the record of a node's end."""
        return json.loads((self.dirs[node] / name).read_text())

    def log(self, node):
        return (self.dirs[node] / f"{node}.log").read_text()

    def await_start(self):
        """Wait until the workload runs on all nodes."""
        deadline = time.monotonic() + 20
        while not all((each / "began").exists() for each in self.dirs.values()):
            assert time.monotonic() < deadline
            time.sleep(0.05)


HANGS = "touch began; exec sleep 300\n"


@pytest.fixture
def start(slurm, allocation, tmp_path):
    yield lambda script, **options: Run(slurm, allocation, tmp_path, script, **options)
    deadline = time.monotonic() + 10
    while slurm.steps() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert slurm.steps() == []


def test_the_rank_is_that_of_the_plan_whatever_slurm_s_order_is(start):
    order = ("NODE4", "NODE2", "NODE3", "NODE1")
    run = start('echo "rank $OMPI_COMM_WORLD_RANK on $SLURMD_NODENAME"', nodes=order)
    result = run.result()
    assert (result["rc"], result["launcher"]) == (0, "srun")
    for rank, node in enumerate(order):
        assert f"rank {rank} on {node}" in run.log(node)


def test_a_node_starts_a_process_for_each_device(start):
    words = "$OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_SIZE"
    run = start(f'echo "ranks {words}"', nodes=("NODE3", "NODE1"), processes=3)
    assert run.result()["rc"] == 0
    logs = [run.dirs["NODE1"] / name for name in ("NODE1.log", "NODE1.1.log", "NODE1.2.log")]
    assert [f"ranks {3 + local} {local} 3" in log.read_text() for local, log in enumerate(logs)] == [True] * 3


def test_the_job_of_another_node_is_refused_although_a_shared_file_system_has_it(start):
    run = start("true", nodes=("NODE1", "NODE2"))
    run.command = [word for word in run.command if "distribution" not in word]
    swapped = [word.replace("NODE1,NODE2", "NODE2,NODE1") for word in run.command]
    run.command = [*swapped[:-2], f"NODE2={run.dirs['NODE2']}", f"NODE1={run.dirs['NODE1']}"]
    assert "scalebook: refused: Slurm started rank" in run.result()["stderr"]
    assert not any((directory / "exit.json").exists() for directory in run.dirs.values())


def test_gpus_are_the_first_of_those_that_slurm_gave(start):
    run = start('echo "devices $CUDA_VISIBLE_DEVICES"', nodes=("NODE1",), gpus=1)
    run.result()
    assert "devices 0\n" in run.log("NODE1")


def test_fewer_gpus_than_the_run_uses_are_refused_with_the_fix(start):
    run = start("true", nodes=("NODE2",), gpus=2, options=["--gpus-per-node=1"])
    assert run.result()["rc"] != 0
    assert run.record("NODE2")["reason"] == {
        "code": "refused.few-gpus", "values": {"node": "NODE2", "count": 1, "needed": 2},
    }  # fmt: skip


def test_a_failing_node_ends_the_others_and_each_has_its_record(start):
    run = start("[ $NODE != NODE3 ] || { sleep 1; exit 7; }\nexec sleep 300\n")
    began = time.monotonic()
    assert run.result()["rc"] == 7
    assert time.monotonic() - began < 20
    assert run.record("NODE3")["rc"] == 7
    assert {run.record(node)["status"] for node in ("NODE1", "NODE2", "NODE4")} == {"terminated"}


def test_the_time_limit_ends_all_nodes_and_each_writes_its_record(start):
    run = start(HANGS)
    began = time.monotonic()
    result = run.result(timeout=2)
    assert (result["ended_by"], time.monotonic() - began < 12) == ("timeout", True)
    ended = {"code": "end.by-the-job", "values": {"number": 10}}
    assert [run.record(node)["reason"] for node in NODES] == [ended] * len(NODES)


def test_a_program_that_ignores_signals_is_gone_after_seconds(start):
    run = start("trap '' TERM USR1 INT HUP\ntouch began\nwhile :; do sleep 0.2; done\n")
    began = time.monotonic()
    run.result(timeout=2)
    assert time.monotonic() - began < 15


def test_a_step_ends_with_the_connection_to_the_control_node(start):
    run = start(HANGS)
    process = run.start()
    run.await_start()
    process.stdout.close()
    assert process.wait(20) == 0
    assert {run.record(node)["status"] for node in NODES} == {"terminated"}


def test_a_step_that_is_cancelled_is_no_good_run(start):
    run = start(HANGS)
    process = run.start()
    run.await_start()
    run.slurm.run("scancel", *run.slurm.steps())
    assert json.loads(process.communicate(timeout=60)[0])["rc"] != 0


def test_a_step_without_srun_is_found_by_its_name_and_ended(start):
    run = start(HANGS)
    process = run.start()
    run.await_start()
    group = int(subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, check=True).stdout)
    process.kill()
    os.killpg(group, signal.SIGKILL)  # the step runs on
    time.sleep(1)
    assert run.slurm.steps() != []
    place = run.dirs["NODE1"].parents[2]
    argv = [sys.executable, PROGRAMS / "orphans.py", place]
    done = subprocess.run(argv, env=run.slurm.env, capture_output=True, text=True, check=True)
    assert list(json.loads(done.stdout)["ended"]) == [str(run.dirs["NODE1"])]


def test_a_step_has_a_time_limit_of_its_own(start):
    run = start(HANGS)
    process = run.start(timeout=60)
    run.await_start()
    assert run.slurm.run("squeue", "--steps", "--noheader", "--format=%l").strip() == "3:00"
    process.send_signal(signal.SIGTERM)
    assert json.loads(process.communicate(timeout=30)[0])["ended_by"] == "signal"


def test_more_nodes_than_the_allocation_has_are_refused_at_once(start):
    began = time.monotonic()
    result = start("true", nodes=(*NODES, "NODE5")).result()
    assert (result["rc"] != 0, time.monotonic() - began < 10) == (True, True)
    assert "srun: error" in result["stderr"]


def start_bench(slurm, results, allocation="", **variables):
    """Start bench.yml with the scripted trainer on simulated nodes that have the names of Slurm's."""
    given = {"workload": "scripted", "launcher": "srun", "repeats": 1, "campaign": "by_srun"}
    given |= {"campaign_results": str(results), "campaign_work": str(WORK), "campaign_port": 24820}
    given |= {"preflight": False, **variables}
    return subprocess.Popen(
        ["ansible-playbook", "-i", "inventory/local", "bench.yml", "-e", json.dumps(given)],
        env={**slurm.env, "SLURM_JOB_ID": allocation, "ANSIBLE_ROLES_PATH": "roles:tests/roles"},
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def bench(*arguments, **variables):
    """Run it; return its exit status and what it prints."""
    process = start_bench(*arguments, **variables)
    said = process.communicate(timeout=300)[0]
    return process.returncode, said


def wait_for_the_step(slurm):
    """Wait until the trainer of a run works."""
    deadline = time.monotonic() + 120
    while "/by_srun/" not in slurm.run("squeue", "--steps", "--noheader", "--format=%j"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(3)


def records_of(results):
    paths = results.glob("by_srun/runs/*/*/result.json")
    return [json.loads(path.read_text()) for path in sorted(paths)]


def print_script(slurm, *words):
    """Run scripts/bench --sbatch where Slurm is."""
    argv = [ROOT / "scripts/bench", "--sbatch", *words]
    return subprocess.run(argv, env=slurm.env, capture_output=True, text=True)


def test_slurm_takes_the_batch_script(slurm):
    assert print_script(slurm, "0:10", "--topology", "1n1g,2n2g").returncode == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["0:10", "--topology", "5n1g"], "Requested node configuration is not available. Fix: sinfo --for"),
        (["0:10", "--topology", "1n9g"], "Requested node configuration is not available. Fix: sinfo --for"),
        (["0:10 -p none", "--topology", "1n1g"], "Invalid partition name specified. Fix: sinfo --summarize"),
        (["0:10 --gres=tpu:1", "--topology", "1n1g"], "Invalid generic resource (gres) specification. Fix: "),
    ],
    ids=["nodes", "GPUs", "partition", "GRES"],
)  # fmt: skip
def test_a_script_that_would_wait_for_ever_is_refused_with_slurm_s_reason(slurm, words, why):
    done = print_script(slurm, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr


@pytest.mark.slow
def test_a_campaign_runs_through_slurm_and_its_records_name_the_launcher(slurm, allocation, tmp_path):
    provision("scripted")
    status, said = bench(slurm, tmp_path, allocation, nodes=[1, 4])
    assert status == 0, said[-6000:]
    records = records_of(tmp_path)
    assert [(each["status"], each["job"]["launcher"]) for each in records] == [("ok", "srun")] * 2
    assert "launcher=srun" in records[0]["command"]
    assert "launcher" in (tmp_path / "by_srun/report/report.md").read_text().partition("Environment")[2]
    assert json.loads((tmp_path / "by_srun/provenance.json").read_text())["launcher"] == "srun"


@pytest.mark.slow
def test_a_cancelled_allocation_stops_the_campaign_and_another_one_resumes_it(slurm, allocation, tmp_path):
    provision("scripted")
    process = start_bench(slurm, tmp_path, allocation, nodes=2, repeats=2, scripted_step=0.1)
    wait_for_the_step(slurm)
    slurm.run("scancel", allocation)
    said = process.communicate(timeout=120)[0]
    assert (
        f"launcher=srun: Slurm's job {allocation} is CANCELLED. Fix: start bench.yml in an allocation" in said
    )
    (record,) = records_of(tmp_path)
    assert "'reason.cancelled'" in str(record["reason"])
    status, said = bench(slurm, tmp_path, slurm.allocate(), nodes=2, repeats=2, scripted_step=0.1)
    assert status == 0, said[-6000:]
    assert [each["status"] for each in records_of(tmp_path)] == ["ok"] * 2


def preempt(slurm, _):
    """Take the nodes of an allocation for a job of a partition that goes before."""
    slurm.run("scancel", slurm.allocate("--partition=urgent"))


def requeue(slurm, allocation):
    slurm.run("scontrol", "requeue", allocation)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "state", "reason"),
    [
        (preempt, "PREEMPTED", "slurm-preempted"),
        (requeue, "PENDING, with the reason BeginTime", "slurm-requeued"),
    ],
)
def test_what_takes_the_nodes_away_stops_the_campaign_and_is_in_the_record(
    slurm, tmp_path, end, state, reason
):
    provision("scripted")
    allocation = slurm.batch()
    process = start_bench(slurm, tmp_path, allocation, nodes=2, repeats=2, scripted_step=0.1)
    wait_for_the_step(slurm)
    end(slurm, allocation)
    said = process.communicate(timeout=120)[0]
    slurm.run("scancel", allocation)
    assert (
        f"launcher=srun: Slurm's job {allocation} is {state}. Fix: start bench.yml in an allocation" in said
    )
    (record,) = records_of(tmp_path)
    assert f"'failure.{reason}'" in str(record["reason"])


@pytest.mark.slow
def test_an_allocation_that_has_ended_is_refused_before_the_first_run(slurm, tmp_path):
    status, said = bench(slurm, tmp_path, "9999", nodes=1)
    assert status != 0
    assert "Slurm's job 9999: slurm_load_jobs error: Invalid job id specified. Fix: start" in said
    assert records_of(tmp_path) == []


@pytest.mark.slow
def test_a_resource_that_does_not_exist_is_refused_before_the_first_run(slurm, allocation, tmp_path):
    provision("scripted")
    _, said = bench(slurm, tmp_path, allocation, nodes=2, campaign_srun_options=["--gres=tpu:1"])
    assert "not start a step on the nodes: Invalid generic resource (gres) specification. Fix: sinfo" in said
    assert records_of(tmp_path) == []


@pytest.mark.slow
def test_a_node_that_slurm_drained_is_refused_before_the_first_run(slurm, allocation, tmp_path):
    slurm.run("scontrol", "update", "nodename=NODE2", "state=drain", "reason=bad GPU 5")
    try:
        _, said = bench(slurm, tmp_path, allocation, nodes=2)
    finally:
        slurm.run("scontrol", "update", "nodename=NODE2", "state=resume")
    assert "for Slurm NODE2 is draining, with the reason bad GPU 5. Fix: leave it out" in said
    assert records_of(tmp_path) == []
