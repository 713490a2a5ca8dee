# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The programs that acceptance.yml starts on nodes, with torch: what they print is read as measurements."""

import os
import shutil
import subprocess
from pathlib import Path

import frameworks
import pytest
from ansible.module_utils.scalebook.accept import printed
from nets import free_ports

ROLES = Path(__file__).resolve().parents[2] / "roles"
PYTHON = frameworks.HOME / "pytorch/venv/bin/python"
COLLECTIVES = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def programs(torch_bert, tmp_path_factory):
    """The programs of both roles, in one directory as on a node."""
    folder = tmp_path_factory.mktemp("programs")
    for role in ("acceptance", "microbench"):
        for file in (ROLES / role / "files").glob("*.py"):
            shutil.copy(file, folder)
    return folder


def start(programs, what, *words):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1", "PYTHONPATH": ""}
    command = [PYTHON, programs / "measure_parts.py", what, "--device", "cpu", "--seconds", "0.05", *words]
    return subprocess.Popen(
        [*map(str, command)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def result(process):
    stdout, stderr = process.communicate(timeout=240)
    return {"rc": process.returncode, "stdout": stdout, "stderr": stderr}


def together(programs, what, count, *more):
    """Return what `count` nodes of this machine measured together."""
    [port] = map(str, free_ports(1))
    words = [["--nodes", str(count), "--rank", str(rank), "--port", port] for rank in range(count)]
    outputs = {f"NODE{rank + 1}": start(programs, what, *each, *more) for rank, each in enumerate(words)}
    results = {node: result(process) for node, process in outputs.items()}
    (measurement,) = printed.of_several([[*results]], results, 60)
    return measurement


@pytest.fixture(scope="module")
def alone(programs):
    """Two measurements of this machine alone; the second one has two devices."""
    processes = {"NODE1": start(programs, "alone"), "NODE2": start(programs, "alone", "--devices", "2")}
    return printed.of_nodes({node: result(each) for node, each in processes.items()}, 60)


def test_a_node_alone_has_a_rate_of_each_quantity_and_no_problem(alone):
    assert [each["problems"] for each in alone] == [{}, {}]
    rates = alone[0]["rates"]
    assert {"matmul_fp32", "best_bf16", "copy", "triad", "launch"} <= {*rates["CPU"]}
    assert {"processor", "memory"} <= {*rates["host"]}
    assert all(rate > 0 for part in rates.values() for rate in part.values())


def test_equal_devices_train_to_the_same_digest(alone):
    assert len({each["traces"]["CPU"] for each in alone}) == 1


def test_devices_of_a_node_send_each_other_every_size_and_in_pairs(alone):
    sizes = {(row["collective"], row["bytes"]) for row in alone[1]["sizes"]}
    assert {"sendrecv", *COLLECTIVES} == {*alone[1]["rates"]["GPUs"]}
    assert ("sendrecv", 8) in sizes
    assert len(alone[1]["pairs"]) == 2


def test_two_nodes_measure_their_link_in_both_directions(programs):
    measurement = together(programs, "pair", 2)
    assert (measurement["problems"], {*measurement["rates"]}) == ({}, {"forward", "backward"})


def test_two_nodes_with_several_devices_measure_each_rail(programs):
    rails = together(programs, "pair", 2, "--devices", "2")["rails"]
    assert {way: [rate > 0 for rate in rates] for way, rates in rails.items()} == {
        "forward": [True, True],
        "backward": [True, True],
    }


def test_all_nodes_measure_the_collectives_together(programs):
    measurement = together(programs, "all", 3)
    assert (measurement["problems"], {*measurement["rates"]}) == ({}, COLLECTIVES)
