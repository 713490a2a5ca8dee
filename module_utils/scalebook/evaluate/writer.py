# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document while it is written: its blocks, and the numbers of its sections, tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED, Option
from ansible.module_utils.scalebook.evaluate.published import SOURCES
from ansible.module_utils.scalebook.evaluate.sentences import conclusive, heading
from ansible.module_utils.scalebook.pages.blocks import (
    NONE,
    Block,
    Chart,
    Code,
    Column,
    Heading,
    Items,
    Paragraph,
    Table,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.quantities import Quantity

WRAPPED = ("differs", "evidence", "cases", "source", "hardware", "campaigns", "setting", "reason")
"""Columns whose text is wrapped on a page, as it may be long."""


class Writer:
    """Collects the blocks of `evaluation`. A text is a message, or the code of one without `evaluation.`."""

    def __init__(self, evaluation: Mapping[str, Any], wording: Wording) -> None:
        """Begin an empty document."""
        self.evaluation, self.wording = evaluation, wording
        self.blocks: list[Block] = []
        self._numbers = [0, 0, 0]
        self._captions: Counter[str] = Counter()

    @property
    def options(self) -> list[Option]:
        """Return the options that conclusions are drawn from."""
        return [each for family in self.evaluation["families"] for each in conclusive(family)]

    @property
    def section(self) -> int:
        """Return the number of the section that is being written."""
        return self._numbers[0]

    def text(self, statement: str | Message, **values: Any) -> str:
        """Return a text in the language of the document."""
        is_code = isinstance(statement, str)
        return self.wording(f"evaluation.{statement}", **values) if is_code else self.wording.tell(statement)

    def value(self, value: Any) -> Any:
        """Return what a cell has: messages and what no record says in the language of the document."""
        if isinstance(value, Mapping):
            return self.wording.tell(value)  # type: ignore[arg-type]
        if value == NOT_RECORDED:
            return self.wording("report.not-recorded")
        if isinstance(value, str):
            return self.wording(value) if value in SOURCES.values() else self.wording.fact(value)
        return value

    def heading(self, text: str | Message, level: int = 2, **values: Any) -> None:
        """Add a numbered heading: `3 …` of level 2, `3.1 …` of level 3, `3.1.2 …` of level 4."""
        depth = level - 2
        self._numbers = [*self._numbers[:depth], self._numbers[depth] + 1, *[0] * (2 - depth)]
        if level == 2:
            self._captions.clear()
        number = ".".join(str(each) for each in self._numbers[: depth + 1])
        self.blocks.append(Heading(level, f"{number} {self.text(text, **values)}"))

    def say(self, text: str, **values: Any) -> None:
        """Add a paragraph."""
        self.blocks.append(Paragraph(self.text(text, **values)))

    def own(self, name: str) -> None:
        """Add the user's own paragraphs of a section."""
        paragraphs = str(self.evaluation["texts"].get(name) or "").strip().split("\n\n")
        self.blocks += [Paragraph(text) for text in paragraphs if text]

    def items(self, texts: Sequence[str | Message]) -> None:
        """Add a list of sentences."""
        if texts:
            self.blocks.append(Items([self.text(text) for text in texts]))

    def code(self, title: str, text: str) -> None:
        """Add lines that stay as they are."""
        self.blocks.append(Code(title, text))

    def column(self, key: str, kind: str = "text", head: str = "", unit: str | None = None) -> Column:
        """Return a column; `head` is the code of its heading where that is not its key."""
        name = self.wording(heading(head or key))
        head = self.text("in-unit", name=name, unit=unit) if unit else name
        return Column(key, head, kind, NONE, look="wrap" if key in WRAPPED else "")

    def columns(self, listed: str) -> list[Column]:
        """Return columns by such as `runs count, name text option`: key, kind and heading of each."""
        return [self.column(*each.split()) for each in listed.split(", ")]

    def varying(self, always: str, others: str, rows: Iterable[Mapping[Any, Any]]) -> list[Column]:
        """Return the `always` columns, and those of the `others` in which rows differ that would be alike."""
        columns, lines = self.columns(always), [dict(row) for row in rows]
        for column in self.columns(others):
            values = {str(row[column.key]) for row in lines}
            if len(values) > 1 and (
                column.key != "source" or len(self.distinct(columns, lines)) < len(lines)
            ):
                columns.append(column)
        return columns

    def quantities(self, chosen: Iterable[Quantity], kind: str = "readable") -> list[Column]:
        """Return the columns of quantities of telemetry."""
        return [
            Column(each.name, self.text("in-unit", name=message(each.code), unit=each.unit), kind, NONE)
            for each in chosen
        ]

    def table(self, title: str, columns: Sequence[Column], lines: Iterable[Mapping[str, Any]]) -> None:
        """Add a table with its number, if it has lines, with the columns that one of them fills."""
        rows = [{column.key: self.value(line[column.key]) for column in columns} for line in lines]
        empty = (None, "", NONE)
        filled = [column for column in columns if any(row[column.key] not in empty for row in rows)]
        if rows:
            self.blocks.append(Table(filled, rows, caption=self._caption("caption", title)))

    def sheet(self, title: str, columns: Sequence[Column], lines: Iterable[Mapping[str, Any]]) -> None:
        """Add a table that is in the workbook alone."""
        rows = [{column.key: self.value(line[column.key]) for column in columns} for line in lines]
        self.blocks.append(Table(columns, rows, caption=title, only="xlsx"))

    def distinct(
        self, columns: Sequence[Column], lines: Iterable[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return the lines without those that say what another one has said."""
        return list(
            {tuple(str(self.value(line[each.key])) for each in columns): line for line in lines}.values()
        )

    def charts(self, charts: Sequence[tuple[str, str]]) -> None:
        """Add (title, drawing) of each chart with its number."""
        self.blocks += [Chart(self._caption("chart-caption", title), svg) for title, svg in charts]

    def _caption(self, kind: str, title: str) -> str:
        self._captions[kind] += 1
        return self.text(kind, number=f"{self.section}-{self._captions[kind]}", title=title)
