# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The blocks of an evaluation -> a document for word processors (Office Open XML, ECMA-376).

The format is a ZIP archive of XML files, so it needs nothing but Jinja2.  The same blocks always make the
same bytes.  Charts stay vectors, as SVG.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.pages import cells, html_page, svg_paper
from ansible.module_utils.scalebook.pages.blocks import Block, Chart, Column, Row
from ansible.module_utils.scalebook.pages.wording import ENGLISH

EMU = 9525
"""English metric units of a pixel."""
WIDTH = 440
"""Pixels that a chart is wide on the page."""

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PARTS = {"document": "document.main", "styles": "styles", "numbering": "numbering", "footer": "footer"}
"""Parts of the document by their content type."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, not even escaped."""

_FIXED = {
    "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="document" '
    f'Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/numbering.xml": f'{_HEAD}<w:numbering xmlns:w="{_WORD}"><w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/><w:pPr><w:ind w:left="420" '
    'w:hanging="280"/></w:pPr></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    "</w:numbering>",
    "word/footer.xml": f'{_HEAD}<w:ftr xmlns:w="{_WORD}"><w:p><w:pPr><w:pStyle w:val="Footer"/></w:pPr>'
    '<w:fldSimple w:instr="PAGE"><w:r><w:t>1</w:t></w:r></w:fldSimple></w:p></w:ftr>',
}


def document(title: str, blocks: Sequence[Block], language: str, templates: str) -> bytes:
    """Return the document; `templates` is the directory of the templates of this project."""
    charts: dict[str, str] = {}
    kinds = [
        (type(block).__name__, _picture(block, charts) if isinstance(block, Chart) else block)
        for block in blocks
    ]
    values = {"title": title, "blocks": kinds, "language": language, "said": _said}
    names = [*(name for name in _PARTS if name != "document")]
    related = [(name, name, f"{name}.xml") for name in names]
    related += [(name, "image", f"media/{name}.svg") for name in charts]
    content = {
        "[Content_Types].xml": _types(),
        **_FIXED,
        "word/_rels/document.xml.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
            for name, kind, target in related
        )
        + "</Relationships>",
        "word/document.xml": _rendered("document.xml.j2", templates, values, escaped=True),
        # Nothing of the user is in the styles.
        "word/styles.xml": _rendered("styles.xml.j2", templates, values, escaped=False),
        **{f"word/media/{name}.svg": text for name, text in charts.items()},
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in content.items():
            # Of a name alone, the time would be that of writing.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, _CONTROL.sub(" ", text).encode())
    return archive.getvalue()


def _said(row: Row, column: Column) -> str:
    return cells.said(row, column, ENGLISH)


def _types() -> str:
    parts = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_TYPE}.{kind}+xml"/>'
        for name, kind in _PARTS.items()
    )
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Default Extension="svg" ContentType="image/svg+xml"/>{parts}</Types>'
    )


def _picture(block: Chart, charts: dict[str, str]) -> Mapping[str, Any]:
    """Add a chart to `charts` as a file of its own, and return how large it is on the page."""
    number = len(charts) + 1
    name = f"chart{number}"
    charts[name], wide, tall = svg_paper.for_paper(block.svg)
    return {
        "number": number,
        "name": name,
        "caption": block.caption,
        "width": WIDTH * EMU,
        "height": round(WIDTH * EMU * tall / wide),
    }


def _rendered(name: str, templates: str, values: Mapping[str, Any], escaped: bool) -> str:
    environment = html_page.environment_of(f"{templates}/docx", escaped)
    return environment.get_template(name).render(**values).lstrip()
