# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A printed command -> what it measures, planned in this process on more nodes and devices than it names."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from ansible.module_utils.scalebook.contracts import IDENTITY
from ansible.module_utils.scalebook.plan import declared, matrix, parameters
from ansible.module_utils.scalebook.workload import Workload, called_today
from ansible.module_utils.scalebook.workloads import load_workloads, owner_of
from ansible.parsing.splitter import parse_kv

ROOT = Path(__file__).resolve().parents[2]
ROLES = [str(ROOT / "roles")]
NODES = [{"name": f"NODE{rank}", "slots": 8, "machine": f"NODE{rank}"} for rank in range(1, 9)]


@functools.cache
def known() -> parameters.Context:
    """Return what the parameters of bench.yml are checked with."""
    return parameters.Context(
        load_workloads(ROLES),
        declared.stacks(str(ROOT / "playbooks/vars")),
        declared.role_variables(ROLES),
        len(NODES),
        declared.role_choices(ROLES),
    )


def known_with(given: Mapping[str, Any]) -> parameters.Context:
    """Return the same, with the values that the variables of workloads have where these are given."""

    def role_values(names: Iterable[str], stack: Mapping[str, Any]) -> dict[str, Any]:
        names = set(names)
        owners = {owner_of(name, known().workloads) for name in names} - {""}
        values = {**_of_roles(owners), **given, "stack": stack}
        _render(values, [name for name in values if "home" not in str(values[name])])
        return {name: values[name] for name in names & values.keys()}

    return known()._replace(role_values=role_values)


def _of_roles(names: Iterable[str]) -> dict[str, Any]:
    """Return the defaults of the roles."""
    return {
        key: value
        for name in names
        for key, value in declared.role_defaults(str(ROOT / "roles" / name)).items()
    }


def extra_variables(command: str) -> dict[str, str]:
    """Return the variables that a command line gives with -e, as Ansible reads them."""
    words = shlex.split(command)
    return parse_kv(" ".join(after for word, after in zip(words, words[1:], strict=False) if word == "-e"))


def plan_of(command: str) -> Mapping[str, Any]:
    """Return the plan of bench.yml for a command line; raise ParameterError for one that it refuses."""
    given = extra_variables(command)
    values = parameters.read(("bench",), given, given, known_with(given))
    chosen = {name: _resolved(name, given, values["stack_name"] or "") for name in values["workload"]}
    return matrix.plan(values, chosen, NODES, values["device"], extra_names=list(given))


def runs_of(command: str, refused: Collection[str] = ()) -> set[tuple[str, int]]:
    """Return (what identifies the case, repeat) of every run of a command line.

    Nothing may be skipped but cases of the workloads `refused`, which count as planned.
    """
    plan = plan_of(command)
    skipped = [entry["case"] for entry in plan["skipped"]]
    assert {case["workload"] for case in skipped} <= set(refused), plan["skipped"]
    repeats = range(1, plan["repeats"] + 1)
    return {(identity(case), repeat) for case in [*plan["cases"], *skipped] for repeat in repeats}


def identity(case: Mapping[str, Any]) -> str:
    """Return what identifies a case, whenever it was measured."""
    workload, settings = called_today(case["workload"], case.get("settings"), known().workloads)
    fields = {field: case.get(field) for field in IDENTITY}
    return json.dumps({**fields, "workload": workload, "settings": settings}, sort_keys=True)


def _resolved(name: str, given: Mapping[str, str], stack_name: str) -> Workload:
    """Return a workload with the defaults of its role and the variables that are given."""
    declaration = known().workloads[name]
    values = _of_roles([name]) | dict(given)
    values["stack"] = declared.stack_of([name], known().workloads, known().stacks, stack_name)
    _render(values, declaration.variables)
    return declaration.resolve(values)


def _render(values: dict[str, Any], names: Iterable[str]) -> None:
    """Put the values of templates in; a template may name another."""
    environment = jinja2.Environment()
    for _ in range(2):
        for name in names:
            if "{{" in str(values[name]):
                values[name] = environment.from_string(values[name]).render(values)
