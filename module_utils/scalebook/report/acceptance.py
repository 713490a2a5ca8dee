# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""acceptance.json -> the acceptance document: verdict, criteria, evidence, links, error rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.accept.contracts import (
    CRITERIA,
    EQUALS,
    HALF,
    LAUNCH,
    LINK,
    Acceptance,
)
from ansible.module_utils.scalebook.accept.document import criteria_of
from ansible.module_utils.scalebook.accept.reasons import cause_sentence, connection_lines
from ansible.module_utils.scalebook.pages import catalogue, html
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Chart,
    Code,
    Column,
    Heading,
    Items,
    Paragraph,
    Table,
    titled,
)
from ansible.module_utils.scalebook.pages.heat_map import heat_map
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report.acceptance_lines import drain, part_name

LIMITS = ("fast", "half", "end", "together", "later", "training")
"""What a verdict does not say: docs/reference/acceptance.md has the same."""


def documents(acceptance: Acceptance, templates: str) -> dict[str, str]:
    """Return the document of each language by the name of its file."""
    texts = {}
    for language in catalogue.LANGUAGES:
        _ = Wording(language, for_people=True)
        texts[f"acceptance.{language}.html"] = html.document(
            _("acceptance.title"), blocks(acceptance, _), _, templates
        )
    return texts


def blocks(acceptance: Acceptance, wording: Wording) -> list[Block]:
    """Return the document; acceptance is the content of acceptance.json."""
    _ = wording
    return [
        *_verdict(acceptance, _),
        *_criteria(acceptance, _),
        *_evidence(acceptance, _),
        *_rates(acceptance, _),
    ]


def _verdict(acceptance: Acceptance, wording: Wording) -> list[Block]:
    _ = wording
    lines = [
        _("acceptance.nodes", verdict=_(f"acceptance.{each}"), nodes=", ".join(acceptance[each]))
        for each in ("good", "bad", "unclear")
        if acceptance[each]
    ]
    lines += [_.tell(cause_sentence(cause)) for cause in acceptance["faults"]]
    lines += [_.about(part_name(each, _), _.tell(each["reason"])) for each in acceptance["problems"]]
    verdict_blocks: list[Block] = [
        Heading(2, _("acceptance.verdict")),
        Paragraph(_("acceptance.accepted" if acceptance["accepted"] else "acceptance.not-accepted")),
        Items(lines),
        Paragraph(_("acceptance.when", moment=_.moment(_stamp(acceptance["time"]))), "soft"),
    ]
    if acceptance["bad"]:
        commands = [f"--limit '{acceptance['limit']}'", *drain(acceptance)]
        verdict_blocks.append(Code(_("acceptance.commands"), "\n".join(commands)))
    return (
        [*verdict_blocks, Paragraph(_("page.repeat") + acceptance["command"], "soft")]
        if acceptance["command"]
        else verdict_blocks
    )


def _stamp(time: str) -> str:
    return time.replace("+00:00", "Z")


def _criteria(acceptance: Acceptance, wording: Wording) -> list[Block]:
    _, criteria = wording, acceptance["criteria"]
    quantities = sorted(criteria_of(acceptance["findings"]))
    rows = [
        {
            "quantity": _.name("acceptance.of", name),
            "least": criteria["by_quantity"].get(name, {}).get("least", criteria["least"]),
            "at_least": criteria["by_quantity"].get(name, {}).get("at_least"),
        }
        for name in quantities
    ]
    columns = [
        Column("quantity", _("acceptance.quantity")),
        Column("least", _("acceptance.least"), "percent"),
        Column("at_least", _("acceptance.at-least"), "readable", "–"),
    ]
    source = _("acceptance.criteria-of", title=criteria["title"]) if criteria["title"] else ""
    about = [Paragraph(source)] if source else []
    return titled(_("acceptance.criteria"), "", Table(columns, rows), *about)


def _evidence(acceptance: Acceptance, wording: Wording) -> list[Block]:
    _ = wording
    columns = [
        Column("part", _("acceptance.part")),
        Column("quantity", _("acceptance.quantity")),
        Column("rate", _("acceptance.rate"), "readable", "–"),
        Column("unit", _("acceptance.unit")),
        Column("ratio", _("acceptance.ratio"), "percent", "–"),
        Column("against", _("acceptance.against")),
        Column("measurements", _("acceptance.measurements"), "count"),
        Column("verdict", _("acceptance.verdict")),
    ]
    rows = [_row(row, _) for row in acceptance["findings"]]
    shares = {
        (row["nodes"][0], row["nodes"][1]): row["ratio"]
        for row in acceptance["findings"]
        if row["quantity"] == LINK and row["ratio"]
    }
    picture = heat_map(
        acceptance["nodes"], shares, _("acceptance.links"), _("acceptance.links-about"), "links"
    )
    charts: list[Block] = [Chart(_("acceptance.links-caption"), picture)] if picture else []
    connected = [*map(_.tell, connection_lines(acceptance))]
    network: list[Block] = [Heading(2, _("acceptance.network")), Items(connected)] if connected else []
    return [*titled(_("acceptance.evidence"), "", Table(columns, rows), *charts), *network]


def _row(evidence: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Return a row of the evidence; of launches the time of one is shown."""
    _, launch = wording, evidence["quantity"] == LAUNCH
    words = {EQUALS: _("acceptance.equals"), HALF: _("acceptance.half"), CRITERIA: _("acceptance.asked-for")}
    against = words.get(evidence["against"], evidence["against"])
    return {
        **evidence,
        "part": part_name(evidence, _),
        "quantity": _.name("acceptance.of", evidence["quantity"]),
        "rate": 1e6 / evidence["rate"] if launch else evidence["rate"],
        "unit": "µs" if launch else evidence["unit"],
        "against": against or _("acceptance.no-reference"),
        "verdict": _("acceptance." + evidence["verdict"].replace(" ", "-")),
    }


def _rates(acceptance: Acceptance, wording: Wording) -> list[Block]:
    _, criteria = wording, acceptance["criteria"]
    promise = _("acceptance.promise", false=criteria["false_alarms"], misses=criteria["misses"])
    limits = [_(f"acceptance.not-{name}") for name in LIMITS]
    return [
        Heading(2, _("acceptance.errors")),
        Paragraph(promise),
        Paragraph(_("acceptance.simulated")),
        Heading(2, _("acceptance.limits")),
        Items(limits),
    ]
