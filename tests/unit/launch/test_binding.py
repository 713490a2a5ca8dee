# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Ranks are bound to the processors beside their GPU: real processes, and files like those of /sys.

A machine with two NUMA nodes is not at hand: two of this one's processors stand for the nodes.
"""

import json
import os
import subprocess
import sys

import pytest
from ansible.module_utils.scalebook.pages.catalogue import in_words, sentence
from test_run_node import RUN_NODE, STEPS, job

sys.path.insert(0, str(RUN_NODE.parent))
import binding  # noqa: E402 - a program of the nodes

CPUS = sorted(os.sched_getaffinity(0))[:2]

MAIN = """
import sys
sys.path.insert(0, {folder!r})
import binding, run_node
binding.ROOT = {root!r}
run_node.main()
"""
# Prints its processors when they have changed, or after two seconds.
RANK = """
import os, time
end = time.monotonic() + 2
while len(os.sched_getaffinity(0)) > 1 and time.monotonic() < end:
    time.sleep(0.01)
open("cpus." + os.environ[NAME], "w").write(" ".join(map(str, sorted(os.sched_getaffinity(0)))))
time.sleep(0.5)
"""


def machine(top, nodes, gpus=()):
    """Write /sys of a machine with NUMA nodes, lists of processors, and with GPUs, their NUMA nodes."""
    for number, cpus in enumerate(nodes):
        folder = top / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{cpus}\n")
    for place, node in enumerate(gpus):
        folder = top / f"sys/bus/pci/devices/0000:{place:02x}:00.0"
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{node}\n")
    return f"{top}/"


def with_gpus(tmp_path, monkeypatch, *numa_nodes):
    """Put an nvidia-smi in front of all others that prints as many GPUs, in the form of NVIDIA's."""
    lines = "".join(
        f"echo '{place}, GPU-{place}{place}, 00000000:{place:02X}:00.0'\n" for place in range(len(numa_nodes))
    )
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{lines}")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return machine(tmp_path / "machine", CPUS, numa_nodes)


def bound(root, monkeypatch, processes=1, **env):
    monkeypatch.setattr(binding, "ROOT", root)
    return binding.Binding("numa", {"DEVICE": "cpu", "GPUS_PER_NODE": "2", **env}, processes)


@pytest.mark.parametrize("text", ["0-3,8", "5", "0-1,4-5,63"])
def test_a_list_of_the_kernel_is_read_and_written(text):
    assert binding.write_list(binding.read_list(text)) == text


def test_lists_are_read_with_their_ends():
    assert binding.read_list("0-3,8\n") == {0, 1, 2, 3, 8}


@pytest.mark.parametrize(
    ("ranks", "nodes", "each"),
    [(4, [0, 1], [[0], [0], [1], [1]]), (2, [0, 1, 2, 3], [[0, 1], [2, 3]]), (1, [0, 1], [[0, 1]])],
)
def test_ranks_on_processors_are_spread_evenly(ranks, nodes, each):
    assert binding.spread(ranks, nodes) == each


@pytest.mark.parametrize(
    ("visible", "numa_nodes"), [("0,1", [[0], [1]]), ("1,0", [[1], [0]]), ("GPU-11,GPU-00", [[1], [0]])]
)
def test_a_rank_has_the_numa_node_of_its_gpu(tmp_path, monkeypatch, visible, numa_nodes):
    root = with_gpus(tmp_path, monkeypatch, 0, 1)
    made = bound(root, monkeypatch, DEVICE="gpu", CUDA_VISIBLE_DEVICES=visible)
    assert made.nodes == numa_nodes
    assert made.cpus == [{CPUS[node]} for [node] in numa_nodes]


def test_a_gpu_of_a_virtual_machine_that_hides_its_numa_node_binds_nothing(tmp_path, monkeypatch):
    root = with_gpus(tmp_path, monkeypatch, 0, -1)
    made = bound(root, monkeypatch, DEVICE="gpu", CUDA_VISIBLE_DEVICES="0,1")
    assert sentence(made.record()["why"]) == "the NUMA node of GPU 1 is not known"


def test_a_gpu_whose_processors_are_somebody_elses_binds_nothing(tmp_path, monkeypatch):
    root = with_gpus(tmp_path, monkeypatch, 0, 7)
    made = bound(root, monkeypatch, DEVICE="gpu", CUDA_VISIBLE_DEVICES="0,1")
    assert sentence(made.record()["why"]) == "no processor of NUMA node 7 may be used"


def test_another_number_of_gpus_than_ranks_binds_nothing(tmp_path, monkeypatch):
    root = with_gpus(tmp_path, monkeypatch, 0)
    made = bound(root, monkeypatch, DEVICE="gpu", CUDA_VISIBLE_DEVICES="0")
    assert sentence(made.record()["why"]) == "CUDA_VISIBLE_DEVICES=0 does not name 2 GPUs"


def test_one_rank_on_all_numa_nodes_is_not_bound(tmp_path, monkeypatch):
    made = bound(machine(tmp_path, CPUS), monkeypatch, GPUS_PER_NODE="1")
    assert sentence(made.record()["why"]) == "each rank has all NUMA nodes"


def test_one_process_for_gpus_of_one_numa_node_has_its_processors(tmp_path, monkeypatch):
    root = with_gpus(tmp_path, monkeypatch, 1, 1)
    made = bound(root, monkeypatch, DEVICE="gpu", CUDA_VISIBLE_DEVICES="0,1")
    assert made.record() == {"mode": "numa", "memory": "first touch", "ranks": [], "cpus": str(CPUS[1])}


def test_one_numa_node_binds_nothing(tmp_path, monkeypatch):
    made = bound(machine(tmp_path, ["0-4095"]), monkeypatch)
    allowed = binding.write_list(os.sched_getaffinity(0))
    assert in_words(made.record()) == {"mode": "none", "why": "one NUMA node", "cpus": allowed}


def test_processors_that_may_not_be_used_do_not_count(tmp_path, monkeypatch):
    root = machine(tmp_path, [f"{CPUS[0]},4000-4095", "3000-3999"])
    monkeypatch.setattr(binding, "ROOT", root)
    assert binding.numa_nodes() == {0: {CPUS[0]}}


@pytest.mark.parametrize(
    ("processes", "env", "rank"),
    [
        (1, {"LOCAL_RANK": "1"}, 1),
        (1, {"LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}, 1),
        (1, {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 1),
        (1, {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, None),
        (1, {}, None),
        (2, {"OMPI_COMM_WORLD_RANK": "3", "LOCAL_RANK": "3"}, 1),
        (1, {"LOCAL_RANK": "1", "JOB_DIR": "/another"}, None),
    ],
    ids=[
        "torchrun",
        "torchrun below mpirun",
        "mpirun in the script",
        "the script",
        "none",
        "mpirun",
        "foreign",
    ],
)
def test_the_rank_of_a_process_is_in_its_environment(tmp_path, monkeypatch, processes, env, rank):
    made = bound(machine(tmp_path, CPUS), monkeypatch, processes, JOB_DIR="/job")
    environment = {f"{name}={value}".encode() for name, value in {"JOB_DIR": "/job", **env}.items()}
    assert made.rank_of(environment) == rank


def run(tmp_path, script, *ranks, mode="numa", limits=None, **env):
    """Run a node script on a machine with a NUMA node per processor; return its record and what ranks had."""
    env = {"DEVICE": "cpu", "GPUS_PER_NODE": "2", **env}
    place = job(tmp_path / "job", script, limits, **env)
    root = machine(tmp_path / "machine", CPUS)
    (tmp_path / "main.py").write_text(MAIN.format(folder=str(RUN_NODE.parent), root=root))
    words = [sys.executable, tmp_path / "main.py", "--binding", mode, "--processes", str(len(ranks)), place]
    started = [
        subprocess.Popen(words, env={**os.environ, "OMPI_COMM_WORLD_RANK": str(rank)}) for rank in ranks
    ]
    assert [each.wait(30) for each in started] == [0] * len(started)
    had = {path.name[5:]: path.read_text() for path in sorted((tmp_path / "job").glob("cpus.*"))}
    return json.loads((tmp_path / "job/exit.json").read_text())["binding"], had


def each_rank(name):
    return RANK.replace("NAME", repr(name))


def test_ranks_that_the_node_script_starts_are_bound_each_to_its_node(tmp_path):
    (tmp_path / "rank.py").write_text(each_rank("LOCAL_RANK"))
    script = (
        "".join(f"LOCAL_RANK={rank} {sys.executable} {tmp_path}/rank.py &\n" for rank in range(2)) + "wait"
    )
    record, had = run(tmp_path, script, 0)
    assert had == {"0": str(CPUS[0]), "1": str(CPUS[1])}
    assert record["ranks"] == [{"rank": r, "numa_nodes": [r], "cpus": str(CPUS[r])} for r in range(2)]
    assert (record["mode"], record["memory"]) == ("numa", "first touch")


def test_ranks_that_mpirun_starts_are_bound_by_the_first(tmp_path):
    (tmp_path / "rank.py").write_text(each_rank("OMPI_COMM_WORLD_RANK"))
    record, had = run(tmp_path, f"exec {sys.executable} {tmp_path}/rank.py", 0, 1)
    assert had == {"0": str(CPUS[0]), "1": str(CPUS[1])}
    assert [rank["cpus"] for rank in record["ranks"]] == [str(cpu) for cpu in CPUS]


def test_one_process_for_all_devices_has_the_processors_of_all(tmp_path):
    (tmp_path / "rank.py").write_text(each_rank("NODE"))
    record, had = run(tmp_path, f"exec {sys.executable} {tmp_path}/rank.py", 0)
    assert had == {"NODE1": " ".join(map(str, CPUS))}
    assert (record.get("ranks") or [], record["cpus"]) == ([], binding.write_list(CPUS))


def test_without_binding_ranks_have_all_processors(tmp_path):
    (tmp_path / "rank.py").write_text(each_rank("LOCAL_RANK"))
    record, had = run(tmp_path, f"LOCAL_RANK=0 {sys.executable} {tmp_path}/rank.py", 0, mode="none")
    assert had == {"0": " ".join(map(str, sorted(os.sched_getaffinity(0))))}
    assert (record["mode"], sentence(record["why"])) == ("none", "binding=none")


def test_what_a_framework_binds_itself_is_let_be_and_recorded(tmp_path):
    """At the first step the record has the processors that a rank took after it had been bound."""
    own = f"""
import os, sys, time
while len(os.sched_getaffinity(0)) > 1: time.sleep(0.01)
time.sleep(0.5)
os.sched_setaffinity(0, [{CPUS[1]}])
time.sleep(0.5)
for step in range(5): print("step=%d" % step, flush=True); time.sleep(0.1)
time.sleep(0.5)
"""
    (tmp_path / "rank.py").write_text(own)
    record, _ = run(tmp_path, f"LOCAL_RANK=0 {sys.executable} {tmp_path}/rank.py", 0, limits=STEPS)
    assert record["ranks"][0]["cpus"] == str(CPUS[1])
