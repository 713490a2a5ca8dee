# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The declarations of the workloads, `roles/<workload>/meta/workload.yml`.

A role is a workload if it has this file. The file is static YAML: planning, running, reading logs and
reporting load the same declaration, and none of them has to include the role for it. What depends on
variables of the role is declared by their names, and `resolve` puts in their values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.contracts import Case
from ansible.module_utils.scalebook.yaml_file import read_yaml

FILE = "meta/workload.yml"

REQUIRED = {
    "title": "What the workload trains, in words. Reports have it as the name of the workload.",
    "family": "The model family, such as `bert`. Reports show the workloads of a family together.",
    "framework": "The name of the framework in the evaluation and in the list of roles.",
    "task": "What is trained for, such as `pretraining`. The evaluation says where workloads differ in it.",
    "unit": "What a step counts, in the plural: `samples`, `images` or `sequences`.",
    "stack": "The stack that the workload is installed with where `stack_name` is not given: `<name>` of "
    "`playbooks/vars/stack_<name>.yml`.",
    "processes_per_node": "How many processes of the node script start on a node: a number, or `gpus`, one "
    "for each device. `{setting: {value: number}}` where a setting, such as the launcher, decides "
    "(`roles/horovod_tf1_bert`).",
    "models": "The model that a case has where `model` is not given, for each device: "
    "`{cpu: tiny, gpu: base}`.",
    "model_names": "All models: the allowed values of `model`.",
    "dtypes": "The values of `dtype` that run on each device: `{cpu: [fp32], gpu: [fp32, fp16]}`. With "
    "`force=true` a case may also have one of the other device.",
    "xla": "The allowed values of `xla`: `[false]`, `[false, true]`, or `[true]` where the model is always "
    "compiled.",
    "settings": "The settings: names of variables of the role. Two runs that differ in one of them are "
    "different cases. Their types are those of `meta/argument_specs.yml`. Elsewhere in the declaration and "
    "in results, a setting has the name of the variable without the role's prefix.",
    "provenance": "The name of the variable that says where the software and the data are, for role "
    "`stack_check`: a dictionary with options of module `stack_check_info`, and with `notes`, further "
    "entries of the provenance.",
    "log": "How the lines of steps are read: see [log](#log).",
    "sanity": "The list of what a log must show, or the run does not count: see [sanity](#sanity).",
}
"""The keys that every declaration has, and what each is: docs/reference/workload.md is made from it."""

OPTIONAL = {
    "source": "Where the model or the trainer is from, for the evaluation.",
    "features": "The list of what the trainer adds to the framework, such as `Horovod`, for the evaluation. "
    "A note `features` of the provenance adds what a node had.",
    "compiler": "The name of what `xla=true` switches on, such as `torch.compile`.",
    "dtype_hints": "Why a dtype does not run on a device, `{cpu: {fp16: reason}}`: the reason of skipped "
    "cases.",
    "bsz": "The batch per device where `bsz` is not given, for each device: `{cpu: 16, gpu: 64}`. "
    "Default is 32.",
    "accumulation": "The value of `accumulation` where it is not given. Left out where the trainer "
    "accumulates no gradients: only 1 is allowed then.",
    "warmup": "The steps before the window where `warmup` is not given. Required with `window`, unless "
    "there is `epoch`.",
    "window": "The steps of the window where `window` is not given.",
    "epoch": "In place of `warmup` and `window` where the window is the last epoch: `epochs` and `samples`, "
    "the names of the variables with the number of epochs and the samples of one (`roles/hf_mlm`).",
    "settings_before": "`{setting: value}`: what a setting that was added later would have been before, so "
    "that earlier campaigns can be baselines.",
    "xla_settings": "The settings that only count with one value of `xla`, and the value that all other "
    'cases have: `{"true": {compile_mode: default}}`. A campaign without that `xla` refuses another value.',
    "size": "How large a sample is, the tokens of a sequence or the width and height of an image: a "
    "number, or the name of the setting that has it. Reports compare samples of one size.",
    "downloads": "`false` where the role downloads nothing, and so has no `tasks/mirror.yml`. Default is "
    "`true`.",
    "drives_all_devices": "`true` where one process of a node trains on all its devices "
    "(`roles/tf2_bert`). The report then counts busy processors per process, not per device.",
    "reserves_gpu_memory": "`true` where the framework reserves the memory of a GPU when it starts, as "
    "TensorFlow does. How much is in use then does not tell the report whether a larger batch fits.",
    "oom": "Texts by which a trainer of its own says that memory ran out. Those of frameworks, CUDA and the "
    "system are known for all workloads: `module_utils/scalebook/failure_causes.py`.",
    "failures": "The list of what a log tells of why its run failed, besides what is known for all "
    "workloads: see [failures](#failures).",
    "refuses": "The list of cases that cannot run, which are skipped: see [refuses](#refuses).",
    "slower": "What to look at where several GPUs are slower than one: a hint of the report.",
    "self_reported": "The line with the trainer's own results, which the report shows as a table: see "
    "[self_reported](#self_reported).",
    "latency": "`true`: the report shows the milliseconds of a step beside the rate.",
    "flops": "The operations of a sample, from which the report computes TFLOP/s and MFU: see "
    "[flops](#flops).",
    "dlperf": "What DLPerf published of the same model, for comparison: see [dlperf](#dlperf).",
}
"""The keys that a declaration may have; see REQUIRED."""

DLPERF = {"frameworks": list, "models": dict, "others": list, "differs": str, "settings": dict}
"""The fields of `dlperf` and their types; docs/reference/workload.md describes them."""


class WorkloadError(ValueError):
    """A workload declaration that cannot be used; the message names its key."""


def load_workloads(roles_paths: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the declarations of all workloads below `roles_paths`, by name.

    As for Ansible, a role in an earlier path hides one of the same name in a later path. Each
    declaration gets `name`, `path` (directory of the role), `setting_types`, the type that the
    role's argument_specs give to each variable that `resolve` needs, `setting_defaults`, its default unless
    that is a template, and `own_environment`, the variable that names an environment of the user's own, ""
    where the role takes none. Raises WorkloadError.
    """
    workloads: dict[str, dict[str, Any]] = {}
    for roles_path in roles_paths:
        for file in sorted(Path(roles_path).glob(f"*/{FILE}")):
            role = file.parents[1]
            workloads.setdefault(role.name, _load(role))
    return workloads


def variables(declaration: Mapping[str, Any]) -> list[str]:
    """Return the names of the role variables that `resolve` needs the values of."""
    return [*declaration["settings"], *(declaration.get("epoch") or {}).values()]


def resolve(declaration: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a loaded declaration with the values of its variables put in.

    `settings` becomes `{name without the role's prefix: value}`, and of an epoch-based workload
    `epoch` becomes `epochs` and `epoch_samples`. `values` holds the variables by name. Raises
    WorkloadError that names the variable and its value.
    """
    resolved = copy.deepcopy(dict(declaration))
    prefix = f"{declaration['name']}_"
    resolved["settings"] = {
        name.removeprefix(prefix): _value(declaration, name, values) for name in declaration["settings"]
    }
    epoch = resolved.pop("epoch", None)
    if epoch:
        resolved["epochs"] = _value(declaration, epoch["epochs"], values)
        resolved["epoch_samples"] = _value(declaration, epoch["samples"], values)
    return resolved


def refusal(declaration: Mapping[str, Any], case: Case, simulated: bool = False) -> str | None:
    """Return why the case cannot run by the key `refuses` of its workload's declaration, else None.

    Each entry has `when`, a formula as in `flops` that is not zero for a case that is refused, and `why`.
    Both can name settings, sizes of the model, and `model`, `nodes`, `gpus`, `device`, `dtype`, `warmup`,
    `window`, `xla` and `simulated` (0 or 1: nodes of the case share a machine).
    """
    names = _names(declaration, case, simulated)
    for rule in declaration.get("refuses", ()):
        if flops.evaluate(rule["when"], names):
            return str(rule["why"]).format_map(names)
    return None


def _names(declaration: Mapping[str, Any], case: Case, simulated: bool) -> dict[str, Any]:
    sizes = declaration.get("flops", {}).get("models", {}).get(case["model"], {})
    own = {name: case[name] for name in ("model", "nodes", "gpus", "device", "dtype", "warmup", "window")}
    return {**sizes, **case["settings"], **own, "xla": int(case["xla"]), "simulated": int(simulated)}


def settings_of(declaration: Mapping[str, Any], settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of a case, also those that did not exist when it was measured.

    The key `settings_before` of a declaration has the value that each such setting would have had then.
    """
    return {**declaration.get("settings_before", {}), **(settings or {})}


def idle_settings(declaration: Mapping[str, Any], xla: bool) -> dict[str, Any]:
    """Return the settings that have no effect in a case by the key `xla_settings`, and their values in it."""
    return dict(declaration.get("xla_settings", {}).get("false" if xla else "true", {}))


def sample_size(declaration: Mapping[str, Any], settings: Mapping[str, Any]) -> int | None:
    """Return how large a sample is: the tokens of a sequence, or the pixels of a side of an image.

    The key `size` of the declaration has it, as a number or as the name of a setting.  None where neither the
    declaration nor the settings, which logs that were imported lack, tell it.
    """
    size = declaration.get("size")
    return settings.get(size) if isinstance(size, str) else size


def size_name(unit: str) -> str:
    """Return what people call the size of a sample that is counted in `unit`."""
    return "image size" if unit == "images" else "sequence length"


def coerce(kind: str, value: Any) -> Any:
    """Return `value` as Ansible's type `kind` has it; -e gives text. Raises ValueError."""
    text = str(value).strip()
    if kind == "bool":
        known = {"true": True, "yes": True, "on": True, "1": True}
        known.update({"false": False, "no": False, "off": False, "0": False})
        if text.lower() not in known:
            raise ValueError("allowed are true and false")
        return known[text.lower()]
    if kind == "int":
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError("it must be a whole number")
        try:
            return int(value) if isinstance(value, float) else int(text)
        except ValueError:
            raise ValueError("it must be a whole number") from None
    if kind == "float":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if isinstance(value, bool) or not math.isfinite(number):
            raise ValueError("it must be a number")
        return number
    if kind == "str":
        return "" if value is None else str(value)
    return value


def _value(declaration: Mapping[str, Any], name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise WorkloadError(f"{declaration['name']}: the variable {name} is not set")
    try:
        return coerce(declaration["setting_types"][name], values[name])
    except ValueError as error:
        raise WorkloadError(f"{name}={values[name]}: {error}") from None


def _load(role: Path) -> dict[str, Any]:
    file = role / FILE
    declaration = _read(file)
    known = {**REQUIRED, **OPTIONAL}
    missing = sorted(set(REQUIRED) - set(declaration))
    unknown = sorted(set(declaration) - set(known))
    if missing:
        raise WorkloadError(f"{file}: the key {missing[0]} is missing")
    if unknown:
        raise WorkloadError(f"{file}: unknown key {unknown[0]!r}; allowed are {', '.join(sorted(known))}")
    if ("epoch" in declaration) == ("window" in declaration and "warmup" in declaration):
        raise WorkloadError(f"{file}: give either warmup and window, or epoch")
    if "epoch" in declaration and set(declaration["epoch"]) != {"epochs", "samples"}:
        raise WorkloadError(f"{file}: epoch: give epochs and samples, names of variables of the role")
    _check_dlperf(file, declaration)
    for key in ("latency", "drives_all_devices", "reserves_gpu_memory"):
        if not isinstance(declaration.get(key, False), bool):
            raise WorkloadError(f"{file}: {key}: {declaration[key]!r} is not true or false")
    types: dict[str, str] = {}
    own = ""
    specs = _read(role / "meta/argument_specs.yml").get("argument_specs") or {}
    for spec in specs.values():
        for name, option in (spec.get("options") or {}).items():
            types[name] = str(option.get("type", "str"))
            # Without one the role makes its own; other roles have a variable for where that is.
            if name in (f"{role.name}_python", f"{role.name}_venv") and option.get("default") == "":
                own = name
    for name in variables(declaration):
        if not str(name).startswith(f"{role.name}_"):
            raise WorkloadError(f"{file}: {name}: a setting is a variable of the role {role.name}")
        if name not in types:
            raise WorkloadError(f"{file}: {name}: meta/argument_specs.yml has no such variable")
    if "flops" in declaration:
        try:
            names = [str(name).removeprefix(f"{role.name}_") for name in declaration["settings"]]
            flops.check(declaration["flops"], declaration["model_names"], names)
        except flops.FlopsError as error:
            raise WorkloadError(f"{file}: flops: {error}") from None
    _check_size(file, declaration, role.name)
    for setting in declaration.get("settings_before", {}):
        if f"{role.name}_{setting}" not in declaration["settings"]:
            raise WorkloadError(f"{file}: settings_before: {setting} is not a setting")
    for xla, values in declaration.get("xla_settings", {}).items():
        if xla not in ("true", "false"):
            raise WorkloadError(f'{file}: xla_settings: {xla!r} is neither "true" nor "false"')
        for setting in values:
            if f"{role.name}_{setting}" not in declaration["settings"]:
                raise WorkloadError(f"{file}: xla_settings: {setting} is not a setting")
    _check_refuses(file, declaration, role.name)
    return {
        **declaration,
        "name": role.name,
        "path": str(role),
        "own_environment": own,
        "setting_types": {name: types[name] for name in variables(declaration)},
        "setting_defaults": _defaults(role, variables(declaration)),
    }


def _defaults(role: Path, names: Iterable[str]) -> dict[str, Any]:
    """Return the defaults of variables of a role, without those that are templates."""
    file = role / "defaults/main.yml"
    values = _read(file) if file.is_file() else {}
    return {name: values[name] for name in names if name in values and "{{" not in str(values[name])}


def _check_dlperf(file: Path, declaration: Mapping[str, Any]) -> None:
    """Raise WorkloadError for a `dlperf` that names nothing to compare with."""
    names = declaration.get("dlperf", {"frameworks": [], "models": {}})
    needed = {"frameworks", "models"}
    if not isinstance(names, Mapping) or not needed <= set(names) <= set(DLPERF):
        raise WorkloadError(
            f"{file}: dlperf: give frameworks and models, and others, differs and settings if needed"
        )
    for name, value in names.items():
        if not isinstance(value, DLPERF[name]):
            raise WorkloadError(f"{file}: dlperf: {name} must be a {DLPERF[name].__name__}")
    for setting, values in names.get("settings", {}).items():
        if f"{file.parents[1].name}_{setting}" not in declaration["settings"]:
            raise WorkloadError(f"{file}: dlperf: settings: {setting} is not a setting")
        unknown = sorted({field for fields in values.values() for field in fields} - set(DLPERF))
        if unknown:
            raise WorkloadError(f"{file}: dlperf: settings: {setting}: unknown field {unknown[0]!r}")


def _check_size(file: Path, declaration: Mapping[str, Any], role: str) -> None:
    """Raise WorkloadError for a `size` that is neither a setting nor a number."""
    size = declaration.get("size", 1)
    number = isinstance(size, int) and not isinstance(size, bool) and size > 0
    if not number and f"{role}_{size}" not in declaration["settings"]:
        raise WorkloadError(f"{file}: size: {size!r} is neither a setting nor a whole number above 0")


def _check_refuses(file: Path, declaration: Mapping[str, Any], role: str) -> None:
    """Raise WorkloadError for an entry of `refuses` that some case could not be judged by."""
    settings = {str(name).removeprefix(f"{role}_"): 1 for name in declaration["settings"]}
    for rule in declaration.get("refuses", ()):
        if not isinstance(rule, Mapping) or set(rule) != {"when", "why"}:
            raise WorkloadError(f"{file}: refuses: give exactly the keys when and why")
        for model in declaration["model_names"]:
            case: Case = {
                "model": model,
                "settings": settings,
                "nodes": 1,
                "gpus": 1,
                "warmup": 1,
                "window": 1,
            }
            case |= {"device": "cpu", "dtype": "fp32", "xla": False}
            names = _names(declaration, case, simulated=False)
            try:
                flops.evaluate(rule["when"], names)
                str(rule["why"]).format_map(names)
            except (KeyError, ValueError) as error:
                raise WorkloadError(f"{file}: refuses: {rule['when']}, model {model}: {error}") from None


def _read(file: Path) -> dict[str, Any]:
    """Return the dict that a YAML file holds."""
    try:
        content = read_yaml(file)
    except ValueError as error:
        raise WorkloadError(str(error)) from None
    if not isinstance(content, dict):
        raise WorkloadError(f"{file}: must hold a dict")
    return content
