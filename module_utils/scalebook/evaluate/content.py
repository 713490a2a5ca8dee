# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.json -> the parts of the document in one language: headings, texts, tables and charts.

Every number of the conclusion and of the texts is in a table as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.evaluate import criteria, drawing
from ansible.module_utils.scalebook.evaluate.blocks import (
    Block,
    Cell,
    Chart,
    Code,
    Figure,
    Heading,
    Items,
    Paragraph,
    Table,
)
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED
from ansible.module_utils.scalebook.text import readable

KEYS = ("framework", "cuda", "cudnn", "nccl", "mpi", "python", "compiler", "campaign")


class Content:
    """The document while it is written: its blocks, and the numbers of its sections and tables."""

    def __init__(self, evaluation: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
        """Write all sections; `texts` are those of a language, templates/evaluation.<language>.yml."""
        self.e, self.t, self.columns = evaluation, texts, texts["columns"]
        self.blocks: list[Block] = []
        self.section = self.tables = 0
        self._introduction()
        self._background()
        for family in evaluation["families"]:
            self._family(family)
        self._criteria()
        self._cost()
        self._problems()
        self._appendix()

    def _heading(self, text: str) -> None:
        self.section += 1
        self.tables = 0
        self.blocks.append(Heading(2, f"{self.section} {text}"))

    def _sub(self, text: str) -> None:
        self.blocks.append(Heading(3, text))

    def _say(self, *texts: str) -> None:
        self.blocks += [Paragraph(text) for text in texts if text]

    def _own(self, name: str) -> None:
        """Add the user's own paragraphs of a section."""
        self._say(*str(self.e["texts"].get(name) or "").strip().split("\n\n"))

    def _table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        if rows:
            self.tables += 1
            number = f"{self.section}-{self.tables}"
            caption = self.t["caption"].format(number, title)
            self.blocks.append(Table(caption, [self.columns.get(name, name) for name in head], rows))

    def _introduction(self) -> None:
        self._heading(self.t["introduction"])
        self._say(self.t["about"])
        self._sub(self.t["conclusion"])
        self.blocks.append(Items(conclusion(self.e, self.t)))
        self._own("introduction")

    def _background(self) -> None:
        t = self.t
        self._heading(t["background"])
        self._sub(f"2.1 {t['platform']}")
        self._say(self.e["platform"] or t["not_recorded"])
        self._own("platform")
        self._sub(f"2.2 {t['frameworks']}")
        heads = ("workload", "software", "CUDA", "cuDNN", "NCCL", "MPI", "Python", "compiler", "campaign")
        rows = [[line[key] for key in ("title", *KEYS)] for line in self.e["frameworks"]]
        self._table(t["frameworks"], heads, rows)
        self._own("frameworks")
        self._sub(f"2.3 {t['environment']}")
        found = []
        for campaign in self.e["campaigns"]:
            text = "; ".join(campaign["hardware"]) or t["not_recorded"]
            if campaign["simulated"]:
                text += "; " + t["simulated"].format(**campaign["simulated"])
            found.append([campaign["name"], text])
        self._table(t["environment"], ("campaign", "hardware"), found)
        for campaign in self.e["campaigns"]:
            for text in campaign["topology"]:
                self.blocks.append(Code(f"nvidia-smi topo -m, {campaign['name']}", text))
        for number, name in enumerate(("configuration", "rules", "metrics"), 4):
            self._sub(f"2.{number} {t[name]}")
            self._say(t[f"{name}_text"])
            self._own(name)

    def _family(self, family: Mapping[str, Any]) -> None:
        t, columns, unit = self.t, self.columns, family["options"][0]["unit"]
        self._heading(t["results"].format(family["name"]))
        rows: list[list[Cell]] = [
            [
                option["name"],
                self._recorded(option["gpu"] or "CPU"),
                figure(option["rate"]),
                figure(option["slowest"]),
                figure(option["fastest"]),
                "–" if option["efficiency"] is None else percent(option["efficiency"]),
                Figure(option["runs"], str(option["runs"])),
                option["source"],
            ]
            for option in family["options"]
        ]
        rate = f"{columns['rate']}, {unit}/s"
        head = ("option", "hardware", rate, "slowest", "fastest", "efficiency", "runs", "campaign")
        self._table(t["throughput"], head, rows)
        self.blocks += [Chart(svg) for svg in drawing.of_family(family, f"family{self.section}", t)]
        self._sub(t["ranking"])
        lines = family["ranking"]
        self.blocks.append(Items([ranked(line, t) for line in lines] or [t["no_ranking"]]))
        gains = [
            [line["first"], line["other"], *(gain(line[key]) for key in ("times", "least", "most"))]
            for line in lines
        ]
        self._table(t["ranking"], ("first", "other", "faster", "least", "most"), gains)
        self._sub(t["differences"])
        self._say(t["differences_text" if family["differences"] else "differences_none"])
        found = [
            [t["facts"][each["what"]], self._recorded(entry["value"]), ", ".join(entry["of"])]
            for each in family["differences"]
            for entry in each["values"]
        ]
        self._table(t["differences"], ("what", "value", "workload"), found)
        self._own(family["name"])

    def _recorded(self, value: str) -> str:
        """Return a fact about a row, in the language of the document where no record says it."""
        return str(self.t["not_recorded"]) if value == NOT_RECORDED else value

    def _criteria(self) -> None:
        t = self.t
        self._heading(t["criteria"])
        rows = [
            [criterion(each, t), t["verdicts"][each["verdict"]], evidence(each)]
            for each in self.e["criteria"]
        ]
        self._table(t["criteria"], ("criterion", "verdict", "evidence"), rows)
        if self.e["extrapolations"]:
            self._sub(t["extrapolation"])
            self._say(t["extrapolation_text"])
            self.blocks.append(Items([extrapolated(each, t) for each in self.e["extrapolations"]]))
            fits = [(each["name"], each["fit"]) for each in self.e["extrapolations"] if each["fit"]]
            head = ("option", "measured_from", "measured_to", "machines", "efficiency", "least", "most")
            shares = ("efficiency", "least", "most")
            counts = [
                [
                    name,
                    *(
                        whole(count)
                        for count in (fit["measured"][0][0], fit["measured"][-1][0], fit["machines"])
                    ),
                ]
                for name, fit in fits
            ]
            rows = [
                [*count, *(percent(fit[share]) for share in shares)]
                for count, (_, fit) in zip(counts, fits, strict=True)
            ]
            self._table(t["extrapolation"], head, rows)

    def _cost(self) -> None:
        t, task = self.t, self.e["task"]
        self._heading(t["cost"])
        row = [task["name"], *(Figure(task[key], asked(task[key])) for key in ("samples", "epochs", "total"))]
        self._table(t["task"], ("task", "samples", "epochs", "total"), [row])
        for number, cost in enumerate(self.e["costs"]):
            self._sub(cost["name"])
            if not cost["offers"]:
                self._say(t["no_cost"])
                continue
            self._table(t["prices"], ("price",), [[price] for price in cost["prices"]])
            self._say(t["front_text"])
            self._offers(t["front"], cost["front"], cost["currency"])
            chart = drawing.of_cost(cost, f"cost{number}", t)
            self.blocks += [Chart(chart)] if chart else []
            wanted = []
            if self.e["deadline_hours"]:
                name = t["within_deadline"].format(asked(self.e["deadline_hours"]))
                wanted.append([name, names(cost["within_deadline"]) or t["nothing_within"]])
            if self.e["budget"]:
                name = t["within_budget"].format(asked(self.e["budget"]), cost["currency"])
                wanted.append([name, names(cost["within_budget"]) or t["nothing_within"]])
            self._table(t["wanted"], ("question", "option"), wanted)
            self._offers(t["all_offers"], cost["offers"], cost["currency"])
            if cost["without_price"]:
                self._say(t["without_price"].format(", ".join(cost["without_price"])))
        slower = self.e["slower_than_one"]
        if slower:
            self._sub(t["slower"])
            self._say(t["slower_text"])
            rows = [
                [each["option"], Figure(each["times"], f"{each['times']:.2f}"), each["source"]]
                for each in slower
            ]
            self._table(t["slower"], ("option", "times", "campaign"), rows)

    def _offers(self, title: str, offers: Sequence[Mapping[str, Any]], currency: str) -> None:
        hourly, cost = (f"{self.columns[name]}, {currency}" for name in ("hourly", "cost"))
        rows = [
            [
                offer["name"],
                f"{offer['gpu']}, {offer['per']}",
                *(figure(offer[key]) for key in ("hourly", "hours", "cost")),
                offer["source"],
            ]
            for offer in offers
        ]
        self._table(title, ("option", "hardware", hourly, "hours", cost, "campaign"), rows)

    def _problems(self) -> None:
        self._heading(self.t["problems"])
        rows = [
            [each["campaign"], each["case"], whole(each["repeat"]), each["reason"]]
            for each in self.e["problems"]
        ]
        self._table(self.t["problems"], ("campaign", "case", "repeat", "reason"), rows)
        if not rows:
            self._say(self.t["problems_none"])
        self._own("problems")

    def _appendix(self) -> None:
        self._heading(self.t["appendix"])
        rows = [
            [
                campaign["name"],
                campaign["started"] or self.t["not_recorded"],
                whole(campaign["runs"]["good"]),
                whole(campaign["runs"]["planned"]),
            ]
            for campaign in self.e["campaigns"]
        ]
        self._table(self.t["campaigns"], ("campaign", "started", "good", "planned"), rows)
        for campaign in self.e["campaigns"]:
            self.blocks.append(
                Code(f"{self.t['parameters']}, {campaign['name']}", command(campaign["parameters"]))
            )


def blocks(evaluation: Mapping[str, Any], texts: Mapping[str, Any]) -> list[Block]:
    """Return the document; `texts` are those of a language."""
    return Content(evaluation, texts).blocks


def figure(value: float) -> Figure:
    """Return a measured or computed number, four digits of it shown."""
    return Figure(value, readable(value))


def whole(value: Any) -> Cell:
    """Return a count, or what a record has in its place."""
    return Figure(value, str(value)) if isinstance(value, int) else str(value)


def percent(share: float) -> Figure:
    """Return a share in per cent, its value unscaled."""
    return Figure(share, f"{100 * share:.1f} %")


def asked(value: float) -> str:
    """Return a number that the user gave, with all its digits: 40, 0.5, 1,994,187."""
    return f"{value:,.15g}"


def gain(times: float) -> Figure:
    """Return how much faster a quotient of rates is, in per cent: 1.234 is 23.4."""
    return Figure(times - 1, f"{100 * (times - 1):.1f} %")


def names(offers: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of offers, each once."""
    return ", ".join(dict.fromkeys(offer["name"] for offer in offers))


def command(parameters: Mapping[str, Any]) -> str:
    """Return the parameters of a campaign as -e takes them."""

    def text(value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        return ",".join(str(each).lower() if isinstance(each, bool) else str(each) for each in values)

    return '-e "' + " ".join(f"{name}={text(each)}" for name, each in parameters.items()) + '"'


def ranked(line: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    """Return who is faster by how much; ranges that enclose no difference show none."""
    chosen = texts["ranking_tie" if line["least"] <= 1 <= line["most"] else "ranking_line"]
    shares = {
        key: gain(line[of]).text[:-2]
        for key, of in (("percent", "times"), ("least", "least"), ("most", "most"))
    }
    return str(chosen).format(first=line["first"], other=line["other"], **shares)


def extrapolated(each: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    """Return an extrapolation in words, or why there is none."""
    fit = each["fit"]
    if not fit:
        return str(texts["extrapolation_refused"]).format(name=each["name"], why=each["refused"])
    shares = {
        key: percent(fit[of]).text[:-2]
        for key, of in (("percent", "efficiency"), ("least", "least"), ("most", "most"))
    }
    ends = {"first": fit["measured"][0][0], "last": fit["measured"][-1][0]}
    return str(texts["extrapolation_line"]).format(
        name=each["name"], machines=fit["machines"], **shares, **ends
    )


def criterion(verdict: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    """Return a criterion in words."""
    name = f"criterion_{verdict['criterion']}"
    if verdict["criterion"] == "ahead" and not verdict["limit"]["workload"]:
        name = "criterion_ahead_of_none"
    limits = {key: f"{each:g}" if isinstance(each, float) else each for key, each in verdict["limit"].items()}
    return str(texts[name]).format(**limits)


def evidence(verdict: Mapping[str, Any]) -> str:
    """Return what a criterion was judged by, up to five of it, what did not meet it first."""
    ordered = sorted(verdict["evidence"], key=lambda each: each[2] == criteria.MET)
    shown = [f"{name}: {readable(value)} {verdict['unit']}" for name, value, _ in ordered[:5]]
    more = len(ordered) - len(shown)
    return "; ".join(shown + [f"… (+{more})"] * bool(more)) or "–"


def conclusion(evaluation: Mapping[str, Any], texts: Mapping[str, Any]) -> list[str]:
    """Return the sentences of the conclusion, all made from the figures of the document."""
    lines = []
    for family in evaluation["families"]:
        best = max(family["options"], key=lambda option: float(option["rate"]))
        said = texts["fastest_of"].format(family["name"], readable(best["rate"]), best["unit"], best["name"])
        lines.append(said)
    for verdict in evaluation["criteria"]:
        lines.append(criterion(verdict, texts) + texts["colon"] + texts["verdicts"][verdict["verdict"]])
    for cost in evaluation["costs"]:
        if cost["offers"]:
            task = f"{evaluation['task']['name']}, {cost['name']}"
            cheapest, fastest = cost["cheapest"], cost["fastest"]
            price = f"{readable(cheapest[0]['cost'])} {cost['currency']}"
            lines.append(texts["cheapest_of"].format(task, price, named(cheapest, texts)))
            lines.append(
                texts["quickest_of"].format(task, readable(fastest[0]["hours"]), named(fastest, texts))
            )
    return lines


def named(offers: list[Mapping[str, Any]], texts: Mapping[str, Any]) -> str:
    """Return the name of the best option, or the names of those that tie."""
    names = list(dict.fromkeys(f"{offer['name']}, {offer['gpu']}" for offer in offers))
    return names[0] if len(names) == 1 else str(texts["tie"]).format("; ".join(names))
