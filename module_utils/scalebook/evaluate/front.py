# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Section 1, which stands alone: conclusion, best of each workload, criteria, cost, what to measure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate import comparisons
from ansible.module_utils.scalebook.evaluate.options import FAMILIES, Option, accumulation, devices, precision
from ansible.module_utils.scalebook.evaluate.ranking import ModelFamily
from ansible.module_utils.scalebook.evaluate.sentences import (
    conclusive,
    criterion,
    differs,
    evidence,
    is_conclusive,
    term,
    training_words,
)
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages.blocks import NONE, Figure
from ansible.module_utils.scalebook.pages.numbers import readable
from ansible.module_utils.scalebook.quantities import TABLE

USED = sorted((quantity for quantity in TABLE if quantity.column), key=lambda quantity: quantity.column)
"""Quantities of the tables of utilisation."""
ENOUGH = 3
"""Runs of a case from which on its range says something."""


def write(writer: Writer) -> None:
    """Write the section."""
    writer.heading("introduction")
    writer.say("about")
    writer.heading("conclusion", 3)
    writer.items(writer.evaluation["conclusion"])
    writer.own("introduction")
    writer.heading("best", 3)
    writer.say("best-text")
    for family in writer.evaluation["families"]:
        _best(writer, family)
    writer.heading("criteria", 3)
    _criteria(writer)
    _usage(writer)
    writer.heading("cost", 3)
    _cost(writer)
    _to_do(writer)


def _best(writer: Writer, family: ModelFamily) -> None:
    best = comparisons.best_of_each(conclusive(family))
    rows = []
    for each in best:
        words = {"dtype": precision(each.option), "differs": differs(each)}
        place = {"devices": devices(each.option), "rate": comparisons.per_device(each.option)}
        rows.append({**each.option, **words, **place, "share": each.share})
    unit = writer.value(term("unit", best[0].option["unit"]))
    heads = writer.columns("workload, devices count")
    heads += writer.columns("machines count") if any(each.option["nodes"] > 1 for each in best) else []
    heads += [writer.column("rate", "readable", "rate-per-device", unit), writer.column("share", "percent")]
    heads += writer.columns("efficiency percent, mfu percent, dtype, bsz count, joules readable, differs")
    name = [FAMILIES.get(family["name"], family["name"]), *training_words(best[0].option)]
    title = writer.text("titled", name=writer.text("names", parts=name), title=writer.text("best"))
    writer.table(title, heads, rows)


def rate(writer: Writer, option: Option, value: float) -> Figure:
    """Return a rate of an option with its unit."""
    return Figure(value, f"{readable(value)} {writer.value(term('unit', option['unit']))}")


def _criteria(writer: Writer) -> None:
    rows = [
        {
            "criterion": criterion(each),
            "verdict": term("verdict", each["verdict"]),
            "evidence": evidence(each) or _to_measure(writer, each),
        }
        for each in writer.evaluation["criteria"]
    ]
    writer.table(writer.text("criteria"), writer.columns("criterion, verdict, evidence"), rows)


def _to_measure(writer: Writer, verdict: Mapping[str, Any]) -> Message | None:
    """Return the command that would measure a criterion, of which nothing was."""
    measured = [option for option in writer.options if option["rates"]]
    ours = [option for option in measured if option["workload"] == verdict["limit"].get("workload")]
    if verdict["criterion"] == "ahead":
        return _beside(ours, measured) if ours else None
    if verdict["criterion"] != "scaling" or not measured:
        return None
    best = max(measured, key=lambda option: (devices(option), option["efficiency"] or 0))
    machines = verdict["limit"]["machines"]
    counts = [2**power for power in range(machines.bit_length()) if 2**power < machines]
    return _command(best, [best["workload"]], best["dtype"], best["bsz"], [*counts, machines])


def _beside(ours: Sequence[Option], measured: Sequence[Option]) -> Message | None:
    """Return the command that measures a workload and its rivals in one case, on one device."""
    trained = {comparisons.training(option) for option in ours}
    rivals = [each for each in measured if comparisons.training(each) in trained and each not in ours]
    dtypes = {option["dtype"] for option in ours}
    counts = {dtype: {each["workload"] for each in rivals if each["dtype"] == dtype} for dtype in dtypes}
    dtype = max(sorted(counts), key=lambda each: len(counts[each]))
    if not counts[dtype]:
        return None
    names = [ours[0]["workload"], *sorted(counts[dtype])]
    of_each = [[each["bsz"] for each in (*ours, *rivals) if each["workload"] == name] for name in names]
    return _command({**ours[0], "compiler": ""}, names, dtype, min(map(max, of_each)), [1])


def _command(like: Option, names: Sequence[str], dtype: str, bsz: int, nodes: Sequence[int]) -> Message:
    """Return the command that measures workloads as an option was, with other precision, batch and nodes."""
    settings = f"workload={','.join(names)} model={like['model']} dtype={dtype} bsz={bsz}"
    settings += " xla=true" * bool(like["compiler"]) + _accumulated(like)
    places = f"nodes={','.join(map(str, nodes))} gpus={like['gpus']} repeats=6"
    return message("evaluation.measure-by", command=f'ansible-playbook bench.yml -e "{settings} {places}"')


def _accumulated(option: Option) -> str:
    """Return the parameter of the gradient accumulation of an option, '' without it."""
    variant = accumulation(option)
    return f" accumulation={variant['values']['steps']}" if isinstance(variant, Mapping) else ""


def _usage(writer: Writer) -> None:
    """Write how busy GPUs, processors, memory, disks and network were over all measured cases."""
    (limit,) = [
        each["limit"]["percent"]
        for each in writer.evaluation["criteria"]
        if "percent" in each["limit"] and "machines" not in each["limit"]
    ]
    rows = []
    for quantity in USED:
        means = [each["usage"][quantity.name] for each in writer.options if quantity.name in each["usage"]]
        if means:
            values = {"mean": statistics.fmean(means), "least": min(means), "most": max(means)}
            texts = {key: _of_quantity(writer, value, quantity.unit) for key, value in values.items()}
            reached = sum(mean >= limit for mean in means) if quantity.unit == "%" else None
            name = writer.wording(quantity.code)
            rows.append({"quantity": name, **texts, "cases": len(means), "reached": reached})
    heads = writer.columns("quantity, mean figure, least figure, most figure, cases count, reached count")
    writer.table(writer.text("usage-of-all"), heads, rows)
    if rows:
        writer.say("usage-text")


def _of_quantity(writer: Writer, value: float, unit: str) -> Figure:
    return Figure(value, writer.wording.percent(value / 100) if unit == "%" else f"{readable(value)} {unit}")


def _cost(writer: Writer) -> None:
    """Write the fastest and the cheapest option of each training, and how long and how dear they are."""
    costs = []
    for cost in writer.evaluation["costs"]:
        fastest = min(cost["rows"], key=lambda offer: offer["hours"])
        if is_conclusive(writer.evaluation, [fastest]):
            costs.append((cost, fastest, (cost["cheapest"] or [None])[0]))
    rows = [
        {
            "training": cost["name"],
            "option": fastest["name"],
            "time": 3600 * fastest["hours"],
            "cost": paid(writer, fastest, cost["currency"]),
            "cheapest": cheapest and cheapest["name"],
            "its_time": cheapest and 3600 * cheapest["hours"],
            "its_cost": cheapest and paid(writer, cheapest, cost["currency"]),
        }
        for cost, fastest, cheapest in costs
    ]
    heads = writer.columns("training, option text shortest, time duration")
    if any(cheapest for _, _, cheapest in costs):
        heads += writer.columns("cost figure, cheapest, its_time duration time, its_cost figure cost")
    elif not any(cost["prices"] for cost, _, _ in costs):
        writer.say("no-cost")
    writer.table(writer.text("cost-of", task=writer.evaluation["task"]["name"]), heads, rows)


def paid(writer: Writer, offer: Mapping[str, Any], currency: str) -> Figure | str:
    """Return what an offer costs, with its currency."""
    if offer["cost"] is None:
        return NONE
    return Figure(offer["cost"], f"{readable(offer['cost'])} {writer.value(term('currency', currency))}")


def _to_do(writer: Writer) -> None:
    """Write once what was not measured, and what measures it."""
    measured = [option for option in writer.options if option["rates"]]
    silent = {option["source"] for option in measured if not option["usage"]}
    silent |= {campaign["name"] for campaign in writer.evaluation["campaigns"] if not campaign["hardware"]}
    few = [option for option in measured if option["runs"] < ENOUGH]
    texts = [message("evaluation.to-do-usage", names=sorted(silent))] if silent else []
    texts += [message("evaluation.to-do-runs", count=len(few), of=len(measured))] if few else []
    if texts:
        writer.heading("to-do", 3)
        writer.items(texts)
