# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A survey of AWX that asks for the parameters of a playbook, and for the variables of roles.

The form is that of AWX's `/api/v2/job_templates/N/survey_spec/`: an answer becomes an extra variable of that
name.  An empty text means to the playbooks that no value of a parameter was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.plan.parameters import Parameter, rows_of, text

BOOLEANS = ("true", "false")
_KINDS = {
    "bool": "multiplechoice",
    "count": "integer",
    "number": "float",
    "seconds": "float",
    "uri": "password",
}
_TYPES = {"bool": "multiplechoice", "int": "integer", "float": "float"}


class Question(TypedDict):
    """One question; `min` and `max` are numbers, or None where AWX is to ask for no range."""

    question_name: str
    question_description: str
    variable: str
    type: str
    required: bool
    default: str | int | float
    choices: list[str]
    min: int | None
    max: int | None


class Survey(TypedDict):
    """What AWX takes: `spec` are the questions in their order."""

    name: str
    description: str
    spec: list[Question]


def survey(
    playbook: str, names: Mapping[str, Sequence[str]], variables: Mapping[str, Mapping[str, Any]]
) -> Survey:
    """Return the survey of a playbook.

    `names` has the choices of parameters whose table leaves them to what is there, {parameter: names};
    `variables` are the options of roles' argument_specs by name.
    """
    rows = rows_of([playbook]).values()
    return {
        "name": f"scalebook {playbook}",
        "description": f"Parameters of {playbook}.yml; what is left empty has its default.",
        "spec": [*(_of_parameter(row, playbook, names) for row in rows), *_of_roles(variables)],
    }


def _of_parameter(row: Parameter, playbook: str, names: Mapping[str, Sequence[str]]) -> Question:
    choices = list(BOOLEANS if row.kind == "bool" else row.choices or names.get(row.name, ()))
    several = playbook in row.lists
    kind = "multiplechoice" if choices else _KINDS.get(row.kind, "text")
    if several:
        kind = "multiselect" if choices else "text"
    default: Any = "" if row.default is None else row.default
    if kind not in ("integer", "float") or default == "":
        # AWX takes several choices as lines.
        default = "\n".join(map(text, default)) if kind == "multiselect" and default else text(default)
    whole = kind == "integer"
    otherwise = f"; default: {row.otherwise}" if row.otherwise else ""
    return {
        "question_name": row.name,
        "question_description": row.help + otherwise,
        "variable": row.name,
        "type": kind,
        "required": False,
        "default": default,
        "choices": choices,
        "min": 0 if whole else None,
        "max": row.largest or None if whole else None,
    }


def _plain(value: Any) -> str | int | float:
    """Return a number as it is, and anything else as text."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else text(value)


def _of_roles(variables: Mapping[str, Mapping[str, Any]]) -> Iterable[Question]:
    for name, option in variables.items():
        choices = list(BOOLEANS if option.get("type") == "bool" else map(text, option.get("choices") or ()))
        several, default = option.get("type") == "list", option.get("default", "")
        kind = "multiplechoice" if choices else _TYPES.get(str(option.get("type")), "text")
        description = option.get("description") or ""
        yield {
            "question_name": name,
            "question_description": description if isinstance(description, str) else " ".join(description),
            "variable": name,
            "type": "multiselect" if choices and several else kind,
            "required": False,
            "default": "" if isinstance(default, (list, dict)) else _plain(default),
            "choices": choices,
            "min": None,
            "max": None,
        }
