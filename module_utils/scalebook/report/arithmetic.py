# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections about what devices did: their arithmetic, and what workloads report themselves."""

from __future__ import annotations

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Paragraph, Table, sheet_only
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean

UNITS = {"_per_second": "/s", "_mib": ", GiB"}
"""Ends of the names of metrics, and what people read."""
MIB_PER_GIB = 1024


def flops(view: View) -> list[Block]:
    """Return the section of the arithmetic per device, nothing where no workload declares it."""
    _ = view.wording
    if not view.document["mfu"]:
        return []
    about = _("report.flops")
    title = _("title.mfu")
    return [Heading(2, title, "mfu"), Paragraph(about, "soft"), table(view)._replace(label=title)]


def table(view: View) -> Table:
    """Return the table of the arithmetic per device."""
    _ = view.wording
    short = view.short_names
    columns = [
        *view.case_columns(),
        Column("unit"),
        Column("flop", kind="giga", sheet="flop_per_sample"),
        Column("tflops", kind="digits", look="main", sheet="tflops_per_device"),
        Column("peak_tflops", kind="exact"),
        Column("mfu", kind="percent", look="main", sheet="mfu"),
        Column("peak_tflops", "", "exact", only="sheet", sheet="peak_tflops_per_device"),
        *sheet_only("peak_of"),
        Column("about"),
    ]
    rows = [
        {
            **entry,
            "label": clean(entry["label"]),
            "group": short[entry["case"]],
            "unit": _.name("unit", entry["unit"]),
            "peak_of": _.tell(entry["peak_of"]) if entry["peak_of"] else None,
            "about": view.wording.tell(entry["peak_of"] or entry["reason"] or ""),
        }
        for entry in view.document["mfu"]
    ]
    return Table("", columns, rows)


def reported(view: View) -> list[Block]:
    """Return a section for each workload that reports metrics itself."""
    _ = view.wording
    short = view.short_names
    # The table of the MFU has it, of the median rate.
    elsewhere = ["mfu"] if any(entry["mfu"] is not None for entry in view.document["mfu"]) else []
    about = _("report.medians")
    blocks: list[Block] = []
    for index, table in enumerate(view.document["self_reported"], 1):
        names = [name for name in table["columns"] if name not in elsewhere]
        columns = [Column(f"of {name}", _in_words(clean(name)), "digits") for name in names]
        rows = [
            {
                "case": " ".join(filter(None, [clean(row["label"]), short[row["case"]]])),
                **{f"of {name}": _metric(name, row["values"].get(name, "")) for name in names},
                "runs": row["runs"],
            }
            for row in table["rows"]
        ]
        title = _("title.reported", workload=clean(table["workload"]))
        columns = [Column("case"), *columns, Column("runs", kind="count")]
        blocks += [
            Heading(2, title, f"reported{index}"),
            Paragraph(about, "soft", only="html"),
            Table("", columns, rows, title, look="names"),
            Paragraph(about, only="md"),
        ]
    return blocks


def _in_words(name: str) -> str:
    """Return what people call a metric of a workload: `peak_memory, GiB` for `peak_memory_mib`."""
    for end, unit in UNITS.items():
        name = name.removesuffix(end) + unit if name.endswith(end) else name
    return name


def _metric(name: str, value: str) -> float | str:
    """Return the value of a metric, as a number where it is one."""
    try:
        number = float(value)
    except ValueError:
        return clean(value)
    return number / MIB_PER_GIB if name.endswith("_mib") else number
