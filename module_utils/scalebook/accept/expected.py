# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a GPU should reach: values that somebody measured and published (data/expected.yml)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

UNITS = ("TFLOP/s", "GB/s")


class Expected(NamedTuple):
    """One published value, which holds for `devices` GPUs of a node whose name `gpu` matches as a whole.

    A rate that is lower by the share `tolerance` has to be found.
    """

    gpu: str
    quantity: str
    devices: int
    value: float
    unit: str
    tolerance: float
    source: str


def rows(content: Any) -> list[Expected]:
    """Return the rows of data/expected.yml, or raise ValueError that names the wrong one."""
    listed = content.get("expected") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise ValueError("expected values: the file must have a list `expected`, as data/expected.yml has")
    return [_row(number, each) for number, each in enumerate(listed, 1)]


def _row(number: int, each: Any) -> Expected:
    values = {"devices": 1, **each} if isinstance(each, dict) else {}
    if set(values) != set(Expected._fields):
        needed = ", ".join(name for name in Expected._fields if name != "devices")
        raise ValueError(f"expected values, row {number}: it must have {needed}, and may have devices")
    row = Expected(**values)
    allowed = {
        "gpu": isinstance(row.gpu, str) and _compiles(row.gpu),
        "devices": type(row.devices) is int and row.devices > 0,
        "value": isinstance(row.value, (int, float)) and row.value > 0,
        "unit": row.unit in UNITS,
        "tolerance": isinstance(row.tolerance, float) and 0 < row.tolerance < 1,
        "source": isinstance(row.source, str) and len(row.source) > 0,
    }
    wrong = [f"{name}={values[name]}" for name, good in allowed.items() if not good]
    if wrong:
        raise ValueError(
            f"expected values, row {number}: {', '.join(wrong)}; gpu is a regular expression, devices and "
            f"value are above 0, unit is {' or '.join(UNITS)}, tolerance is a share, and source is required"
        )
    return row


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def expected(listed: Iterable[Expected], gpu: str, quantity: str, devices: int = 1) -> Expected | None:
    """Return the value for a GPU by the name that the driver reports, None where nobody published one."""
    for row in listed:
        if (row.quantity, row.devices) == (quantity, devices) and re.fullmatch(row.gpu, gpu):
            return row
    return None
