# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The declarations of the workloads, `roles/<workload>/meta/workload.yml`.

A role is a workload if it has this file. The file is static YAML: planning, running, reading logs and
reporting load the same declaration, and none of them has to include the role for it. What depends on
variables of the role is declared by their names, and `Workload.resolve` puts in their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import flops, limits
from ansible.module_utils.scalebook.places import ROOT
from ansible.module_utils.scalebook.workload import Workload, WorkloadError, dataset_variables
from ansible.module_utils.scalebook.yaml_file import read_yaml

FILE = "meta/workload.yml"
MODELS = ROOT / "data/models.yml"


def load_workloads(roles_paths: Iterable[str]) -> dict[str, Workload]:
    """Return all workloads below `roles_paths`, by name; raise WorkloadError, which names the file.

    As for Ansible, a role in an earlier path hides one of the same name in a later path.
    """
    workloads: dict[str, Workload] = {}
    for roles_path in roles_paths:
        for file in sorted(Path(roles_path).glob(f"*/{FILE}")):
            role = file.parents[1]
            if role.name not in workloads:
                workloads[role.name] = _load(role)
    return workloads


def owner_of(variable: str, workloads: Iterable[str]) -> str:
    """Return the workload whose role a variable belongs to by its name, "" where there is none."""
    return max((name for name in workloads if variable.startswith(f"{name}_")), key=len, default="")


def _load(role: Path) -> Workload:
    file = role / FILE
    declaration = _read(file)
    specs = (_read(role / "meta/argument_specs.yml").get("argument_specs") or {}).values()
    options = {name: option for spec in specs for name, option in (spec.get("options") or {}).items()}
    # Without one the role makes its own; other roles have a variable for where that is.
    environments = (f"{role.name}_python", f"{role.name}_venv")
    own = [name for name, option in options.items() if name in environments and option.get("default") == ""]
    epoch = declaration.get("epoch") or {}
    variables = [*(declaration.get("settings") or ()), *(epoch.values() if isinstance(epoch, dict) else ())]
    if isinstance(declaration.get("install"), dict):
        variables += dataset_variables(role.name, declaration["install"])
    data = {
        "install": {},
        **declaration,
        "name": role.name,
        "path": str(role),
        "own_environment": own[-1] if own else "",
        "setting_types": {
            name: str(options[name].get("type", "str")) for name in variables if name in options
        },
        "setting_defaults": _defaults(role, variables),
    }
    try:
        workload = Workload.from_data({**data, **_shared(declaration)})
        _check_limits(workload, options)
    except WorkloadError as error:
        raise WorkloadError(f"{file}: {error}") from None
    return workload


def _check_limits(workload: Workload, options: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise WorkloadError for a limit that names no variable of the role, or bounds a text."""
    for limit in workload.limits:
        for name in (limit.variable, *(name for name in limit.names if name not in limits.PARAMETERS)):
            if f"{workload.name}_{name}" not in options:
                raise WorkloadError(f"limits: {limit.variable}: {name} is not a variable of the role")
        kind = options[f"{workload.name}_{limit.variable}"].get("type", "str")
        if limit.bounds and kind not in ("int", "float"):
            raise WorkloadError(f"limits: {limit.variable}: a range needs a number, it is {kind}")


def _shared(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a declaration that data/models.yml completes, for modules that cannot read it."""
    own, names = keys.get("flops"), keys.get("model_names")
    if not isinstance(own, dict) or "model" not in own or not isinstance(names, list):
        return {}
    try:
        return {"flops": flops.of_model(own, _read(MODELS), names)}
    except flops.FlopsError as error:
        raise WorkloadError(f"flops.{error}") from None


def _defaults(role: Path, names: Iterable[str]) -> dict[str, Any]:
    """Return the defaults of variables of a role, without those that are templates."""
    file = role / "defaults/main.yml"
    values = _read(file) if file.is_file() else {}
    return {name: values[name] for name in names if name in values and "{{" not in str(values[name])}


def _read(file: Path) -> dict[str, Any]:
    """Return the dict that a YAML file holds."""
    try:
        content = read_yaml(file)
    except ValueError as error:
        raise WorkloadError(str(error)) from None
    if not isinstance(content, dict):
        raise WorkloadError(f"{file}: must hold a dict")
    return content
