#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Result records -> report; see DOCUMENTATION."""

from __future__ import annotations  # runs on the control node only

DOCUMENTATION = r"""
module: speedup_report
short_description: Turn the result records of a campaign into tables, curves and files
description:
  - Reads every C(runs/<case>/<repeat>/result.json) below O(path), and C(plan.json) and C(provenance.json)
    next to C(runs) if they exist. Or reads the same files from an archive, C(runs.tar.xz).
  - Writes C(results.json), C(results.csv), C(environment.csv), C(results.xlsx), C(metrics.prom),
    DLPerf's C(*_result.json), C(*.svg), C(report.md) and C(report.html) to O(out), and C(manifest.json)
    next to C(runs).
  - Only runs of status C(ok) count. Every other run, planned runs without a record and unreadable records
    are listed with their reason.
  - Runs on the control node; needs pandas, XlsxWriter and Jinja2 there.
options:
  path:
    description:
      - Directory of one campaign or import, which contains C(runs) or C(runs.tar.xz), or such an archive.
    type: path
    required: true
  out:
    description: Directory to write to; by default C(report) below O(path).
    type: path
  templates:
    description: Directory that holds C(page.html.j2) and its style and scripts.
    type: path
    required: true
  workloads:
    description:
      - The declarations of the workloads by name, C(lookup('scalebook_workloads')).
      - C(title), C(family) and C(compiler) are used in headings and labels.
      - C(dlperf) has the names of DLPerf, C({frameworks, models, others, differs}), for O(compare).
    type: dict
    default: {}
  compare:
    description:
      - Published results to compare with, those of DLPerf, and with V(published) also rates of language
        models.
    type: str
    choices: ["", dlperf, published]
    default: ""
  published:
    description: The CSV of published results; required with O(compare).
    type: path
  language_models:
    description: The CSV of published rates of language models, for O(compare=published) with O(gpus).
    type: path
  gpus:
    description: The CSV of the peaks of GPUs, for the MFU of workloads that declare C(flops).
    type: path
  baseline:
    description:
      - An earlier result to compare every row with, a C(results.json), or a campaign or import as in O(path).
      - A row is faster, slower or the same. A difference that can be scatter is the same.
    type: path
  max_regression:
    description: From which slowdown on a row that is slower counts as a regression, such as V(3%) or V(0.03).
    type: str
    default: 3%
  min_utilisation:
    description:
      - The mean utilisation in per cent that GPUs, processors, memory, disks and network links are judged by.
    type: float
    default: 80
  report_language:
    description: Language of C(report.html), C(report.md) and the charts; the other files have one.
    type: str
    choices: [en, zh]
    default: en
  reading:
    description:
      - Which time source counts, the time stamps of steps, or the rates that the workload prints.
      - With V(printed) a run that prints no rates does not count.
    type: str
    choices: [stamps, printed]
    default: stamps
attributes:
  check_mode:
    support: full
    description: Computes everything and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Report on a campaign
  speedup_report:
    path: "{{ lookup('scalebook_directory', 'work') }}/results/tf2_bert-base-b64-fp32-1a2b3c4d"
    templates: "{{ lookup('scalebook_directory', 'own') }}/templates"
"""

RETURN = r"""
rows:
  description: One row for each case, ordered by group and number of devices, without the single runs.
  returned: success
  type: list
  elements: dict
  sample:
    - {case: tf2_bert-base-4n8g-b64-fp32-1a2b3c4d, label: 4n8g, devices: 32, good: 5, planned: 5, status: ok,
       median: 2244.38, speedup: 19.863, efficiency: 0.621, flags: []}
table:
  description: DLPerf's tables as aligned text.
  returned: success
  type: str
display:
  description: What the terminal shows; the tables, the excluded runs with their reasons, and the page's path.
  returned: success
  type: str
report:
  description: Path of C(report.html).
  returned: success
  type: str
files:
  description: Paths of all files of the report.
  returned: success
  type: list
  elements: str
uncounted:
  description: Number of excluded runs.
  returned: success
  type: int
regressions:
  description: Number of rows that are slower than O(baseline) by more than O(max_regression).
  returned: success
  type: int
problems:
  description:
    - The files of runs that counted that differ from C(manifest.json), each with C(file), C(what) (changed,
      missing or added) and C(run).
  returned: success
  type: list
  elements: dict
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.files import read_table
from ansible.module_utils.scalebook.judge import baseline, language_models, mfu
from ansible.module_utils.scalebook.judge.language_rates import Table
from ansible.module_utils.scalebook.judge.results import build_results
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


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Write the report of one campaign and return the module's result."""
    _check(params)
    limit = baseline.read_limit(params["max_regression"])
    source = open_source(Path(params["path"]))
    if not params["out"]:
        check_place(source)
    earlier = load_baseline(params["baseline"], limit, params["reading"]) if params["baseline"] else None
    files = manifest.files_of(source)
    campaign = read_source(source, params["reading"], files)
    checked = manifest.extend(manifest.read(source), files, campaign.statuses)
    document = build_results(
        campaign,
        workloads_of(params["workloads"]),
        read_table(params["published"], published.read) if params["compare"] else None,
        earlier,
        checked,
        params["min_utilisation"],
        read_table(params["gpus"], mfu.read_peaks) if params["gpus"] else None,
        _language_table(params),
    )
    out = Path(params["out"] or source.top / "report")
    try:
        texts = render.files(document, params["templates"], source.kept_paths(out), params["report_language"])
    except render.TEMPLATE_ERROR as error:
        raise ValueError(f"templates={params['templates']}: {error}") from error
    changed = write_report(out, texts, not check)
    if out == source.top / "report" and not source.sealed:
        # Last, and only with a report of its own: results elsewhere may be read-only.
        changed |= write_manifest(source.top, checked.manifest, not check)
    page = str(out / "report.html")
    return {
        "changed": changed,
        "rows": [{key: value for key, value in row.items() if key in ROW} for row in document["rows"]],
        "table": terminal.table(document),
        "display": terminal.display(document, f"{page} (check mode: not written)" if check else page),
        "report": page,
        "files": [str(out / name) for name in sorted(texts)],
        "uncounted": len(document["uncounted"]),
        "regressions": (document["baseline"] or {"regressions": 0})["regressions"],
        "problems": checked.wrong,
    }
