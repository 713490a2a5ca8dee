# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/utilisation.md: the rules of the bottleneck, their parts, the thresholds."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge import rules
from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS
from ansible.module_utils.scalebook.pages import catalogue

from generated.text import ROOT, table

PAGE = "docs/utilisation.md"
FOLLOWING = {
    "usable_cpu": "CPU",
    "own_cpu": "the job's part of the CPU",
    "thread": "processors that a process kept busy",
    "wanted": "processors per device that the job wants (busy or waited for)",
    "wanted_less": "wanted processors of 1n1g minus those of the case",
    "sm_less": "SM active of 1n1g minus that of the case",
}
"""What evidence is called that follows from several values."""


def _name(evidence: str) -> str:
    return FOLLOWING.get(evidence) or catalogue.sentence(message(f"quantity.{evidence}"))


def _words(part: rules.Part, inside: bool = True, no: str = "") -> str:
    """Return a condition in words: by its name if it has one, unless it is asked for what is not `inside`."""
    if isinstance(part, rules.Limit):
        return f"{_name(part.evidence)} {no}{'at' if part.above else 'below'} `{part.threshold}`"
    if isinstance(part, rules.Fact):
        return no + part.name
    if part.name and inside:
        return f"{no}*{part.name}*"
    parts = [_words(each, no="not " if part.how is rules.none else "") for each in part.of]
    if part.how is any:
        parts = [" or ".join(parts)]
    joined = ", ".join(parts)
    return f"({joined})" if inside and len(part.of) > 1 and part.how is not rules.none else joined


def _conditions(parts: Iterable[rules.Part]) -> dict[str, rules.Condition]:
    """Return the conditions that have a name, those that others are made of before them."""
    named: dict[str, rules.Condition] = {}
    for part in parts:
        if isinstance(part, rules.Condition):
            named |= _conditions(part.of)
            named |= {part.name: part} if part.name else {}
    return named


def _rules(device: str, table_of: Iterable[rules.Rule]) -> str:
    rows = [
        (
            catalogue.sentence(message(f"bottleneck.{rule.says}")).partition(":")[0],
            _words(rule.when, inside=False),
        )
        for rule in table_of
    ]
    return table((f"cause on {device}", "rule"), rows)


def files() -> dict[str, str]:
    """Return the page with its tables as the rules are."""
    every = [rule.when for rule in (*rules.GPU_RULES, *rules.CPU_RULES)]
    named = [(name, _words(part, inside=False)) for name, part in _conditions(every).items()]
    new_tables = "\n".join(
        [
            _rules("GPUs", rules.GPU_RULES),
            _rules("CPUs", rules.CPU_RULES),
            table(("where a rule says", "it means"), named),
            table(
                ("name", "value", "of what, and why"),
                [(f"`{name}`", f"{each.value:g}", each.why) for name, each in THRESHOLDS.items()],
            ),
        ]
    )
    marks = r"(<!-- rules: made by scripts/pages -->\n).*?(\n<!-- end of the rules -->)"
    text = (ROOT / PAGE).read_text()
    return {PAGE: re.sub(marks, lambda match: f"{match[1]}\n{new_tables}{match[2]}", text, flags=re.DOTALL)}
