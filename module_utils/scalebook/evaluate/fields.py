# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The fields of an evaluation: their values, checked before anything is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ansible.module_utils.scalebook.pages.numbers import all_digits

SECTIONS = (
    "introduction",
    "platform",
    "frameworks",
    "models",
    "environment",
    "configuration",
    "rules",
    "metrics",
    "problems",
)
"""The sections that can have paragraphs of the user's own, beside those of the model families."""
MOST_SAMPLES = 10**15
MOST_EPOCHS = 10**6
MOST_MACHINES = 10**5
LARGEST = 1e15
"""What no deadline, budget and price of electricity exceeds; it keeps out infinity."""

Check = tuple[Callable[[Any], bool], str]
"""Whether a value is right, and the words for the values that are."""

SHARE: Check = (lambda value: 1 <= value <= 100, "per cent from 1 to 100")
ABOVE_0: Check = (lambda value: 0 < value <= LARGEST, "numbers above 0")
RANGES: Mapping[str, Check] = {
    "criteria.efficiency": SHARE,
    "criteria.utilisation": SHARE,
    "criteria.machines": (
        lambda value: 1 <= value <= MOST_MACHINES,
        f"whole numbers from 1 to {MOST_MACHINES}",
    ),
    "task.samples": (lambda value: 1 <= value <= MOST_SAMPLES, f"whole numbers from 1 to {MOST_SAMPLES}"),
    "task.epochs": (lambda value: 0 < value <= MOST_EPOCHS, f"numbers above 0, up to {MOST_EPOCHS}"),
    "deadline_hours": ABOVE_0,
    "budget": ABOVE_0,
    "electricity": (lambda value: 0 <= value <= LARGEST, "numbers from 0 on"),
}


class FieldError(ValueError):
    """Fields with values that mean nothing; the text names every one, and what is allowed."""


def refusal(field: str, value: Any, allowed: str) -> str:
    """Return the sentence that refuses a value: `evaluation.budget=-5: allowed are numbers above 0`."""
    text = all_digits(value) if isinstance(value, float) else str(value)
    return f"evaluation.{field}={text[:60]}: allowed are {allowed}"


def check_values(evaluation: Mapping[str, Any]) -> None:
    """Raise FieldError for numbers out of range, for texts that are none and for what is listed twice."""
    mistakes = []
    for field, (right, allowed) in RANGES.items():
        section, _, name = field.rpartition(".")
        value = (evaluation[section] if section else evaluation)[name]
        if value is not None and not right(value):
            mistakes.append(refusal(field, value, allowed))
    for name, text in evaluation["texts"].items():
        if isinstance(text, (list, dict)):
            mistakes.append(
                refusal(f"texts.{name}", text, "texts, with an empty line between two paragraphs")
            )
    mistakes += _twice("published", [(name, name) for name in evaluation["published"]])
    if not evaluation["out"]:
        mistakes.append(refusal("out", "", "directories"))
    _refuse(mistakes)


def check_names(evaluation: Mapping[str, Any], workloads: Iterable[str], families: Iterable[str]) -> None:
    """Raise FieldError where a workload or a section is named that does not exist.

    `workloads` are those that there are, `families` those that the document has a section of.
    """
    mistakes = []
    ahead, names = evaluation["criteria"]["ahead"], sorted(set(workloads))
    if ahead and ahead not in names:
        mistakes.append(refusal("criteria.ahead", ahead, _listed(ahead, names)))
    sections = [*SECTIONS, *dict.fromkeys(families)]
    mistakes += [
        refusal("texts", name, _listed(name, sections))
        for name in evaluation["texts"]
        if name not in sections
    ]
    _refuse(mistakes)


def check_differ(field: str, entries: Sequence[tuple[str, Any]]) -> None:
    """Raise FieldError where an entry is there already; `entries` are (value, what it stands for)."""
    _refuse(_twice(field, entries))


def _twice(field: str, entries: Sequence[tuple[str, Any]]) -> list[str]:
    first: dict[Any, str] = {}
    mistakes = []
    for value, name in entries:
        if name in first:
            same = "is listed twice" if first[name] == value else f"is the same as {first[name]}"
            mistakes.append(refusal(field, value, f"entries that differ; this one {same}"))
        first.setdefault(name, value)
    return mistakes


def _listed(word: str, allowed: Sequence[str]) -> str:
    """Return the allowed names, with a hint at the one that is meant."""
    near = get_close_matches(word, allowed, n=1)
    return ", ".join(allowed) + (f" (did you mean {near[0]}?)" if near else "")


def _refuse(refusals: Sequence[str]) -> None:
    if refusals:
        raise FieldError("; ".join(refusals))
