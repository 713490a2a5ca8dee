# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Markdown from the texts of Ansible's documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def markdown(text: str) -> str:
    """Return a text with Ansible's markup (https://docs.ansible.com, Ansible markup) as Markdown."""
    text = re.sub(r"\bP\(([^)#]+)#\w+\)", r"`\1`", text)
    text = re.sub(r"\bO\((?:\w+:)*([^)]+)\)", r"`\1`", text)
    text = re.sub(r"\b(?:C|V|RV)\(([^)]+)\)", r"`\1`", text)
    # Outside of code, < would begin an element of HTML.
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def sentences(description: str | Sequence[str] | None) -> list[str]:
    """Return a description, one text or a list of them, as Markdown texts that end with a full stop."""
    parts = [description] if isinstance(description, str) else list(description or [])
    texts = [markdown(" ".join(text.split())) for text in parts]
    return [text if text.endswith((".", "!", "?", ":")) else text + "." for text in texts]


def cell(value: Any) -> str:
    """Return a text as a cell of a table."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def with_table(page: str, mark: str, new_table: str) -> dict[str, str]:
    """Return the name of a page -> its text with the table between the comments of that mark."""
    marks = re.compile(rf"(<!-- {mark}: made by scripts/pages -->\n).*?(\n<!-- end of {mark} -->)", re.DOTALL)
    return {page: marks.sub(lambda match: f"{match[1]}\n{new_table}{match[2]}", (ROOT / page).read_text())}
