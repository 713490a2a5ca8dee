# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.json -> the parts of the document in one language: headings, texts, tables and charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import Message
from ansible.module_utils.scalebook.evaluate import background, drawing, family
from ansible.module_utils.scalebook.evaluate.sentences import criterion, evidence, extrapolated, within
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.pages.blocks import (
    NONE,
    Block,
    Cell,
    Code,
    Column,
    Figure,
    all_digits,
    exact,
    figure,
    percent,
    times,
    whole,
)


def blocks(
    evaluation: Mapping[str, Any],
    texts: Mapping[str, Any],
    translate: Callable[[str | Message], str] = catalogue.sentence,
) -> list[Block]:
    """Return the document.

    `texts` are those of a language, templates/evaluation.<language>.yml; `translate` says a message or
    a sentence of the records in that language.
    """
    writer = Writer(evaluation, texts, translate)
    background.write(writer)
    for each in evaluation["families"]:
        family.write(writer, each)
    _criteria(writer)
    _cost(writer)
    _problems(writer)
    _appendix(writer)
    return [phrased(block, texts["phrases"]) for block in writer.blocks]


def phrased(block: Block, phrases: Sequence[Sequence[str]]) -> Block:
    """Return a block with the phrases of the records, and of names made of them, as the language has them."""

    def said(part: Any) -> Any:
        if isinstance(part, str):
            for recorded, own in phrases:
                part = part.replace(recorded, own)
            return part
        if isinstance(part, Figure):
            return part._replace(text=said(part.text))
        if isinstance(part, Column):
            return part._replace(head=said(part.head))
        if isinstance(part, Mapping):
            return {key: said(each) for key, each in part.items()}
        return [said(each) for each in part] if isinstance(part, (list, tuple)) else part

    made: Block = block if isinstance(block, Code) else cast(Any, type(block))(*map(said, block))
    return made


def _criteria(writer: Writer) -> None:
    e, t = writer.e, writer.t
    writer.heading(t["criteria"])
    rows: list[list[Cell]] = [
        [criterion(each, t), t["verdicts"][each["verdict"]], evidence(each, t)] for each in e["criteria"]
    ]
    writer.table(t["criteria"], ("criterion", "verdict", "evidence"), rows)
    if not e["extrapolations"]:
        return
    writer.heading(t["extrapolation"], 3)
    writer.say(t["extrapolation_text"])
    writer.items([extrapolated(each, t) for each in e["extrapolations"]])
    rows = []
    for each in e["extrapolations"]:
        fit = each["fit"]
        if fit:
            counts = (fit["measured"][0][0], fit["measured"][-1][0], fit["machines"])
            shares = (percent(fit[share]) for share in ("efficiency", "least", "most"))
            rows.append([each["name"], *map(whole, counts), *shares])
    heads = ("option", "measured_from", "measured_to", "machines", "efficiency", "least", "most")
    writer.table(t["extrapolation"], heads, rows)


def _cost(writer: Writer) -> None:
    e, t, task = writer.e, writer.t, writer.e["task"]
    writer.heading(t["cost"])
    row = [task["name"], *(exact(task[key]) for key in ("samples", "epochs", "total"))]
    writer.table(t["task"], ("task", "samples", "epochs", "total"), [row])
    for number, cost in enumerate(e["costs"]):
        writer.heading(cost["name"], 3)
        if cost["prices"]:
            _prices(writer, cost)
        else:
            writer.say(t["no_cost"])
        if cost["energy_unknown"]:
            writer.say(t["energy_unknown"].format(t["comma"].join(cost["energy_unknown"])))
        if cost["offers"]:
            writer.say(t["front_text"])
            _offers(writer, t["front"], cost["front"], cost["currency"])
            writer.charts(drawing.of_cost(cost, f"cost{number}", t))
            writer.table(t["wanted"], ("question", "option"), within(e, cost, t))
        _times(writer, cost)
    slower = e["slower_than_one"]
    if slower:
        writer.heading(t["slower"], 3)
        writer.say(t["slower_text"])
        rows = [[each["option"], times(each["times"]), each["source"]] for each in slower]
        writer.table(t["slower"], ("option", "times", "origin"), rows)
    writer.heading(t["advice"], 3)
    writer.items(t["advice_items"])


def _prices(writer: Writer, cost: Mapping[str, Any]) -> None:
    """Write every price that was used, with its source and date."""
    bought = any(price["years"] is not None for price in cost["prices"])
    heads = ["hardware", "price", "paid"] + ["years", "use"] * bought + ["source", "date"]
    rows: list[list[Cell]] = []
    for price in cost["prices"]:
        amount = Figure(price["amount"], f"{all_digits(price['amount'])} {price['currency']}")
        use = [exact(price["years"]), percent(price["use"])] * bought
        rows.append([price["gpu"], amount, _per(writer, price["per"]), *use, price["source"], price["date"]])
    writer.table(writer.t["prices"], heads, rows)


def _offers(writer: Writer, title: str, offers: Sequence[Mapping[str, Any]], currency: str) -> None:
    hourly, cost = (f"{writer.t['columns'][name]}, {currency}" for name in ("hourly", "cost"))
    rows = [
        [
            offer["name"],
            f"{offer['gpu']}, {_per(writer, offer['per'])}",
            *(figure(offer[key]) for key in ("hourly", "hours", "cost")),
            offer["source"],
        ]
        for offer in offers
    ]
    writer.table(title, ("option", "hardware", hourly, "hours", cost, "origin"), rows)


def _per(writer: Writer, per: str) -> str:
    return str(writer.t["per"].get(per, per))


def _times(writer: Writer, cost: Mapping[str, Any]) -> None:
    """Write time, cost and energy of every option, for a million samples, an epoch and the whole task."""
    names, colon = writer.t["columns"], writer.t["colon"]
    priced, powered = bool(cost["prices"]), any(row["kwh"] is not None for row in cost["rows"])
    paid = any(row["energy_cost"] is not None for row in cost["rows"]) and bool(writer.e["electricity"])
    heads = ["option", "hardware"]
    if priced:
        heads.append(f"{names['hourly']}, {cost['currency']}")
    for span in ("million", "epoch", "total"):
        heads.append(f"{names[span]}{colon}{names['hours']}")
        if priced:
            heads.append(f"{names[span]}{colon}{names['cost']}, {cost['currency']}")
    heads += ["kwh"] * powered
    heads += [f"{names['energy_cost']}, {cost['currency']}"] * paid
    rows: list[list[Cell]] = []
    for row in cost["rows"]:
        gpu = writer.recorded(row["gpu"] or "CPU")
        cells: list[Cell] = [row["name"], f"{gpu}, {_per(writer, row['per'])}" if row["per"] else gpu]
        if priced:
            cells.append(figure(row["hourly"]))
        for span in ("million", "epoch", "total"):
            cells.append(figure(row[span]["hours"]))
            if priced:
                cells.append(figure(row[span]["cost"]))
        cells += [figure(row["kwh"])] * powered
        cells += [figure(row["energy_cost"])] * paid
        rows.append([*cells, row["source"]])
    writer.table(writer.t["all_offers"], (*heads, "origin"), rows)


def _problems(writer: Writer) -> None:
    e, t = writer.e, writer.t
    writer.heading(t["problems"])
    rows = [
        [each["campaign"], each["case"], whole(each["repeat"]), writer.translate(each["reason"])]
        for each in e["problems"]
    ]
    writer.table(t["problems"], ("campaign", "case", "repeat", "reason"), rows)
    if not rows:
        writer.say(t["problems_none"])
    writer.own("problems")


def _appendix(writer: Writer) -> None:
    e, t = writer.e, writer.t
    writer.heading(t["appendix"])
    writer.heading(t["campaigns"], 3)
    rows: list[list[Cell]] = [
        [
            campaign["name"],
            campaign["started"] or t["not_recorded"],
            whole(campaign["runs"]["good"]),
            whole(campaign["runs"]["planned"]),
        ]
        for campaign in e["campaigns"]
    ]
    writer.table(t["campaigns"], ("campaign", "started", "good", "planned"), rows)
    writer.heading(t["commands"], 3)
    for campaign in e["campaigns"]:
        writer.code(campaign["name"], "\n".join(campaign["commands"]) or NONE)
    writer.heading(t["checksums"], 3)
    writer.table(t["checksums"], ("file", "SHA-256"), [list(each) for each in e["checksums"].items()])
