# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The reports of NVIDIA's driver, read from recordings (tests/data/README.md)."""

import pytest
from ansible.module_utils.scalebook.preflight import nvidia_smi
from preflight_site import DATA


def test_a_recorded_report_is_read():
    found = nvidia_smi.read_gpus((DATA / "h100-busy.xml").read_text(), {})
    [gpu] = found["gpus"]
    assert (found["driver"], found["cuda"]) == ("580.159.04", "13.0")
    assert gpu["values"]["product_name"] == "NVIDIA H100 80GB HBM3"
    assert gpu["values"]["fb_memory_usage/free"] == "78917 MiB"
    assert gpu["processes"][0]["memory"] == "2154 MiB"


def test_a_process_is_told_with_what_is_known_of_it():
    known = {"446": {"user": "eve", "command": "python3 train.py"}}
    [gpu] = nvidia_smi.read_gpus((DATA / "h100-busy.xml").read_text(), known)["gpus"]
    [process] = gpu["processes"]
    assert (process["pid"], process["user"], process["command"]) == (446, "eve", "python3 train.py")


@pytest.mark.parametrize("text", ["", "Failed to initialize NVML", "<nvidia_smi_log><gpu>"])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(nvidia_smi.ReportError, match="nvidia-smi -q -x prints no report"):
        nvidia_smi.read_gpus(text, {})


def test_links_are_read_by_gpu():
    text = "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\nGPU 1: x\n"
    assert nvidia_smi.read_nvlink(text) == {"0": {"0": "26.562 GB/s", "1": None}, "1": {}}


def test_errors_of_the_kernel_are_counted():
    line = "[{}] NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python3, MMU Fault"
    [found] = nvidia_smi.read_xids([*(line.format(i) for i in range(3)), "[9] usb 1-1: new device"])
    assert (found["bus"], found["xid"], found["count"]) == ("0000:3b:00", 31, 3)


def test_the_recorded_log_of_a_healthy_driver_has_no_errors():
    assert nvidia_smi.read_xids((DATA / "h100-dmesg.txt").read_text().splitlines()) == []
