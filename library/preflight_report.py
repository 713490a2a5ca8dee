#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_report
short_description: Evaluate the preflight probes of the machines
description:
  - Evaluates the results of M(node_probe) on all machines. Every check passes, warns, or refuses the start,
    with what was found, what is expected, and the fix.
  - Checks the disk of the control node too. Changes nothing but the files named in O(out).
  - Runs on the control node.
options:
  machines:
    description: The machines, as the filter C(scalebook_machines) returns them.
    type: list
    elements: dict
    required: true
  probed:
    description: The result of M(node_probe) on each machine, by the name of the machine.
    type: dict
    required: true
  limits:
    description: The thresholds, options of the role C(preflight) without its prefix.
    type: dict
    required: true
  device:
    description: The device that runs will compute on.
    type: str
    choices: [auto, cpu, gpu]
    default: auto
  acceptance:
    description: The C(acceptance.json) whose verdicts on the nodes are looked up, if there is one.
    type: path
  results:
    description: Directory of all campaigns on the control node; it must have room.
    type: path
    required: true
  out:
    description: Files to write the findings and the results of the probes to, as JSON.
    type: list
    elements: path
    default: []
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Evaluate the probes
  preflight_report:
    machines: "{{ __preflight_machines }}"
    probed: "{{ __preflight_probes }}"
    limits: "{{ __preflight_limits }}"
    results: results
    out: [preflight.json]
  delegate_to: localhost
"""

RETURN = r"""
verdict:
  description: The worst level, C(ok), C(warn) or C(refuse).
  returned: success
  type: str
findings:
  description: The result of every check, with C(check), C(level), C(nodes), C(message), C(found), C(expected)
    and C(fix); C(found) is the sentence of C(message).
  returned: success
  type: list
  elements: dict
refusal:
  description: Why the campaign is not started, empty where nothing is refused.
  returned: success
  type: str
display:
  description: The findings as a table.
  returned: success
  type: str
"""

import datetime
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.preflight import acceptance, judge
from ansible.module_utils.scalebook.preflight.hosts import room


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


def run(options: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result: the findings and the verdict."""
    limits, machines = options["limits"], options["machines"]
    probed = {name: judge.read(result) for name, result in options["probed"].items()}
    space = control_node(options["results"])
    own = room(space, ["control node"], int(limits["results_mb"]), int(limits["inodes"]))
    accepted = acceptance.read(Path(options["acceptance"])) if options["acceptance"] else None
    now = datetime.datetime.now(datetime.timezone.utc)
    judged = acceptance.findings(accepted, machines, probed, float(limits["acceptance_days"]), now)
    judged_all = judge.judge(machines, probed, limits, options["device"], [*judged, *own])
    findings = judge.spoken(judged_all, sentence)
    seconds = max((result.get("facts", {}).get("seconds", 0.0) for result in probed.values()), default=0.0)
    nodes = sum(len(machine["nodes"]) for machine in machines)
    document = {
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
        changed = [write_json(Path(path), document, write=not check) for path in options["out"]]
    except OSError as error:
        raise OSError(f"cannot write out={options['out']}: {error}") from error
    return {
        "changed": any(changed),
        "verdict": document["verdict"],
        "findings": findings,
        "refusal": judge.refusal(findings),
        "display": judge.describe(findings, nodes, seconds),
    }
