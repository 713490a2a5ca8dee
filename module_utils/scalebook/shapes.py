# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Data that was read -> whether it has the shape of its contract, a TypedDict of contracts.py.

What is in a file may be anything.  It is compared with its contract once, where it is read, so that nothing
behind that asks again.  Keys may be absent where the contract says so, and keys that it does not know pass:
a later version may have written them.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

Checker = Callable[[Any, str], None]
"""Raises ShapeError where a value at a place does not fit."""

NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
SHOWN = 60


class ShapeError(ValueError):
    """A value that does not fit its contract; the message has its place, the value and what is allowed."""


def check(contract: Any, value: Any, place: str = "", error: type[ValueError] | None = None) -> None:
    """Raise ShapeError where `value`, which is at `place` of its file, does not fit a contract.

    `error` is what is raised instead, with the same text.
    """
    try:
        _checker(contract)(value, place)
    except ShapeError as exc:
        if error is None:
            raise
        raise error(str(exc)) from None


@cache
def _checker(kind: Any) -> Checker:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return _anything
    if origin is list:
        return _list(arguments[0])
    if origin is dict:
        return _dict(arguments[1])
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    return _plain(kind) if kind in NAMES else _object(kind)


def _anything(value: Any, place: str) -> None:
    """Accept everything."""
    del value, place


def _plain(kind: type) -> Checker:
    allowed = {kind, int} if kind is float else {kind}

    def check_plain(value: Any, place: str) -> None:
        if type(value) not in allowed:
            raise _refused(value, place, NAMES[kind])

    return check_plain


def _list(item: Any) -> Checker:
    check_item = _checker(item)
    # The stamps of a record are hundreds of thousands of numbers.
    plain = {float, int} if item is float else {item} if item in NAMES else set()

    def check_list(value: Any, place: str) -> None:
        if type(value) is not list:
            raise _refused(value, place, "a list")
        if plain and plain.issuperset(map(type, value)):
            return
        for index, each in enumerate(value):
            check_item(each, f"{place}[{index}]")

    return check_list


def _dict(item: Any) -> Checker:
    check_item = _checker(item)

    def check_dict(value: Any, place: str) -> None:
        if type(value) is not dict:
            raise _refused(value, place, "an object")
        for key, each in value.items():
            check_item(each, _below(place, key))

    return check_dict


def _union(kinds: tuple[Any, ...]) -> Checker:
    """Return what accepts null and text where these are among the kinds, and else one other kind."""
    plain = {kind for kind in kinds if kind in (type(None), str)}
    others = [kind for kind in kinds if kind not in plain]
    check_other = _checker(others[0] if others else str)

    def check_union(value: Any, place: str) -> None:
        if type(value) not in plain:
            check_other(value, place)

    return check_union


def _object(contract: Any) -> Checker:
    fields = {name: _checker(kind) for name, kind in typing.get_type_hints(contract).items()}
    required = sorted(contract.__required_keys__)

    def check_object(value: Any, place: str) -> None:
        if type(value) is not dict:
            raise _refused(value, place, "an object")
        for name in required:
            if name not in value:
                raise ShapeError(f"{place or 'the file'} has no {name}")
        for name, each in value.items():
            if name in fields:
                fields[name](each, _below(place, name))

    return check_object


def _below(place: str, key: str) -> str:
    return f"{place}.{key[:SHOWN]}" if place else key[:SHOWN]


def _refused(value: Any, place: str, allowed: str) -> ShapeError:
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    excerpt = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return ShapeError(f"{place or 'the file'} is {excerpt}, it must be {allowed}")
