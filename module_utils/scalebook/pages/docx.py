# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The blocks of an evaluation -> a document for word processors (Office Open XML, ECMA-376).

The format is a ZIP archive of XML files, so it needs nothing but Jinja2.  The same blocks always make the
same bytes.  Charts are vectors, as SVG, with a picture of each for the programs that show none; resvg-py
draws it, and without that package there are the vectors alone.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.pages import cells, html_page, svg_paper
from ansible.module_utils.scalebook.pages.blocks import Block, Chart, Column, Heading, Table, meant_for
from ansible.module_utils.scalebook.pages.wording import Wording

try:
    from resvg_py import svg_to_bytes  # type: ignore[import-not-found, unused-ignore]

    DRAWS = True
except ImportError:
    DRAWS = False

EMU = 9525
"""English metric units of a pixel."""
WIDTH = 400
"""Pixels that a chart is wide on the page."""
ZOOM = 3
"""Pixels of a picture for one of the page: some 300 dots per inch."""
FONTS = "Arial, Liberation Sans, DejaVu Sans, Noto Sans CJK SC, WenQuanYi Micro Hei, sans-serif"
"""Of the pictures, which are drawn where the document is made: the first that is installed there."""
TEXT_WIDTH = 9978
"""Width of the text in twentieths of a point."""
LETTER, PADDING, BOLD = 80, 130, 1.2
"""Width of a letter in a table, of what is left and right of its text, and of bold letters beside others."""
LONG = 64
"""Letters of a cell from which on its column is made no wider."""
TOGETHER = 5
"""Lines up to which a table is kept on one page."""
CONTENTS = 3
"""The lowest level of the headings in the contents."""

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PARTS = {
    "document": "document.main",
    "styles": "styles",
    "numbering": "numbering",
    "footer": "footer",
    "settings": "settings",
}
"""Parts of the document by their content type."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, not even escaped."""

_FIXED = {
    "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="document" '
    f'Type="{_OFFICE}/officeDocument" Target="word/document.xml"/><Relationship Id="core" '
    f'Type="{_PACKAGE}/relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>',
    "word/numbering.xml": f'{_HEAD}<w:numbering xmlns:w="{_WORD}"><w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/><w:pPr><w:ind w:left="420" '
    'w:hanging="280"/></w:pPr></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    "</w:numbering>",
    # Only what lays out the document knows its pages: Word asks, others write the contents' numbers at once.
    "word/settings.xml": f'{_HEAD}<w:settings xmlns:w="{_WORD}"><w:updateFields w:val="true"/></w:settings>',
    "word/footer.xml": f'{_HEAD}<w:ftr xmlns:w="{_WORD}"><w:p><w:pPr><w:pStyle w:val="Footer"/></w:pPr>'
    '<w:fldSimple w:instr="PAGE"><w:r><w:t>1</w:t></w:r></w:fldSimple></w:p></w:ftr>',
}


def document(title: str, blocks: Sequence[Block], wording: Wording, templates: str, day: str = "") -> bytes:
    """Return the document; `templates` is the directory of the templates of this project, `day` its date."""
    pictures: dict[str, str | bytes] = {}
    parts = [
        (type(block).__name__, _prepared(block, pictures, wording)) for block in meant_for("docx", blocks)
    ]
    values = {
        "title": title,
        "day": day,
        "blocks": parts,
        "contents": [part for kind, part in parts if kind == "Heading" and part["level"] <= CONTENTS],
        "_": wording,
    }
    names = [*(name for name in _PARTS if name != "document")]
    related = [(name, name, f"{name}.xml") for name in names]
    related += [(name, "image", f"media/{name}") for name in pictures]
    content: dict[str, str | bytes] = {
        "[Content_Types].xml": _types(),
        **_FIXED,
        "word/_rels/document.xml.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
            for name, kind, target in related
        )
        + "</Relationships>",
        "docProps/core.xml": _rendered("core.xml.j2", templates, values, escaped=True),
        "word/document.xml": _rendered("document.xml.j2", templates, values, escaped=True),
        # Nothing of the user is in the styles.
        "word/styles.xml": _rendered("styles.xml.j2", templates, values, escaped=False),
        **{f"word/media/{name}": picture for name, picture in pictures.items()},
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, part in content.items():
            # Of a name alone, the time would be that of writing.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, part if isinstance(part, bytes) else _CONTROL.sub(" ", part).encode())
    return archive.getvalue()


def _prepared(block: Block, files: dict[str, str | bytes], wording: Wording) -> Any:
    """Return what the template needs of a block; the files of charts are added to `files`."""
    if isinstance(block, Chart):
        return _picture(block, files)
    if isinstance(block, Heading):
        return {
            "level": block.level,
            "text": block.text,
            "id": re.sub(r"\W+", "_", f"_Toc {block.text}")[:40],
        }
    if not isinstance(block, Table):
        return block
    columns = cells.columns_of(block, "docx", wording)
    texts = [[cells.text_of(row, column, wording) for column in columns] for row in block.rows]
    return {
        "caption": block.caption,
        "columns": columns,
        "lines": texts,
        "widths": _widths(columns, texts),
        "together": len(texts) <= TOGETHER,
    }


def _widths(columns: Sequence[Column], lines: Sequence[Sequence[str]]) -> list[int]:
    """Return the widths of the columns of a table: room for words and numbers, then for what is longest."""
    least, most = [], []
    for index, column in enumerate(columns):
        texts = [line[index] for line in lines]
        words = [_letters(text) + 1 if column.kind not in cells.LEFT else _longest(text) for text in texts]
        words.append(round(BOLD * _longest(column.head)))
        least.append(LETTER * min(max(words), LONG // 3) + PADDING)
        # A head has room in two lines.
        letters = [*map(_letters, texts), round(BOLD * _letters(column.head) / 2) + 2]
        most.append(max(LETTER * min(max(letters), LONG) + PADDING, least[-1]))
    # Where even the words have no room, those of the widest columns are broken.
    for limit in range(max(least), 0, -LETTER):
        least = [min(low, limit) for low in least]
        if sum(least) <= TEXT_WIDTH:
            break
    spare, more = TEXT_WIDTH - sum(least), sum(most) - sum(least)
    if not more:
        return [TEXT_WIDTH * low // sum(least) for low in least]
    return [round(low + (high - low) * spare / more) for low, high in zip(least, most, strict=True)]


def _longest(text: str) -> int:
    """Return how many letters the longest word of a text has; Chinese breaks anywhere."""
    return max(map(_letters, re.findall(r"[\x21-\u2E7F]+[，；：）]?|[\u2E80-\uFFFF]{1,4}", text)), default=1)


def _letters(text: str) -> int:
    """Return how wide a text is in letters; Chinese ones are two, capitals more than one."""
    return round(sum(2 if ord(letter) > 0x2E7F else 1 + 0.3 * letter.isupper() for letter in text))


def _types() -> str:
    parts = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_TYPE}.{kind}+xml"/>'
        for name, kind in _PARTS.items()
    )
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="png" ContentType="image/png"/>'
        '<Override PartName="/docProps/core.xml" '
        'ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        f'<Default Extension="svg" ContentType="image/svg+xml"/>{parts}</Types>'
    )


def _picture(block: Chart, files: dict[str, str | bytes]) -> Mapping[str, Any]:
    """Add a chart to `files`, as vectors and as a picture, and return how large it is on the page."""
    number = sum(name.endswith(".svg") for name in files) + 1
    vectors, picture = f"chart{number}.svg", f"chart{number}.png"
    chart, wide, tall = svg_paper.for_paper(block.svg)
    files[vectors] = chart
    if DRAWS:
        files[picture] = svg_to_bytes(
            svg_string=chart.replace('"sans-serif"', f'"{FONTS}"'), zoom=ZOOM, background="#fff"
        )
    return {
        "number": number,
        "name": f"chart{number}",
        "vectors": vectors,
        "picture": picture if DRAWS else vectors,
        "caption": block.caption,
        "width": WIDTH * EMU,
        "height": round(WIDTH * EMU * tall / wide),
    }


def _rendered(name: str, templates: str, values: Mapping[str, Any], escaped: bool) -> str:
    environment = html_page.environment_of(f"{templates}/docx", escaped)
    return environment.get_template(name).render(**values).lstrip()
