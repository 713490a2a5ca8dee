# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The question of roles/workload/tasks/device.yml, asked of stand-ins of nvidia-smi and the PCI bus."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.plan.devices import gpus, mixed

ROOT = Path(__file__).resolve().parents[3]
[QUESTION] = [
    task["ansible.builtin.raw"]
    for task in yaml.safe_load((ROOT / "roles/workload/tasks/device.yml").read_text())
    if task["name"] == "List the GPUs"
]
LISTED = "GPU 0: NVIDIA H200 (UUID: GPU-1b)\nGPU 1: NVIDIA H200 (UUID: GPU-2c)"
MIG = "GPU 0: NVIDIA H200 (UUID: GPU-1b)\n  MIG 1g.18gb     Device  0: (UUID: MIG-3d)"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.107"
UNLOADED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA driver is installed and running."
)
LOST = "Unable to determine the device handle for GPU0: 0000:3B:00.0: Unknown Error"
INFOROM = "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"
DISPLAY, AUDIO, SWITCH = "0x030200", "0x040300", "0x068000"


@pytest.fixture
def ask(tmp_path):
    """Return a function that asks a host with this nvidia-smi, None for none, and these NVIDIA devices."""

    def asked(smi=None, status=0, bus=()):
        tools, devices = tmp_path / "bin", tmp_path / "devices"
        tools.mkdir()
        for name in ("timeout", "cat"):
            (tools / name).symlink_to(shutil.which(name))
        if smi is not None:
            (tmp_path / "said").write_text(f"{smi}\n")
            (tools / "nvidia-smi").write_text(f"#!/bin/sh\ncat {tmp_path}/said\nexit {status}\n")
            (tools / "nvidia-smi").chmod(0o755)
        for number, kind in enumerate((*bus, "0x020000")):
            (devices / str(number)).mkdir(parents=True)
            (devices / str(number) / "vendor").write_text("0x10de\n" if number < len(bus) else "0x8086\n")
            (devices / str(number) / "class").write_text(f"{kind}\n")
        question = QUESTION.replace("/sys/bus/pci/devices", str(devices))
        done = subprocess.run(
            ["/bin/sh", "-c", question], env={"PATH": str(tools)}, capture_output=True, text=True, timeout=60
        )
        return gpus(done.stdout)

    return asked


@pytest.mark.parametrize(
    ("host", "count"),
    [
        ({"smi": LISTED, "bus": [DISPLAY, DISPLAY, AUDIO, SWITCH]}, 2),
        ({"smi": f"{INFOROM}\n{LISTED}", "status": 14}, 2),
        ({"smi": MIG}, 1),
        ({}, 0),
        ({"bus": [AUDIO, SWITCH]}, 0),
        ({"smi": "No devices found.", "status": 6}, 0),
        ({"smi": "", "status": 0}, 0),
    ],
    ids=[
        "two GPUs",
        "a damaged infoROM",
        "parts of one GPU",
        "no GPUs",
        "no display of NVIDIA",
        "a driver without GPUs",
        "a driver that says nothing",
    ],
)
def test_the_gpus_that_answer_are_counted(ask, host, count):
    assert ask(**host) == {"count": count, "problem": ""}


@pytest.mark.parametrize(
    ("host", "what", "fix"),
    [
        ({"smi": MISMATCH, "status": 18}, "Driver/library version mismatch", "reboot the host"),
        ({"smi": UNLOADED, "status": 9}, "couldn't communicate", "install NVIDIA's driver again"),
        ({"smi": f"{LISTED}\n{LOST}", "status": 255}, "Unknown Error", "restart the host"),
        ({"smi": f"{LISTED}\n{LOST}"}, "Unknown Error", "restart the host"),
        ({"smi": "No devices were found", "bus": [DISPLAY]}, "an NVIDIA GPU on the PCI bus", "check dmesg"),
        ({"bus": [DISPLAY, DISPLAY]}, "2 NVIDIA GPUs on the PCI bus, but it has no nvidia-smi", "install"),
        ({"smi": "", "status": 124}, "no answer within 20 s", "reboot the host"),
        ({"smi": "", "status": 1}, "status 1: it printed nothing", "restart the host"),
    ],
    ids=[
        "mismatch",
        "not loaded",
        "one is lost",
        "one is lost and the status hides it",
        "none found",
        "no driver",
        "hangs",
        "silent",
    ],
)
def test_gpus_that_do_not_answer_are_a_problem_with_a_fix(ask, host, what, fix):
    answer = ask(**host)
    assert answer["count"] == 0
    assert what in answer["problem"]
    assert fix in answer["problem"].partition("Fix: ")[2]
    assert answer["problem"].endswith("or measure on processors with device=cpu")


def test_a_host_that_cannot_be_asked_is_no_host_without_gpus():
    assert "did not say whether it has GPUs" in gpus("sh: not found")["problem"]


def test_lines_that_end_as_those_of_a_terminal_are_read():
    assert gpus("GPU 0: A (UUID: GPU-1)\r\nnvidia-smi: 0\r\nbus: 1\r\n") == {"count": 1, "problem": ""}


@pytest.mark.parametrize("counts", [{"A": 0, "B": 0}, {"A": 4, "B": 8}, {}])
def test_hosts_of_one_kind_have_a_device_in_common(counts):
    assert mixed(counts) == ""


def test_hosts_of_which_some_have_gpus_are_refused_by_name():
    assert mixed({"A": 4, "B": 0}).startswith("device=auto: B has no GPU, other machines have some. Fix: ")
    assert "b0, b1, b2 and 7 more have no GPU" in mixed({"A": 4, **{f"b{i}": 0 for i in range(10)}})
