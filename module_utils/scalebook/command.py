# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A plan -> the command that measures the same again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Case, Plan
from ansible.module_utils.scalebook.text import clean

LEFT_OUT = (
    "plan_only",
    *("campaign", "baseline", "max_regression", "min_utilisation", "compare", "report_language"),
)
"""Parameters that do not change what is measured; with the same `campaign` nothing would be measured."""


def command(plan: Plan, playbook: str = "bench.yml") -> str:
    """Return the command, '' for an import.

    The variables of workloads are those that were given with -e.  The plan of an earlier version does not
    have them: the settings that all cases of a workload share are used.
    """
    given = plan.get("parameters")
    if not isinstance(given, Mapping) or not given:
        return ""
    variables = plan["variables"] if "variables" in plan else _agreed(plan.get("cases") or [])
    values = {name: value for name, value in given.items() if name not in LEFT_OUT and value is not False}
    if "max" not in _text(given.get("bsz")):
        values.pop("bsz_max_runs", None)
    texts = {name: _text(value) for name, value in {**values, **variables}.items()}
    words = " ".join(f"{clean(name)}={shlex.quote(text)}" for name, text in texts.items() if text)
    inventory = plan.get("inventory")
    place = f" -i {shlex.quote(clean(inventory))}" if inventory else ""
    return f"ansible-playbook{place} {playbook} -e {_quoted(words)}"


def _agreed(cases: list[Case]) -> dict[str, Any]:
    """Return the settings of cases by the names of their variables, without those that differ."""
    found: dict[str, list[Any]] = {}
    for case in cases:
        for name, value in (case.get("settings") or {}).items():
            found.setdefault(f"{case['workload']}_{name}", []).append(value)
    return {name: values[0] for name, values in found.items() if all(each == values[0] for each in values)}


def _text(value: Any) -> str:
    """Return a value as the command line takes it, '' for one that is not set."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(each) for each in value)
    return "" if value is None else clean(value)


def _quoted(words: str) -> str:
    """Return `words` as one word of a shell; in double quotes, as the documents write it, where these do."""
    return f'"{words}"' if not set(words) & set('"$`\\!') else shlex.quote(words)
