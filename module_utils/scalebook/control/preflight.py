# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the probes of the preflight have found -> preflight.json and a verdict."""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.preflight import acceptance, judge
from ansible.module_utils.scalebook.preflight.hosts import room
from ansible.module_utils.scalebook.report.preflight_lines import describe, refusal, spoken


def control_node(path: str | Path) -> dict[str, Any]:
    """Return the file system of `path` on the control node, as module node_probe returns it."""
    path = Path(path)
    while not path.is_dir() and path != path.parent:
        path = path.parent
    usage, inodes = shutil.disk_usage(path), os.statvfs(path)
    return {
        "path": str(path),
        "mb": usage.free >> 20,
        "size_mb": usage.total >> 20,
        "inodes": inodes.f_favail if inodes.f_files else None,
        "writable": os.access(path, os.W_OK),
    }


def report(options: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write preflight.json; module preflight_report describes its options and result."""
    limits, machines = options["limits"], options["machines"]
    probed = {name: judge.read(result) for name, result in options["probed"].items()}
    space = control_node(options["results"])
    own = room(space, ["control node"], int(limits["results_mb"]), int(limits["inodes"]))
    accepted = acceptance.read(Path(options["acceptance"])) if options["acceptance"] else None
    now = datetime.datetime.now(datetime.timezone.utc)
    judged = acceptance.findings(accepted, machines, probed, float(limits["acceptance_days"]), now)
    findings = judge.judge(machines, probed, limits, options["device"], [*judged, *own])
    wording = Wording(options["report_language"])
    sentences = spoken(findings, wording)
    seconds = max((result.get("facts", {}).get("seconds", 0.0) for result in probed.values()), default=0.0)
    nodes = sum(len(machine["nodes"]) for machine in machines)
    document: judge.Preflight = {
        "schema": judge.SCHEMA,
        "verdict": judge.verdict(findings),
        "seconds": seconds,
        "device": options["device"],
        "limits": limits,
        "machines": machines,
        "findings": findings,
        "probed": probed,
    }
    try:
        changed = [write_json(Path(path), document, write=write) for path in options["out"]]
    except OSError as error:
        raise OSError(f"cannot write out={options['out']}: {error}") from error
    return {
        "changed": any(changed),
        "verdict": document["verdict"],
        "findings": sentences,
        "refusal": refusal(sentences, wording),
        "display": describe(sentences, nodes, seconds, wording),
    }
