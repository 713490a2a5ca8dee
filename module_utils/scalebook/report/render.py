# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> the texts of all files of a report.

The only part of module_utils that needs more than the standard library: pandas and Jinja2, on the control
node.  MISSING says which is not installed there; nothing else of this file may be used then.
"""

from __future__ import annotations

import functools
import io
import json
import platform
from typing import Any

from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.report import charts, csv_sheet, openmetrics, svg, timeline
from ansible.module_utils.scalebook.report import document as documents
from ansible.module_utils.scalebook.report.page import page
from ansible.module_utils.scalebook.text import markdown_cell

try:
    import jinja2
    import markupsafe
    import pandas

    MISSING = ""
    TEMPLATE_ERROR: type[Exception] = jinja2.TemplateError
except ImportError as exc:
    MISSING = str(exc)
    TEMPLATE_ERROR = ImportError


def files(document: Results, templates: str) -> dict[str, str]:
    """Return file name -> text of every file of the report; the document gets their names."""
    tools = f"Python {platform.python_version()}, pandas {pandas.__version__}, Jinja2 {jinja2.__version__}"
    shown = dict(page(document), made_with=tools)
    html, plain = _environment(templates, True), _environment(templates, False)
    # The charts escape their own text; they and their style are the only markup that is not escaped.
    drawn = charts.charts(document)
    drawings = [markupsafe.Markup(chart["svg"]) for chart in drawn]  # noqa: S704
    style = markupsafe.Markup(svg.style())  # noqa: S704
    texts = {
        # One line without a newline at its end, as DLPerf's json.dump writes it.
        name: json.dumps(content)
        for name, content in documents.results(document).items()
    }
    texts.update({chart["name"] + ".svg": chart["svg"] for chart in charts.charts(document, standalone=True)})
    lines = timeline.charts(document)
    texts.update({each["name"] + ".svg": each["svg"] for each in timeline.charts(document, standalone=True)})
    texts[openmetrics.NAME] = openmetrics.text(document)
    texts["results.csv"] = _csv(document)
    names = [chart["name"] for chart in drawn]
    texts["report.md"] = plain.get_template("report.md.j2").render(shown, charts=names, timelines=lines)
    texts["report.html"] = html.get_template("report.html.j2").render(
        shown,
        charts=drawings,
        chart_style=style,
        timelines=[{**each, "svg": markupsafe.Markup(each["svg"])} for each in lines],  # noqa: S704
    )
    document["files"] = sorted([*texts, "results.json"])
    texts["results.json"] = json.dumps(document, indent=1) + "\n"
    return texts


def _csv(document: Results) -> str:
    """Return results.csv; text cells are made harmless, numeric columns stay numeric."""
    frame = pandas.DataFrame(csv_sheet.sheet(document))
    for column in frame.columns:
        if not pandas.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].map(_harmless_cell)
    text = io.StringIO()
    frame.to_csv(text, index=False, lineterminator="\n")
    return text.getvalue()


def _harmless_cell(cell: Any) -> Any:
    return csv_sheet.harmless(cell) if isinstance(cell, str) else cell


@functools.lru_cache(maxsize=2)
def _environment(templates: str, markup: bool) -> jinja2.Environment:
    """Return what renders the templates in `templates`: as HTML if `markup`, else through the filter `md`."""
    environment = jinja2.Environment(
        # Markdown is not HTML: every value goes through the filter `md` instead.
        autoescape=markup,  # noqa: S701
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(templates),
    )
    environment.filters["md"] = markdown_cell
    return environment
