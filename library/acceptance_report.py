#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance_report
short_description: Judge the parts of a cluster by what its nodes have measured
description:
  - Adds what nodes have printed to C(measurements.json) in O(path), judges every part, and writes
    C(acceptance.json) and C(good.yml), an inventory of the good nodes.
  - Writes the acceptance document in each language, C(acceptance.en.html) and C(acceptance.zh.html).
  - Says what has to be measured again before every part has a verdict. Runs on the control node.
options:
  path:
    description: Directory of the results.
    type: path
    required: true
  nodes:
    description: The names of all nodes.
    type: list
    elements: str
    required: true
  again:
    description: Whether to add to what has been measured; otherwise it is removed, and all is to be measured.
    type: bool
    default: true
  evaluate:
    description: Whether to judge the parts; otherwise what was measured is only added.
    type: bool
    default: true
  outputs:
    description: The results of the tasks that measured, by node.
    type: dict
    default: {}
  pairs:
    description: The pairs of nodes that were measured; without any, each node was measured alone.
    type: list
    elements: list
    default: []
  together:
    description: Whether the nodes in O(outputs) were measured together.
    type: bool
    default: false
  seconds:
    description: Seconds after which a measurement was ended.
    type: int
    default: 0
  expected:
    description: File of published values, as C(data/expected.yml).
    type: path
    required: true
  criteria:
    description: File of criteria, which count instead of O(least) and O(most); empty for none.
    type: str
    default: ""
  templates:
    description: Directory of the templates of the document; without it no document is written.
    type: path
  least:
    description: Percentage of the rate of equal parts at which a part has to be found.
    type: float
    default: 95
  most:
    description: Measurements of a part at most.
    type: int
    default: 20
  variables:
    description: The variables of each node that an inventory of it needs.
    type: dict
    default: {}
  addresses:
    description: The address of each node, by which C(bench.yml) finds its verdict again.
    type: dict
    default: {}
  hours:
    description: Hours of the burn-in, V(0) for none; one that was interrupted goes on.
    type: float
    default: 0
  burnin:
    description: >-
      Whether O(outputs) and O(links) are those of a round of the burn-in, which is then judged; without any,
      it begins.
    type: bool
    default: false
  links:
    description: The results of the looped task that measured the links in O(pairs), by node.
    type: dict
    default: {}
  probed:
    description: The result of M(node_probe) on each node.
    type: dict
    default: {}
  device:
    description: What the nodes compute with.
    type: str
    default: auto
  origin:
    description: The commit and the command, as the filter C(scalebook_origin) returns them.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Judge the nodes
  acceptance_report:
    path: results/acceptance
    nodes: [NODE1, NODE2, NODE3]
    outputs: "{{ printed }}"
    expected: data/expected.yml
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
alone:
  description: The nodes to measure again.
  returned: when O(evaluate)
  type: list
  elements: str
rounds:
  description: The pairs of nodes to measure again, in rounds of disjoint pairs.
  returned: when O(evaluate)
  type: list
  elements: list
display:
  description: The verdict on each part, as lines for the terminal.
  returned: when O(evaluate)
  type: list
  elements: str
refusal:
  description: Why the cluster is not accepted, with a fix; empty where it is.
  returned: when O(evaluate)
  type: str
together:
  description: >-
    The nodes to measure together, at most once; none where fewer than three could be measured.
  returned: when O(evaluate)
  type: list
  elements: str
left:
  description: Seconds that are left of the burn-in.
  returned: when O(evaluate)
  type: float
progress:
  description: How far the burn-in is, and its worst part; empty without one.
  returned: when O(evaluate)
  type: str
"""

import datetime
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.accept import criteria, document, triage
from ansible.module_utils.scalebook.accept.expected import rows
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.files import read_small, write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.preflight import burnin, judge
from ansible.module_utils.scalebook.report import acceptance as pages
from ansible.module_utils.scalebook.yaml_file import read_yaml


def measured(params: Mapping[str, Any]) -> list[document.Measurement]:
    """Return the new measurements: of several nodes what the first one printed, and the problems of all."""
    outputs, seconds = params["outputs"], params["seconds"]
    several = [[*outputs]] if params["together"] else params["pairs"]
    if not several:
        return [document.line_of([node], result, seconds) for node, result in outputs.items()]
    measurements = []
    for nodes in several:
        first, *others = (document.line_of(nodes, outputs.get(node, {}), seconds) for node in nodes)
        first["problems"] = next((each["problems"] for each in (first, *others) if each["problems"]), {})
        measurements.append(first)
    return measurements


def of_round(params: Mapping[str, Any]) -> list[document.Measurement]:
    """Return the measurements of a round: of all nodes, then of all links."""
    measurements = measured({**params, "pairs": []})
    for index, pairs in enumerate(params["pairs"]):
        results = {node: result.get("results") or [] for node, result in params["links"].items()}
        outputs = {node: of_node[index] for node, of_node in results.items() if index < len(of_node)}
        # The links of a node that could not be measured are not tried.
        tried = [pair for pair in pairs if not any(outputs.get(node, {}).get("skipped") for node in pair)]
        measurements += measured({**params, "outputs": outputs, "pairs": tried}) if tried else []
    return measurements


def burn_in(params: Mapping[str, Any]) -> burnin.State | None:
    """Return the state of the burn-in, an earlier one that goes on or a new one; None without hours."""
    path = Path(params["path"]) / "burnin.json"
    if not params["hours"]:
        return None
    key = (document.SCHEMA, params["hours"], params["nodes"])
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
        burnin.add_round(state, of_round(params), thresholds)
    state["mark"] = now
    probed = {node: judge.read(result) for node, result in params["probed"].items()}
    # The number of GPUs was counted before.
    machines = [{"name": node, "nodes": [node], "local": True} for node in params["nodes"]]
    burnin.watch(state, machines, probed, params["device"], sentence)


def criteria_of(params: Mapping[str, Any]) -> criteria.Wanted:
    """Return what parts have to reach."""
    thresholds = criteria.Wanted(Criteria(least=params["least"] / 100, most=params["most"]))
    if params["criteria"]:
        thresholds = criteria.read(read_yaml(Path(params["criteria"])), thresholds.common)
    return thresholds


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    folder, nodes = Path(params["path"]), params["nodes"]
    file, thresholds, state = folder / "measurements.json", criteria_of(params), burn_in(params)
    resumes = state is not None and state["rounds"] > 0
    measurements = list(decode(read_small(file))["measurements"]) if params["again"] or resumes else []
    if state and params["burnin"]:
        go_on(state, params, thresholds)
        write_json(folder / "burnin.json", state, write=not check, sync=True)
    else:
        measurements += measured(params)
    if not (params["again"] or resumes or check):
        (folder / "burnin.json").unlink(missing_ok=True)
    saved = write_json(file, {"schema": document.SCHEMA, "measurements": measurements}, write=not check)
    if not params["evaluate"]:
        return {"changed": saved}
    listed = rows(read_yaml(Path(params["expected"])))
    wrong = list(state["wrong"].values()) if state else []
    acceptance = document.document(nodes, measurements, listed, thresholds, wrong)
    open_nodes, rounds = document.still_open(nodes, acceptance["findings"], acceptance["problems"])
    if params["burnin"]:
        unmeasured = {each["part"] for each in acceptance["problems"]}
        open_nodes = [node for node in nodes if node not in unmeasured]
        rounds = list(triage.rounds(open_nodes))
    summary = burnin.summary(state, thresholds) if state else None
    refusals = [document.refusal(acceptance), burnin.refusal(summary) if summary else ""]
    acceptance["burnin"] = summary
    acceptance["accepted"] = not any(refusals)
    hosts = {node: params["variables"].get(node, {}) for node in acceptance["good"]}
    for node, address in params["addresses"].items():
        acceptance["machines"][node]["address"] = address
    acceptance["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    changed = write({**acceptance, **params["origin"]}, hosts, params, check)
    return {
        "changed": saved or changed,
        "alone": open_nodes,
        "rounds": [[[*pair] for pair in pairs] for pairs in rounds],
        "together": document.together(nodes, measurements, acceptance["problems"]),
        "display": [*document.display(acceptance), *(burnin.display(summary) if summary else ())],
        "refusal": ". ".join(filter(None, refusals)),
        "left": burnin.left(state) if state else 0.0,
        "progress": burnin.progress(summary) if summary else "",
    }


def write(
    acceptance: Mapping[str, Any], hosts: Mapping[str, Any], params: Mapping[str, Any], check: bool
) -> bool:
    """Write acceptance.json, the inventory of good nodes and the documents; return whether they differ."""
    folder = Path(params["path"])
    files = {
        folder / "acceptance.json": acceptance,
        # JSON is YAML.
        folder / "good.yml": {"nodes": {"hosts": hosts}},
    }
    changed = [write_json(path, content, write=not check) for path, content in files.items()]
    texts = pages.documents(acceptance, params["templates"]) if params["templates"] else {}
    changed += [write_whole(folder / name, text.encode(), not check) for name, text in texts.items()]
    return any(changed)
