# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What every rendered document needs: the templates, and the frame of a page that is one file.

Needs Jinja2, on the control node; MISSING says that it is not installed, and nothing else may be used then.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.pages import svg

try:
    import jinja2
    import markupsafe

    MISSING = ""
    TEMPLATE_ERROR: type[Exception] = jinja2.TemplateError
except ImportError as exc:
    MISSING = str(exc)
    TEMPLATE_ERROR = ImportError

SCRIPTS = ("report.js", "chart.js", "phone.js")
"""What every page runs: the sorting and filters of tables, what points of charts say, what phones fold."""


def framed(
    name: str,
    templates: str,
    translate: Callable[[str], str],
    language: str,
    values: Mapping[str, Any],
    scripts: Sequence[str] = SCRIPTS,
) -> str:
    """Return a page with what its frame needs: the language, the style, and the scripts with their hash."""
    script = "".join((Path(templates) / each).read_text(encoding="utf-8") for each in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    frame = {
        "_": translate,
        "language": language,
        "chart_style": markup(svg.style()),
        "script": markup(script),
        "script_hash": f"sha256-{digest}",
    }
    return environment_of(templates, True).get_template(name).render(frame, **values)


def markup(text: str) -> Any:
    """Return text that a page takes as it is: charts, which escape their own text, styles and scripts."""
    return markupsafe.Markup(text)  # noqa: S704


def css_text(text: str) -> Any:
    """Return text for between two quotes of a style sheet, where neither it nor its page ends with it."""
    return markup(re.sub(r"[^ \w]", lambda sign: f"\\{ord(sign[0]):x} ", text))


@functools.lru_cache(maxsize=4)
def environment_of(templates: str, as_html: bool) -> jinja2.Environment:
    """Return what renders the templates in `templates`, `as_html`: with escaped values."""
    environment = jinja2.Environment(
        # Not for the styles of Word's files, whose values are our own.
        autoescape=as_html,  # noqa: S701
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(templates),
    )
    environment.filters["css"] = css_text
    return environment
