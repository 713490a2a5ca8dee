# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Plans and measured cases -> the commands that measure the same again."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import BatchSearch, Case, Command, Plan, Results
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads, called_today

LEFT_OUT = (
    "plan_only",
    *("campaign", "baseline", "max_regression", "min_utilisation", "compare", "report_language"),
)
"""Parameters that do not change what is measured; with the same `campaign` nothing would be measured."""
OF_CASES = (
    *("workload", "model", "dtype", "xla", "bsz", "bsz_max_runs", "nodes", "gpus", "topology"),
    *("repeats", "accumulation", "warmup", "window", "device"),
)
"""Parameters whose values the measured cases have."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TEMPLATE = re.compile(r"\{[{%#]")
_TOPOLOGY = re.compile(r"(\d+)n(\d+)g")

Texts = dict[str, str]


class Measured(NamedTuple):
    """A measured case, or a row with its fields: how many runs it has, and the commands that made them."""

    case: Mapping[str, Any]
    runs: int
    commands: Sequence[str] = ()


class _Matrix(NamedTuple):
    """Cases that one command measures: all combinations of the values of `axes`.

    `around` are the texts that the cases do not decide, `fixed` the parameters that they share, `variables`
    those of their workloads.  A model is '' where it is the one of `usual_model`, which cases have where no
    model is given.
    """

    inventory: str
    around: Texts
    axes: dict[str, list[Any]]
    fixed: Texts
    variables: Texts
    cases: list[str]
    usual_model: str


def command(plan: Plan, playbook: str = "bench.yml") -> str:
    """Return the command that a plan was made with, '' for an import.

    The variables of workloads are those that were given with -e.  The plan of an earlier version does not
    have them: the settings that all cases of a workload share are used.
    """
    parameters = plan.get("parameters")
    if not isinstance(parameters, Mapping) or not parameters:
        return ""
    variables = plan["variables"] if "variables" in plan else _agreed(plan.get("cases") or [])
    values = {
        name: value for name, value in parameters.items() if name not in LEFT_OUT and value is not False
    }
    if "max" not in _text(parameters.get("bsz")):
        values.pop("bsz_max_runs", None)
    texts = {name: _text(value) for name, value in {**values, **variables}.items()}
    return _line(clean(plan.get("inventory") or ""), texts, playbook)


def commands(plan: Plan, measured: Iterable[Measured], declared: Workloads | None = None) -> list[Command]:
    """Return the commands that measure these cases again, each with as many runs, and nothing else.

    The values are those of the cases; what these do not decide, such as the inventory and the stack, is that
    of the commands of their records, else of the plan.  `declared` are the declarations of workloads by name:
    a setting that has the default of its role is left out.  A search for the largest batch has a command of
    its own, without cases.  An import has none, nor has a plan whose runs do not say how they were made.
    """
    measured = [each for each in measured if each.runs]
    if plan.get("source") or not (plan.get("parameters") or any(each.commands for each in measured)):
        return []
    matrices = _distinct([_matrix(plan, each, declared or {}) for each in measured])
    for axis in ("topology", "bsz", "dtype", "xla", "model"):
        matrices = _joined(matrices, axis)
    matrices = _joined([_with_usual_model(each) for each in matrices], "workload")
    searched = [_searched(plan, search, measured, declared or {}) for search in plan.get("searches") or ()]
    printed = [Command(command=_of_matrix(each), cases=each.cases) for each in [*matrices, *searched]]
    return [each for index, each in enumerate(printed) if each not in printed[:index]]


def of_results(results: Results, declared: Workloads | None = None) -> list[Command]:
    """Return the commands of a results.json, also of one that was written before it had them."""
    if "commands" in results:
        return results["commands"]
    missing = Counter(run["case"] for run in results.get("uncounted") or () if run["status"] == "missing")
    measured = [
        Measured({**row, "name": row["case"]}, row["planned"] - missing[row["case"]])
        for row in results["rows"]
    ]
    return commands(results.get("plan") or {}, measured, declared)


def _matrix(plan: Plan, measured: Measured, declared: Workloads) -> _Matrix:
    """Return the matrix of a single case."""
    case = measured.case
    workload, settings = called_today(case["workload"], case.get("settings"), declared)
    declaration = declared.get(workload, UNKNOWN)
    own = {f"{workload}_{name}": value for name, value in settings.items()}
    usual = declaration.setting_defaults
    variables = {**own, **_epoch(case, declaration)}
    inventory, around, parameters = _around(plan, measured, workload, declaration)
    usual_model = declaration.models.get(str(case.get("device") or ""), "")
    return _Matrix(
        inventory=inventory,
        around=around,
        axes={
            "workload": [workload],
            "model": ["" if case["model"] == usual_model else case["model"]],
            **{axis: [case[axis]] for axis in ("dtype", "xla", "bsz")},
            "topology": [f"{case['nodes']}n{case['gpus']}g"],
        },
        fixed={"repeats": str(measured.runs), **_unusual(case, declaration)},
        variables={name: text for name, text in parameters.items() if name not in variables}
        | {
            name: _text(value)
            for name, value in variables.items()
            if name not in usual or (value != usual[name] and _text(value) != _text(usual[name]))
        },
        cases=[str(case["name"])],
        usual_model=usual_model,
    )


def _with_usual_model(matrix: _Matrix) -> _Matrix:
    """Return the matrix with its usual model by name where there are others."""
    models = matrix.axes["model"]
    if len(models) == 1:
        return matrix
    return matrix._replace(axes={**matrix.axes, "model": [each or matrix.usual_model for each in models]})


def _epoch(values: Mapping[str, Any], declaration: Workload) -> dict[str, Any]:
    """Return the variables that make the window of a case an epoch."""
    names = declaration.epoch
    if not names or not values.get("epoch_samples"):
        return {}
    samples = {names["samples"]: values["epoch_samples"]}
    # A row does not have the steps.
    return samples | (
        {names["epochs"]: values["warmup"] // values["window"] + 1} if values.get("window") else {}
    )


def _unusual(values: Mapping[str, Any], declaration: Workload) -> Texts:
    """Return the parameters of a case that are not those of a case of its workload where none is given."""
    device = str(values.get("device") or "")
    has_window = declaration.name and not declaration.epoch
    steps = (declaration.warmup, declaration.window) if has_window else (None, None)
    usual = {
        "accumulation": declaration.accumulation or 1,
        # The steps of an epoch cannot be given.
        **({} if values.get("epoch_samples") else {"warmup": steps[0], "window": steps[1]}),
    }
    texts = {name: _text(values.get(name)) for name in usual if values.get(name) != usual[name]}
    return {**texts, "device": device}


def _around(plan: Plan, measured: Measured, workload: str, declaration: Workload) -> tuple[str, Texts, Texts]:
    """Return the inventory, the parameters and the variables of its workload that a case does not decide.

    They are those of the command that made most of its runs, else of the plan, as they are called today.
    """
    if measured.commands:
        inventory, parameters = _read(Counter(measured.commands).most_common(1)[0][0])
    else:
        values = {**(plan.get("parameters") or {}), **(plan.get("variables") or {})}
        inventory = clean(plan.get("inventory") or "")
        parameters = {name: _text(value) for name, value in values.items() if value is not False}
    before = str(measured.case["workload"])
    others = [f"{name}_" for name in parameters.get("workload", "").split(",") if name and name != before]
    no_longer = {f"{before}_{name}" for name in (declaration.was.settings if declaration.was else ())}
    parameters = {
        f"{workload}{name.removeprefix(before)}" if name.startswith(f"{before}_") else name: text
        for name, text in parameters.items()
        if name not in no_longer
    }
    rest = {
        name: text
        for name, text in parameters.items()
        if name not in LEFT_OUT + OF_CASES
        and (name.startswith(f"{workload}_") or not name.startswith(tuple(others)))
    }
    own = {name for name in rest if name.startswith(f"{workload}_")}
    return (
        inventory,
        {name: text for name, text in rest.items() if name not in own},
        {name: text for name, text in rest.items() if name in own},
    )


def _read(text: str) -> tuple[str, Texts]:
    """Return the inventory and the variables of a command as `command` writes it; none of another text."""
    try:
        words = shlex.split(text)
        options = dict(zip(words, words[1:], strict=False))
        pairs = [word.partition("=") for word in shlex.split(options.get("-e", ""))]
    except ValueError:
        return "", {}
    return options.get("-i", ""), {name: value for name, equals, value in pairs if equals}


def _distinct(matrices: Iterable[_Matrix]) -> list[_Matrix]:
    """Return the matrices, one for each case: it had another name before its workload got a setting."""
    matrix_of: dict[str, _Matrix] = {}
    for each in matrices:
        key = repr(each._replace(fixed={**each.fixed, "repeats": ""}, cases=[]))
        first = matrix_of.setdefault(key, each._replace(fixed={**each.fixed, "repeats": "0"}, cases=[]))
        first.fixed["repeats"] = str(int(first.fixed["repeats"]) + int(each.fixed["repeats"]))
        first.cases.extend(each.cases)
    return list(matrix_of.values())


def _joined(matrices: Sequence[_Matrix], axis: str) -> list[_Matrix]:
    """Return the matrices, those that differ in the values of one axis alone as one.

    Workloads have variables of their own, so these may differ along that axis.
    """
    joined: dict[str, _Matrix] = {}
    for each in matrices:
        same: list[Any] = [{**each.axes, axis: ()}, each.inventory, each.around, each.fixed]
        key = repr(same if axis == "workload" else [*same, each.variables])
        # Of one workload with several variables, each matrix joins those of other workloads once.
        while key in joined and set(each.axes[axis]) & set(joined[key].axes[axis]):
            key += "'"
        first = joined.setdefault(key, each._replace(axes={**each.axes, axis: []}, variables={}, cases=[]))
        first.axes[axis].extend(each.axes[axis])
        first.cases.extend(each.cases)
        first.variables.update(each.variables)
    return list(joined.values())


def _searched(plan: Plan, search: BatchSearch, measured: Iterable[Measured], declared: Workloads) -> _Matrix:
    """Return the matrix of a search for the largest batch, around it what measured its workload."""
    case = {**search, "name": "", "bsz": "max", "nodes": 0, "gpus": 0}
    searches = [
        text for each in measured if each.case["workload"] == search["workload"] for text in each.commands
    ]
    one = _matrix(plan, Measured(case, 1, searches), declared)
    limit = {"bsz_max_runs": str(search["limit"])}
    axes = {**one.axes, "topology": list(search["points"])}
    return one._replace(axes=axes, fixed={**one.fixed, **limit}, cases=[])


def _of_matrix(matrix: _Matrix) -> str:
    axes = {**matrix.axes, "bsz": sorted(matrix.axes["bsz"])}
    texts = {name: _text(values) for name, values in axes.items() if name not in ("topology", "model")}
    texts |= _places(matrix.axes["topology"])
    texts |= {"repeats": matrix.fixed["repeats"], "model": _text(matrix.axes["model"])}
    return _line(matrix.inventory, {**texts, **matrix.fixed, **matrix.around, **matrix.variables})


def _places(labels: Sequence[str]) -> Texts:
    """Return the topologies as nodes and gpus where these give exactly them."""
    pairs = [tuple(map(int, match.groups())) for label in labels if (match := _TOPOLOGY.fullmatch(label))]
    nodes, gpus = (sorted({pair[index] for pair in pairs}) for index in (0, 1))
    if len(nodes) * len(gpus) != len(labels):
        return {"topology": ",".join(labels)}
    return {"nodes": _text(nodes), "gpus": _text(gpus)}


def _line(inventory: str, texts: Mapping[str, str], playbook: str = "bench.yml") -> str:
    """Return the command line; what Ansible would take for a template, or has no name, is left out."""
    plain_values = {name: text for name, text in texts.items() if text and not _TEMPLATE.search(text)}
    words = " ".join(
        f"{name}={shlex.quote(text)}" for name, text in plain_values.items() if _NAME.fullmatch(name)
    )
    place = f" -i {shlex.quote(inventory)}" if inventory and not _TEMPLATE.search(inventory) else ""
    return f"ansible-playbook{place} {playbook} -e {_quoted(words)}"


def _agreed(cases: list[Case]) -> dict[str, Any]:
    """Return the settings of cases by the names of their variables, without those that differ."""
    values_by_name: dict[str, list[Any]] = {}
    for case in cases:
        for name, value in (case.get("settings") or {}).items():
            values_by_name.setdefault(f"{case['workload']}_{name}", []).append(value)
    return {
        name: values[0]
        for name, values in values_by_name.items()
        if all(each == values[0] for each in values)
    }


def _text(value: Any) -> str:
    """Return a value as the command line takes it, '' for one that is not set."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(each) for each in value)
    return "" if value is None else clean(value)


def _quoted(text: str) -> str:
    """Return `text` as one word of a shell; in double quotes, as the documents write it, where these do."""
    return f'"{text}"' if not set(text) & set('"$`\\!') else shlex.quote(text)
