# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How machines are set up, and their ports for RDMA: what costs speed is reported, what is usual is not.

The texts have the form that Linux documents for these files (Documentation/ABI, admin-guide/pm), no
recording of such machines is at hand.
"""

import copy

import pytest
from preflight_site import Cluster

ALL = ["NODE1", "NODE2", "NODE3", "NODE4"]
PORT = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "400 Gb/sec (4X NDR)",
    "link_layer": "InfiniBand",
    "errors": {"symbol_error": "0", "link_downed": "1"},
    "gids": {"0": ["fe80:0000:0000:0000:a088:c203:0020:5b27", "IB/RoCE v1"]},
}
ETHERNET = PORT | {
    "link_layer": "Ethernet",
    "gids": {
        "0": ["fe80:0000:0000:0000:a288:c2ff:fe20:5b27", "IB/RoCE v1"],
        "1": ["fe80:0000:0000:0000:a288:c2ff:fe20:5b27", "RoCE v2"],
        "3": ["0000:0000:0000:0000:0000:ffff:0a0b:0001", "RoCE v2"],
    },
}
SWITCH = {"numa_node": "0", "iommu": "identity", "ports": {"0000:16:00.0": 0}}


def bad(made, *checks):
    return [one for one in made.bad() if one[0] in checks]


def cluster(port=PORT, nodes=4):
    """Return a cluster with two such ports, two GPUs behind a switch and Ubuntu's driver on each node."""
    made = Cluster(nodes, device="gpu")
    for node in made.probed:
        made[node].update(
            infiniband={f"mlx5_{index}/1": copy.deepcopy(port) for index in range(2)},
            switches={f"0000:{bus}:00.0": copy.deepcopy(SWITCH) for bus in ("17", "18")},
            upgrades={
                "settings": ['APT::Periodic::Unattended-Upgrade "1";'],
                "packages": ["ii unattended-upgrades 2.9.1", "hi nvidia-driver-580-server 580.159.04"],
            },
        )
    return made


@pytest.mark.parametrize("port", [PORT, ETHERNET], ids=["InfiniBand", "RoCE"])
def test_machines_that_are_set_up_well_raise_no_alarm(port):
    assert bad(cluster(port), "cpu", "path", "upgrade", "rdma") == []


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (
            {"governors": {"performance": 60, "schedutil": 4}},
            "of 64 processors 4 have the governor schedutil cpupower frequency-set -g performance",
        ),
        ({"idle": [{"name": "C6", "latency": "290", "disable": "0"}]}, "fall into C6 (290 µs)"),
        ({"numa_balancing": "1"}, "between 2 NUMA nodes (numa_balancing) sysctl -w kernel.numa_balancing=0"),
    ],
)
def test_processors_that_save_power_or_move_memory_are_a_warning(fact, words):
    made = Cluster()
    made["NODE2"]["processors"].update(fact)
    assert made.bad() == [("cpu", "warn", ["NODE2"])]
    assert words in made.said()


@pytest.mark.parametrize(
    "fact",
    [
        {"idle": [{"name": "C1", "latency": "2", "disable": "0"}]},
        {"idle": [{"name": "C6", "latency": "290", "disable": "1"}]},
        {"numa_nodes": 1, "numa_balancing": "1"},
        {"governors": {}, "numa_balancing": ""},
    ],
)
def test_shallow_states_and_one_numa_node_are_no_fault(fact):
    made = Cluster()
    made["NODE2"]["processors"].update(fact)
    assert made.bad() == []


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ({"iommu": "DMA-FQ"}, "the IOMMU translates the addresses of GPUs (DMA-FQ) boot with iommu=pt"),
        ({"ports": {"0000:16:00.0": 0x1D}}, "ACS is on at the PCIe switch ports 0000:16:00.0"),
    ],
)
def test_a_detour_between_devices_is_a_warning(fact, words):
    made = cluster()
    made["NODE3"]["switches"]["0000:17:00.0"].update(fact)
    assert bad(made, "path") == [("path", "warn", ["NODE3"])]
    assert words in made.said()


@pytest.mark.parametrize("control", [None, 0x01], ids=["not readable", "source validation only"])
def test_acs_that_redirects_nothing_is_no_fault(control):
    made = cluster()
    made["NODE3"]["switches"]["0000:17:00.0"]["ports"] = {"0000:16:00.0": control}
    assert bad(made, "path") == []


def test_a_gpu_that_is_alone_has_nobody_to_talk_to():
    made = cluster(nodes=1)
    made["NODE1"]["switches"] = {"0000:17:00.0": SWITCH | {"iommu": "DMA"}}
    assert bad(made, "path") == []


def test_a_driver_that_upgrades_may_replace_is_a_warning_with_the_command_that_holds_it():
    made = cluster()
    made["NODE1"]["upgrades"]["packages"].append("ii libnvidia-compute-580-server 580.159.04")
    assert bad(made, "upgrade") == [("upgrade", "warn", ["NODE1"])]
    assert "apt-mark hold libnvidia-compute-580-server" in made.said()


@pytest.mark.parametrize(
    "apt",
    [
        {"settings": ['APT::Periodic::Unattended-Upgrade "0";']},
        {"packages": ["ii nvidia-driver-580 580.1"]},
        {
            "settings": [
                'APT::Periodic::Unattended-Upgrade "1";',
                'Unattended-Upgrade::Package-Blacklist:: "nvidia-";',
            ]
        },
    ],
    ids=["switched off", "not installed", "left out"],
)
def test_upgrades_that_leave_the_driver_alone_are_no_fault(apt):
    made = cluster()
    packages = ["ii unattended-upgrades 2.9.1", "ii nvidia-driver-580 580.1"]
    made["NODE1"]["upgrades"] = {**made["NODE1"]["upgrades"], "packages": packages, **apt}
    assert bad(made, "upgrade") == []


def of_dnf(**changes):
    made = cluster()
    made["NODE1"]["upgrades"] = None
    made["NODE1"]["dnf_upgrades"] = {
        "timers": ["dnf-automatic.timer"],
        "automatic": "[commands]\napply_updates = yes",
        "dnf": "[main]\ngpgcheck=1",
        "locked": "",
        "packages": [
            "kmod-nvidia-open-dkms",
            "libnvidia-container1",
            "nvidia-container-toolkit",
            "nvidia-driver",
        ],
        **changes,
    }
    return made


@pytest.mark.parametrize(
    "dnf",
    [{}, {"timers": ["dnf-automatic-install.timer"], "automatic": ""}],
    ids=["by its file", "by its timer"],
)
def test_a_driver_that_dnf_may_replace_is_a_warning_with_the_command_that_locks_it(dnf):
    made = of_dnf(**dnf)
    assert bad(made, "upgrade") == [("upgrade", "warn", ["NODE1"])]
    assert "dnf versionlock add kmod-nvidia-open-dkms nvidia-driver" in made.said()


@pytest.mark.parametrize(
    "dnf",
    [
        {"timers": []},
        {"automatic": "[commands]\napply_updates = no"},
        {"dnf": "[main]\nexcludepkgs=kernel*, *nvidia*"},
        {"locked": "# by hand\nnvidia-driver-3:580.82.07-1.el9.*\nkmod-nvidia-open-dkms-3:580.82.07-1.el9.*"},
        {"packages": []},
    ],
    ids=["no timer", "only downloads", "excluded", "locked", "no driver"],
)
def test_upgrades_of_dnf_that_leave_the_driver_alone_are_no_fault(dnf):
    assert bad(of_dnf(**dnf), "upgrade") == []


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({"state": "1: DOWN", "phys_state": "2: Polling"}, "refuse", "mlx5_1/1 DOWN and Polling"),
        ({"state": "2: INIT"}, "refuse", "1 of 2 InfiniBand ports are active"),
        ({"rate": "200 Gb/sec (4X HDR)"}, "refuse", "mlx5_1/1 runs at 200 Gb/sec (4X HDR)"),
        ({"errors": {"symbol_error": "4711"}}, "warn", "mlx5_1/1 has physical errors: symbol_error 4711"),
    ],
)
def test_a_port_that_is_worse_than_those_of_other_nodes_is_named(change, level, words):
    made = cluster()
    made["NODE4"]["infiniband"]["mlx5_1/1"].update(change)
    assert bad(made, "rdma") == [("rdma", level, ["NODE4"])]
    assert words in made.said()


def test_a_port_that_no_node_uses_is_no_fault():
    made = cluster()
    for node in ALL:
        made[node]["infiniband"]["mlx5_1/1"].update(state="1: DOWN", rate="10 Gb/sec (4X SDR)")
    assert bad(made, "rdma") == []


def test_a_port_for_roce_without_an_address_is_a_warning():
    made = cluster(ETHERNET)
    del made["NODE2"]["infiniband"]["mlx5_0/1"]["gids"]["3"]
    assert bad(made, "rdma") == [("rdma", "warn", ["NODE2"])]


def test_an_index_without_a_gid_is_refused_with_those_that_there_are():
    made = cluster(ETHERNET)
    made["NODE2"]["nccl"] = ["NCCL_IB_GID_INDEX=5"]
    assert bad(made, "rdma") == [("rdma", "refuse", ["NODE2"])] * 2
    assert "mlx5_0/1 has no GID 5, which NCCL_IB_GID_INDEX names" in made.said()
    assert "(here 3)" in made.said()


def test_an_index_of_a_gid_is_no_interface():
    made = cluster(ETHERNET)
    made["NODE2"]["nccl"] = ["NCCL_IB_GID_INDEX=3"]
    assert bad(made, "rdma", "address") == []
