# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/results: the numbers of the measured campaigns, from their archives.

numbers.csv has every run of a folder and is what the code of another day is compared with; the end of
README.md has its cases.  Reports are made where somebody wants them, such as for the site.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import statistics
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ansible.module_utils.scalebook.contracts import Results, Row, Run
from ansible.module_utils.scalebook.files import read_table
from ansible.module_utils.scalebook.judge import mfu
from ansible.module_utils.scalebook.judge.campaign import Campaign
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.report import index as campaigns
from ansible.module_utils.scalebook.report import index_page, render
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import ARCHIVE, packed_campaigns
from ansible.module_utils.scalebook.workloads import load_workloads

from generated import best, pooled, times
from generated.text import ROOT, table

FOLDER = ROOT / "docs/results"
MARK = "<!-- scripts/pages writes what follows, from the archives -->"
PICTURE, PICTURED = "docs/throughput.svg", "h200x4-2026-11-21/scaling"
RUN = ("campaign", "case", "repeat", "status", "rate", "step_seconds", "mfu", "joules_per_sample")
RATES = ("setting", "nodes", "devices", "runs", "rate", "spread", "speedup", "efficiency", "MFU", "J/sample")
CASE = (*RATES, "bottleneck", "flags")


@functools.cache
def _tables() -> tuple[Any, Any]:
    return load_workloads([str(ROOT / "roles")]), read_table(ROOT / "data/gpus.csv", mfu.read_peaks)


def read(top: Path) -> tuple[Campaign, Results]:
    """Return the campaign in a directory, and its results as report.yml makes them."""
    workloads, peaks = _tables()
    campaign = load_campaign(top)
    return campaign, build_results(campaign, workloads, peaks=peaks)


def in_folder(folder: Path) -> list[Path]:
    """Return the campaigns of a folder: those in its archive, and those that have one of their own."""
    packed = [folder / name for name in packed_campaigns(folder / ARCHIVE)]
    return sorted([*packed, *(archive.parent for archive in folder.glob(f"*/{ARCHIVE}"))])


@functools.cache
def report(name: str) -> dict[str, bytes]:
    """Return the files of the report on a campaign, such as h200x4-2026-11-21/scaling."""
    rendered = render.files(read(FOLDER / name)[1], str(ROOT / "templates"))
    return {file: text.encode() if isinstance(text, str) else text for file, text in rendered.items()}


def digits(value: float | None) -> str:
    """Return a number with six significant digits, nothing for none."""
    return "" if value is None else f"{value:.6g}"


def percent(value: float | None) -> str:
    """Return a share in per cent, a dash for none."""
    return "–" if value is None else f"{100 * value:.1f} %"


def runs(campaign: Campaign, results: Results) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of RUN of each run, in the order of cases."""
    rows = {row["case"]: row for row in results["rows"]}
    shares = {line["case"]: line for line in results["mfu"]}
    for run in sorted(campaign.runs, key=lambda run: (run["case"], run["repeat"])):
        row, share = rows[run["case"]], shares.get(run["case"])
        mfu_of_rate = share["mfu"] / row["median"] if share and share["mfu"] and row["median"] else None
        yield (
            *(results["campaign"], run["case"], run["repeat"], run["status"], digits(run["rate"])),
            digits(statistics.median(run["steps"]) if run["rate"] and run.get("steps") else None),
            digits(mfu_of_rate * run["rate"] if mfu_of_rate and run["rate"] else None),
            digits(joules(run, row["devices"])),
        )


def joules(run: Run, devices: int) -> float | None:
    """Return the joules of a sample, where the power of every device is known."""
    powers = (run.get("utilisation") or {}).get("gpu_power", [])
    return sum(powers) / run["rate"] if run["rate"] and len(powers) == devices else None


def cases(results: Results) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of CASE of each case."""
    titles = {group["id"]: sentence(group["title"]) for group in results["groups"]}
    shares = {line["case"]: line["mfu"] for line in results["mfu"]}
    causes = {line["case"]: ", ".join(line["causes"]) for line in results["bottlenecks"]}
    usage = [line for line in results["utilisation"] if line["quantity"] == "gpu_energy"]
    energy = {line["case"]: f"{line['mean']:.3g}" for line in usage}
    for row in results["rows"]:
        case, runs = row["case"], f"{row['good']}/{row['planned']}"
        yield (
            *(titles[row["group"]], row["nodes"], row["devices"], runs, rate(row)),
            percent(row["spread"] if row["good"] > 1 else None),
            "–" if row["speedup"] is None else f"{row['speedup']:.2f}",
            *(percent(row["efficiency"]), percent(shares.get(case)), energy.get(case, "–")),
            *(causes.get(case) or "–", ", ".join(flag["code"] for flag in row["flags"]) or "–"),
        )


def rate(row: Row) -> str:
    """Return the median rate of a case with its unit."""
    return "–" if row["median"] is None else f"{row['median']:,.2f} {row['unit']}/s"


def files() -> dict[str, str]:
    """Return numbers.csv and README.md of each folder, and what other documents have of the campaigns."""
    new_files = {PICTURE: report(PICTURED)["throughput.svg"].decode()}
    every: list[tuple[str, Results]] = []
    measured: list[tuple[str, Campaign]] = []
    for folder in sorted(archive.parent for archive in FOLDER.glob(f"*/{ARCHIVE}")):
        tops = in_folder(folder)
        read_campaigns = [read(top) for top in tops]
        sheet = io.StringIO()
        writer = csv.writer(sheet, lineterminator="\n")
        writer.writerows([RUN, *(line for each in read_campaigns for line in runs(*each))])
        name = folder.relative_to(ROOT)
        new_files[f"{name}/numbers.csv"] = sheet.getvalue()
        by_hand = (folder / "README.md").read_text().partition(MARK)[0].rstrip()
        new_files[f"{name}/README.md"] = "\n".join(
            [by_hand, "", MARK, "", *tables(tops, [results for _, results in read_campaigns])]
        )
        every += [(f"{folder.name}/{results['campaign']}", results) for _, results in read_campaigns]
        measured += [(f"{folder.name}/{campaign.name}", campaign) for campaign, _ in read_campaigns]
    pages = best.files(every, _tables()[0]) | pooled.files(measured, _tables()[0])
    return new_files | pages | times.files(campaign for _, campaign in measured)


def tables(tops: Sequence[Path], documents: Sequence[Results]) -> Iterator[str]:
    """Yield the lines of the end of README.md: a section per campaign."""
    yield "## Numbers\n"
    yield f"Medians of valid runs; [numbers.csv](numbers.csv) has each run, and [{ARCHIVE}]({ARCHIVE}) the"
    yield "plans, records and logs.\n"
    for top, results in zip(tops, documents, strict=True):
        yield f"### {results['campaign']}\n"
        if (top / ARCHIVE).exists():
            yield f"In [an archive of its own]({top.name}/{ARCHIVE}).\n"
        yield table(CASE, cases(results))


def index(reported: Collection[str]) -> dict[str, str]:
    """Return the page of all measured campaigns, with links to those that are `reported`, and its data."""
    with TemporaryDirectory() as folder:
        for top in (top for archive in FOLDER.glob(f"*/{ARCHIVE}") for top in in_folder(archive.parent)):
            name = top.relative_to(FOLDER).as_posix()
            place = Path(folder) / name / "report"
            place.mkdir(parents=True)
            (place / "results.json").write_text(json.dumps(read(top)[1]), encoding="utf-8")
            if name in reported:
                (place / "report.html").touch()
        reports = campaigns.read(Path(folder), _tables()[0])
        pages = index_page.files(campaigns.build(reports), reports, str(ROOT / "templates"))
    # MkDocs makes index.html there of README.md.
    return {"campaigns.html": pages["index.html"], "index.json": pages["index.json"]}
