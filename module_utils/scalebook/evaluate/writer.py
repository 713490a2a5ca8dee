# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document while it is written: its blocks, and the numbers of its sections, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Message
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Cell,
    Chart,
    Code,
    Heading,
    Items,
    Paragraph,
    plain_table,
)


class Writer:
    """Collects blocks. `t` are the texts of a language, `e` the evaluation.

    `translate` says a message or a sentence of the records in the language of the document.
    """

    def __init__(
        self,
        evaluation: Mapping[str, Any],
        texts: Mapping[str, Any],
        translate: Callable[[str | Message], str],
    ) -> None:
        """Begin an empty document."""
        self.e, self.t, self.translate = evaluation, texts, translate
        self.blocks: list[Block] = []
        self._numbers = [0, 0, 0]
        self._captions = {"caption": 0, "chart_caption": 0}

    @property
    def section(self) -> int:
        """Return the number of the section that is being written."""
        return self._numbers[0]

    def heading(self, text: str, level: int = 2) -> None:
        """Add a numbered heading: `3 …` of level 2, `3.1 …` of level 3, `3.1.2 …` of level 4."""
        depth = level - 2
        self._numbers = [*self._numbers[:depth], self._numbers[depth] + 1, *[0] * (2 - depth)]
        if level == 2:
            self._captions = dict.fromkeys(self._captions, 0)
        number = ".".join(str(each) for each in self._numbers[: depth + 1])
        self.blocks.append(Heading(level, f"{number} {text}"))

    def say(self, *texts: str) -> None:
        """Add a paragraph for each text that is not empty."""
        self.blocks += [Paragraph(text) for text in texts if text]

    def own(self, name: str) -> None:
        """Add the user's own paragraphs of a section."""
        self.say(*str(self.e["texts"].get(name) or "").strip().split("\n\n"))

    def items(self, texts: Sequence[str]) -> None:
        """Add a list of sentences."""
        if texts:
            self.blocks.append(Items(texts))

    def code(self, title: str, text: str) -> None:
        """Add lines that stay as they are."""
        self.blocks.append(Code(title, text))

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Add a table with its number; names of columns are keys of the texts, or stand for themselves."""
        if rows:
            names = [self.t["columns"].get(name, name) for name in head]
            self.blocks.append(plain_table(self._caption("caption", title), names, rows))

    def charts(self, charts: Sequence[tuple[str, str]]) -> None:
        """Add (title, drawing) of each chart with its number."""
        self.blocks += [Chart(self._caption("chart_caption", title), svg) for title, svg in charts]

    def _caption(self, kind: str, title: str) -> str:
        self._captions[kind] += 1
        return str(self.t[kind]).format(f"{self.section}-{self._captions[kind]}", title)

    def recorded(self, value: str) -> str:
        """Return a fact, in the language of the document where no record says it."""
        return str(self.t["not_recorded"]) if value == NOT_RECORDED else value
