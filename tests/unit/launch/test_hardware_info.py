# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Module hardware_info: what a machine says of itself, as fields."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.node import hardware_facts

TOPOLOGY = (Path(__file__).parents[2] / "data/hardware/h200x8-topo.txt").read_text()
CPUINFO = """\
processor\t: {thread}
model name\t: Intel(R) Xeon(R)  Gold 6148 CPU @ 2.40GHz
physical id\t: {socket}
core id\t\t: {core}
flags\t\t: fpu vme{flags}
"""


def cpuinfo(flags=""):
    """Two sockets with two cores of two threads each."""
    places = [(socket, core) for _ in range(2) for socket in range(2) for core in range(2)]
    return "\n".join(
        CPUINFO.format(thread=thread, socket=socket, core=core, flags=flags)
        for thread, (socket, core) in enumerate(places)
    )


def test_sockets_cores_and_threads_are_counted_apart():
    assert hardware_facts.processor(cpuinfo(), "x86_64") == {
        "processor": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
        "sockets": 2,
        "cores": 4,
        "threads": 8,
    }


def test_a_machine_that_lists_no_sockets_has_its_threads_only():
    arm = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n"
    assert hardware_facts.processor(arm, "aarch64") == {"processor": "aarch64", "threads": 2}


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ('NAME="Ubuntu"\nVERSION="18.04.4 LTS"\nID=ubuntu\nVERSION_ID="18.04"\n', "Ubuntu 18.04"),
        ("NAME=Fedora\nVERSION_ID=40\n", "Fedora 40"),
        ('NAME="Arch Linux"\n', "Arch Linux"),
        ("", ""),
    ],
)
def test_the_system_has_its_name_and_version(release, name):
    assert hardware_facts.system(release) == name


def test_each_pair_of_gpus_counts_once_by_its_link():
    assert hardware_facts.topology(TOPOLOGY)["gpu_links"] == {"NV18": 28}


def test_the_matrix_is_kept_without_its_legend():
    matrix = hardware_facts.topology(TOPOLOGY)["gpu_topology"]
    assert len(matrix.splitlines()) == 9
    assert "Legend" not in matrix


def test_a_machine_without_gpus_has_no_topology():
    assert hardware_facts.topology("") == {}


def test_what_the_driver_does_not_say_of_a_gpu_is_absent():
    assert hardware_facts.gpus(
        "Tesla V100-SXM2-16GB, 16160, 300.00, 3, 16\nNVIDIA A10, 23028, [N/A], 4, 8\n"
    ) == [
        {
            "name": "Tesla V100-SXM2-16GB",
            "memory_mib": 16160,
            "power_limit_w": 300,
            "pcie_generation": 3,
            "pcie_width": 16,
        },
        {"name": "NVIDIA A10", "memory_mib": 23028, "pcie_generation": 4, "pcie_width": 8},
    ]


@pytest.fixture
def devices(tmp_path):
    """Return a function that makes /sys/class with a network device, and the directory."""

    def make(place, **files):
        for name, text in files.items():
            (tmp_path / place / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).write_text(f"{text}\n")

    return make, tmp_path


def test_network_devices_have_their_kind_and_speed(devices):
    make, root = devices
    make("net/eth0", type=1, operstate="up", speed=25000, device="")
    make("net/lo", type=772, operstate="unknown")
    make("infiniband/mlx5_0/ports/1", state="4: ACTIVE", link_layer="InfiniBand", rate="100 Gb/sec (4X EDR)")
    make("infiniband/mlx5_1/ports/1", state="4: ACTIVE", link_layer="Ethernet", rate="25 Gb/sec (1X EDR)")
    make("infiniband/mlx5_2/ports/1", state="1: DOWN", link_layer="InfiniBand", rate="10 Gb/sec (4X SDR)")
    assert hardware_facts.networks(str(root)) == [
        {"name": "mlx5_0", "kind": "InfiniBand", "speed_gbit": 100},
        {"name": "mlx5_1", "kind": "RoCE", "speed_gbit": 25},
        {"name": "eth0", "kind": "Ethernet", "speed_gbit": 25},
    ]


def test_a_bridge_is_no_hardware_beside_a_real_device(devices):
    make, root = devices
    make("net/docker0", type=1, operstate="up", speed=10000)
    make("net/eth0", type=1, operstate="up", speed=-1, device="")
    assert hardware_facts.networks(str(root)) == [{"name": "eth0", "kind": "Ethernet"}]


@pytest.mark.parametrize("speed", [65535, 4294967295, 0, -1])
def test_a_speed_that_the_driver_does_not_know_is_absent(devices, speed):
    make, root = devices
    make("net/eth0", type=1, operstate="up", speed=speed, device="")
    assert hardware_facts.networks(str(root)) == [{"name": "eth0", "kind": "Ethernet"}]


def test_a_container_names_the_device_that_it_was_given(devices):
    make, root = devices
    make("net/eth0", type=1, operstate="up", speed=10000)
    assert hardware_facts.networks(str(root)) == [{"name": "eth0", "kind": "Ethernet", "speed_gbit": 10}]


def test_the_uuids_of_gpus_are_kept_apart_from_what_describes_them():
    table, uuids = hardware_facts.without_uuids(
        "NVIDIA A10, 23028, 150.00, 4, 8, GPU-1b-2\nA, 1, 2, 3, 4, [N/A]\n"
    )
    assert (table.splitlines()[0], uuids) == ("NVIDIA A10, 23028, 150.00, 4, 8", ["GPU-1b-2"])


@pytest.fixture
def machine_id(monkeypatch):
    """Return a function that gives this machine a /etc/machine-id and returns its identity."""
    real = hardware_facts.read_text

    def identity(text):
        monkeypatch.setattr(
            hardware_facts, "read_text", lambda path: text if path == "/etc/machine-id" else real(path)
        )
        return hardware_facts.identity([], "")

    return identity


def test_a_machine_id_is_never_shown_itself(machine_id):
    secret = "0123456789abcdef0123456789abcdef"
    assert len(machine_id(secret)["machine"]) == 16
    assert not any(secret[start : start + 8] in str(machine_id(secret)) for start in range(24))
    assert machine_id(secret) != machine_id(secret[::-1])


@pytest.mark.parametrize("text", ["", "uninitialized"])
def test_a_machine_without_a_machine_id_says_none(machine_id, text):
    assert "machine" not in machine_id(text)


OVERLAY = (
    "641 198 0:53 / / rw - overlay overlay rw,lowerdir=/s/l/A:/s/l/B,upperdir=/s/987c/diff,workdir=/s/w\n"
)
DISK = (
    "29 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n90 29 0:53 / /mnt rw - overlay o upperdir=/u\n"
)


def test_a_container_is_known_by_the_layer_of_its_root():
    layer = hardware_facts.container(OVERLAY, "container")
    assert layer == hardware_facts.container(DISK + OVERLAY, "") != ""
    assert layer != hardware_facts.container(OVERLAY.replace("987c", "987d"), "container")


def test_layers_of_one_number_on_two_hosts_are_told_apart_by_the_names_of_the_containers(monkeypatch):
    layer = hardware_facts.container(OVERLAY, "container")
    monkeypatch.setattr(hardware_facts.socket, "gethostname", lambda: "another")
    assert hardware_facts.container(OVERLAY, "container") != layer


def test_a_host_with_its_root_on_a_disk_is_no_container():
    assert hardware_facts.container(DISK, "") == ""


def test_a_container_without_a_layer_has_a_name_that_others_may_have():
    assert hardware_facts.container(DISK, "container").startswith(hardware_facts.LOCAL)


def test_the_boot_is_that_which_node_scripts_report():
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert hardware_facts.identity([], "")["boot"] == boot


def test_a_device_that_the_kernel_made_has_no_permanent_address():
    assert hardware_facts.permanent_address("lo") == hardware_facts.permanent_address("no-such") == ""


def test_addresses_are_those_of_real_devices_and_not_of_the_management_controller(devices, monkeypatch):
    make, root = devices
    make("bus/usb", x="")
    make("net/usb0/device", x="")
    (root / "net/usb0/device/subsystem").symlink_to(root / "bus/usb")
    make("net/eth0", type=1)
    make("infiniband/mlx5_0", node_guid="0c42:a103:0065:1234")
    make("infiniband/mlx5_1", node_guid="0000:0000:0000:0000")
    known = {"eth0": "02fc00000001", "usb0": "be3af2b6059f"}
    monkeypatch.setattr(hardware_facts, "permanent_address", lambda name: known[name])
    wanted = sorted(
        ["local-" + hardware_facts.digest("02fc00000001"), hardware_facts.digest("0c42:a103:0065:1234")]
    )
    assert hardware_facts.hardware_addresses(str(root)) == wanted


def test_a_command_that_hangs_costs_its_time_limit_only(monkeypatch):
    monkeypatch.setattr(hardware_facts, "SECONDS", 0.1)
    assert hardware_facts.output_of("sleep", "20") == ""
