# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.json -> the parts of the document in one language: headings, texts, tables and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.evaluate import background, comparisons, family, front
from ansible.module_utils.scalebook.evaluate.options import FAMILIES, devices
from ansible.module_utils.scalebook.evaluate.sentences import extrapolated, term
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.grouping import unique
from ansible.module_utils.scalebook.pages.blocks import NONE, Block, Column, Figure
from ansible.module_utils.scalebook.pages.numbers import all_digits, four_digits
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording

MILLION = 1e6
ADVICE = ("advice-1", "advice-2", "advice-3", "advice-4")


def blocks(evaluation: Mapping[str, Any], wording: Wording = ENGLISH) -> list[Block]:
    """Return the document in the language of `wording`."""
    writer = Writer(evaluation, wording)
    _results(writer)
    front.write(writer)
    background.write(writer)
    for each in evaluation["families"]:
        family.write(writer, each)
    _published(writer)
    _extrapolations(writer)
    _cost(writer)
    _problems(writer)
    _appendix(writer)
    return writer.blocks


def _results(writer: Writer) -> None:
    """Write the first sheet of the workbook: every result of the document in one table."""
    rows = []
    for each in writer.evaluation["families"]:
        for option in each["options"]:
            usage = {quantity.name: option["usage"].get(quantity.name) for quantity in front.USED}
            words = {"family": FAMILIES.get(each["name"], each["name"]), "hardware": option["gpu"] or "CPU"}
            words |= {key: term(key, option[key]) or NONE for key in ("task", "unit")}
            counts = {"devices": devices(option), "per_device": comparisons.per_device(option)}
            rows.append({**option, **words, **counts, **usage})
    heads = writer.columns("family, workload, model, task, size, hardware, machines count, devices count")
    heads += writer.columns("dtype, compiler, bsz count, variant, differing text others, unit, rate rate")
    heads += writer.columns("per_device rate rate-per-device, slowest rate, fastest rate, runs count")
    heads += writer.columns("speedup ratio, efficiency percent, mfu percent")
    heads += [writer.column(key, "readable", unit="s") for key in ("step_p50", "step_p95")]
    heads += [*writer.quantities(front.USED, "rate"), *writer.columns("source text origin")]
    writer.sheet(writer.text("results-sheet"), heads, rows)


def _published(writer: Writer) -> None:
    """Write what others published of families that were measured too; nothing is concluded from it."""
    apart = {
        each["name"]: [option for option in each["options"] if not option["rates"]]
        for each in writer.evaluation["families"]
        if any(option["rates"] for option in each["options"])
    }
    slower = writer.evaluation["slower_than_one"]
    if any(apart.values()):
        writer.heading("published-results")
        writer.say("published-text")
    for name, options in apart.items():
        family.rates(writer, options, FAMILIES.get(name, name))
    if slower:
        writer.heading("slower", 3 if any(apart.values()) else 2)
        writer.say("slower-text")
        heads = writer.columns("option, times ratio, source text origin")
        writer.table(writer.text("slower"), heads, slower)


def _extrapolations(writer: Writer) -> None:
    extrapolations = writer.evaluation["extrapolations"]
    if not extrapolations:
        return
    writer.heading("extrapolation")
    writer.say("extrapolation-text")
    writer.items([extrapolated(each) for each in extrapolations])
    rows = []
    for each in extrapolations:
        if fit := each["fit"]:
            ends = {"measured_from": fit["measured"][0][0], "measured_to": fit["measured"][-1][0]}
            rows.append({"option": each["name"], **ends, **fit})
    heads = writer.columns("option, measured_from count, measured_to count, machines count")
    heads += writer.columns("efficiency percent, least percent, most percent")
    writer.table(writer.text("extrapolation"), heads, rows)


def _cost(writer: Writer) -> None:
    """Write the prices, what is worth its price, and time and cost of every option."""
    costs = writer.evaluation["costs"]
    writer.heading("cost-details")
    _prices(writer, [price for cost in costs for price in cost["prices"]])
    unknown = unique(name for cost in costs for name in cost["energy_unknown"])
    if unknown:
        writer.say("energy-unknown", names=unknown)
    fronts = [
        {**offer, "training": cost["name"], "cost": front.paid(writer, offer, cost["currency"])}
        for cost in costs
        if len(cost["offers"]) > 1
        for offer in cost["front"]
    ]
    if fronts:
        writer.say("front-text")
    heads = writer.columns("training, name text option, hardware, seconds duration time, cost figure")
    writer.table(writer.text("front"), heads, [_in_words(writer, offer) for offer in fronts])
    questions = [line for cost in costs for line in _answers(writer, cost)]
    writer.table(writer.text("wanted"), writer.columns("training, question, option"), questions)
    _times(writer, costs)
    writer.heading("advice", 3)
    writer.items(ADVICE)


def _answers(writer: Writer, cost: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the questions after deadline and budget with the options that answer them."""
    hours, budget = writer.evaluation["deadline_hours"], writer.evaluation["budget"]
    money = {"budget": budget, "currency": term("currency", cost["currency"] or "")}
    questions = [
        (hours, "within_deadline", message("evaluation.within-deadline", hours=hours)),
        (budget, "within_budget", message("evaluation.within-budget", **money)),
    ]
    rows = []
    for limit, key, question in questions:
        names = ", ".join(map(writer.wording.tell, unique(offer["name"] for offer in cost[key])))
        if limit and cost["offers"]:
            answer = names or writer.wording("report.none")
            rows.append({"training": cost["name"], "question": question, "option": answer})
    return rows


def _prices(writer: Writer, prices: Sequence[Mapping[str, Any]]) -> None:
    """Write every price that was used, with its source and date."""
    bought = any(price["years"] is not None for price in prices)
    rows = []
    for price in prices:
        price_text = f"{all_digits(price['amount'])} {writer.value(term('currency', price['currency']))}"
        own = price.get("translations", {}).get(writer.wording.language, {})
        paid = {"price": Figure(price["amount"], price_text), "paid": term("per", price["per"])}
        rows.append({**price, **own, **paid})
    heads = writer.columns("gpu, price figure, paid")
    heads += [*writer.columns("years all-digits, use percent") * bought, *writer.columns("source, date")]
    writer.table(writer.text("prices"), heads, writer.distinct(heads, rows))


def _in_words(writer: Writer, offer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an offer with its hardware in words and its time in seconds."""
    gpu = writer.value(offer["gpu"] or "CPU")
    paid = [writer.value(term("per", offer["per"]))] if offer["per"] else []
    hardware = message("evaluation.names", parts=[gpu, *paid])
    return {**offer, "hardware": hardware, "seconds": 3600 * offer["hours"]}


def _times(writer: Writer, costs: Sequence[Mapping[str, Any]]) -> None:
    """Write time, cost and energy of every option; the workbook also has a million samples and an epoch."""
    task = writer.evaluation["task"]
    shares = {"million": MILLION / task["total"], "epoch": task["samples"] / task["total"]}
    offers = [(cost, offer) for cost in costs for offer in cost["rows"]]
    rows = []
    for cost, offer in offers:
        row = {**_in_words(writer, offer), "cost": front.paid(writer, offer, cost["currency"])}
        for span, share in shares.items():
            row[f"{span} time"] = 3600 * offer["hours"] * share
            row[f"{span} cost"] = None if offer["cost"] is None else offer["cost"] * share
        rows.append(row)
    heads = writer.columns("name text option, hardware, seconds duration time")
    heads += [writer.column("cost", "figure")] * any(offer["cost"] is not None for _, offer in offers)
    for span in shares:
        for key, kind in (("time", "duration"), ("cost", "readable")):
            head = writer.text("titled", name=writer.text(f"head-{span}"), title=writer.text(f"head-{key}"))
            heads.append(Column(f"{span} {key}", head, kind, NONE, only="xlsx"))
    heads += [writer.column("kwh", "readable")] * any(offer["kwh"] is not None for _, offer in offers)
    if writer.evaluation["electricity"] and any(offer["energy_cost"] is not None for _, offer in offers):
        heads.append(writer.column("energy_cost", "readable"))
    title = writer.text("titled", name=writer.text("all-offers"), title=task["name"])
    origin = writer.column("source", head="origin")._replace(only="md html xlsx")
    writer.table(title, [*heads, origin], rows)


def _problems(writer: Writer) -> None:
    writer.heading("problems")
    heads = writer.columns("campaign, case, repeat count, reason")
    problems = writer.evaluation["problems"]
    writer.table(writer.text("problems"), heads, problems)
    if not problems:
        writer.say("problems-none")
    writer.own("problems")


def _appendix(writer: Writer) -> None:
    writer.heading("appendix")
    _all_results(writer)
    writer.heading("commands", 3)
    for campaign in writer.evaluation["campaigns"]:
        writer.code(campaign["name"], "\n".join(campaign["commands"]) or NONE)
    writer.heading("checksums", 3)
    sums = [{"file": file, "sum": checksum} for file, checksum in writer.evaluation["checksums"].items()]
    writer.table(writer.text("checksums"), [writer.column("file"), Column("sum", "SHA-256")], sums)


def _all_results(writer: Writer) -> None:
    """Write every measured result with its range; published rows have none and stand in the tables above."""
    measured = [option for option in writer.options if option["rates"]]
    rows = [
        {**each, "rate": front.rate(writer, each, each["rate"]), "steps": _steps(each)} for each in measured
    ]
    if not rows:
        return
    writer.heading("all-results", 3)
    heads = writer.columns("name text option, rate figure, slowest readable, fastest readable, runs count")
    heads += writer.columns("speedup ratio, efficiency percent, mfu percent, steps figure latency")
    writer.table(writer.text("all-results"), [*heads, *writer.columns("source text campaign")], rows)


def _steps(option: Mapping[str, Any]) -> Figure | None:
    """Return the median and the 95th percentile of the time of a step in ms."""
    if option["step_p50"] is None:
        return None
    half, most = (1000 * option[name] for name in ("step_p50", "step_p95"))
    return Figure(half, f"{four_digits(half)} / {four_digits(most)}")
