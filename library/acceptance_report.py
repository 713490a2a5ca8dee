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
  origin:
    description: The commit and the command, as the filter C(scalebook_origin) returns them.
    type: dict
    default: {}
attributes:
  check_mode: {support: full}
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
"""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.accept import criteria, document
from ansible.module_utils.scalebook.accept.expected import rows
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.files import read_small, write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.report import acceptance as pages
from ansible.module_utils.scalebook.yaml_file import read_yaml


def measured(params: Mapping[str, Any]) -> list[document.Measurement]:
    """Return the new measurements: of pairs what the first node printed, and the problems of both."""
    outputs, seconds = params["outputs"], params["seconds"]
    if not params["pairs"]:
        return [document.line_of([node], result, seconds) for node, result in outputs.items()]
    measurements = []
    for pair in params["pairs"]:
        first, second = (document.line_of(pair, outputs.get(node, {}), seconds) for node in pair)
        first["problems"] = first["problems"] or second["problems"]
        measurements.append(first)
    return measurements


def earlier(path: Path, again: bool) -> list[document.Measurement]:
    """Return what this start has measured before."""
    return list(decode(read_small(path))["measurements"]) if again else []


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    folder, nodes = Path(params["path"]), params["nodes"]
    file = folder / "measurements.json"
    measurements = [*earlier(file, params["again"]), *measured(params)]
    saved = write_json(file, {"schema": document.SCHEMA, "measurements": measurements}, write=not check)
    if not params["evaluate"]:
        return {"changed": saved}
    listed = rows(read_yaml(Path(params["expected"])))
    thresholds = criteria.Wanted(Criteria(least=params["least"] / 100, most=params["most"]))
    if params["criteria"]:
        thresholds = criteria.read(read_yaml(Path(params["criteria"])), thresholds.common)
    acceptance = document.document(nodes, measurements, listed, thresholds)
    open_nodes, rounds = document.still_open(nodes, acceptance["findings"], acceptance["problems"])
    hosts = {node: params["variables"].get(node, {}) for node in acceptance["good"]}
    for node, address in params["addresses"].items():
        acceptance["machines"][node]["address"] = address
    acceptance["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    acceptance = {**acceptance, **params["origin"]}
    files = {
        folder / "acceptance.json": acceptance,
        # JSON is YAML.
        folder / "good.yml": {"nodes": {"hosts": hosts}},
    }
    changed = [write_json(path, content, write=not check) for path, content in files.items()]
    texts = pages.documents(acceptance, params["templates"]) if params["templates"] else {}
    changed += [write_whole(folder / name, text.encode(), not check) for name, text in texts.items()]
    return {
        "changed": saved or any(changed),
        "alone": open_nodes,
        "rounds": [[[*pair] for pair in pairs] for pairs in rounds],
        "display": document.display(acceptance),
        "refusal": document.refusal(acceptance),
    }
