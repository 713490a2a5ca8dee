# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Numbers -> their digits, in the ways in which documents say them.  KINDS of cells.py name most of them."""

from __future__ import annotations


def readable(value: float) -> str:
    """Return a number for people: four digits below 10,000, from 1,000 on whole with separators."""
    size = abs(value)
    if size >= 999.95:
        return whole(value)
    for limit, digits in ((99.995, 1), (9.9995, 2), (0.99995, 3)):
        if size >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if size >= 0.0001 or not value else f"{value:.2e}"


def as_published(value: float | None) -> str:
    """Return a figure as tables of micro-benchmarks have it, 116 or 0.202; a dash for none."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def two_decimals(value: float) -> str:
    """Return a figure as DLPerf's tables print it: 1239.3, never 1239.30."""
    return repr(round(float(value), 2))


def all_digits(value: float) -> str:
    """Return a number with all its digits: 40, 0.5, 1,994,187."""
    return f"{value:,.15g}"


def whole(value: float) -> str:
    """Return a number without decimals: 1,994,187."""
    return f"{value:,.0f}"


def quotient(value: float) -> str:
    """Return a speedup or another quotient: 1.20."""
    return f"{value:.2f}"


def quotients(low: float, high: float) -> str:
    """Return a range of quotients: 1.20 – 1.35."""
    return f"{quotient(low)} – {quotient(high)}"


def four_digits(value: float) -> str:
    """Return a number with four digits at most: 0.1234, 12.5, 1240."""
    return f"{value:.4g}"


def clock(seconds: float) -> str:
    """Return hours, minutes and seconds: 24:00:05."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
