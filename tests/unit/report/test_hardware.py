# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nodes of the same hardware are described once, in a sentence that names what is known."""

import pytest
from ansible.module_utils.scalebook import hardware

V100 = {"name": "Tesla V100-SXM2-16GB", "memory_mib": 16160, "pcie_generation": 3, "pcie_width": 16}
NODE = {
    "system": "Ubuntu 18.04",
    "kernel": "5.4.0",
    "driver": "440.33.01",
    "processor": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
    "sockets": 2,
    "cores": 40,
    "threads": 80,
    "memory_gib": 376.5,
    "gpus": [V100] * 8,
    "gpu_links": {"NV2": 16, "NV1": 12},
    "networks": [{"name": "mlx5_0", "kind": "InfiniBand", "speed_gbit": 100}],
}


def test_nodes_of_the_same_hardware_share_an_entry():
    found = hardware.group({"NODE1": NODE, "NODE2": {**NODE, "memory_gib": 188}, "NODE3": NODE})
    assert [entry["nodes"] for entry in found] == [["NODE1", "NODE3"], ["NODE2"]]


def test_the_hardware_of_several_records_has_each_node_once():
    one, two = hardware.group({"NODE1": NODE}), hardware.group({"NODE1": NODE, "NODE2": NODE})
    assert [entry["nodes"] for entry in hardware.merge([*one, *two])] == [["NODE1", "NODE2"]]


def test_a_run_has_the_hardware_of_its_own_nodes_only():
    found = hardware.group({"NODE1": NODE, "NODE2": {**NODE, "cores": 20}})
    assert [entry["nodes"] for entry in hardware.of_nodes(found, ["NODE2"])] == [["NODE2"]]


def test_a_sentence_names_gpus_processor_memory_network_and_system():
    assert hardware.sentence(NODE) == (
        "8 × Tesla V100-SXM2-16GB (16 GiB), PCIe 3 x16, linked by NV1, NV2; "
        "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz, 2 sockets, 40 cores, 80 threads; 376 GiB memory; "
        "mlx5_0 (InfiniBand, 100 Gb/s); Ubuntu 18.04, kernel 5.4.0, driver 440.33.01"
    )


def test_what_is_not_known_is_left_out():
    assert hardware.sentence({"processor": "aarch64", "threads": 1}) == "aarch64, 1 thread"


def test_many_network_devices_are_counted():
    devices = [{"name": f"eth{index}", "kind": "Ethernet"} for index in range(5)]
    expected = "eth0 (Ethernet), eth1 (Ethernet), eth2 (Ethernet) and 2 more"
    assert hardware.network({"networks": devices}) == expected


TOPOLOGY = (
    "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV2\tSYS\t0\nGPU1\tNV2\t X \tNV1\t0\nGPU2\tSYS\tNV1\t X \t0"
)
H200 = {"name": "NVIDIA H200", "memory_mib": 143771}


def seeing(count, *nodes, **fields):
    """Return a node of four H200 of which `count` were visible."""
    links = {"NV18": count * (count - 1) // 2} if count > 1 else {}
    return {
        "nodes": list(nodes or ["NODE1"]),
        "gpus": [H200] * count,
        "gpu_links": links,
        "cores": 64,
        **fields,
    }


def of(nodes=1, gpus=1, **fields):
    return {"nodes": nodes, "gpus": gpus, "device": "gpu", **fields}


def test_a_host_is_described_once_however_many_gpus_were_visible():
    [host] = hardware.hosts([seeing(1), seeing(4, "NODE1", "NODE2"), seeing(2)])
    assert (len(host["gpus"]), host["nodes"]) == (4, ["NODE1", "NODE2"])


@pytest.mark.parametrize(
    "other",
    [seeing(2, "NODE2"), seeing(2, cores=32), {**seeing(2), "gpus": [{"name": "NVIDIA H100"}] * 2}],
    ids=["another node", "other cores", "other GPUs"],
)
def test_another_kind_of_node_is_described_apart(other):
    assert len(hardware.hosts([seeing(4), other])) == 2


@pytest.mark.parametrize(("gpus", "kind"), [(1, "1 × NVIDIA H200"), (2, "2 × NVIDIA H200, NV18")])
def test_the_kind_of_a_case_is_what_it_used_whatever_was_visible(gpus, kind):
    assert {hardware.kind([seeing(count)], of(gpus=gpus)) for count in range(gpus, 5)} == {kind}


def test_a_case_has_the_entries_that_it_names():
    entries = [seeing(4), {**seeing(4), "gpus": [{"name": "NVIDIA H100"}] * 4}]
    assert hardware.kind(entries, of(hardware=[1])) == "1 × NVIDIA H100"


def test_the_links_are_those_between_the_gpus_that_were_used():
    entry = {"nodes": ["A"], "gpus": [V100] * 3, "gpu_topology": TOPOLOGY, "gpu_links": {"SYS": 3}}
    assert [hardware.links(entry, count) for count in (1, 2, 3)] == [[], ["NV2"], ["NV1", "NV2", "SYS"]]


def test_nodes_of_one_machine_are_another_kind_than_those_of_several():
    apart, together = (hardware.kind([seeing(4)], of(2, 2, machines=count)) for count in (2, 1))
    assert apart == "2 × NVIDIA H200, NV18"
    assert together == "2 × NVIDIA H200, NV18; 2 nodes, 1 machine"


def test_a_case_on_processors_has_them_as_its_hardware():
    assert hardware.kind([{**seeing(4), "processor": "Xeon"}], of(device="cpu")) == "Xeon, 64 cores"


def test_what_a_case_used_leaves_out_other_gpus():
    [part] = hardware.used_of_nodes([seeing(4)], of(gpus=2))
    assert hardware.gpus(part) == "2 × NVIDIA H200 (140 GiB), linked by NV18"
