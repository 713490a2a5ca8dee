# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes have measured -> measurements.json, acceptance.json, good.yml and the documents."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ansible.module_utils.scalebook.accept import criteria, document, printed, reasons, schedule
from ansible.module_utils.scalebook.accept.contracts import SCHEMA, Acceptance, Measurement
from ansible.module_utils.scalebook.accept.expected import rows
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.files import read_small, write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.preflight import burnin, judge
from ansible.module_utils.scalebook.report import acceptance as pages
from ansible.module_utils.scalebook.report import acceptance_lines as lines
from ansible.module_utils.scalebook.yaml_file import read_yaml


def burn_in(params: Mapping[str, Any]) -> burnin.State | None:
    """Return the state of the burn-in, an earlier one that goes on or a new one; None without hours."""
    path = Path(params["path"]) / "burnin.json"
    if not params["hours"]:
        return None
    key = (SCHEMA, params["hours"], params["nodes"])
    try:
        state = decode(read_small(path)) if path.exists() else {}
        if params["burnin"] or burnin.goes_on(state, *key):
            return state or burnin.new(*key)  # type: ignore[return-value]
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path}: {error}; it is not a state of a burn-in, remove it") from None
    return burnin.new(*key)


def go_on(state: burnin.State, params: Mapping[str, Any], thresholds: criteria.Wanted) -> None:
    """Begin the burn-in, or add a round to it."""
    now = time.time()
    if params["outputs"]:
        state["seconds"] += now - state["mark"]
        burnin.add_round(state, measured(params), thresholds)
    state["mark"] = now
    probed = {node: judge.read(result) for node, result in params["probed"].items()}
    # The number of GPUs was counted before.
    machines = [{"name": node, "nodes": [node], "local": True} for node in params["nodes"]]
    burnin.watch(state, machines, probed, params["device"])


def measured(params: Mapping[str, Any]) -> list[Measurement]:
    """Return the new measurements; those over sockets where a faster network is up are problems."""
    measurements = printed.of_steps(params["steps"], params["outputs"], params["seconds"])
    if params["network"] == "fastest":
        document.refuse_sockets(measurements, params["networks"])
    return measurements


def places(params: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Return the address and port at which each node is found; nodes can share a machine."""
    return {
        node: (params["addresses"].get(node, ""), params["port"] + index)
        for index, node in enumerate(params["nodes"])
    }


def criteria_of(params: Mapping[str, Any]) -> criteria.Wanted:
    """Return what parts have to reach."""
    thresholds = criteria.Wanted(Criteria(least=params["least"] / 100, most=params["most"]))
    if params["criteria"]:
        thresholds = criteria.read(read_yaml(Path(params["criteria"])), thresholds.common)
    return thresholds


def judge_measured(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Add what was measured, and judge the parts; module acceptance_report describes options and result."""
    folder, nodes = Path(params["path"]), params["nodes"]
    file, thresholds, state = folder / "measurements.json", criteria_of(params), burn_in(params)
    resumes = state is not None and state["rounds"] > 0
    measurements = list(decode(read_small(file))["measurements"]) if params["again"] or resumes else []
    if state and params["burnin"]:
        go_on(state, params, thresholds)
        write_json(folder / "burnin.json", state, write, sync=True)
    else:
        measurements += measured(params)
    if write and not (params["again"] or resumes):
        (folder / "burnin.json").unlink(missing_ok=True)
    changed = write_json(file, {"schema": SCHEMA, "measurements": measurements}, write)
    listed = rows(read_yaml(Path(params["expected"])))
    wrong = list(state["wrong"].values()) if state else []
    acceptance = document.document(nodes, measurements, listed, thresholds, wrong)
    if params["burnin"]:
        unmeasured = {each["part"] for each in acceptance["problems"]}
        steps = schedule.whole_round([node for node in nodes if node not in unmeasured], places(params))
    else:
        steps = schedule.next_steps(acceptance, measurements, params["device"], places(params), thresholds)
    summary = burnin.summary(state, thresholds) if state else None
    refusals = reasons.refusals(acceptance) + (burnin.refusals(summary) if summary else [])
    acceptance["burnin"] = summary
    acceptance["accepted"] = not refusals
    hosts = {node: params["variables"].get(node, {}) for node in acceptance["good"]}
    for node, address in params["addresses"].items():
        acceptance["machines"][node]["address"] = address
    acceptance["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    wording = Wording(params["report_language"])
    whole = cast(Acceptance, {**acceptance, **params["origin"]})
    changed = write_files(whole, hosts, params, write) or changed
    return {
        "changed": changed,
        "steps": steps,
        "measures": lines.measures(acceptance, wording) if steps else "",
        "display": lines.display(acceptance, wording),
        "refusal": lines.refusal(refusals, wording),
        "left": burnin.left(state) if state else 0.0,
        "begins": lines.begins(len(nodes), summary, wording) if summary else "",
        "progress": lines.progress(summary, wording) if summary else "",
    }


def write_files(
    acceptance: Acceptance, hosts: Mapping[str, Any], params: Mapping[str, Any], write: bool
) -> bool:
    """Write acceptance.json, the inventory of good nodes and the documents; return whether they differ."""
    folder = Path(params["path"])
    files = {
        folder / "acceptance.json": acceptance,
        # JSON is YAML.
        folder / "good.yml": {"nodes": {"hosts": hosts}},
    }
    changed = [write_json(path, content, write) for path, content in files.items()]
    texts = pages.documents(acceptance, params["templates"]) if params["templates"] else {}
    changed += [write_whole(folder / name, text.encode(), write) for name, text in texts.items()]
    return any(changed)
