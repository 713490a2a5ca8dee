# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How the numbers of a report were measured, as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.contracts import ENOUGH_RUNS, Group
from ansible.module_utils.scalebook.judge import baseline
from ansible.module_utils.scalebook.pages.blocks import Block, Heading, Item, Items, Settings
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.text import clean

STEPS = ("accumulation", "warmup", "window", "epoch_samples")


def rule(group: Group, wording: Wording = ENGLISH) -> str:
    """Return how the throughput of `group` is measured, with its own step numbers."""
    _ = wording
    unit = _.name("unit", group["unit"])
    if group.get("epoch_samples"):
        return _("method.epoch", unit=unit, samples=group["epoch_samples"])
    steps, first = group["accumulation"], group["warmup"] or 0
    return _(
        "method.window",
        unit=unit,
        batch=group["bsz"] if steps == 1 else _("method.accumulation", batch=group["bsz"], steps=steps),
        window=group["window"],
        first=first,
        last=first + (group["window"] or 0),
    )


def sentences(wording: Wording = ENGLISH) -> list[str]:
    """Return what the columns of the tables mean."""
    _ = wording
    return [
        _("method.times"),
        _("method.result"),
        _("method.speedup"),
        _("method.efficiency"),
        _("method.latency"),
        _("method.mfu"),
        _("method.spread"),
        _("method.provisional", enough=ENOUGH_RUNS),
        _("method.range"),
        _("method.speedup-range"),
        _("method.interval", runs=stats.INTERVAL_RUNS),
        _("method.speedup-interval", runs=stats.INTERVAL_RUNS),
        _(
            "method.outlier",
            runs=stats.OUTLIER_RUNS,
            level=100 * stats.OUTLIER_LEVEL,
            share=100 * stats.OUTLIER_SHARE,
        ),
        _("method.drift", share=100 * stats.STEADY_SHARE, errors=stats.STEADY_ERRORS),
    ]


def baseline_rule(wording: Wording = ENGLISH) -> str:
    """Return when a difference from an earlier campaign counts."""
    return wording("method.baseline", alarms=100 * baseline.ALARMS, effect=100 * baseline.EFFECT)


def section(groups: Sequence[Group], wording: Wording) -> list[Block]:
    """Return the section: the rule of each group, once, its settings, and what the columns mean."""
    _ = wording
    rules = dict.fromkeys(rule(group, _) for group in groups)
    items: list[str | Item] = [*(Item(each, code=True) for each in rules), *sentences(_)]
    blocks: list[Block] = [Heading(2, _("title.method"), "method"), Items(items)]
    for workload in dict.fromkeys(group["workload"] for group in groups):
        pairs = settings([group for group in groups if group["workload"] == workload], _)
        blocks += [Settings([(clean(workload), ""), *pairs])] if pairs else []
    return blocks


def settings(groups: Sequence[Group], wording: Wording) -> list[tuple[str, str]]:
    """Return the settings in which the groups of a workload agree, as names and values."""
    pairs = [
        {
            **{wording.name("setting", field): values.get(field) for field in STEPS},
            **{clean(name): value for name, value in sorted((group.get("settings") or {}).items())},
        }
        for group in groups
        for values in [cast(Mapping[str, Any], group)]
    ]
    same = {name: own for name, own in pairs[0].items() if all(each.get(name) == own for each in pairs)}
    recorded = {name: own for name, own in same.items() if own not in (None, "")}
    return [
        (name, str(own).lower() if isinstance(own, bool) else clean(own)) for name, own in recorded.items()
    ]
