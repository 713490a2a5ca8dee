# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Blocks -> what the template blocks.html.j2 shows; and a document of blocks as a page that is one file.

Needs Jinja2, on the control node.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from ansible.module_utils.scalebook.pages import cells, html_page
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Chart,
    Charts,
    Column,
    Download,
    Fold,
    Item,
    Items,
    Row,
    Table,
    meant_for,
)
from ansible.module_utils.scalebook.pages.wording import Wording

DATA_TYPES = {"csv": "text/csv", "json": "application/json"}
"""What a page carries for download, by the end of its name."""
READABLE = ",;:/()=+@!$*-._~|?[]{}"
"""Characters that need no escape in the data of an address."""


def _escaped(text: str) -> str:
    """Return `text` for the data of an address; names may hold lone surrogates, which are not UTF-8."""
    return quote(text, READABLE, errors="backslashreplace")


def document(title: str, blocks: Sequence[Block], wording: Wording, templates: str) -> str:
    """Return a document as a page that is one file: no script, font or picture from elsewhere."""
    shown_blocks = {"title": title, **for_template(blocks, wording)}
    return html_page.framed("evaluation.html.j2", templates, wording, wording.language, shown_blocks)


def page(
    blocks: Sequence[Block],
    head: Sequence[Block],
    wording: Wording,
    templates: str,
    scripts: Sequence[str] = html_page.SCRIPTS,
    name: str = "page.html.j2",
    **frame: Any,
) -> str:
    """Return a page of blocks; `frame` are the title, kicker, footer and choices of the template `name`."""
    values = {
        "choices": (),
        "nav": False,
        **frame,
        **for_template(blocks, wording),
        "head": parts(head, wording),
    }
    return html_page.framed(name, templates, wording, wording.language, values, scripts)


def for_template(blocks: Sequence[Block], wording: Wording) -> dict[str, Any]:
    """Return what the template needs: the sections, the headings of the contents, and how a cell is said.

    A section begins with a heading of level 2.
    """
    sections: list[list[tuple[str, Any]]] = [[]]
    contents: list[tuple[str, str]] = []
    for kind, block in parts(blocks, wording):
        if kind == "Heading" and block.level == 2:
            block = block._replace(id=block.id or f"section-{len(contents) + 1}")
            contents.append((block.id, block.text))
            sections.append([])
        elif kind == "Fold" and block["id"]:
            contents.append((block["id"], block["summary"]))
            sections.append([])
        sections[-1].append((kind, block))

    def text_of(row: Row, column: Column) -> str:
        return cells.text_of(row, column, wording)

    return {
        "sections": list(filter(None, sections)),
        "contents": contents,
        "text_of": text_of,
        "left": cells.LEFT,
    }


def parts(blocks: Sequence[Block], wording: Wording) -> list[tuple[str, Any]]:
    """Return each block that HTML has, with the name of its kind."""
    return [(type(block).__name__, _part(block, wording)) for block in meant_for("html", blocks)]


def _part(block: Block, wording: Wording) -> Any:
    if isinstance(block, Table):
        columns = cells.columns_of(block, "html", wording)
        over = [(name, len(list(each))) for name, each in groupby(columns, lambda column: column.over)]
        return {**block._asdict(), "columns": columns, "over": [each for each in over if each[0]]}
    if isinstance(block, Items):
        return block._replace(texts=[each if isinstance(each, Item) else Item(each) for each in block.texts])
    if isinstance(block, Chart):
        return {"svg": html_page.markup(block.svg), "caption": block.caption}
    if isinstance(block, Charts):
        return [html_page.markup(each["svg"]) for each in block.drawn]
    if isinstance(block, Download):
        return [
            (f"{block.name}.{end}", end, f"data:{DATA_TYPES[end]};charset=utf-8,{_escaped(text)}")
            for end, text in block.texts.items()
        ]
    return {**block._asdict(), "blocks": parts(block.blocks, wording)} if isinstance(block, Fold) else block
