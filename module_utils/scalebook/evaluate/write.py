# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""An evaluation, from the fields that ask for it to its files.

Needs what pages/html_page.py and pages/spreadsheet.py need.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.evaluate import content, document, fields, read
from ansible.module_utils.scalebook.files import write_json, write_whole
from ansible.module_utils.scalebook.pages import docx, html, html_page, markdown, spreadsheet
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.workload import Workloads, workloads_of

UNNAMED = (ValueError, UnicodeEncodeError)
"""What Python itself raises, without the name of a file."""


def evaluate(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the evaluation that the options of module evaluation ask for; return the module's result."""
    if missing := html_page.MISSING or spreadsheet.MISSING:
        raise ValueError(f"{missing}. Fix: pip install --require-hashes -r requirements.txt")
    try:
        return _evaluate(params, write)
    except Exception as error:
        # What is wrong with the input has a class of its own and names it; what nobody foresaw does not.
        if isinstance(error, OSError) or (isinstance(error, ValueError) and type(error) not in UNNAMED):
            raise
        held = read.campaign_files(params["evaluation"]["campaigns"], Path(params["here"]))
        names = ", ".join(str(each.file) for each in held)
        raise read.EvaluationError(
            f"{names}: cannot be evaluated: {type(error).__name__}: {error}"
        ) from error


def _evaluate(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    settings, here, templates = params["evaluation"], Path(params["here"]), params["templates"]
    workloads = workloads_of(params["workloads"])
    fields.check_values(settings)
    if not settings["campaigns"] and not settings["published"]:
        raise read.EvaluationError("campaigns and published are empty. Fix: name at least one campaign")
    sources = read.sources(settings, here, Path(params["data"]), workloads)
    _check_names(settings, sources, workloads)
    evaluation = document.document(
        settings,
        sources.campaigns,
        sources.others,
        sources.prices,
        workloads,
        sources.checksums,
        sources.nodes,
    )
    wording = Wording(settings["language"], for_people=True)
    blocks = content.blocks(evaluation, wording)
    forms = {
        "md": markdown.document(evaluation["title"], blocks, wording).encode(),
        "html": html.document(evaluation["title"], blocks, wording, templates).encode(),
        "xlsx": spreadsheet.of_tables(evaluation["title"], blocks),
        "docx": docx.document(evaluation["title"], blocks, wording, templates, document.day(evaluation)),
    }
    out = here / settings["out"]
    try:
        changed = _write_files(out, evaluation, forms, write)
    except OSError as error:
        allowed = f"directories that can be written to ({error.strerror})"
        raise read.EvaluationError(fields.refusal("out", settings["out"], allowed)) from error
    lines = [
        *map(wording.tell, evaluation["conclusion"]),
        wording("terminal.evaluation", path=out / "evaluation.md"),
    ]
    return {"changed": changed, "display": lines}


def _check_names(evaluation: Mapping[str, Any], sources: read.Sources, workloads: Workloads) -> None:
    """Refuse a workload or a section that does not exist."""
    groups = [group for results in sources.campaigns for group in results["groups"]]
    families = [str(group.get("family", "")) for group in groups]
    families += [option["family"] for option in sources.others]
    fields.check_names(evaluation, [*workloads, *(group["workload"] for group in groups)], families)


def _write_files(out: Path, evaluation: Mapping[str, Any], forms: Mapping[str, bytes], write: bool) -> bool:
    """Write the files of an evaluation if `write`; return whether one differs from what was there."""
    if write:
        out.mkdir(parents=True, exist_ok=True)
    changed = write_json(out / "evaluation.json", evaluation, write)
    for form, file_content in forms.items():
        changed |= write_whole(out / f"evaluation.{form}", file_content, write)
    return changed
