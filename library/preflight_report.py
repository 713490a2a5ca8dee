#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_report
short_description: Judge what was seen of the machines before a campaign
description:
  - Takes what C(look.py) of the role C(preflight) printed on each machine, and says of every check whether
    it is well, worth a warning, or a reason not to start, with what was found, what is wanted, and the cure.
  - Looks at the controller's own disk. Changes nothing but the files named in O(out).
  - Runs on the controller.
options:
  machines:
    description: The machines, as the filter C(scalebook_machines) returns them.
    type: list
    elements: dict
    required: true
  seen:
    description: The result of the task that ran C(look.py) on each machine, by the machine's name.
    type: dict
    required: true
  limits:
    description: The thresholds, options of the role C(preflight) without its prefix.
    type: dict
    required: true
  device:
    description: What runs will compute with.
    type: str
    choices: [auto, cpu, gpu]
    default: auto
  more:
    description: Findings that were made elsewhere, each as in RV(findings).
    type: list
    elements: dict
    default: []
  results:
    description: Directory of all campaigns on the controller; it must have room.
    type: path
    required: true
  out:
    description: Files to write the findings and what was seen to, as JSON.
    type: list
    elements: path
    default: []
attributes:
  check_mode: {support: full}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Judge what was seen
  preflight_report:
    machines: "{{ __preflight_machines }}"
    seen: "{{ __preflight_seen_of_all }}"
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
  description: What every check found, with C(check), C(level), C(nodes), C(found), C(wanted) and C(cure).
  returned: success
  type: list
  elements: dict
refusal:
  description: Why nothing is started, empty where nothing is refused.
  returned: success
  type: str
display:
  description: The findings as a table.
  returned: success
  type: str
"""

import json
import os
import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook import preflight
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.preflight_hosts import room


def argument_spec():
    return {
        "machines": {"type": "list", "elements": "dict", "required": True},
        "seen": {"type": "dict", "required": True},
        "limits": {"type": "dict", "required": True},
        "device": {"type": "str", "choices": ["auto", "cpu", "gpu"], "default": "auto"},
        "more": {"type": "list", "elements": "dict", "default": []},
        "results": {"type": "path", "required": True},
        "out": {"type": "list", "elements": "path", "default": []},
    }


def read(result):
    """Return what a task's `result` holds of look.py's answer, `{"facts", "failed"}` or `{"error"}`."""
    try:
        answer = json.loads(result["stdout"])
        if isinstance(answer["facts"], dict) and isinstance(answer["failed"], dict):
            return preflight.with_reports_read(answer)
    except (KeyError, TypeError, ValueError):
        pass  # it did not get to its end: what the task itself says is the answer
    said = [str(result.get(name) or "") for name in ("msg", "module_stderr", "stderr")]
    return {"error": next((text.strip() for text in reversed(said) if text.strip()), "no answer")[-400:]}


def controller(path):
    """Return the file system of `path` as look.py would see it."""
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


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    given = module.params
    limits, machines = given["limits"], given["machines"]
    seen = {name: read(result) for name, result in given["seen"].items()}
    here = room(
        controller(given["results"]), ["controller"], int(limits["results_mb"]), int(limits["inodes"])
    )
    findings = preflight.judge(machines, seen, limits, given["device"], [*given["more"], *here])
    seconds = max((answer.get("facts", {}).get("seconds", 0.0) for answer in seen.values()), default=0.0)
    nodes = sum(len(machine["nodes"]) for machine in machines)
    document = {
        "schema": preflight.SCHEMA,
        "verdict": preflight.verdict(findings),
        "seconds": seconds,
        "device": given["device"],
        "limits": limits,
        "machines": machines,
        "findings": findings,
        "seen": seen,
    }
    try:
        changed = [write_json(Path(path), document, write=not module.check_mode) for path in given["out"]]
    except OSError as error:
        module.fail_json(msg=f"out={given['out']}: {error}")
    module.exit_json(
        changed=any(changed),
        verdict=document["verdict"],
        findings=findings,
        refusal=preflight.refusal(findings),
        display=preflight.describe(findings, nodes, seconds),
    )


if __name__ == "__main__":
    main()
