# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Blocks -> Markdown. Every text is data from logs or file names: it is left nothing but text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.module_utils.scalebook.pages import cells
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Charts,
    Code,
    Fold,
    Heading,
    Item,
    Items,
    Paragraph,
    Settings,
    Table,
    meant_for,
)
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording

_MARKDOWN = str.maketrans(
    {
        **{char: "\\" + char for char in "\\`*[]|"},
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "\n": " ",
        "\r": " ",
    }
)


def document(title: str, blocks: Sequence[Block], wording: Wording = ENGLISH) -> str:
    """Return a document; it has no drawings, whose figures are in the tables."""
    return f"# {md(title)}\n\n{rendered(blocks, wording)}\n"


def md(text: Any) -> str:
    """Return `text` as a cell of a Markdown table that contains no markup."""
    return str(text).translate(_MARKDOWN)


def rendered(blocks: Sequence[Block], wording: Wording = ENGLISH) -> str:
    """Return the blocks, an empty line between two of them."""
    return "\n\n".join(filter(None, (_block(block, wording) for block in meant_for("md", blocks))))


def _block(block: Block, wording: Wording) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {md(block.text)}" + (f" | {md(block.detail)}" if block.detail else "")
    if isinstance(block, Paragraph):
        return _paragraph(block)
    if isinstance(block, Items):
        return "\n".join(f"- {_item(item, wording)}" for item in block.texts)
    if isinstance(block, Settings):
        return " · ".join(" ".join(filter(None, map(md, pair))) for pair in block.pairs)
    if isinstance(block, Code):
        return (f"`{block.title}`:\n\n" if block.title else "") + f"```\n{block.text}\n```"
    if isinstance(block, Charts):
        return "\n".join(_picture(each["name"], each.get("title")) for each in block.drawn)
    if isinstance(block, Table):
        return _table(block, wording)
    return _fold(block, wording) if isinstance(block, Fold) else ""


def _fold(block: Fold, wording: Wording) -> str:
    own = rendered(block.blocks, wording)
    return f"## {md(block.summary)}\n\n{own}" if block.id else own


def _paragraph(block: Paragraph) -> str:
    if block.lead:
        parts = "".join(part if isinstance(part, str) else f"[{md(part.text)}]" for part in block.parts)
        return f"**{md(block.lead)}** " + (md(block.text) + parts).strip()
    return f"**{md(block.text)}**" if block.look == "warning" else md(block.text)


def _picture(name: str, title: str | None) -> str:
    """Return the picture in a file; one of several of a kind is named: a page with all shows none well."""
    return f"- {md(name)}.svg" if name[-1:].isdigit() else f"![{md(title or name)}]({name}.svg)"


def _item(item: str | Item, wording: Wording) -> str:
    if isinstance(item, str):
        return md(item)
    about = md(item.label) + (md(wording("page.aside", text=item.soft)) if item.soft else "")
    text = md(item.text) + (f" [{md(item.see.text)}]" if item.see else "")
    return wording.about(about, text) if about else text


def _table(block: Table, wording: Wording) -> str:
    columns = cells.columns_of(block, "md", wording)
    marks = [":---" if column.kind in cells.LEFT else "---:" for column in columns]
    rows = [[md(cells.text_of(row, column, wording)) for column in columns] for row in block.rows]
    lines = [" | ".join(row) for row in ([md(column.head) for column in columns], marks, *rows)]
    return "\n".join([*([f"**{md(block.caption)}**", ""] if block.caption else []), *lines])
