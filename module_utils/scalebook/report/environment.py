# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a campaign ran on and with, one line each, for environment.csv and results.xlsx.

The fields are those of MLPerf's system description. A field that the records do not have is there all the
same, as NOT_RECORDED: records from before it was read cannot say it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Hardware, Results
from ansible.module_utils.scalebook.text import clean, count_of

NOT_RECORDED = "not recorded"
SOFTWARE = {
    "framework": "framework",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "mpi": "MPI",
    "horovod": "Horovod",
    "python": "Python",
    "stack": "software stack",
    "commit": "commit of the workload's sources",
    "lock": "checksum of the lock file",
}
"""Key of a node's facts in provenance.json -> what it is called."""

Line = dict[str, str]


def table(document: Results) -> list[Line]:
    """Return `{"what", "where", "value"}` lines of a report: the campaign, its hardware, its software."""
    provenance = document["provenance"] or {}
    own = provenance.get("scalebook")
    own = own if isinstance(own, Mapping) else {}
    campaign = {
        "campaign": document["campaign"],
        "first run": document["started"],
        "machines": simulated(document),
        "command": command(document),
        "commit of scalebook": own.get("commit"),
    }
    lines = [_line(what, "", value) for what, value in campaign.items()]
    entries = document["hardware"] or [Hardware(nodes=[])]
    for entry in entries:
        where = ", ".join(entry["nodes"])
        lines += [_line(what, where, value) for what, value in _hardware(entry).items()]
    return lines + _software(provenance)


def simulated(document: Results) -> str | None:
    """Return `1 machine, 4 simulated nodes` where nodes shared machines, else `no simulated nodes`."""
    counts = document["simulated"]
    if counts:
        return f"{count_of(counts['machines'], 'machine')}, {count_of(counts['nodes'], 'simulated node')}"
    return "no simulated nodes" if document["hardware"] else None


def command(document: Results) -> str | None:
    """Return the command that makes the campaign again, None for an import or a plan without parameters."""
    parameters = document["plan"].get("parameters")
    if document["kind"] != "campaign" or not parameters:
        return None
    given = {name: value for name, value in parameters.items() if value is not None and value != []}
    words = [f"{name}={shlex.quote(_text(value))}" for name, value in given.items()]
    inventory = document["plan"].get("inventory")
    place = f" -i {shlex.quote(inventory)}" if inventory else ""
    return f"ansible-playbook{place} bench.yml -e {shlex.quote(' '.join(words))}"


def _hardware(entry: Hardware) -> dict[str, Any]:
    """Return the lines of one kind of node."""
    gpus = entry.get("gpus")
    links = entry.get("gpu_links") or {}
    return {
        "GPUs": hardware.gpus(entry) if gpus else ("none" if gpus == [] else None),
        "GPU interconnect": ", ".join(f"{count} x {name}" for name, count in sorted(links.items())) or None,
        "power limit of the GPUs": _power(gpus or []),
        "processor": hardware.processor(entry),
        "memory": hardware.memory(entry),
        "network": _networks(entry),
        "system": entry.get("system"),
        "kernel": entry.get("kernel"),
        "virtual": entry.get("virtual"),
        "driver": entry.get("driver"),
        "CUDA of the driver": entry.get("cuda"),
    }


def _power(gpus: list[Any]) -> str | None:
    limits = sorted({gpu["power_limit_w"] for gpu in gpus if "power_limit_w" in gpu})
    return " and ".join(f"{limit} W" for limit in limits) or None


def _networks(entry: Hardware) -> str | None:
    found = entry.get("networks") or []
    speeds = [f"{each['speed_gbit']:g} Gb/s" if "speed_gbit" in each else "" for each in found]
    named = [
        f"{each['name']} ({', '.join(filter(None, (each['kind'], speed)))})"
        for each, speed in zip(found, speeds, strict=True)
    ]
    return ", ".join(named) or None


def _software(provenance: Mapping[str, Any]) -> list[Line]:
    """Return the lines of each workload's software; nodes that agree share one."""
    workloads = provenance.get("workloads") or {"": provenance.get("nodes") or {}}
    lines = []
    for workload, nodes in workloads.items():
        for key, what in SOFTWARE.items():
            values: dict[str, list[str]] = {}
            for node, facts in nodes.items():
                if isinstance(facts, Mapping) and facts.get(key):
                    values.setdefault(_text(facts[key]), []).append(node)
            name = f"{what} of {workload}" if workload else what
            lines += [_line(name, ", ".join(places), value) for value, places in values.items()]
            if not values and key in ("framework", "cuda", "nccl"):
                lines.append(_line(name, "", None))
    return lines


def _line(what: str, where: str, value: Any) -> Line:
    text = clean(_text(value)) if value not in (None, "") else NOT_RECORDED
    return {"what": clean(what), "where": clean(where), "value": text}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(each) for each in value)
    return str(value)
