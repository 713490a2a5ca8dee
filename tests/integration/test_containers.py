# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Runs in containers of a real engine, with an image of Debian that is built here, on simulated nodes."""

import importlib.util
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import frameworks
import pytest
from local_nodes import ROOT, WORK, provision
from one_host_slurm import one_host_slurm
from test_slurm import Run

sys.path.append(str(ROOT / "tests/cluster"))
from testcluster import base, engine, hostsettings, image  # noqa: E402

FILES = ROOT / "roles/campaign/files"
SPEC = importlib.util.spec_from_file_location("node_container", FILES / "container.py")
node_container = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(node_container)
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def podman():
    """Return an engine that has the image of a bare host: seconds where it is kept, else two minutes."""
    with base.lock():
        chosen = engine.prepare()
        image.ensure(chosen, hostsettings.discover("10.11.0.0/24"))
    return chosen


@pytest.fixture
def job(podman, tmp_path):
    """Return a function that starts run_node with a node script in a container, below `tmp_path`."""
    started = []

    def start(script):
        place = {"engine": podman.name, "image": image.NAME, "mounts": [str(tmp_path)], "gpus": False}
        (tmp_path / "container.json").write_text(json.dumps({**place, "options": []}))
        (tmp_path / "job.env").write_text("SCALEBOOK_RUN=c/1/1\nNODE=N\nTASK_INDEX=0\nPORT=0\nTEXT=a  b\n")
        (tmp_path / "run.sh").write_text(script)
        env = {**os.environ, **podman.env, "OMPI_COMM_WORLD_RANK": "0", "SCALEBOOK_JOB": str(tmp_path)}
        argv = [sys.executable, FILES / "run_node.py", f"N={tmp_path}"]
        started.append(subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    subprocess.run([sys.executable, FILES / "orphans.py", tmp_path], check=True, stdout=subprocess.DEVNULL)


def lines_of(folder):
    """Return the lines of the node script in a log, without their stamps."""
    texts = [line.split(" ", 2)[2] for line in (folder / "N.log").read_text().splitlines()]
    return [text for text in texts if not text.startswith("SCALEBOOK ")]


def ended(process, folder):
    """Return the exit record of a run."""
    process.communicate(timeout=60)
    return json.loads((folder / "exit.json").read_text())


def test_the_node_script_has_the_machine_s_all_but_its_files(job, tmp_path):
    looks = [
        "hostname",
        "ulimit -l -H; ulimit -n -H",
        "readlink /proc/self/ns/net /proc/self/ns/ipc",
        "stat -fc %b /dev/shm",
    ]
    script = "\n".join(looks)
    here = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    assert ended(job(f"bash -c '{script}'\necho \"$TEXT\" $PWD\ntouch made; exit 7"), tmp_path)["rc"] == 7
    assert lines_of(tmp_path) == [*here.splitlines(), f"a  b {tmp_path}"]
    assert (tmp_path / "made").stat().st_uid == os.getuid()


def test_devices_of_infiniband_are_those_of_the_machine(podman, tmp_path, monkeypatch):
    """Those of this test are one that is none, in a directory of its own."""
    os.mknod(tmp_path / "uverbs0", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    monkeypatch.setattr(node_container, "INFINIBAND", str(tmp_path))
    place = {"engine": podman.name, "image": image.NAME, "mounts": [], "gpus": False, "options": []}
    argv = node_container.command(place, "scalebook-devices", {}, ["-c", f"echo > {tmp_path}/uverbs0"])
    subprocess.run(argv, env={**os.environ, **podman.env}, check=True)


def test_a_signal_in_the_container_is_one_in_the_record(job, tmp_path):
    record = ended(job("kill -SEGV $$"), tmp_path)
    assert (record["status"], record["signal"]) == ("signaled", signal.SIGSEGV)


@pytest.mark.parametrize("victim", ["asked", "front", "behind"])
def test_a_run_that_is_ended_leaves_no_container_and_no_process(job, podman, tmp_path, victim):
    process = job("sleep 1000 & echo $!\nsleep 1000")
    name = node_container.name_of(str(tmp_path), "0")
    deadline = time.monotonic() + 30
    while not (tmp_path / "N.log").exists() or not lines_of(tmp_path):
        assert time.monotonic() < deadline, "the container does not start"
        time.sleep(0.1)
    (pid,) = lines_of(tmp_path)
    assert Path("/proc", pid).exists()
    behind = int(re.search(r'"pid": (\d+)', (tmp_path / "N.log").read_text())[1])
    number = signal.SIGTERM if victim == "asked" else signal.SIGKILL
    os.kill(behind if victim == "behind" else process.pid, number)
    process.wait(30)
    while Path("/proc", pid).exists() or podman("ps", "-aq", "--filter", f"name={name}").stdout.strip():
        assert time.monotonic() < deadline + 30, "something is left"
        time.sleep(0.1)


def test_srun_starts_a_container_on_each_node(podman, tmp_path):
    place = {"engine": podman.name, "image": image.NAME, "mounts": [str(tmp_path)], "gpus": False}
    with one_host_slurm() as slurm:
        slurm.env.update(podman.env)
        script = "test -e /run/.containerenv -o -e /.dockerenv && echo in rank $OMPI_COMM_WORLD_RANK"
        nodes = ("NODE1", "NODE2")
        run = Run(slurm, slurm.allocate(), tmp_path, script, nodes, options=["--export=ALL"])
        for folder in run.dirs.values():
            (folder / "container.json").write_text(json.dumps({**place, "options": []}))
        assert run.result()["rc"] == 0
    assert [f"in rank {rank}" in run.log(node) for rank, node in enumerate(nodes)] == [True, True]


def bench(podman, results, ok=True, **variables):
    """Run bench.yml on two simulated nodes in the image; return what it prints."""
    given = {"nodes": 2, "gpus": 1, "repeats": 1, "campaign": "c", "campaign_results": str(results)}
    given |= {"campaign_work": str(WORK), "container": image.NAME, "container_engine": podman.name}
    given |= {"preflight": False, "device": "cpu", "campaign_port": 24890, **variables}
    done = subprocess.run(
        ["ansible-playbook", "-i", "inventory/local", "bench.yml", "-e", json.dumps(given)],
        env={**os.environ, **podman.env, "ANSIBLE_ROLES_PATH": "roles:tests/roles"},
        cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600,
    )  # fmt: skip
    assert (done.returncode == 0) == ok, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_a_campaign_runs_in_an_image_whose_digest_is_its_provenance(podman, tmp_path):
    provision("scripted")
    bench(podman, tmp_path, workload="scripted")
    record, _ = frameworks.record_of(tmp_path)
    assert (record["status"], [node["exit"]["busy"] is None for node in record["nodes"]]) == (
        "ok",
        [False] * 2,
    )
    provenance = json.loads((tmp_path / "c/provenance.json").read_text())
    (named,) = {node["container"] for node in provenance["nodes"].values()}
    assert re.fullmatch(rf"{image.NAME}@sha256:[0-9a-f]{{64}} \({podman.name}\)", named)


@pytest.mark.slow
def test_an_image_that_a_node_does_not_have_is_refused_with_its_pull_command(podman, tmp_path):
    provision("scripted")
    printed = bench(podman, tmp_path, ok=False, workload="scripted", container="localhost/none:1")
    assert f"Fix: run there: {podman.name} pull localhost/none:1" in printed
    assert list(tmp_path.glob("c/runs/*/*/result.json")) == []


@pytest.mark.slow
def test_torch_bert_trains_in_an_image_that_is_shown_its_environment(podman, torch_bert, tmp_path):
    python = Path(json.loads((frameworks.HOME / "torch_bert/install.json").read_text())["python"]).resolve()
    installed = python.parents[1]
    few = {"warmup": 2, "window": 5, "bsz": 2, "scalebook_home": str(frameworks.HOME)}
    few["campaign_container_options"] = [f"--volume={installed}:{installed}:ro"]
    bench(podman, tmp_path, workload="torch_bert", **few)
    assert frameworks.record_of(tmp_path)[0]["status"] == "ok"
