# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The values that variables of a workload may have, from its declaration (`limits`).

    limits:
      seq_length: 32 to 512
      predictions: 1 to seq_length - 3
      dropout: 0 to below 1
      learning_rate: numbers above 0
      epochs: 2 and more, as the first is warm-up
      commit: {pattern: "[0-9a-f]{40}", allowed: the 40 digits of a commit}
      images: [0 and more, {when: 1 - (data == ''), pattern: "0", allowed: 0 where data are named}]

A variable has its name without the role's prefix, also in formulas (flops.py). These may name
`accumulation`, the parameter, too. In them `+` is "or", `*` is "and".
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import flops

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_RANGE = re.compile(
    r"(?:numbers above (?P<above>[^,]+)"
    r"|(?P<low>[^,]+?)(?: and more| to (?P<below>below )?(?P<high>[^,]+)))(?:, .+)?"
)
KEYS = {"range", "pattern", "when", "allowed"}
"""The keys of a limit."""
PARAMETERS = ("accumulation",)
"""What formulas may name besides variables of the role: the beginning of names, and names."""


class LimitError(ValueError):
    """A limit that cannot be used; the message names its variable."""


class Limit(NamedTuple):
    """One limit of a variable, which counts where the formula `when` is not zero.

    Its value is within all `bounds`, pairs of a comparison and a formula, and matches the whole `pattern`.
    `allowed` says so in words; `names` are what the formulas name.
    """

    variable: str
    allowed: str
    when: str = "1"
    pattern: str = ".*"
    bounds: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()


def limits_of(declared: Mapping[str, Any], prefix: str) -> tuple[Limit, ...]:
    """Return the limits of the key `limits`; raise LimitError. `prefix` is that of the role's variables."""
    return tuple(
        _limit(variable, each if isinstance(each, Mapping) else {"range": each}, prefix)
        for variable, limits in declared.items()
        for each in (limits if isinstance(limits, (list, tuple)) else [limits])
    )


def _limit(variable: str, keys: Mapping[str, Any], prefix: str) -> Limit:
    texts = {key: str(value) for key, value in keys.items()}
    if not set(texts) <= KEYS or ("range" in texts) == ("pattern" in texts):
        raise LimitError(f"{variable}: {dict(keys)}: give range or pattern, and when and allowed if needed")
    if "pattern" in texts and "allowed" not in texts:
        raise LimitError(f"{variable}: say in `allowed` what the pattern allows")
    try:
        re.compile(texts.get("pattern", ""))
    except re.error as error:
        raise LimitError(f"{variable}: {texts['pattern']!r} is not a regular expression: {error}") from None
    bounds = _bounds(variable, texts["range"]) if "range" in texts else ()
    of_bounds = _names(variable, (formula for _, formula in bounds))
    words = rf"\b({'|'.join(of_bounds)})\b" if of_bounds else "(?!)"
    allowed = texts.get("allowed") or re.sub(words, lambda name: prefix + name[0], texts["range"])
    when = texts.get("when", "1")
    names = tuple(dict.fromkeys([*of_bounds, *_names(variable, [when])]))
    return Limit(variable, allowed, when, texts.get("pattern", ".*"), bounds, names)


def _bounds(variable: str, text: str) -> tuple[tuple[str, str], ...]:
    match = _RANGE.fullmatch(text)
    if not match:
        raise LimitError(
            f"{variable}: {text!r}; allowed are such as 1 to 512, 0 to below 1, 1 and more, numbers above 0"
        )
    upper = "<" if match["below"] else "<="
    pairs = ((">", match["above"]), (">=", match["low"]), (upper, match["high"]))
    return tuple((comparison, formula) for comparison, formula in pairs if formula)


def _names(variable: str, formulas: Iterable[str]) -> list[str]:
    """Return the names in formulas; raise LimitError for one that could not be evaluated with numbers."""
    names: list[str] = []
    for formula in formulas:
        try:
            nodes = ast.walk(ast.parse(formula, mode="eval"))
            names += [node.id for node in nodes if isinstance(node, ast.Name)]
            flops.evaluate(formula, dict.fromkeys(names, 1))
        except (SyntaxError, flops.FlopsError) as error:
            raise LimitError(f"{variable}: {formula!r} is not a formula: {error}") from None
    return names


def problems(
    limits: Iterable[Limit], prefix: str, values: Mapping[str, Any], raw: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Yield what is wrong with `values`, typed values by name without `prefix`; one text for a variable.

    A limit is left out where one of its names has no value: the caller has refused that one.  `raw` are the
    values as the user wrote them, by name with `prefix`.
    """
    texts = {**{prefix + name: value for name, value in values.items()}, **(raw or {})}
    refused: set[str] = set()
    for limit in limits:
        missing = {limit.variable, *limit.names} - values.keys()
        if limit.variable in refused or missing:
            continue
        try:
            if not flops.evaluate(limit.when, values) or _is_within(limit, values):
                continue
            why = f"allowed are {limit.allowed}"
        except flops.FlopsError as error:
            why = f"allowed are {limit.allowed}, which cannot be checked: {error}"
        refused.add(limit.variable)
        bounds = _names(limit.variable, (formula for _, formula in limit.bounds))
        names_shown = [f"{prefix}{name}" for name in (limit.variable, *bounds)]
        first, *others = (f"{name}={str(texts[name])[:40]}" for name in names_shown)
        yield f"{first}: {why}" + (f" ({', '.join(others)})" if others else "")


def _is_within(limit: Limit, names: Mapping[str, Any]) -> bool:
    value = names[limit.variable]
    return bool(re.fullmatch(limit.pattern, str(value), re.DOTALL)) and all(
        _COMPARE[comparison](value, flops.evaluate(formula, names)) for comparison, formula in limit.bounds
    )
