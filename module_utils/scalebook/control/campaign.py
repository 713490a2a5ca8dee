# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Parameters -> plan.json, the runs that are left, and the lock of the directory of results."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.command import command
from ansible.module_utils.scalebook.contracts import Case, Node, PendingRun, Plan
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.launch import lock_file
from ansible.module_utils.scalebook.launch.jobs import make_jobs, start_command, too_long
from ansible.module_utils.scalebook.launch.results_lock import claim
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.plan import continued
from ansible.module_utils.scalebook.plan.largest_batch import DECIDED, Outcome
from ansible.module_utils.scalebook.plan.matrix import plan
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
from ansible.module_utils.scalebook.report.plan_lines import describe, describe_devices, why_nothing_runs
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
    wording: Wording,
) -> str:
    """Return a line with the command that starts the first run of `case`."""
    case_nodes = members(case, nodes)
    jobs = make_jobs(case, 1, planned["campaign"], case_nodes, int(launch["port"]))
    words = start_command(launch, jobs, case_nodes, case, workload)
    problem = too_long(words, jobs[0]["env"])
    line = wording("plan.launch", label=case["label"], command=shlex.join(words))
    return line + (f"\n{wording('plan.not-started', why=problem)}" if problem else "")


def make_plan(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Plan a campaign, and return what is left to run; module campaign_plan describes options and result."""
    results, force = Path(params["results"]), params["parameters"]["force"]
    wording = Wording(params["parameters"]["report_language"])

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
        raise ValueError(why_nothing_runs(planned, wording))
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
    devices = describe_devices(params["device"], params["nodes"], params["hardware"], wording)
    notes = continued.remarks(results, planned, len(good_runs))
    in_allocation = bool(params["launch"].get("allocation"))
    took = earlier_seconds(results, cases) if in_allocation or not params["write"] else None
    display = describe(planned, good_runs, took, devices, notes, wording)
    planned["machines"] = machines
    if params["write"]:
        try:
            runs_left = search + pending
            refuse_small(results, params["space"] if runs_left else 0)
            lock = claim(directory / "lock.json", params["holder"], params["takeover"]) if write else ""
            changed = write_json(directory / "plan.json", planned, write=write)
            for each in runs_left if write else ():
                set_aside(directory, each["case"]["name"], each["repeat"], each["folder"])
        except OSError as error:
            if lock:
                lock_file.turn(lock, params["holder"], None, "absent", True)
            raise OSError(f"cannot write the plan below {params['results']}: {error}") from error
    if (search or pending) and params["launch"] and not (write and params["write"]):
        case = (search + pending)[0]["case"]
        workload = workloads[case["workload"]]
        launched = launch_command(planned, case, workload, params["nodes"], params["launch"], wording)
        display += f"\n{launched}"
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
        "report_language": wording.language,
        "display": display,
    }
