#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: campaign_plan
short_description: Expand the parameters of a campaign into its plan
description:
  - Expands the matrix into cases, lists those that cannot run with the reason, and finds the runs that are
    measured already.
  - Writes C(plan.json) below O(results) unless O(write) is false or in check mode.
  - Where the batch is C(max), returns the short runs that search for the largest batch, and plans with the
    answer once these have been made.
  - Refuses a campaign that an earlier version planned, one that other machines have measured, and one with
    nothing to run.
  - Runs on the control node.
options:
  parameters:
    description: The parameters of the campaign as the lookup P(scalebook_parameters#lookup) returns them.
    type: dict
    required: true
  workloads:
    description: The declarations of the campaign's workloads by name, their settings resolved.
    type: dict
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
  machines:
    description: >-
      The identities of the nodes' machines by node, as M(hardware_info) returns them. Empty where the nodes
      were not asked; only their names are compared then, and O(write) must be false.
    type: dict
    default: {}
  hardware:
    description: What the nodes are made of, one entry for each kind of node, to be shown.
    type: list
    elements: dict
    default: []
  inventory:
    description: Where the nodes come from, for the record.
    type: str
    default: ""
  given:
    description: Names of the variables that were given with C(-e); the plan keeps those of workloads.
    type: list
    elements: str
    default: []
  results:
    description: Directory of all campaigns.
    type: path
    required: true
  space:
    description: MB that must be free below O(results) when something is to be measured.
    type: int
    default: 0
  write:
    description: Write the plan. False only shows it, and also one with nothing to run.
    type: bool
    default: true
  searched:
    description:
      - Whether this start of the campaign has made runs of the searches. One that failed is made again by the
        next start only.
    type: bool
    default: false
  launch:
    description:
      - What the launch command of the first case is shown with when O(write) is false, keys C(launcher),
        C(mpirun), C(allocation), C(run_node) (a list), C(port) and C(options). Empty shows none.
    type: dict
    default: {}
  holder:
    description: Who writes the plan, and holds the directory of the campaign from then on. Nobody by default.
    type: dict
  takeover:
    description: Take the directory over from a holder that cannot be asked whether it still runs.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Plan two batch sizes on one and two nodes
  campaign_plan:
    parameters: "{{ lookup('scalebook_parameters', 'bench')['values'] }}"
    workloads: "{{ {'tf2_bert': lookup('scalebook_declaration', 'tf2_bert')} }}"
    device: cpu
    nodes:
      - {name: NODE1, address: 10.11.0.2, slots: 1, machine: 10.11.0.2}
      - {name: NODE2, address: 10.11.0.3, slots: 1, machine: 10.11.0.3}
    results: results
  delegate_to: localhost
"""

RETURN = r"""
lock:
  description: The lock of the directory of the campaign, which is held now. Empty where nobody shall hold it.
  returned: success
  type: str
campaign:
  description: >-
    Name of the campaign; it follows from the matrix and the machines unless the parameter C(campaign)
    names it.
  returned: success
  type: str
path:
  description: Directory of the campaign.
  returned: success
  type: str
search:
  description:
    - The next runs of the searches for the largest batch, each with C(case), C(repeat), C(number), C(total)
      (the most that there may be) and C(folder). While there are some, C(pending) lacks what waits for them.
  returned: success
  type: list
  elements: dict
pending:
  description: The runs still to be measured, each with C(case), C(repeat), C(number), C(total) and C(folder).
  returned: success
  type: list
  elements: dict
seconds:
  description: How long these runs take if each takes as long as earlier ones did; 0 where none is known.
  returned: success
  type: float
oom:
  description: Cases of which a run ran out of memory. Such a run is repeated only if C(force) is true.
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
command:
  description: The command that measures the campaign again, for the records of this start.
  returned: success
  type: str
display:
  description: The plan as text.
  returned: success
  type: str
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.command import command
from ansible.module_utils.scalebook.contracts import Case, Node, PendingRun, Plan
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.launch import lock_file, lock_holder
from ansible.module_utils.scalebook.launch.jobs import make_jobs, start_command, too_long
from ansible.module_utils.scalebook.pages.catalogue import in_words
from ansible.module_utils.scalebook.plan import continued
from ansible.module_utils.scalebook.plan.largest_batch import DECIDED, Outcome
from ansible.module_utils.scalebook.plan.matrix import describe, describe_devices, plan, why_nothing_runs
from ansible.module_utils.scalebook.plan.placement import members
from ansible.module_utils.scalebook.plan.resume import (
    RUNS,
    SEARCH,
    check_plan,
    earlier_seconds,
    outcome,
    set_aside,
    statuses,
)
from ansible.module_utils.scalebook.workload import Workload, workloads_of


def refuse_small(results: Path, megabytes: int) -> None:
    """Raise OSError when less than `megabytes` MB are free where the directory `results` is or will be."""
    place = next(path for path in (results, *results.absolute().parents) if path.exists())
    free = os.statvfs(place)
    if free.f_bavail * free.f_frsize < megabytes * 10**6:
        free_mb = free.f_bavail * free.f_frsize // 10**6
        raise OSError(
            f"{place} has {free_mb} MB free, {megabytes} are required (campaign_space): free some, or choose "
            "another campaign_results"
        )


def claim(lock: Path, holder: Mapping[str, Any] | None, takeover: bool) -> str:
    """Take the lock of a directory of results, if somebody shall hold it, and return its path.

    Raise ValueError if another control node uses it, OSError.
    """
    if not holder:
        return ""
    lock.parent.mkdir(parents=True, exist_ok=True)
    _, held, other = lock_file.turn(str(lock), holder, None, "present", True)
    if not held and (takeover or lock_holder.gone(other)):
        _, held, other = lock_file.turn(str(lock), holder, other["id"], "present", True)
    if not held:
        raise ValueError(lock_holder.taken_by({str(lock.parent): other}))
    return str(lock)


def search_runs(planned: Plan) -> list[PendingRun]:
    """Return the next run of each search that goes on."""
    return [
        {
            "case": search["next"],
            "repeat": 1,
            "number": len(search["trials"]) + 1,
            "total": search["limit"] * len(search["points"]),
            "folder": SEARCH,
        }
        for search in planned["searches"]
        if search["next"]
    ]


def launch_command(
    planned: Plan,
    case: Case,
    workload: Workload,
    nodes: Sequence[Node],
    launch: Mapping[str, Any],
) -> str:
    """Return the command that starts the first run of `case`, as text."""
    case_nodes = members(case, nodes)
    jobs = make_jobs(case, 1, planned["campaign"], case_nodes, int(launch["port"]))
    words = start_command(launch, jobs, case_nodes, case, workload)
    problem = too_long(words, jobs[0]["env"])
    return shlex.join(words) + (f"\n  It cannot be started: {problem}. Use fewer nodes." if problem else "")


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result: the plan, and what of it is left to run."""
    results, force = Path(params["results"]), params["parameters"]["force"]

    def searched(campaign: str, case: str) -> Outcome | None:
        result = outcome(results / campaign, case, 1, SEARCH)
        return Outcome(*result) if result and (params["searched"] or result[0] in DECIDED) else None

    workloads = workloads_of(params["workloads"])
    planned = plan(
        params["parameters"],
        workloads,
        params["nodes"],
        params["device"],
        params["inventory"],
        params["given"],
        searched,
        params["machines"],
        lambda name, machines: continued.choose(results, name, machines),
    )
    directory = results / planned["campaign"]
    check_plan(directory)
    machines = continued.check_machines(directory, planned)
    search = search_runs(planned)
    if params["write"] and not planned["cases"] and not search:
        raise ValueError(why_nothing_runs(in_words(planned)))
    cases = {case["name"]: case for case in planned["cases"]}
    status_of = statuses(directory, [(run["case"], run["repeat"]) for run in planned["runs"]])
    good_runs = {run for run, status in status_of.items() if status == "ok"}
    # What ran out of memory would do so again: it is repeated only by force.
    oom = {run for run, status in status_of.items() if status == "oom" and not force}
    pending: list[PendingRun] = [
        {
            "case": cases[run["case"]],
            "repeat": run["repeat"],
            "number": number,
            "total": len(planned["runs"]),
            "folder": RUNS,
        }
        for number, run in enumerate(planned["runs"], start=1)
        if (run["case"], run["repeat"]) not in good_runs | oom
    ]
    changed, lock = False, ""
    devices = describe_devices(params["device"], params["nodes"], params["hardware"])
    notes = continued.remarks(results, planned, len(good_runs))
    in_allocation = bool(params["launch"].get("allocation"))
    took = earlier_seconds(results, cases) if in_allocation or not params["write"] else None
    display = describe(in_words(planned), good_runs, took, devices, notes)
    planned["machines"] = machines
    if params["write"]:
        try:
            runs_left = search + pending
            refuse_small(results, params["space"] if runs_left else 0)
            lock = "" if check else claim(directory / "lock.json", params["holder"], params["takeover"])
            changed = write_json(directory / "plan.json", planned, write=not check)
            for each in runs_left if not check else ():
                set_aside(directory, each["case"]["name"], each["repeat"], each["folder"])
        except OSError as error:
            if lock:
                lock_file.turn(lock, params["holder"], None, "absent", True)
            raise OSError(f"cannot write the plan below {params['results']}: {error}") from error
    if (search or pending) and params["launch"] and (check or not params["write"]):
        case = (search + pending)[0]["case"]
        workload = workloads[case["workload"]]
        launched = launch_command(planned, case, workload, params["nodes"], params["launch"])
        display += f"\n  launch of {case['label']}: {launched}"
    return {
        "changed": changed,
        "lock": lock,
        "campaign": planned["campaign"],
        "path": str(directory),
        "search": search,
        "pending": pending,
        "seconds": sum((took or {}).get(each["case"]["name"], 0.0) for each in pending),
        "oom": [cases[name] for name in sorted({name for name, _ in oom})],
        "measured": len(good_runs),
        "total": len(planned["runs"]),
        "command": command(planned),
        "display": display,
    }
