# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> the texts of all files of a report.

The only part of module_utils that needs more than the standard library, with pages: pandas, XlsxWriter and
Jinja2, on the control node.  MISSING says which is not installed there; nothing else of this file may be
used then.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.judge.results import dlperf_files
from ansible.module_utils.scalebook.pages import html, markdown, sheets, spreadsheet, svg
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Charts,
    Download,
    Fold,
    Heading,
    Items,
    Paragraph,
)
from ansible.module_utils.scalebook.pages.html_page import TEMPLATE_ERROR as TEMPLATE_ERROR
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import (
    charts,
    csv_sheet,
    environment,
    first_screen,
    method,
    published_tables,
    runs,
    scaling,
    timeline,
    usage,
    xlsx,
)
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store import openmetrics
from ansible.module_utils.scalebook.text import clean

FIRST = ("ranked", "efficiency", "losses")
"""Charts of the first screen; the others are below the tables."""
FEW = 3

try:
    import jinja2

    MISSING = sheets.MISSING or spreadsheet.MISSING
except ImportError as exc:
    MISSING = str(exc)


def files(
    document: Results, templates: str, kept_paths: Sequence[str] = (), language: str = "en"
) -> dict[str, str | bytes]:
    """Return file name -> content of every file of the report; results.json has their names.

    `kept_paths` are the paths of the campaign's files, `language` is that of report.md, report.html and the
    charts.  Raises ValueError for a language without a catalogue.
    """
    plain = Wording(language)
    texts: dict[str, str | bytes] = {
        # One line without a newline at its end, as DLPerf's json.dump writes it.
        name: json.dumps(content)
        for name, content in dlperf_files(document).items()
    }
    pictures = charts.charts(document, plain)
    lines = timeline.charts(document["timelines"], document["groups"], plain)
    texts.update({each["name"] + ".svg": svg.as_file(each["svg"]) for each in [*pictures, *lines]})
    texts[openmetrics.NAME] = openmetrics.text(document)
    results = csv_sheet.sheet(document)
    texts["results.csv"] = as_csv = sheets.csv(results.rows)
    texts["environment.csv"] = sheets.csv(environment.table(document))
    texts[xlsx.NAME] = xlsx.workbook(document)
    texts["report.md"] = _markdown(View(document, plain, charts=pictures, timelines=lines))
    names = sorted([*texts, "report.html", "results.json"])
    carried = {"csv": as_csv, "json": sheets.split(results)}
    people = View(document, Wording(language, for_people=True))
    texts["report.html"] = _html(people, templates, carried, [*names, *kept_paths])
    document = {**document, "files": names}
    texts["results.json"] = json.dumps(document, indent=1) + "\n"
    return texts


def tools() -> str:
    """Return what makes the report, with versions."""
    return (
        f"Python {platform.python_version()}, {sheets.WRITER}, {spreadsheet.WRITER}, "
        f"Jinja2 {jinja2.__version__}"
    )


def _markdown(view: View) -> str:
    """Return report.md."""
    _ = view.wording
    pictures = [Charts(view.charts)] if view.charts else []
    footer = Paragraph(_("page.made", tools=tools()))
    parts = [*first_screen.blocks(view), *pictures, *sections(view), footer]
    return markdown.document(first_screen.title(view), parts, _)


def _html(view: View, templates: str, carried: Mapping[str, str], paths: Sequence[str]) -> str:
    """Return report.html: one file with its style, charts and script, which its CSP allows by its hash.

    `carried` are the results as csv and json, `paths` those of the files beside the page.
    """
    document, people = view.document, view.wording
    # The charts escape their own text; only they, their style and the script are not escaped here.
    pictures = charts.charts(document, people)
    lines = timeline.charts(document["timelines"], document["groups"], people)
    view = replace(view, charts=pictures, timelines=lines)
    first = [each for each in pictures if each["name"] in FIRST] or pictures[:FEW]
    others = [each for each in pictures if each not in first]
    head = [*first_screen.blocks(view), *([Charts(first)] if first else [])]
    head.append(Download(clean(document["campaign"]), carried))
    more: list[Block] = [Fold(people("title.charts"), [Charts(others)], id="charts")] if others else []
    return html.page(
        [*sections(view), *more, _directory(people, paths)],
        head,
        people,
        templates,
        title=first_screen.title(view),
        kicker=people.name("kind", document["kind"]),
        footer=people.join([people("page.made", tools=tools()), people("page.unrounded")], "sentences"),
        nav=True,
    )


def sections(view: View) -> list[Block]:
    """Return the blocks of the report below its first screen, in the order of each of its forms.

    What a reader of the results needs comes first; what stands behind the results is folded on a page.
    """
    document, _ = view.document, view.wording
    main = [
        *scaling.weak(view),
        *usage.bottlenecks(view),
        *scaling.strong(view),
        *scaling.largest_batches(document["largest_batches"], _),
        *scaling.earlier(view),
        *published_tables.compared(document["compare"], _),
        *published_tables.rates(document.get("published") or [], _),
        *runs.excluded(view),
        *runs.skipped(document["skipped"], _),
        *runs.notes(document["notes"], _),
        *usage.section(view),
    ]
    details = [
        *usage.step_times(view),
        *usage.flops(view),
        *usage.reported(view),
        *runs.section(view),
        *usage.courses(len(document["timelines"]), view.timelines, _),
        *published_tables.only_published(document.get("only_published") or [], _),
        *method.section(document["groups"], _),
        *environment.section(document, _),
    ]
    return [*main, *folded(details)]


def folded(section: Sequence[Block]) -> list[Block]:
    """Return a section as a fold that its heading opens, for each heading of level 2."""
    folds: list[Block] = []
    own: list[Block] = []
    for block in section:
        if isinstance(block, Heading) and block.level == 2:
            own = []
            folds.append(Fold(block.text, own, id=block.id))
        else:
            own.append(block)
    return folds


def _directory(wording: Wording, paths: Sequence[str]) -> Fold:
    """Return the section of the files beside the page, as paths: links would be dead in a mailed page."""
    about = Paragraph(wording("page.directory-about"), "soft")
    return Fold(wording("page.directory"), [about, Items(paths, "plain files")], id="files")
