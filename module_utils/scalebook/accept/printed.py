# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes have printed -> measurements."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook import nccl_lines
from ansible.module_utils.scalebook.accept.contracts import Measurement
from ansible.module_utils.scalebook.accept.schedule import Step
from ansible.module_utils.scalebook.contracts import Interconnect, Message, as_message, message
from ansible.module_utils.scalebook.unpack import UnpackError, unpacked

KILLED_BY_TIMEOUT = (124, 137)
MOST_LINES = 1 << 26
"""Bytes of the lines of NCCL that are read at most."""
Outputs = Mapping[str, Mapping[str, Any]]
"""The results of the tasks that measured, by node."""


def of_steps(steps: Mapping[str, Sequence[Step]], outputs: Outputs, seconds: int) -> list[Measurement]:
    """Return what nodes measured in their steps, in the order of the schedule.

    Of several nodes the first printed the rates. Links of a node that could not be measured are not tried.
    """
    printed = {node: _lines(outputs.get(node, {})) for node in steps}
    step_of = {
        (step["at"], tuple(step.get("nodes", [node]))): step
        for node, of_node in steps.items()
        for step in of_node
    }
    measurements: list[Measurement] = []
    failed: set[str] = set()
    for place, nodes in sorted(step_of):
        if failed & {*nodes}:
            continue
        silent = [node for node in nodes if place not in printed[node]]
        lines = [_measurement(nodes, printed[node][place]) for node in nodes if node not in silent]
        measurement = lines[0] if nodes[0] not in silent else _measurement(nodes, {})
        measurement["problems"] = next((each["problems"] for each in lines if each["problems"]), {})
        if silent or not (measurement["rates"] or measurement["traces"] or measurement["problems"]):
            why = _silence(outputs.get((silent or nodes)[0], {}), seconds)
            measurement["problems"] = measurement["problems"] or {"node": why}
        if "group" in step_of[place, nodes]:
            measurement["group"] = step_of[place, nodes]["group"]
        if len(nodes) == 1 and measurement["problems"]:
            failed.update(nodes)
        measurements.append(measurement)
    return measurements


def _lines(result: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Return the lines that a node printed, by the place of their step, from the result of its task."""
    lines: dict[int, Mapping[str, Any]] = {}
    for text in str(result.get("stdout") or "").splitlines():
        try:
            content = json.loads(text)
        except ValueError:
            continue
        keys = ("rates", "traces", "problems")
        if (
            isinstance(content, dict)
            and isinstance(content.get("at"), int)
            and all(isinstance(content.get(key), dict) for key in keys)
        ):
            lines[content["at"]] = content
    return lines


def _measurement(nodes: Sequence[str], content: Mapping[str, Any]) -> Measurement:
    """Return the content of a line."""
    name = content.get("name")
    measurement: Measurement = {
        "nodes": [*nodes],
        "name": name and str(name),
        "gpus": [str(uuid) for uuid in content.get("gpus") or ()],
        "processor": str(content.get("processor") or ""),
        "pairs": [*(content.get("pairs") or ())],
        "sizes": [*(content.get("sizes") or ())],
        "rates": content.get("rates", {}),
        "traces": content.get("traces", {}),
        "problems": {part: _reason_of(why) for part, why in content.get("problems", {}).items()},
    }
    connected = _connected(nodes, content.get("nccl"))
    if connected:
        measurement["nccl"] = connected
    if content.get("rails"):
        measurement["rails"] = {
            way: [float(rate) for rate in content["rails"][way]] for way in ("forward", "backward")
        }
    return measurement


def _connected(nodes: Sequence[str], lines: Any) -> Interconnect | None:
    """Return what NCCL said in its packed lines, None where it said nothing, or they cannot be read."""
    try:
        text = unpacked(base64.b64decode(str(lines or ""), validate=True), MOST_LINES)
    except (binascii.Error, UnpackError, ValueError):
        return None
    return nccl_lines.of_text(nodes, text.decode("utf-8", "replace"))


def _silence(result: Mapping[str, Any], seconds: int) -> Message:
    """Return why a node printed nothing of a step, from the result of its task."""
    if result.get("rc") in KILLED_BY_TIMEOUT:
        return message("acceptance.not-ended", seconds=seconds)
    errors = str(result.get("stderr") or result.get("msg") or "").strip().splitlines()
    return as_message(errors[-1][:300]) if errors else message("acceptance.no-answer")


def _reason_of(why: Any) -> Message:
    """Return why something could not be measured; what is not a message of the program is text."""
    is_message = (
        isinstance(why, dict) and isinstance(why.get("code"), str) and isinstance(why.get("values"), dict)
    )
    return cast(Message, why) if is_message else as_message(str(why))
