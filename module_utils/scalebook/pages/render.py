# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The blocks of an evaluation -> Markdown, HTML and a workbook.

Needs Jinja2, pandas and XlsxWriter, on the control node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.pages import html_page, spreadsheet
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Chart,
    Code,
    Figure,
    Heading,
    Items,
    Paragraph,
    Table,
    shown,
)
from ansible.module_utils.scalebook.text import markdown_cell

MISSING = html_page.MISSING or spreadsheet.MISSING


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """Return the document as Markdown; it has no charts, whose figures are in the tables."""
    return "\n\n".join([f"# {title}", *filter(None, map(_markdown, blocks))]) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {block.text}"
    if isinstance(block, Paragraph):
        return block.text
    if isinstance(block, Items):
        return "\n".join(f"- {markdown_cell(text)}" for text in block.texts)
    if isinstance(block, Code):
        return f"`{block.title}`:\n\n```\n{block.text}\n```"
    if isinstance(block, Table):
        marks = ["---:" if block.numeric(index) else ":---" for index in range(len(block.head))]
        cells = [[markdown_cell(shown(cell)) for cell in row] for row in block.rows]
        lines = [" | ".join(row) for row in ([*map(markdown_cell, block.head)], marks, *cells)]
        return "\n".join([f"**{block.caption}**", "", *lines])
    return ""


def html(title: str, blocks: Sequence[Block], texts: Mapping[str, Any], templates: str) -> str:
    """Return the document as a page that is one file: no script, font or picture from elsewhere."""
    kinds = [
        (
            type(block).__name__,
            {"svg": html_page.markup(block.svg), "caption": block.caption}
            if isinstance(block, Chart)
            else block,
        )
        for block in blocks
    ]
    words = {"Filter rows": str(texts["filter"])}
    return html_page.framed(
        "evaluation.html.j2",
        templates,
        lambda text: words.get(text, text),
        str(texts["language"]),
        {"title": title, "blocks": kinds, "shown": shown},
    )


def xlsx(title: str, blocks: Sequence[Block]) -> bytes:
    """Return the tables as a workbook: a sheet each, named by its number, with unrounded numbers."""
    sheets = []
    contents = []
    for table in (block for block in blocks if isinstance(block, Table)):
        name = " ".join(table.caption.split(" ")[:2])
        values = [[cell.value if isinstance(cell, Figure) else cell for cell in row] for row in table.rows]
        sheets.append(spreadsheet.Sheet(name, table.head, values))
        contents.append([table.caption])
    return spreadsheet.workbook(
        title, [spreadsheet.Sheet("0", [title], contents), *sheets], lambda _: "General"
    )
