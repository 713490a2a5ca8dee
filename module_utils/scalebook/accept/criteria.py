# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The criteria that a tender or its user sets: a file, whose thresholds count instead of the defaults.

title: Tender 2026-11
least: 95                        # per cent of the rate of its equals at which a part has to be found
measurements: 20                 # of a part at most
quantities:
  copy: {least: 97}              # per cent, of this quantity
  best_bf16: {at_least: 750}     # in its unit, TFLOP/s or GB/s
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ansible.module_utils.scalebook.accept.verdict import Criteria

QUANTITIES = (
    "matmul_fp32", "matmul_fp16", "matmul_bf16", "matmul_fp8",
    "best_fp32", "best_fp16", "best_bf16", "best_fp8",
    "copy", "triad", "to_device", "from_device", "launch", "all_reduce", "all_gather", "reduce_scatter",
    "all_to_all", "together", "sendrecv", "pair", "link", "rail", "processor", "memory", "disk_write",
    "disk_read",
)  # fmt: skip
"""Everything that has a rate."""
BY_DEFAULT = {
    "launch": 0.8,
    "together": 0.8,
    "sendrecv": 0.9,
    "pair": 0.9,
    "processor": 0.9,
    "memory": 0.9,
    "disk_read": 0.7,
    "disk_write": 0.7,
}
"""The share at which a part has to be found, of quantities in which healthy parts differ by more."""


class Wanted(NamedTuple):
    """What parts have to reach: `common` criteria, and by quantity their own share and rate."""

    common: Criteria
    title: str = ""
    shares: dict[str, float] = {}  # noqa: RUF012 - never changed
    rates: dict[str, float] = {}  # noqa: RUF012

    def for_quantity(self, quantity: str) -> Criteria:
        """Return the criteria of a quantity, compared with its equals."""
        usual = min(self.common.least, BY_DEFAULT.get(quantity, 1))
        return self.common._replace(least=self.shares.get(quantity, usual))


def read(content: Any, common: Criteria) -> Wanted:
    """Return the criteria of a file instead of the `common` ones; raise ValueError for a mistake in it."""
    allowed = ("title", "least", "measurements", "quantities")
    values = _only(content, allowed, "the file")
    own = _only(values.get("quantities", {}), QUANTITIES, "quantities")
    shares, rates = {}, {}
    for quantity, limits in own.items():
        for name, limit in _only(limits, ("least", "at_least"), quantity).items():
            if name == "least":
                shares[quantity] = _share(limit, quantity)
            else:
                rates[quantity] = _number(limit, f"{quantity}: at_least", float("inf"))
    most = values.get("measurements", common.most)
    if type(most) is not int or not 1 <= most <= 1000:
        raise ValueError(f"criteria: measurements={most}; it must be a whole number from 1 to 1000")
    least = _share(values["least"], "least") if "least" in values else common.least
    title = values.get("title", "")
    if not isinstance(title, str):
        raise ValueError(f"criteria: title={title}; it must be text: put it into quotes")
    return Wanted(common._replace(least=least, most=most), title, shares, rates)


def _only(content: Any, allowed: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return a mapping that has only keys that are allowed."""
    if not isinstance(content, dict):
        raise ValueError(f"criteria: {where} must have keys with values; allowed are {', '.join(allowed)}")
    unknown = [str(key) for key in content if key not in allowed]
    if unknown:
        raise ValueError(f"criteria: {where} has {', '.join(unknown)}; allowed are {', '.join(allowed)}")
    return content


def _number(value: Any, where: str, below: float) -> float:
    if type(value) not in (int, float) or not 0 < value < below:
        limit = f" and below {below:g}" if below < float("inf") else ""
        raise ValueError(f"criteria: {where}={value}; it must be a number above 0{limit}")
    return float(value)


def _share(value: Any, where: str) -> float:
    return _number(value, where if where == "least" else f"{where}: least", 100) / 100
