#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: campaign_plan
short_description: Expand the knobs of a campaign into its plan
description:
  - Checks every knob, expands the matrix into cases, tells what cannot run, and what is measured already.
  - Writes C(plan.json) below O(results) unless O(write) is false or in check mode.
  - Runs on the controller.
options:
  knobs:
    description: The public variables of a campaign as they came; text and typed values both do.
    type: dict
    required: true
  given:
    description: Names of the extra variables that were given. A name that nothing reads is refused.
    type: list
    elements: str
    default: []
  roles:
    description: Names of the roles; variables that begin with one of them are theirs.
    type: list
    elements: str
    default: []
  readers:
    description: Further variables that the playbooks read.
    type: list
    elements: str
    default: []
  workload:
    description: The workload's declaration, C(<framework>_workload) of its role.
    type: dict
    required: true
  framework:
    description: Name of the workload's role.
    type: str
    required: true
  device:
    description: What the nodes compute with.
    type: str
    choices: [cpu, gpu]
    required: true
  nodes:
    description: The nodes in inventory order, each with C(name), C(address), C(slots) and C(machine).
    type: list
    elements: dict
    required: true
  inventory:
    description: Where the nodes come from, for the record.
    type: str
    default: ""
  results:
    description: Directory of all campaigns.
    type: path
    required: true
  space:
    description: MB that must be free below O(results) when something is to be measured.
    type: int
    default: 0
  write:
    description: Write the plan.
    type: bool
    default: true
attributes:
  check_mode: {support: full}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Plan two batch sizes on one and two nodes
  campaign_plan:
    knobs: {bsz: "32,64", nodes: "1,2", repeats: 5}
    workload: "{{ tf2_bert_workload }}"
    framework: tf2_bert
    device: cpu
    nodes:
      - {name: NODE1, address: 10.11.0.2, slots: 1, machine: 10.11.0.2}
      - {name: NODE2, address: 10.11.0.3, slots: 1, machine: 10.11.0.3}
    results: results
  delegate_to: localhost
"""

RETURN = r"""
campaign:
  description: Name of the campaign; it follows from the matrix unless the knob C(campaign) names it.
  returned: success
  type: str
path:
  description: Directory of the campaign.
  returned: success
  type: str
pending:
  description: The runs still to be measured, each with C(case), C(repeat), C(number) and C(total).
  returned: success
  type: list
  elements: dict
oom:
  description: Cases of which a run ran out of memory. It is made again only if the knob C(force) is true.
  returned: success
  type: list
  elements: dict
measured:
  description: How many runs of the plan are measured already.
  returned: success
  type: int
total:
  description: How many runs the plan has.
  returned: success
  type: int
display:
  description: The plan as text.
  returned: success
  type: str
"""

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.attempts import set_aside, statuses
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.knobs import KnobError, check_names
from ansible.module_utils.scalebook.matrix import describe, plan


def argument_spec():
    return {
        "knobs": {"type": "dict", "required": True},
        "given": {"type": "list", "elements": "str", "default": []},
        "roles": {"type": "list", "elements": "str", "default": []},
        "readers": {"type": "list", "elements": "str", "default": []},
        "workload": {"type": "dict", "required": True},
        "framework": {"type": "str", "required": True},
        "device": {"type": "str", "choices": ["cpu", "gpu"], "required": True},
        "nodes": {"type": "list", "elements": "dict", "required": True},
        "inventory": {"type": "str", "default": ""},
        "results": {"type": "path", "required": True},
        "space": {"type": "int", "default": 0},
        "write": {"type": "bool", "default": True},
    }


def refuse_small(results, megabytes):
    """Raise OSError when less than `megabytes` MB are free where the directory `results` is or will be."""
    there = next(path for path in (results, *results.absolute().parents) if path.exists())
    free = os.statvfs(there)
    if free.f_bavail * free.f_frsize < megabytes * 10**6:
        left = free.f_bavail * free.f_frsize // 10**6
        raise OSError(
            f"{there} has {left} MB free, {megabytes} are wanted (campaign_space): free some, or choose "
            "another campaign_results"
        )


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    given = module.params
    try:
        check_names(given["given"], given["roles"], given["readers"])
        planned = plan(
            given["knobs"],
            given["workload"],
            given["nodes"],
            given["framework"],
            given["device"],
            given["inventory"],
        )
    except KnobError as error:
        module.fail_json(msg=str(error))
    directory = Path(given["results"]) / planned["campaign"]
    cases = {case["name"]: case for case in planned["cases"]}
    there = statuses(directory, [(run["case"], run["repeat"]) for run in planned["runs"]])
    done = {run for run, status in there.items() if status == "ok"}
    # What ran out of memory would again: it is tried again only by force.
    oom = {run for run, status in there.items() if status == "oom" and not planned["knobs"]["force"]}
    pending = [
        {"case": cases[run["case"]], "repeat": run["repeat"], "number": number, "total": len(planned["runs"])}
        for number, run in enumerate(planned["runs"], start=1)
        if (run["case"], run["repeat"]) not in done | oom
    ]
    changed = False
    if given["write"]:
        try:
            refuse_small(Path(given["results"]), given["space"] if pending else 0)
            changed = write_json(directory / "plan.json", planned, write=not module.check_mode)
            for run in pending if not module.check_mode else ():
                set_aside(directory, run["case"]["name"], run["repeat"])
        except OSError as error:
            module.fail_json(msg=f"cannot write the plan below {given['results']}: {error}")
    module.exit_json(
        changed=changed,
        campaign=planned["campaign"],
        path=str(directory),
        pending=pending,
        oom=[cases[name] for name in sorted({name for name, _ in oom})],
        measured=len(done),
        total=len(planned["runs"]),
        display=describe(planned, done),
    )


if __name__ == "__main__":
    main()
