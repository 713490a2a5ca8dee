# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of a campaign -> whether they are what was reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import JobReport
from ansible.module_utils.scalebook.judge.campaign import message_of
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.read.record import run_record
from ansible.module_utils.scalebook.store import signature
from ansible.module_utils.scalebook.store.load import check_files, counted_records, read_source
from ansible.module_utils.scalebook.store.source import ArchiveSource, Source, open_results
from ansible.module_utils.scalebook.store.verify import differences, directory_of
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.workload import Workloads, workloads_of


def verify(params: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the files of a campaign; module results_verify describes its options and result."""
    source, wording = open_results(Path(params["path"])), Wording(params["report_language"])
    signed = _signer(source, params["allowed_signers"] or "", wording)
    count, problems = check_files(source, params["path"])
    checked_files: list[dict[str, Any]] = [
        {**problem, "row": _row(problem["run"], wording), "sentence": wording.tell(message_of(problem))}
        for problem in problems
    ]
    read, notes, differ = _read_again(source, workloads_of(params["workloads"]), wording)
    checked_files += [{**each, "row": _row(each["run"], wording)} for each in differ]
    lines = [
        clean(wording("terminal.problem", what=each.pop("sentence"), row=each["row"]))
        for each in checked_files
    ]
    good = [wording("terminal.unchanged", count=count)]
    good += [wording("terminal.logs-agree", runs=wording.count(read, "run"))] if read else []
    return {
        "changed": False,
        "problems": checked_files,
        "display": "\n".join([*(lines or good), *notes, *signed]),
    }


def _signer(source: Source, allowed: str, wording: Wording) -> list[str]:
    """Return who signed the archive; nothing of a directory, which has no signature."""
    if isinstance(source, ArchiveSource):
        return [wording.tell(signature.signer(source.archive, allowed))]
    if allowed:
        raise ValueError(
            f"allowed_signers={allowed}: {source.top} is not an archive; only archives are signed"
        )
    return []


def _row(run: str, wording: Wording) -> str:
    case, _, repeat = run.removeprefix("runs/").partition("/")
    return wording("terminal.row", case=case, repeat=repeat) if case else wording("terminal.directory")


def _read_again(
    source: Source, workloads: Workloads, wording: Wording
) -> tuple[int, list[str], list[dict[str, Any]]]:
    """Return how many runs were read again, sentences on those that cannot be, and how records differ."""
    campaign = read_source(source)
    _ = wording
    whys = [_.tell(what) for what in campaign.unreadable] + [
        _("terminal.repeat", case=run["case"], repeat=run["repeat"], why=_.tell(run["reason"] or ""))
        for run in campaign.runs
        if run["status"] == "refused"
    ]
    notes = [_("terminal.not-counted", why=why) for why in whys]
    read, unread, problems = 0, set(), []
    for run, record in counted_records(campaign, source) if workloads else ():
        workload = record["case"]["workload"]
        if "source" in record:
            unread.add(_("terminal.logs-elsewhere"))
        elif workload not in workloads:
            unread.add(_("terminal.logs-unreadable", workload=workload))
        else:
            read += 1
            names = [node["node"] for node in record["nodes"]]
            job = cast(JobReport, record.get("job") or {})
            with directory_of(source, run) as folder:
                again = run_record(folder, record["case"], record["repeat"], workloads[workload], names, job)
            problems += [
                {
                    "file": f"{run}/result.json",
                    "what": "recomputed",
                    "run": run,
                    "sentence": _.about(run, _.tell(each)),
                }
                for each in differences(record, again)
            ]
    return read, [clean(each) for each in [*notes, *sorted(unread)]], problems
