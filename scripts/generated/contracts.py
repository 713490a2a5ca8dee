# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/files.md: the JSON files of a campaign, from module_utils/scalebook/contracts.py."""

from __future__ import annotations

import types
import typing
from typing import Any

from ansible.module_utils.scalebook import contracts

from generated.schemas import PUBLISHED
from generated.text import table

WORDS = {str: "text", int: "integer", float: "number", bool: "boolean", type(None): "null", Any: "anything"}


def _name(kind: Any) -> str:
    """Return a type in words: `list of Run`, `number or null`."""
    if kind in WORDS:
        return WORDS[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return f"list of {_name(arguments[0])}"
    if origin is dict:
        return f"object of {_name(arguments[1])}"
    if origin is tuple or (isinstance(kind, type) and issubclass(kind, tuple)):
        parts = arguments or typing.get_type_hints(kind).values()
        return f"list of ({', '.join(map(_name, parts))})"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_name(argument) for argument in arguments)
    return f"[{kind.__name__}](#{kind.__name__.lower()})"


def _parts(kind: Any) -> list[Any]:
    """Return the objects that a type is made of."""
    if typing.is_typeddict(kind):
        return [kind]
    return [part for argument in typing.get_args(kind) for part in _parts(argument)]


def _objects() -> list[Any]:
    """Return the objects of all published files, each once, in the order in which they are met."""
    waiting = [contract for contract, _ in PUBLISHED.values()]
    kinds: list[Any] = []
    while waiting:
        kind = waiting.pop(0)
        if kind not in kinds:
            kinds.append(kind)
            waiting += [part for field in typing.get_type_hints(kind).values() for part in _parts(field)]
    return kinds


def _description(kind: Any) -> str:
    """Return the docstring of an object as Markdown."""
    paragraphs = (kind.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs) + "\n"


def files() -> dict[str, str]:
    """Return the page."""
    parts = [
        "# Files of a campaign\n",
        "Made by `scripts/pages` from `module_utils/scalebook/contracts.py`. Times are in seconds, rates in "
        "samples (or the workload's unit) per second over all devices.\n",
        table(
            ("file", "object", "JSON schema"),
            [
                (f"`{file}`", _name(contract), f"[{schema}]({schema})")
                for file, (contract, schema) in PUBLISHED.items()
            ],
        ),
        "## Fields of a case\n",
        "Cases that differ in an identity field are different cases. The node script finds a field in the "
        "environment variable; `MODEL_SIZE` is the sizes of the model, as JSON, that `flops` of the "
        "workload's declaration has.\n",
        table(
            ("field", "identity", "environment variable"),
            [
                (f"`{f.name}`", "yes" if f.identity else "no", f"`{f.variable}`" if f.variable else "")
                for f in contracts.CASE
            ],
        ),
    ]
    for kind in _objects():
        fields = typing.get_type_hints(kind)
        parts += [
            f"## {kind.__name__}\n",
            _description(kind),
            table(("field", "type"), [(f"`{name}`", _name(field)) for name, field in fields.items()]),
        ]
    return {"docs/reference/files.md": "\n".join(parts)}
