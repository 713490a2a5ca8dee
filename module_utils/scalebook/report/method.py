# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How the numbers of a report were measured, as sentences."""

from __future__ import annotations

from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.contracts import ENOUGH_RUNS, Group
from ansible.module_utils.scalebook.judge import baseline
from ansible.module_utils.scalebook.pages.blocks import Block, Heading, Item, Items
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.report.view import View


def rule(group: Group, wording: Wording = ENGLISH) -> str:
    """Return how the throughput of `group` is measured, with its own step numbers."""
    _ = wording
    unit = _(str(group["unit"]))
    if group.get("epoch_samples"):
        return _(
            "{unit}/s = {samples} / seconds of the last epoch, without the evaluation after it",
            unit=unit,
            samples=group["epoch_samples"],
        )
    steps, first = group["accumulation"], group["warmup"] or 0
    return _(
        "{unit}/s = devices × {batch} × {window} / (time of step {last} − time of step {first})",
        unit=unit,
        batch=group["bsz"]
        if steps == 1
        else _("{batch} × {steps} accumulation steps", batch=group["bsz"], steps=steps),
        window=group["window"],
        first=first,
        last=first + (group["window"] or 0),
    )


def sentences(wording: Wording = ENGLISH) -> list[str]:
    """Return what the columns of the tables mean."""
    _ = wording
    return [
        _("Times are those of the first node. Steps before the window are warm-up and dropped."),
        _(
            "The result of a case is the median over its valid runs. A run is valid if it reached the end of "
            "its window and passed every check."
        ),
        _("speedup: median over the median of 1n1g in the same table; n/a without one."),
        _("efficiency: speedup / devices."),
        _("latency: the time of a step at the median throughput, of workloads that declare it."),
        _("MFU: the share of the device's peak rate that the model's operations reach."),
        _("spread: (max − min) / median."),
        _(
            "Results of fewer than {enough} valid runs are provisional.",
            enough=ENOUGH_RUNS,
        ),
        _(
            "range: the slowest and the fastest run. The range of three runs misses the true median in 25 % "
            "of cases, that of five in 6 %."
        ),
        _("speedup range: the least and the largest quotient of a run of the case and one of 1n1g."),
        _(
            "95 % interval: from {runs} runs on, by order statistics, right for any distribution of "
            "independent runs.",
            runs=stats.INTERVAL_RUNS,
        ),
        _(
            "speedup 95 % interval: from {runs} runs of both on, Welch's t interval of the logarithms of "
            "rates.",
            runs=stats.INTERVAL_RUNS,
        ),
        _(
            "An outlier, from {runs} runs on, is flagged and kept: Grubbs' test at {level} %, and more than "
            "{share} % from the median.",
            runs=stats.OUTLIER_RUNS,
            level=f"{100 * stats.OUTLIER_LEVEL:g}",
            share=f"{100 * stats.OUTLIER_SHARE:g}",
        ),
        _(
            "drift: how much longer the last quarter of the steps took than the first. It is flagged from "
            "{share} % and {errors} standard errors on; these allow for steps that resemble the step before.",
            share=f"{100 * stats.STEADY_SHARE:g}",
            errors=f"{stats.STEADY_ERRORS:g}",
        ),
    ]


def baseline_rule(wording: Wording = ENGLISH) -> str:
    """Return when a difference from an earlier campaign counts."""
    return wording(
        "A difference counts if it is significant (Welch's t test of the logarithms of the rates, {alarms} % "
        "for the whole comparison) and the medians differ by more than {effect} % or the limit, whichever "
        "is less.",
        alarms=f"{100 * baseline.ALARMS:g}",
        effect=f"{100 * baseline.EFFECT:g}",
    )


def section(view: View) -> list[Block]:
    """Return the section: the rule of each group, once, and what the columns mean."""
    rules = dict.fromkeys(rule(group, view.wording) for group in view.document["groups"])
    items: list[str | Item] = [*(Item(each, code=True) for each in rules), *sentences(view.wording)]
    return [Heading(2, view.wording("How this was measured"), "method"), Items(items)]
