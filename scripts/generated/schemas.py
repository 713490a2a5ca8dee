# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/*.schema.json: JSON schemas of the files of a campaign, from its contracts."""

from __future__ import annotations

import json
import types
import typing
from typing import Any

from ansible.module_utils.scalebook import contracts
from ansible.module_utils.scalebook.accept.contracts import Acceptance
from ansible.module_utils.scalebook.evaluate.document import Evaluation
from ansible.module_utils.scalebook.preflight.judge import Preflight

PUBLISHED = {
    "plan.json": (contracts.Plan, "plan.schema.json"),
    "result.json": (contracts.Record, "result.schema.json"),
    "results.json": (contracts.Results, "results.schema.json"),
    "microbench.json": (contracts.Microbench, "microbench.schema.json"),
    "acceptance.json": (Acceptance, "acceptance.schema.json"),
    "evaluation.json": (Evaluation, "evaluation.schema.json"),
    "preflight.json": (Preflight, "preflight.schema.json"),
}
"""The published files: each with the object that it holds, and its schema."""

SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def json_schema(contract: Any, title: str) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a TypedDict; keys of other TypedDicts are written out.

    Keys are optional, since a skipped run has no nodes and an import no inventory; unknown ones are
    refused.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **_schema_of(contract),
    }


def _schema_of(kind: Any) -> dict[str, Any]:
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    if origin is tuple or (isinstance(kind, type) and issubclass(kind, tuple)):
        parts = arguments or typing.get_type_hints(kind).values()
        return {"type": "array", "prefixItems": [_schema_of(part) for part in parts]}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema_of(argument) for argument in arguments]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema_of(each) for name, each in typing.get_type_hints(kind).items()},
        "additionalProperties": False,
    }
    if kind.__doc__:
        schema["description"] = " ".join(kind.__doc__.split())
    if kind.__required_keys__:
        schema["required"] = sorted(kind.__required_keys__)
    return schema


def files() -> dict[str, str]:
    """Return the schemas."""
    return {
        f"docs/reference/{schema}": json.dumps(json_schema(contract, file), indent=1) + "\n"
        for file, (contract, schema) in PUBLISHED.items()
    }
