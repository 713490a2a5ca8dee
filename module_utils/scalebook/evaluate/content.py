# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.json -> the parts of the document in one language: headings, texts, tables and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.evaluate import background, drawing, family
from ansible.module_utils.scalebook.evaluate.sentences import criterion, evidence, extrapolated, term
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages.blocks import NONE, Block, Column, Figure, all_digits
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording

MILLION = 1e6
ADVICE = ("advice-1", "advice-2", "advice-3", "advice-4")


def blocks(evaluation: Mapping[str, Any], wording: Wording = ENGLISH) -> list[Block]:
    """Return the document in the language of `wording`."""
    writer = Writer(evaluation, wording)
    background.write(writer)
    for each in evaluation["families"]:
        family.write(writer, each)
    _criteria(writer)
    _cost(writer)
    _problems(writer)
    _appendix(writer)
    return writer.blocks


def _criteria(writer: Writer) -> None:
    writer.heading("criteria")
    rows = [
        {
            "criterion": criterion(each),
            "verdict": term("verdict", each["verdict"]),
            "evidence": evidence(each),
        }
        for each in writer.evaluation["criteria"]
    ]
    writer.table(writer.text("criteria"), writer.columns("criterion", "verdict", "evidence"), rows)
    extrapolations = writer.evaluation["extrapolations"]
    if not extrapolations:
        return
    writer.heading("extrapolation", 3)
    writer.say("extrapolation-text")
    writer.items([extrapolated(each) for each in extrapolations])
    rows = []
    for each in extrapolations:
        if fit := each["fit"]:
            ends = {"measured_from": fit["measured"][0][0], "measured_to": fit["measured"][-1][0]}
            rows.append({"option": each["name"], **ends, **fit})
    heads = [
        writer.column("option"),
        *(writer.column(key, "count") for key in ("measured_from", "measured_to", "machines")),
        *(writer.column(key, "percent") for key in ("efficiency", "least", "most")),
    ]
    writer.table(writer.text("extrapolation"), heads, rows)


def _cost(writer: Writer) -> None:
    task, slower = writer.evaluation["task"], writer.evaluation["slower_than_one"]
    writer.heading("cost")
    heads = [
        writer.column("name", head="task"),
        *(writer.column(key, "all-digits") for key in ("samples", "epochs", "total")),
    ]
    writer.table(writer.text("task"), heads, [task])
    for number, cost in enumerate(writer.evaluation["costs"]):
        writer.heading(cost["name"], 3)
        if cost["prices"]:
            _prices(writer, cost["prices"])
        else:
            writer.say("no-cost")
        if cost["energy_unknown"]:
            writer.say("energy-unknown", names=cost["energy_unknown"])
        if cost["offers"]:
            writer.say("front-text")
            _offers(writer, cost)
            writer.charts(drawing.of_cost(writer, cost, f"cost{number}"))
            writer.table(writer.text("wanted"), writer.columns("question", "option"), _within(writer, cost))
        _times(writer, cost)
    if slower:
        writer.heading("slower", 3)
        writer.say("slower-text")
        heads = [
            writer.column("option"),
            writer.column("times", "ratio"),
            writer.column("source", head="origin"),
        ]
        writer.table(writer.text("slower"), heads, slower)
    writer.heading("advice", 3)
    writer.items(ADVICE)


def _within(writer: Writer, cost: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the questions after deadline and budget with the options that answer them."""
    hours, budget = writer.evaluation["deadline_hours"], writer.evaluation["budget"]
    asked = [
        (hours, "within_deadline", message("evaluation.within-deadline", hours=hours)),
        (
            budget,
            "within_budget",
            message("evaluation.within-budget", budget=budget, currency=cost["currency"]),
        ),
    ]
    rows = []
    for limit, key, question in asked:
        names = ", ".join(dict.fromkeys(offer["name"] for offer in cost[key]))
        if limit:
            rows.append({"question": question, "option": names or writer.text("nothing-within")})
    return rows


def _prices(writer: Writer, prices: Sequence[Mapping[str, Any]]) -> None:
    """Write every price that was used, with its source and date."""
    bought = any(price["years"] is not None for price in prices)
    rows = [
        {
            **price,
            **price.get("translations", {}).get(writer.wording.language, {}),
            "price": Figure(price["amount"], f"{all_digits(price['amount'])} {price['currency']}"),
            "paid": term("per", price["per"]),
        }
        for price in prices
    ]
    heads = [writer.column("gpu", head="hardware"), writer.column("price", "figure"), writer.column("paid")]
    heads += [writer.column("years", "all-digits"), writer.column("use", "percent")] * bought
    writer.table(writer.text("prices"), [*heads, *writer.columns("source", "date")], rows)


def _offers(writer: Writer, cost: Mapping[str, Any]) -> None:
    """Write the offers that no other one beats."""
    heads = [
        writer.column("name", head="option"),
        writer.column("hardware"),
        writer.column("hourly", "readable", unit=cost["currency"]),
        writer.column("hours", "readable"),
        writer.column("cost", "readable", unit=cost["currency"]),
        writer.column("source", head="origin"),
    ]
    rows = [{**offer, "hardware": _hardware(writer, offer)} for offer in cost["front"]]
    writer.table(writer.text("front"), heads, rows)


def _hardware(writer: Writer, offer: Mapping[str, Any]) -> str:
    gpu = writer.value(offer["gpu"] or "CPU")
    return f"{gpu}, {writer.value(term('per', offer['per']))}" if offer["per"] else str(gpu)


def _times(writer: Writer, cost: Mapping[str, Any]) -> None:
    """Write time, cost and energy of every option, for a million samples, an epoch and the whole task."""
    currency, priced, task = cost["currency"], bool(cost["prices"]), writer.evaluation["task"]
    shares = {"million": MILLION / task["total"], "epoch": task["samples"] / task["total"], "total": 1.0}
    powered = any(row["kwh"] is not None for row in cost["rows"])
    paid = any(row["energy_cost"] is not None for row in cost["rows"])
    heads = [writer.column("name", head="option"), writer.column("hardware")]
    heads += [writer.column("hourly", "readable", unit=currency)] * priced
    for span in shares:
        for key, unit in (("hours", None), ("cost", currency))[: 1 + priced]:
            what = writer.column(key, unit=unit).head
            head = writer.text("titled", name=writer.text(f"head-{span}"), title=what)
            heads.append(Column(f"{span} {key}", head, "readable", NONE))
    heads += [writer.column("kwh", "readable")] * powered
    if paid and writer.evaluation["electricity"]:
        heads.append(writer.column("energy_cost", "readable", unit=currency))
    rows = [
        {
            **offer,
            "hardware": _hardware(writer, offer),
            **{
                f"{span} {key}": None if offer[key] is None else offer[key] * share
                for span, share in shares.items()
                for key in ("hours", "cost")
            },
        }
        for offer in cost["rows"]
    ]
    writer.table(writer.text("all-offers"), [*heads, writer.column("source", head="origin")], rows)


def _problems(writer: Writer) -> None:
    writer.heading("problems")
    heads = [*writer.columns("campaign", "case"), writer.column("repeat", "count"), writer.column("reason")]
    problems = writer.evaluation["problems"]
    excluded = [{**each, "reason": writer.wording.tell(each["reason"])} for each in problems]
    writer.table(writer.text("problems"), heads, excluded)
    if not problems:
        writer.say("problems-none")
    writer.own("problems")


def _appendix(writer: Writer) -> None:
    campaigns = writer.evaluation["campaigns"]
    writer.heading("appendix")
    writer.heading("campaigns", 3)
    heads = [
        writer.column("name", head="campaign"),
        writer.column("started"),
        *(writer.column(key, "count") for key in ("good", "planned")),
    ]
    unknown = writer.text("not-recorded")
    rows = [{**each, **each["runs"], "started": each["started"] or unknown} for each in campaigns]
    writer.table(writer.text("campaigns"), heads, rows)
    writer.heading("commands", 3)
    for campaign in campaigns:
        writer.code(campaign["name"], "\n".join(campaign["commands"]) or NONE)
    writer.heading("checksums", 3)
    sums = [{"file": file, "sum": checksum} for file, checksum in writer.evaluation["checksums"].items()]
    writer.table(writer.text("checksums"), [writer.column("file"), Column("sum", "SHA-256")], sums)
