# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes have printed -> measurements."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook import nccl_lines
from ansible.module_utils.scalebook.accept.document import Measurement
from ansible.module_utils.scalebook.contracts import Interconnect, Message, as_message, message
from ansible.module_utils.scalebook.unpack import UnpackError, unpacked

KILLED_BY_TIMEOUT = (124, 137)
MOST_LINES = 1 << 26
"""Bytes of the lines of NCCL that are read at most."""
Outputs = Mapping[str, Mapping[str, Any]]
"""The results of the tasks that measured, by node."""


def of_nodes(outputs: Outputs, seconds: int) -> list[Measurement]:
    """Return what each node measured alone."""
    return [line_of([node], result, seconds) for node, result in outputs.items()]


def of_several(groups: Iterable[Sequence[str]], outputs: Outputs, seconds: int) -> list[Measurement]:
    """Return what each group measured together: what its first node printed, and the problems of all."""
    measurements = []
    for nodes in groups:
        first, *others = (line_of(nodes, outputs.get(node, {}), seconds) for node in nodes)
        first["problems"] = next((each["problems"] for each in (first, *others) if each["problems"]), {})
        measurements.append(first)
    return measurements


def of_round(
    outputs: Outputs, rounds: Sequence[Sequence[Sequence[str]]], links: Outputs, seconds: int
) -> list[Measurement]:
    """Return the measurements of a round of the burn-in: of all nodes, then of all links.

    `links` are the results of the looped task that measured the pairs of `rounds`.
    """
    measurements = of_nodes(outputs, seconds)
    for index, pairs in enumerate(rounds):
        results = {node: result.get("results") or [] for node, result in links.items()}
        printed = {node: of_node[index] for node, of_node in results.items() if index < len(of_node)}
        # The links of a node that could not be measured are not tried.
        tried = [pair for pair in pairs if not any(printed.get(node, {}).get("skipped") for node in pair)]
        measurements += of_several(tried, printed, seconds)
    return measurements


def line_of(nodes: Sequence[str], result: Mapping[str, Any], seconds: int) -> Measurement:
    """Return what a node printed, from the result of its task; what it did not print is a problem."""
    lines = str(result.get("stdout") or "").strip().splitlines()
    try:
        content = json.loads(lines[-1]) if lines and not result.get("rc") else None
    except ValueError:
        content = None
    keys = ("rates", "traces", "problems")
    if isinstance(content, dict) and all(isinstance(content.get(key), dict) for key in keys):
        name = content.get("name")
        measurement: Measurement = {
            "nodes": [*nodes],
            "name": name and str(name),
            "gpus": [str(uuid) for uuid in content.get("gpus") or ()],
            "processor": str(content.get("processor") or ""),
            "pairs": [*(content.get("pairs") or ())],
            "sizes": [*(content.get("sizes") or ())],
            "rates": content["rates"],
            "traces": content["traces"],
            "problems": {part: _reason_of(why) for part, why in content["problems"].items()},
        }
        connected = _connected(nodes, content.get("nccl"))
        if connected:
            measurement["nccl"] = connected
        if content.get("rails"):
            measurement["rails"] = {
                way: [float(rate) for rate in content["rails"][way]] for way in ("forward", "backward")
            }
        return measurement
    errors = str(result.get("stderr") or result.get("msg") or "").strip().splitlines()
    reason = as_message(errors[-1][:300]) if errors else message("acceptance.no-answer")
    if result.get("rc") in KILLED_BY_TIMEOUT:
        reason = message("acceptance.not-ended", seconds=seconds)
    return {
        "nodes": [*nodes],
        "name": None,
        "rates": {},
        "traces": {},
        "problems": {"node": reason},
        "gpus": [],
        "processor": "",
        "pairs": [],
        "sizes": [],
    }


def _connected(nodes: Sequence[str], lines: Any) -> Interconnect | None:
    """Return what NCCL said in its packed lines, None where it said nothing, or they cannot be read."""
    try:
        text = unpacked(base64.b64decode(str(lines or ""), validate=True), MOST_LINES)
    except (binascii.Error, UnpackError, ValueError):
        return None
    return nccl_lines.of_text(nodes, text.decode("utf-8", "replace"))


def _reason_of(why: Any) -> Message:
    """Return why something could not be measured; what is not a message of the program is text."""
    is_message = (
        isinstance(why, dict) and isinstance(why.get("code"), str) and isinstance(why.get("values"), dict)
    )
    return cast(Message, why) if is_message else as_message(str(why))
