# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Folders of /sys that show a node the GPUs of a recording of lspci, and the module of no driver."""

import re

from container_nodes import ROOT

RECORDINGS = ROOT / "tests/data/nvidia_driver/lspci.txt"


def make(folder, machine):
    """Make the folders with the devices of `machine` below `folder`; return options of tests/cluster/up.

    Each node writes to a view of its own.
    """
    (part,) = re.findall(rf"(?ms)^# {machine}\n(.*?)(?=^# |\Z)", RECORDINGS.read_text())
    for number, (kind, vendor, device) in enumerate(re.findall(r"\[(\w{4})\]: .*\[(\w{4}):(\w{4})\]", part)):
        place = folder / "devices" / f"0000:0{number}:00.0"
        place.mkdir(parents=True)
        for name, text in {"class": f"{kind}00", "vendor": vendor, "device": device}.items():
            (place / name).write_text(f"0x{text}\n")
    (folder / "module").mkdir()
    mounts = {"devices": "/sys/bus/pci/devices", "module": "/sys/module"}
    return [word for name, at in mounts.items() for word in ("--mount", f"{folder / name}:{at}:O")]
