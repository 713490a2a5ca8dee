# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Records of the micro-benchmarks -> the blocks of their report: published results beside the device's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import network
from ansible.module_utils.scalebook.contracts import (
    KINDS,
    Interconnect,
    Message,
    MicrobenchRecord,
    message,
)
from ansible.module_utils.scalebook.judge import microbench_records as judge
from ansible.module_utils.scalebook.pages import html, markdown, svg
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Charts,
    Column,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
    Tag,
)
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.report import environment
from ansible.module_utils.scalebook.text import clean

LEAD = ("host", "layer_dtype", "layer_attention", "seconds")
"""What the first sentence says of the operations."""


class View(NamedTuple):
    """What was measured, and how the report says it; the first device is the measured one, if it was.

    `notes` are those of the files that have been `changed`, `names` are those of the files.
    """

    files: judge.Files
    made: Sequence[MicrobenchRecord]
    devices: Sequence[judge.Device]
    wording: Wording = ENGLISH
    notes: Sequence[Message] = ()
    changed: bool = False
    names: Sequence[str] = ()


def texts(view: View, tools: str, templates: str) -> dict[str, str]:
    """Return the text of each file of the report; `tools` have made it."""
    _ = view.wording
    picture = chart(view.devices, _)
    pictures = {"theory.svg": svg.as_file(picture)} if picture else {}
    name = judge.name_of(view.files)
    made_with = _("page.made", tools=tools)
    frame = {
        "title": clean(_("microbench.title-of", device=name) if name else _("microbench.title")),
        "kicker": _("microbench.kicker"),
        "footer": _.join([made_with, _("microbench.whole")], "sentences"),
    }
    view = view._replace(names=["microbench.json", "report.md", *pictures, *view.names])
    first, blocks = head(view), body(view)
    return {
        "report.md": markdown.document(frame["title"], [*first, *blocks], _),
        "report.html": html.page(blocks, first, _, templates, **frame),
        **pictures,
    }


def head(view: View) -> list[Block]:
    """Return what was measured on what, with what, how much of it counts, and how to repeat it."""
    _, files = view.wording, view.files
    result, command = files.results.get("compute"), clean(files.about.get("command") or "")
    machines = environment.machines(files.machines, _)
    shared = environment.shared(judge.simulated(files), _)
    software = [
        _("page.software", software=line) for line in environment.software(judge.provenance(files), _)
    ]
    lines = [_("page.hardware", hardware=line) for line in machines] + software
    hardware = _("page.hardware", hardware=" · ".join(machines))
    lead = _("microbench.lead", **{key: result[key] for key in LEAD}) if result else ""
    blocks: list[Block] = [
        Paragraph(hardware, "lead", "html", parts=[" ", Item(f"({shared})")] if shared else []),
        Paragraph(lead, "lead"),
        Paragraph(shared, "warning", "md"),
        Items([*lines, *([_("page.repeat") + command] if command else [])], only="md"),
        *_verdict(view),
        *(Paragraph(line, "soft", "html") for line in software),
        Paragraph(_("page.repeat") if command else "", "soft", "html", parts=[Item(command, code=True)]),
        Paragraph(_("page.files") + " · ".join(view.names), "soft", "html"),
    ]
    return [each for each in blocks if not isinstance(each, Paragraph) or each.text or each.look == "verdict"]


def _verdict(view: View) -> list[Block]:
    """Return how many measurements count, and which programs failed."""
    _ = view.wording
    rows = [row for record in view.made for row in record["measurements"]]
    good = sum(row["status"] == "ok" for row in rows)
    counting = _("microbench.counts", good=good, all=len(rows))
    failed = [Item(_.tell(why), _("status.failed")) for why in judge.failures(view.made)]
    parts: list[str | Tag | Item] = []
    for each in failed:
        parts += [Tag(each.label, "incomplete"), f" {each.text} "]
    parts += [Tag(_("microbench.changed"), "changed-file", "#notes"), " "] if view.changed else []
    if good < len(rows):
        parts.append(Item(counting, href="#notes"))
    elif rows and not failed:
        parts.append(_("microbench.all-count"))
    return [
        Paragraph(counting, only="md"),
        Items(failed, only="md"),
        Paragraph("", "verdict", "html", parts=parts),
    ]


def body(view: View) -> list[Block]:
    """Return the table of the devices with its notes, the chart, and the collectives."""
    _, (compute, group) = view.wording, (view.files.results.get(kind) for kind in KINDS)
    notes = [_.tell(note) for note in [*judge.notes(view.devices, compute), *view.notes]]
    picture = chart(view.devices, _)
    return [
        table(view.devices, _),
        *(Paragraph(note, only="md") for note in notes),
        Items([Item(note, id="" if number else "notes") for number, note in enumerate(notes)], only="html"),
        *([Charts([{"name": "theory", "title": _("microbench.theory"), "svg": picture}])] if picture else []),
        *(collectives(group, _) if group else []),
        *_connection(view.files.nccl, _),
    ]


def table(devices: Sequence[judge.Device], wording: Wording = ENGLISH) -> Table:
    """Return TFLOP/s of every device as the published table has them, and what its sheet and prices say."""
    _ = wording

    def of_prices(code: str, device: judge.Device) -> str | None:
        figure = device.figures.get(judge.WORK)
        texts = [
            message(code, amount=price.amount, unit=price.unit, work=figure and 1000 * figure / price.amount)
            for price in device.prices
            if figure or code == "microbench.price"
        ]
        return _.join(map(_.tell, texts), "list") or None

    rows: dict[str, list[Any]] = {
        _(title): [[each.figures.get(key) for key in keys] for each in devices]
        for title, keys in judge.TABLE.items()
    }
    rows[_("microbench.memory")] = [
        [each.sheet.get(key) for key in ("memory_gb", "bandwidth_gb_s")] for each in devices
    ]
    if any(each.prices for each in devices):
        per_price = _("microbench.per-price", operation=judge.label(judge.WORK))
        rows[_("microbench.prices-row")] = [of_prices("microbench.price", each) for each in devices]
        rows[per_price] = [of_prices("microbench.per-unit", each) for each in devices]
    columns = [Column("what", "TFLOP/s")]
    columns += [Column(str(index), each.name, "published", "–") for index, each in enumerate(devices)]
    lines = [
        {"what": title, **{str(index): cell for index, cell in enumerate(row)}} for title, row in rows.items()
    ]
    return Table(columns, lines, "TFLOP/s")


def collectives(result: Mapping[str, Any], wording: Wording = ENGLISH) -> list[Block]:
    """Return size, time and bandwidths of each collective."""
    _ = wording
    group = _.join([_.count(result["world_size"], "device"), _.count(result["nodes"], "node")])
    library = f"{result['backend']} {result.get('nccl') or ''}".rstrip()
    title = _("microbench.collectives", group=group, library=library)
    columns = [
        Column("collective", _("microbench.collective")),
        Column("bytes", _("microbench.bytes"), "count"),
        Column("seconds", _("microbench.time"), "microseconds"),
        Column("algbw_gb_per_second", _("microbench.algorithm"), "change"),
        Column("busbw_gb_per_second", _("microbench.bus"), "change"),
    ]
    rows = sorted(result["measurements"], key=lambda each: (each["collective"], each["bytes"]))
    about = Paragraph(_("microbench.as-nccl-tests"), "soft")
    return [Heading(2, title, "collectives"), Table(columns, rows, title), about]


def _connection(nccl: Interconnect | None, wording: Wording) -> list[Block]:
    """Return what NCCL connected the devices by, and what of it is slower than it may be."""
    if not nccl:
        return []
    lines = [message("microbench.connected", how=network.described(nccl)), *network.slower(nccl)]
    return [Items([*map(wording.tell, lines)])]


def chart(devices: Sequence[judge.Device], wording: Wording = ENGLISH) -> str:
    """Return a chart of measured results as shares of the theoretical peaks, as SVG.

    '' where no device has both; at most svg.SERIES devices.
    """
    _ = wording
    series = [(each.name, own) for each in devices if (own := each.shares())][: svg.SERIES]
    rows = []
    for key in judge.KEYS:
        bars = [_bar(index, name, *own[key], _) for index, (name, own) in enumerate(series) if key in own]
        rows += [(_.tell(judge.label(key)), bars)] if bars else []
    return bar_chart(
        rows,
        [name for name, _own in series],
        _("microbench.theory"),
        _("microbench.theory-about"),
        _("microbench.share"),
        "theory",
        [(tick / 100, f"{tick} %") for tick in range(0, 101, 25)],
    )


def _bar(index: int, device: str, rate: float, peak: float, wording: Wording) -> Bar:
    values = {"device": device, "share": rate / peak, "rate": rate, "peak": peak}
    return Bar(
        index, rate / peak, wording("microbench.bar", **values), wording("microbench.bar-note", **values)
    )
