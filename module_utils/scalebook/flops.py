# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The floating point operations of a sample, from the formula that a workload declares (`flops`).

    flops:
      sample: 3 * 2 * (blocks * (size / 224) ** 2 + 2048 * classes)
      source: where the formula comes from
      models: {resnet50: {blocks: 4087136256}}
      tf32: true

`{model: resnet50, tf32: true}` takes formula, source and sizes from data/models.yml. The names of a formula
are the sizes of the case's model and the settings of the workload without its prefix. `tf32` says whether
fp32 products may use the tensor cores of a GPU: true, false or the name of a setting.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.scalebook.contracts import Case, Row

_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_HIGHEST_POWER = 4
_NAME = re.compile(r"[A-Za-z_]\w*")


class FlopsError(ValueError):
    """A formula that cannot be used, or a case that lacks one of its names; the message says which."""


class UnknownNameError(FlopsError):
    """A name of the formula that the case does not have."""

    def __init__(self, name: str) -> None:
        """Keep the name."""
        super().__init__(f"the case has no {name}")
        self.name = name


@dataclass(frozen=True)
class Flops:
    """The key `flops` of a declaration."""

    sample: str
    source: str
    models: Mapping[str, Mapping[str, Any]]
    tf32: bool | str


def of_model(
    declared: Mapping[str, Any], models: Mapping[str, Any], model_names: Sequence[str]
) -> dict[str, Any]:
    """Return the key `flops` of a declaration that names a model, with what `models` has of it.

    Its `with` are settings or numbers in place of names of the formula, its `models` sizes that differ.
    Raises FlopsError.
    """
    own = dict(declared)
    model, replaced, sizes = own.pop("model"), own.pop("with", {}), own.pop("models", {})
    if not isinstance(model, str) or model not in models:
        raise FlopsError(f"model: {model!r}; data/models.yml has {', '.join(models)}")
    parts = (replaced, sizes, *(sizes.values() if isinstance(sizes, Mapping) else ()))
    if not all(isinstance(part, Mapping) for part in parts):
        raise FlopsError("with and the sizes of models must be dicts")
    shared = models[model]
    unknown = set(replaced) - set(_NAME.findall(shared["sample"]))
    if unknown:
        raise FlopsError(f"with: the formula of {model} has no {min(unknown)}")
    names = [*(name for name in shared["models"] if name in model_names), *sizes]
    return {
        "sample": _NAME.sub(lambda name: str(replaced.get(name[0], name[0])), shared["sample"]),
        "source": shared["source"],
        "models": {name: {**shared["models"].get(name, {}), **sizes.get(name, {})} for name in names},
        **own,
    }


def check(declared: Flops, model_names: Sequence[str], settings: Sequence[str]) -> None:
    """Raise FlopsError unless the operations of every model can be computed.

    `settings` are the names of the workload's settings without its prefix.
    """
    unknown = sorted(set(declared.models) - set(model_names))
    if unknown:
        raise FlopsError(f"models: {unknown[0]} is not in model_names")
    for model, sizes in declared.models.items():
        try:
            evaluate(declared.sample, {**dict.fromkeys(settings, 1), **sizes})
        except FlopsError as error:
            raise FlopsError(f"sample, model {model}: {error}") from None
    if not isinstance(declared.tf32, bool) and declared.tf32 not in settings:
        raise FlopsError(f"tf32: {declared.tf32!r} is not true, false or a setting")


def of_case(declared: Flops, case: Case | Row) -> float:
    """Return the operations of one sample of a case, forward and backward; raise FlopsError."""
    sizes = declared.models.get(case["model"])
    if sizes is None:
        raise FlopsError(f"the workload declares no sizes of the model {case['model']}")
    value = evaluate(declared.sample, {**(case.get("settings") or {}), **sizes})
    if value <= 0:
        raise FlopsError(f"the formula gives {value:g}")
    return value


def tensor_cores(declared: Flops, case: Case | Row) -> bool:
    """Return whether products in fp32 use the tensor cores of a GPU (TF32) in a case."""
    tf32 = declared.tf32
    return tf32 if isinstance(tf32, bool) else bool((case.get("settings") or {}).get(tf32))


def evaluate(formula: Any, names: Mapping[str, Any]) -> float:
    """Return the value of `formula`: numbers, names, + - * / // % ** and parentheses, nothing else.

    `(name == 'text')` is 1 where the value of a name, as text, is this one, else 0.
    """
    try:
        return float(_value(ast.parse(str(formula), mode="eval").body, names))
    except SyntaxError:
        raise FlopsError(f"{formula!r} is not a formula") from None
    except (ZeroDivisionError, OverflowError) as error:
        raise FlopsError(str(error)) from None


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    value: Any
    if isinstance(node, ast.Constant):
        value = node.value
    elif isinstance(node, ast.Name):
        if node.id not in names:
            raise UnknownNameError(node.id)
        value = names[node.id]
    elif isinstance(node, ast.Compare):
        value = _equal(node, names)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        first, right = _value(node.left, names), _value(node.right, names)
        if isinstance(node.op, ast.Pow) and not 0 <= right <= _HIGHEST_POWER:
            raise FlopsError(f"a power of {right}; allowed are 0 to {_HIGHEST_POWER}")
        return _OPERATORS[type(node.op)](first, right)
    else:
        raise FlopsError(f"{ast.unparse(node)!r} is neither a number, a name nor arithmetic of them")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FlopsError(f"{ast.unparse(node)} is {value!r}, not a number")
    return value


def _equal(node: ast.Compare, names: Mapping[str, Any]) -> int:
    """Return 1 where `name == 'text'` is true, else 0."""
    first, right = node.left, node.comparators[0]
    text = isinstance(right, ast.Constant) and isinstance(right.value, str)
    if (
        len(node.ops) > 1
        or not isinstance(node.ops[0], ast.Eq)
        or not isinstance(first, ast.Name)
        or not text
    ):
        raise FlopsError(f"{ast.unparse(node)!r} does not compare a name with a text for equality")
    if first.id not in names:
        raise UnknownNameError(first.id)
    return int(str(names[first.id]) == ast.literal_eval(right))
