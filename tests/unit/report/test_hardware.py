# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nodes of the same hardware are described once, in a sentence that names what is known."""

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
