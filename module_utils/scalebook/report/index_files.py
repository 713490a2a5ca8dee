# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reports of campaigns -> one page over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.files import write_whole
from ansible.module_utils.scalebook.judge import baseline, comparison
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import index, index_page, render
from ansible.module_utils.scalebook.workload import workloads_of


def make(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the index; module results_index describes its options and result. Raises ValueError."""
    if render.MISSING:
        raise ValueError(f"results_index needs what requirements.txt names: {render.MISSING}")
    top, declared = Path(params["path"]), workloads_of(params["workloads"])
    look = (params["templates"], params["report_language"])
    reports = index.read(top, declared)
    if not reports.known:
        raise ValueError(
            f"No campaign in {top} has a report. Fix: ansible-playbook report.yml -e campaign=NAME makes one"
        )
    built_index = index.build(reports, baseline.read_limit(params["max_regression"]))
    texts = index_page.files(built_index, reports, *look)
    compared = _compared(params["campaigns"], reports) if params["campaigns"] else []
    texts.update(index_page.side_by_side(compared, declared, *look) if compared else {})
    changed = [
        write_whole(top / name, text.encode("utf-8", "replace"), write) for name, text in texts.items()
    ]
    slower = [each for each in built_index["series"] if each["points"][-1]["regression"]]
    _ = Wording(params["report_language"])
    beside = [index_page.on_terminal(each, declared, _) for each in compared]
    lines = [line for each in beside for line in (*each.splitlines(), "")]
    lines += [
        _("terminal.slower", title=each["title"], hardware=index_page.hardware_of(each, _)) for each in slower
    ]
    lines += [_("terminal.unread", what=each) for each in built_index["unread"]]
    lines += [_.about(_("index.side-by-side"), str(top / "compare.html"))] if compared else []
    lines.append(_.about(_.count(len(built_index["campaigns"]), "campaign"), str(top / "index.html")))
    return {
        "changed": any(changed),
        "campaigns": len(built_index["campaigns"]),
        "regressions": len(slower),
        "display": "\n".join(lines),
    }


def _compared(names: Sequence[str], reports: index.Reports) -> list[comparison.Comparison]:
    """Return how the named campaigns compare with the first of them; raise ValueError for an unknown one."""
    reports_by_name = {report.measured.name: report.measured for report in reports.known}
    unknown = [name for name in names if name not in reports_by_name]
    if unknown:
        near = get_close_matches(unknown[0], reports_by_name, cutoff=0) or sorted(reports_by_name)
        raise ValueError(f"campaigns: {unknown[0]} has no report here; there is {' or '.join(near)}")
    if len(set(names)) < 2:
        raise ValueError("campaigns: name two or more, such as campaigns=before,after")
    first, *others = dict.fromkeys(names)
    return [
        comparison.compare(reports_by_name[name], reports_by_name[first], reports.declared) for name in others
    ]
