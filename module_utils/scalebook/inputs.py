# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Inventories and files of variables that cannot be meant, told before Ansible expands them.

A name becomes a word of ssh's and mpirun's command lines and a directory; `[1:1000000000]` becomes that
many hosts, and nine lines of YAML aliases a billion values.  Each is refused by its file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MOST_BYTES = 16 << 20
MOST_VALUES = 1_000_000
MOST_NODES = 100_000

_RANGE = re.compile(r"\[(?:(\d{1,12}):(\d{1,12})|([a-zA-Z]):([a-zA-Z]))(?::(\d{1,9}))?\]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:%-]{0,252}")
_SLOTS = re.compile(r"[1-9]\d{0,3}")
_SECTION = re.compile(r"\[([^]]*)\]")


class InputError(ValueError):
    """Something given that cannot be meant; the text names the file, the line and the value."""


def check_name(name: str, place: str) -> int:
    """Return how many hosts `name` stands for, as an inventory has it: ranges and a port are allowed.

    Raises InputError for what is no host name.
    """
    count, rest = 1, re.sub(r":\d{1,5}$", "", name)
    for first, last, low, high, step in _RANGE.findall(rest):
        width = int(last) - int(first) if first else ord(high) - ord(low)
        count *= max(0, width // max(1, int(step or 1)) + 1)
    rest = _RANGE.sub("0", rest)
    if not _NAME.fullmatch(rest) or ".." in rest:
        raise InputError(
            f"{place}: host name {name[:60]!r}: allowed are letters, digits, dot, dash and underscore, "
            "at most 100, beginning with a letter or digit"
        )
    if count > MOST_NODES:
        raise InputError(f"{place}: {name[:60]} is {count} hosts; allowed are {MOST_NODES}")
    return count


def check_variable(name: str, value: str, place: str) -> None:
    """Raise InputError for a host's variable that cannot be one; a template is looked at when it is used."""
    if "{{" in value or "{%" in value:
        return
    if name in ("ansible_host", "node_address") and not _ADDRESS.fullmatch(value):
        raise InputError(f"{place}: {name}={value[:60]!r}: allowed is a host name or an address")
    if name == "slots" and (not _SLOTS.fullmatch(value) or int(value) > 1024):
        raise InputError(f"{place}: slots={value[:60]!r}: allowed are whole numbers from 1 to 1024")


def check_list(text: str, place: str = "-i") -> None:
    """Check hosts that are given as `-i NODE1,NODE2`."""
    _check_count((check_name(name.strip(), place), place) for name in text.split(",") if name.strip())


def check_size(root: Any, file: str) -> None:
    """Raise InputError where the YAML below `root` would be huge, were its aliases written out.

    `root` is what yaml.compose returns: nodes with `id`, `value` and `start_mark`.
    """
    sizes: dict[int, int | None] = {}  # None while a node is being counted

    def size(node: Any) -> int:
        if node.id == "scalar":
            return 1
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                raise InputError(f"{_place(node, file)}: an alias that holds itself")
            return known
        sizes[id(node)] = None
        children = (each for item in node.value for each in (item if node.id == "mapping" else (item,)))
        total = 1 + sum(size(child) for child in children)
        if total > MOST_VALUES:
            raise InputError(
                f"{_place(node, file)}: aliases that make {total} values; allowed are {MOST_VALUES}"
            )
        sizes[id(node)] = total
        return total

    try:
        size(root)
    except RecursionError:
        raise InputError(f"{file}: nested too deeply") from None


def check_variables(root: Any, file: str) -> None:
    """Check a file of variables, `root` as for check_size."""
    check_size(root, file)
    for name, value in _pairs(root, file):
        if value.id == "scalar":
            check_variable(name.value, value.value, _place(value, file))


def check_inventory(root: Any, file: str) -> None:
    """Check a YAML inventory, `root` as for check_size."""
    check_size(root, file)
    _check_count(_hosts(root, file))


def _hosts(groups: Any, file: str) -> Iterator[tuple[int, str]]:
    """Yield how many hosts each entry of the groups' `hosts` is, with its place; check their variables."""
    for _, group in _pairs(groups, file):
        for key, part in _pairs(group, file):
            if key.value == "children":
                yield from _hosts(part, file)
            elif key.value == "vars":
                _check_scalars(part, file)
            elif key.value == "hosts":
                for name, variables in _pairs(part, file):
                    yield check_name(name.value, _place(name, file)), _place(name, file)
                    _check_scalars(variables, file)


def _check_scalars(mapping: Any, file: str) -> None:
    for name, value in _pairs(mapping, file):
        if value.id == "scalar":
            check_variable(name.value, value.value, _place(value, file))


def _pairs(node: Any, file: str) -> list[tuple[Any, Any]]:
    """Return the pairs of a mapping, none for anything else; a key that comes twice is refused."""
    if node is None or node.id != "mapping":
        return []
    seen: dict[str, Any] = {}
    pairs = [(key, value) for key, value in node.value if key.id == "scalar"]
    for key, _ in pairs:
        if key.value in seen and key.value != "<<":
            line = seen[key.value].start_mark.line + 1
            raise InputError(f"{_place(key, file)}: {key.value[:60]!r} is there already, in line {line}")
        seen[key.value] = key
    return pairs


def check_ini(lines: Iterable[str], file: str) -> None:
    """Check an inventory in INI form."""
    _check_count(_ini_hosts(lines, file))


def _ini_hosts(lines: Iterable[str], file: str) -> Iterator[tuple[int, str]]:
    kind = "hosts"
    for number, line in enumerate(lines, start=1):
        place, text = f"{file}:{number}", line.strip()
        section = _SECTION.fullmatch(text.split("#")[0].strip())
        if section and not _RANGE.fullmatch(text):
            kind = section[1].partition(":")[2] or "hosts"
        elif text and text[0] not in "#;" and kind == "hosts":
            name, _, rest = text.partition(" ")
            yield check_name(name, place), place
            for variable, value in re.findall(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)", rest):
                check_variable(variable, value.strip("\"'"), place)
        elif text and text[0] not in "#;" and kind == "vars":
            variable, _, value = text.partition("=")
            check_variable(variable.strip(), value.strip().strip("\"'"), place)


def _check_count(counted: Iterable[tuple[int, str]]) -> None:
    total = 0
    for count, place in counted:
        total += count
        if total > MOST_NODES:
            raise InputError(f"{place}: more than {MOST_NODES} hosts up to here")


def _place(node: Any, file: str) -> str:
    return f"{file}:{node.start_mark.line + 1}"


def check_slots(host: Mapping[str, Any]) -> int:
    """Return the `slots` of a host's variables, 1 without.  Raises InputError."""
    value = host.get("slots", 1)
    text = str(value).strip()
    if isinstance(value, bool) or not _SLOTS.fullmatch(text) or int(text) > 1024:
        name = str(host.get("inventory_hostname", "?"))
        raise InputError(f"{name}: slots={text[:60]!r}: allowed are whole numbers from 1 to 1024")
    return int(text)


def check_address(address: str, name: str) -> str:
    """Return `address` if it can be a host's, named `name` in the error.  Raises InputError."""
    if not _ADDRESS.fullmatch(address):
        raise InputError(f"{name}: address {address[:60]!r}: allowed is a host name or an address")
    return address
