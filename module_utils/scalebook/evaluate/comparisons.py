# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the options of a family show side by side: the best of each framework, and what a switch gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.evaluate.options import Option, devices, values_of
from ansible.module_utils.scalebook.grouping import grouped

TRAINING = ("model", "task", "size", "unit")
"""What options have in common that train the same."""
COMPARED = ("model", "task", "size", "dtype", "bsz", "compiler", "variant", "differing", "gpu", "devices")
"""What a row can differ in from the one that it is compared with."""
OTHERS = ("source", "workload", *TRAINING, "variant", "differing", "gpu", "link", "nodes", "gpus", "bsz")


class Best(NamedTuple):
    """The best option of a workload on one device (`on_one`) or on the most that it ran on.

    `share` is the rate of a device as a share of the best of the same training there.  `differs` are the keys
    in which the option differs from that best one, which itself is compared with the first of the family.
    """

    option: Option
    on_one: bool
    share: float
    differs: list[str]


class Gain(NamedTuple):
    """Two options that differ in one switch: `what` is on in `on`; `least` to `most` is of their runs."""

    what: str
    off: Option
    on: Option
    times: float
    least: float
    most: float


def per_device(option: Mapping[str, Any]) -> float:
    """Return the rate of one device."""
    return float(option["rate"]) / devices(option)


def training(option: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what options have in common that train the same."""
    return tuple(option[key] for key in TRAINING)


def best_of_each(options: Sequence[Option]) -> list[Best]:
    """Return the best option of each workload and training on one device, then on the most that it ran on.

    The training that most workloads have comes first; within it the fastest device does.
    """
    trainings = sorted(
        grouped(options, training).values(), key=lambda each: -len({option["workload"] for option in each})
    )
    fastest_of_each: list[Best] = []
    for on_one in (True, False):
        rows = [row for each in trainings for row in _fastest(each, on_one)]
        first = {training(row): row for row in reversed(rows)}
        for row in rows:
            same = first[training(row)]
            beside = rows[0] if row is same else same
            differs = [key for key in COMPARED if _value_of(row, key) != _value_of(beside, key)]
            fastest_of_each.append(Best(row, on_one, per_device(row) / per_device(same), differs))
    return fastest_of_each


def _fastest(options: Sequence[Option], on_one: bool) -> list[Option]:
    """Return the fastest option of each workload, the fastest of them first."""
    rows = []
    for own in grouped(options, lambda option: option["workload"]).values():
        most = max(map(devices, own))
        scale = [each for each in own if devices(each) == (1 if on_one else most)]
        # Nodes that share a machine say less of scaling than one node with as many devices.
        spread = [each for each in scale if each["machines"] == each["nodes"]] or scale
        if spread and (on_one or most > 1):
            rows.append(max(spread, key=lambda option: option["rate"]))
    return sorted(rows, key=lambda option: -per_device(option))


def _value_of(option: Option, key: str) -> Any:
    return devices(option) if key == "devices" else option[key]  # type: ignore[literal-required]


def gains(options: Sequence[Option]) -> list[Gain]:
    """Return each pair of options of a campaign that differ in nothing but the compiler or the precision."""
    pairs = []
    for own in grouped(options, lambda option: values_of(option, OTHERS)).values():
        for off in own:
            for on in own:
                compiled = off["dtype"] == on["dtype"] and on["compiler"] and not off["compiler"]
                mixed = off["compiler"] == on["compiler"] and off["dtype"] == "fp32" != on["dtype"]
                if compiled or mixed:
                    what = on["compiler"] if compiled else on["dtype"]
                    times = on["rate"] / off["rate"]
                    least, most = on["slowest"] / off["fastest"], on["fastest"] / off["slowest"]
                    pairs.append(Gain(what, off, on, times, least, most))
    return pairs
