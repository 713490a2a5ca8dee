# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A healthy cluster, as module node_probe would report it; each test breaks what it is about."""

import re
from pathlib import Path

import yaml
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.preflight import judge
from ansible.module_utils.scalebook.report.preflight_lines import spoken
from role_files import load

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "preflight"


def is_chinese(statement):
    """Return whether a message is Chinese, but for what programs and users have named."""
    return statement["code"] == "text" or re.search("[\u3001-\u9fff\uff01-\uff5e]", sentence(statement, "zh"))


node_probe = load("preflight", "node_probe")

_DEFAULTS = yaml.safe_load((ROOT / "roles/preflight/defaults/main.yml").read_text())
LIMITS = {
    name.removeprefix("preflight_"): value for name, value in _DEFAULTS.items() if "{{" not in str(value)
} | {"cuda": ""}
"""The thresholds that users get."""


def nodes(count, slots=1):
    return [
        {"name": f"NODE{i}", "address": f"10.11.0.{i + 1}", "machine": f"10.11.0.{i + 1}", "slots": slots}
        for i in range(1, count + 1)
    ]


def facts(machine, machines):
    """Return the facts of a healthy machine."""
    others = [one for one in machines if one is not machine]
    space = {"path": "/opt/scalebook", "mb": 50_000, "size_mb": 100_000, "inodes": 10**6, "writable": True}
    own = machine["name"].lower()
    addresses = {one["address"]: [one["address"]] for one in machines}
    return {
        "host": {"name": own, "user": "root", "python": "3.11.2"},
        "limits": {"memlock": -1, "rdma": False},
        "work": space,
        "shm": dict(space, path="/dev/shm", mb=4096, size_mb=4096),
        "ports": [],
        "ours": [],
        "others": [],
        "processors": {"governors": {"performance": 64}, "idle": [], "numa_nodes": 2, "numa_balancing": "0"},
        "login": {"shell": "/bin/bash", "command": 0.01, "login": 0.02},
        "interfaces": {"eth0": {"addresses": [f"{machine['address']}/24"], "mtu": 1500, "up": True}},
        "names": {
            "own": own,
            "own_addresses": [machine["address"]],
            "nodes": addresses | {one["name"]: [one["address"]] for one in machines},
        },
        "routes": {one["name"]: machine["address"] for one in others},
        "nccl": [],
        "doors": {one["name"]: {"port": 40000, "error": ""} for one in others},
        "guards": {"selinux": False, "nfs_homes": False, "label": "", "firewalld": False},
        "peers": {one["name"]: {"seconds": 0.2, "offset": [-0.002, 0.003]} for one in others},
        "bus": 0,
        "smi": None,
        "nvlink": {},
        "xids": [],
        "seconds": 0.5,
    }


class Cluster:
    """Four healthy machines, or another number."""

    def __init__(self, count=4, slots=1, device="auto", **limits):
        self.machines = judge.machines(nodes(count, slots), 11111)
        self.device, self.limits = device, LIMITS | limits
        self.probed = {
            machine["name"]: {"facts": facts(machine, self.machines), "failed": {}}
            for machine in self.machines
        }

    def __getitem__(self, name):
        """Return the facts of one machine, for a test to change."""
        return self.probed[name]["facts"]

    def fail(self, name, probe, why="no answer in 20 s"):
        self.probed[name]["facts"].pop(probe)
        self.probed[name]["failed"][probe] = why

    def findings(self, wording=ENGLISH):
        """Return the findings, each of which has a Chinese sentence, as have what is expected and the fix."""
        judged = judge.judge(self.machines, self.probed, self.limits, self.device)
        assert all(is_chinese(one["message"]) for one in judged)
        assert all(is_chinese(one[key]) for one in judged for key in ("expected", "fix"))
        return spoken(judged, wording)

    def bad(self):
        """Return (check, level, nodes) of what is wrong, sorted."""
        found = [one for one in self.findings() if one["level"] != "ok"]
        return sorted((one["check"], one["level"], one["nodes"]) for one in found)

    def said(self):
        """Return the texts of what is wrong, with the fixes."""
        return "\n".join(f"{one['found']} {one['fix']}" for one in self.findings() if one["level"] != "ok")
