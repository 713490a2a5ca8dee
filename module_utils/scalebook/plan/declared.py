# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reads what YAML files of the project declare: the roles' public variables, and the stacks.

A stack is a file of versions, `playbooks/vars/stack_<name>.yml`.  Several of them live side by side on a
node: each workload is installed with the versions of its own stack, in an environment of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.workload import UNKNOWN, Workloads
from ansible.module_utils.scalebook.yaml_file import read_yaml


class StackError(ValueError):
    """A stack that does not exist, or a file that is not one."""


def role_variables(roles_paths: Iterable[str]) -> dict[str, str]:
    """Return the public variables of all roles below `roles_paths` with their types."""
    variables: dict[str, str] = {}
    for file in _files(roles_paths, "*/meta/argument_specs.yml"):
        for spec in (_read(file).get("argument_specs") or {}).values():
            for name, option in (spec.get("options") or {}).items():
                variables.setdefault(name, str(option.get("type", "str")))
    for file in _files(roles_paths, "*/defaults/main.yml"):
        for name in _read(file):
            variables.setdefault(str(name), "raw")
    return variables


def role_defaults(role: str) -> dict[str, Any]:
    """Return the defaults of the role in the directory `role`, templates as they are written."""
    file = Path(role) / "defaults/main.yml"
    return _read(file) if file.is_file() else {}


def role_choices(roles_paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the public variables of all roles that have a list of allowed values, with that list."""
    choices: dict[str, list[str]] = {}
    for file in _files(roles_paths, "*/meta/argument_specs.yml"):
        for spec in (_read(file).get("argument_specs") or {}).values():
            for name, option in (spec.get("options") or {}).items():
                if "choices" in option and option.get("type", "str") in ("str", "int"):
                    choices.setdefault(name, [str(choice) for choice in option["choices"]])
    return choices


def roles_with(roles_paths: Iterable[str], file: str) -> list[str]:
    """Return the names of the roles below `roles_paths` that have this file."""
    return [path.parents[file.count("/")].name for path in _files(roles_paths, f"*/{file}")]


def stacks(folder: str) -> dict[str, dict[str, Any]]:
    """Return the stacks below `folder`, by name."""
    stacks_by_name = {}
    for file in sorted(Path(folder).glob("stack_*.yml")):
        stack = _read(file).get("stack")
        if not isinstance(stack, dict):
            raise StackError(f"{file}: it must hold a dict `stack`")
        stacks_by_name[file.stem.removeprefix("stack_")] = stack
    return stacks_by_name


def stack_of(
    names: Sequence[str],
    workloads: Workloads,
    stacks_by_name: Mapping[str, Mapping[str, Any]],
    override: str = "",
) -> dict[str, Any]:
    """Return the versions for the workloads `names`: those of `override`, else of the stacks they declare.

    Where these differ, the first workload's stack decides; later ones add what it has no versions for.
    Raises StackError for a stack that does not exist.
    """
    stack_names = [override] if override else [workloads.get(name, UNKNOWN).stack for name in names]
    merged: dict[str, Any] = {}
    for name in stack_names:
        if name not in stacks_by_name:
            raise StackError(f"stack_name={name}: allowed are {', '.join(sorted(stacks_by_name))}")
        merged = {**stacks_by_name[name], **merged}
    return merged


def _files(roles_paths: Iterable[str], pattern: str) -> list[Path]:
    return [file for path in roles_paths for file in sorted(Path(path).glob(pattern))]


def _read(file: Path) -> dict[str, Any]:
    """Return the dict that a YAML file holds, an empty one where it holds something else."""
    content = read_yaml(file)
    return content if isinstance(content, dict) else {}
