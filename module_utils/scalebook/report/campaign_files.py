# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The records of a campaign -> the files of its report."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.files import read_table
from ansible.module_utils.scalebook.judge import baseline, language_models, mfu
from ansible.module_utils.scalebook.judge.campaign import Baseline, Campaign, ManifestCheck
from ansible.module_utils.scalebook.judge.language_rates import Table
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import render, terminal
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import load_baseline, read_source
from ansible.module_utils.scalebook.store.source import check_place, open_source
from ansible.module_utils.scalebook.store.write import write_manifest, write_report
from ansible.module_utils.scalebook.workload import workloads_of

ROW = (
    "case",
    "group",
    "label",
    "devices",
    "status",
    "good",
    "planned",
    "median",
    "min",
    "max",
    "interval",
    "speedup",
    "speedup_range",
    "speedup_interval",
    "efficiency",
    "spread",
    "flags",
)


def _published(files: Iterable[str]) -> list[published.PublishedRow]:
    """Return the rows of the tables of published results."""
    return [row for file in files for row in read_table(file, published.read)]


def _language_table(params: Mapping[str, Any]) -> Table | None:
    """Return the published rates of language models, None without them."""
    if params["compare"] != "published" or not (params["language_models"] and params["gpus"]):
        return None
    rates = read_table(params["language_models"], language_models.read)
    return Table(rates, read_table(params["gpus"], language_models.gpu_patterns)) if rates else None


def _check(params: Mapping[str, Any]) -> None:
    if render.MISSING:
        raise ValueError(
            "speedup_report needs pandas, XlsxWriter and Jinja2 in the Python of the control node: "
            f"{render.MISSING}; run {sys.executable} -m pip install -r requirements.txt, or "
            "requirements-legacy.txt on ansible-core 2.16"
        )
    if params["compare"] and not params["published"]:
        raise ValueError(f"compare={params['compare']} needs published, the table of what was published")


def _judged(
    params: Mapping[str, Any], campaign: Campaign, earlier: Baseline | None, checked: ManifestCheck
) -> Results:
    return build_results(
        campaign,
        workloads_of(params["workloads"]),
        _published(params["published"]) if params["compare"] else None,
        earlier,
        checked,
        params["min_utilisation"],
        read_table(params["gpus"], mfu.read_peaks) if params["gpus"] else None,
        _language_table(params),
    )


def make(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the report of a campaign; module speedup_report describes its options and result."""
    _check(params)
    limit = baseline.read_limit(params["max_regression"])
    source = open_source(Path(params["path"]))
    if not params["out"]:
        check_place(source)
    earlier = load_baseline(params["baseline"], limit, params["reading"]) if params["baseline"] else None
    files = manifest.files_of(source)
    campaign = read_source(source, params["reading"], files)
    checked = manifest.extend(manifest.read(source), files, campaign.statuses)
    document = _judged(params, campaign, earlier, checked)
    out = Path(params["out"] or source.top / "report")
    try:
        texts = render.files(document, params["templates"], source.kept_paths(out), params["report_language"])
    except render.TEMPLATE_ERROR as error:
        raise ValueError(f"templates={params['templates']}: {error}") from error
    changed = write_report(out, texts, write)
    if out == source.top / "report" and not source.sealed:
        # Last, and only with a report of its own: results elsewhere may be read-only.
        changed |= write_manifest(source.top, checked.manifest, write)
    page, wording = str(out / "report.html"), Wording(params["report_language"])
    path = page if write else wording("terminal.not-written", path=page)
    return {
        "changed": changed,
        "rows": [{key: value for key, value in row.items() if key in ROW} for row in document["rows"]],
        "table": terminal.table(document, wording),
        "display": terminal.display(document, path, wording),
        "report": page,
        "files": [str(out / name) for name in sorted(texts)],
        "uncounted": len(document["uncounted"]),
        "regressions": (document["baseline"] or {"regressions": 0})["regressions"],
        "problems": checked.wrong,
    }
