# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The programs that acceptance.yml starts on nodes, with torch: what they print is read as measurements."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import frameworks
import pytest
from ansible.module_utils.scalebook.accept import printed, schedule, triage
from nets import free_ports

ROLES = Path(__file__).resolve().parents[2] / "roles"
PYTHON = frameworks.HOME / "pytorch/venv/bin/python"
COLLECTIVES = {"all_gather", "all_reduce", "all_to_all", "reduce_scatter"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def programs(torch_bert, tmp_path_factory):
    """The programs of both roles, in one directory as on a node."""
    folder = tmp_path_factory.mktemp("programs")
    for role in ("acceptance", "microbench"):
        for file in (ROLES / role / "files").glob("*.py"):
            shutil.copy(file, folder)
    return folder


def measured(programs, steps, *words):
    """Return what nodes of this machine measured in their steps."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1", "PYTHONPATH": ""}
    processes = {}
    for node, of_node in steps.items():
        command = [PYTHON, programs / "measure_parts.py", "--device", "cpu", "--seconds", "0.05", *words]
        command += ["--node", node, "--steps", json.dumps(of_node)]
        processes[node] = subprocess.Popen(
            [*map(str, command)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    outputs = {}
    for node, process in processes.items():
        stdout, stderr = process.communicate(timeout=240)
        outputs[node] = {"rc": process.returncode, "stdout": stdout, "stderr": stderr}
    return printed.of_steps(steps, outputs, 60)


@pytest.fixture(scope="module")
def together(programs):
    """What three nodes measured once, and then two of them as a group, each in one process."""
    places = {f"NODE{number}": ("127.0.0.1", port) for number, port in enumerate(free_ports(3), 1)}
    nodes = [*places]
    together = [(tuple(nodes),), (("NODE3", "NODE2"),)]
    steps = schedule.steps(
        dict.fromkeys(nodes, ()), [*triage.rounds(nodes)], together, nodes, schedule.Times(1, 1), places
    )
    return measured(programs, steps)


@pytest.fixture(scope="module")
def two_devices(programs):
    """What two devices of a node measured."""
    [measurement] = measured(programs, {"NODE1": [{"at": 0}]}, "--devices", "2")
    return measurement


def test_nothing_is_a_problem(together, two_devices):
    assert [each["problems"] for each in (*together, two_devices)] == [{}] * 9


def test_a_node_alone_has_a_rate_of_each_quantity(together):
    rates = together[0]["rates"]
    assert {"matmul_fp32", "best_bf16", "copy", "triad", "launch"} <= {*rates["CPU"]}
    assert {"processor", "memory"} <= {*rates["host"]}
    assert all(rate > 0 for part in rates.values() for rate in part.values())


def test_equal_devices_train_to_the_same_digest(together, two_devices):
    assert len({each["traces"]["CPU"] for each in (*together[:3], two_devices)}) == 1


@pytest.mark.parametrize("collective", [*sorted(COLLECTIVES), "sendrecv"])
def test_devices_of_a_node_measure_every_collective_of_every_size(two_devices, collective):
    rows = [row for row in two_devices["sizes"] if row.get("collective") == collective]
    factor = {"sendrecv": 1, "all_reduce": 1}.get(collective, 1 / 2)
    assert {8 * 4**power for power in range(11)} <= {row["bytes"] for row in rows}
    for row in rows:
        rate = row["bytes"] / row["seconds"] / 1e9
        assert row["algbw_gb_per_second"] == pytest.approx(rate)
        assert row["busbw_gb_per_second"] == pytest.approx(rate * factor)


def test_the_largest_size_has_the_reason_why_larger_ones_are_left_out(two_devices):
    reason = {"code": "acceptance.sizes-processor", "values": {"bytes": 1 << 23}}
    assert two_devices["sizes"][-1] == {"largest": 1 << 23, "reason": reason}


def test_devices_of_a_node_send_each_other_in_pairs(two_devices):
    assert {"sendrecv", *COLLECTIVES} == {*two_devices["rates"]["GPUs"]}
    assert len(two_devices["pairs"]) == 2


def test_each_two_nodes_measure_their_link_in_both_directions(together):
    links = [each for each in together if len(each["nodes"]) == 2 and "group" not in each]
    assert [{*each["rates"]} for each in links] == [{"forward", "backward"}] * 3


def test_two_nodes_with_several_devices_measure_each_rail(programs):
    places = {node: ("127.0.0.1", port) for node, port in zip(("NODE1", "NODE2"), free_ports(2), strict=True)}
    steps = schedule.steps({}, [[("NODE1", "NODE2")]], [], [], schedule.Times(1, 1), places)
    [measurement] = measured(programs, steps, "--devices", "2")
    assert {way: [rate > 0 for rate in rates] for way, rates in measurement["rails"].items()} == {
        "forward": [True, True],
        "backward": [True, True],
    }


def test_all_nodes_and_then_two_of_them_measure_the_collectives_together(together):
    of_all, of_group = together[-2:]
    assert (of_all["nodes"], {*of_all["rates"]}) == (["NODE1", "NODE2", "NODE3"], COLLECTIVES)
    assert (of_group["nodes"], {*of_group["rates"]}) == (["NODE3", "NODE2"], COLLECTIVES)
    assert all(rate > 0 for each in (of_all, of_group) for rate in each["rates"].values())
