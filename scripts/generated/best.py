# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/performance.md: the best sound rate of each workload on each GPU, from the archives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.contracts import ENOUGH_RUNS, Group, Hardware, Mfu, Results, Row
from ansible.module_utils.scalebook.files import read_table
from ansible.module_utils.scalebook.hardware import of_case
from ansible.module_utils.scalebook.judge.flags import LEVELS
from ansible.module_utils.scalebook.judge.headings import named, words_of
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.workload import Workload, Workloads

from generated.text import ROOT, table, with_table

PAGE = "docs/performance.md"
HARMLESS = {code for code, level in LEVELS.items() if level == "note"} | {"machine-changed"}
"""The flags that a sound row may have."""
UNKNOWN_GPU = "GPU, not recorded"
HEAD = "workload|GPUs|case|rate per GPU|efficiency|MFU|DLPerf, V100|campaign".split("|")


class Best(NamedTuple):
    """A row of a campaign with what the table says of it."""

    campaign: str
    gpu: str
    group: Group
    row: Row
    share: Mfu | None


def gpu_of(hardware: Sequence[Hardware], row: Row, share: Mfu | None) -> str:
    """Return the GPU that the records of a case name, or its own log; UNKNOWN_GPU if neither does."""
    names = {gpu["name"] for entry in of_case(hardware, row) for gpu in entry.get("gpus") or ()}
    peak = share and share["peak_of"]
    if not names and peak and peak["code"] == "mfu.reported":
        names = {catalogue.sentence(peak).partition(",")[0]}
    return (
        " and ".join(sorted(name.removeprefix("NVIDIA ").removesuffix(" 80GB HBM3") for name in names))
        or UNKNOWN_GPU
    )


def is_sound(row: Row) -> bool:
    """Return whether a rate can be quoted: three valid runs on GPUs, and no flag that speaks against it."""
    flags = {flag["code"] for flag in row["flags"]}
    return row["device"] == "gpu" and row["good"] >= ENOUGH_RUNS and flags <= HARMLESS


def sound(campaigns: Iterable[tuple[str, Results]]) -> Iterator[Best]:
    """Yield the sound rows of campaigns."""
    for name, results in campaigns:
        groups = {group["id"]: group for group in results["groups"]}
        shares = {line["case"]: line for line in results["mfu"]}
        for row in filter(is_sound, results["rows"]):
            share = shares.get(row["case"])
            yield Best(name, gpu_of(results["hardware"], row, share), groups[row["group"]], row, share)


def chosen(every: Iterable[Best], workloads: Workloads) -> list[Best]:
    """Return the fastest row per workload, model, size of a sample and GPU: of one GPU, and of the most.

    Rows whose GPU no record names stand only for workloads that have no others.
    """
    kinds: dict[tuple[Any, ...], dict[str, dict[int, Best]]] = {}
    for each in every:
        group = each.group
        size = workloads[group["workload"]].sample_size(group["settings"] or {})
        key = (group["family"], group["workload"], group["model"], size or 0)
        best = kinds.setdefault(key, {}).setdefault(each.gpu, {})
        devices = each.row["devices"]
        if devices not in best or (best[devices].row["median"] or 0) < (each.row["median"] or 0):
            best[devices] = each
    lines = []
    for _, gpus in sorted(kinds.items()):
        for gpu, best in sorted(gpus.items()):
            if gpu != UNKNOWN_GPU or len(gpus) == 1:
                lines += [best[devices] for devices in sorted({min(best), max(best)})]
    return lines


def case(group: Group, workload: Workload) -> str:
    """Return what tells the case apart: precision, compiler, batch, and settings that are not the default."""
    usual = workload.setting_defaults
    prefix = f"{workload.name}_"
    own = {name: value for name, value in (group["settings"] or {}).items() if f"{prefix}{name}" in usual}
    unusual = {name: value for name, value in own.items() if value != usual[f"{prefix}{name}"]}
    words = words_of(group, ["dtype", "xla", "bsz", "accumulation"])
    return catalogue.sentence(named([*words, *words_of({"settings": unusual}, ["settings"])]))


def counterpart(best: Best, workload: Workload, rows: Iterable[published.PublishedRow]) -> str:
    """Return the best rate per GPU that DLPerf published of the same on as many GPUs, if it did."""
    names = workload.dlperf
    if not names or names.differs:
        return "–"
    model = names.models.get(best.group["model"])
    same = [
        row
        for row in rows
        if (row["framework"] in names.frameworks and row["model"] == model)
        and (row["devices"], row["nodes"]) == (best.row["devices"], 1)
        and not published.warning(row["variant"])
        and names.fits(row["variant"], best.group["settings"] or {})
    ]
    if not same:
        return "–"
    fastest = max(same, key=lambda row: row["rate"])
    precision = fastest["dtype"] + (" XLA" if fastest["xla"] else "")
    return f"{fastest['rate'] / fastest['devices']:,.0f} ({precision} b{fastest['bsz']})"


def cells(best: Best, workload: Workload, rows: Iterable[published.PublishedRow]) -> tuple[str, ...]:
    """Return the cells of HEAD."""
    group, row, share = best.group, best.row, best.share["mfu"] if best.share else None
    devices = row["devices"]
    rate = (row["median"] or 0) / devices
    folder, campaign = best.campaign.split("/")
    efficiency = "–" if devices == 1 or row["efficiency"] is None else f"{100 * row['efficiency']:.1f} %"
    care = [flag["code"] for flag in row["flags"] if LEVELS[flag["code"]] == "care"]
    return (
        *(f"{group['workload']}, {group['model']}", f"{devices} × {best.gpu}", case(group, workload)),
        *(f"{rate:,.{0 if rate >= 100 else 2}f} {row['unit']}/s", efficiency),
        *("–" if share is None else f"{100 * share:.1f} %", counterpart(best, workload, rows)),
        " ".join([f"[{campaign}](results/{folder}/README.md#{campaign.lower()})", *care]),
    )


def files(campaigns: Iterable[tuple[str, Results]], workloads: Workloads) -> dict[str, str]:
    """Return the page with its table as the archives are; `campaigns` are those of docs/results by name."""
    rows = [
        row
        for name in ("dlperf-published-results.csv", "dlperf-insightface.csv")
        for row in read_table(ROOT / "data" / name, published.read)
    ]
    new_table = table(
        HEAD,
        (
            cells(best, workloads[best.group["workload"]], rows)
            for best in chosen(sound(campaigns), workloads)
        ),
    )
    return with_table(PAGE, "best", new_table)
