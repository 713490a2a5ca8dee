# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The parts of which a document is made; every form of it is rendered from the same list.

`only` names the forms that a part is for, such as "md" or "html txt"; '' is all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from ansible.module_utils.scalebook.pages.numbers import all_digits, quotient, readable


class Figure(NamedTuple):
    """A number of a table whose text is settled already: its value, and the text that people read."""

    value: float
    text: str


class Tag(NamedTuple):
    """A few letters that stand out in a cell; `code` is what they stand for, `href` where more is said."""

    text: str
    code: str = ""
    href: str = ""


class Item(NamedTuple):
    """One sentence of a list: `label` is what it is about, `soft` which of several of that name.

    `href` makes a link of it, `code` says that it is a formula, `see` is a link to more after it.
    """

    text: str
    label: str = ""
    soft: str = ""
    id: str = ""
    href: str = ""
    code: bool = False
    see: Tag | None = None


class Column(NamedTuple):
    """A column of a table: the key of its cells in the rows, its heading, and the kind of its values.

    Without `head` the heading is `head.<key>` of the catalogue.  cells.py has the kinds.  `missing` stands
    for None.  `sheet` is its name in results.csv and results.xlsx, '' of one that they do not have. The
    other keys are for HTML: `soft` of a lesser text after the value, `hint` of one that the mouse shows,
    `lines` of lines that unfold, `href` of where the value leads; `over` is a heading above several columns,
    `look` a class: `main`, `wrap`, `tags`, or `less` of what a phone shows on demand.
    """

    key: str
    head: str = ""
    kind: str = "text"
    missing: str = "n/a"
    only: str = ""
    look: str = ""
    soft: str = ""
    hint: str = ""
    lines: str = ""
    over: str = ""
    sheet: str = ""
    href: str = ""


def sheet_only(names: str, kind: str = "text") -> list[Column]:
    """Return columns that only sheets have, which are called as their keys."""
    return [Column(name, name, kind, only="sheet", sheet=name) for name in names.split()]


Cell = Union[str, Figure]  # noqa: UP007 (evaluated on import)
Row = Mapping[str, Any]


class Heading(NamedTuple):
    """A heading of `level` 2, 3 or 4; `detail` is what it is compared with, `id` what links to it name."""

    level: int
    text: str
    id: str = ""
    only: str = ""
    detail: str = ""


class Paragraph(NamedTuple):
    """Text on its own, such as a definition; `look` is a class: `soft` (an aside), `warning`, `wraps`.

    `lead` is a word that stands out before it; `parts` follow on a page: text, flags and links.  Without a
    link and code an item stands out, in a `verdict` as what is good.
    """

    text: str
    look: str = ""
    only: str = ""
    lead: str = ""
    parts: Sequence[str | Tag | Item] = ()


class Items(NamedTuple):
    """A list of sentences; `look` is a class: `plain`, `flags` or `files`."""

    texts: Sequence[str | Item]
    look: str = "plain"
    only: str = ""


class Settings(NamedTuple):
    """Names with their values, on one line or in a row."""

    pairs: Sequence[tuple[str, str]]
    only: str = ""


class Code(NamedTuple):
    """Lines that stay as they are, with what they show."""

    title: str
    text: str
    only: str = ""


class Table(NamedTuple):
    """A table. `caption` is printed with it, `label` is for those who do not see it.

    `quiet` is the key of what says that a row counts less, `look` a class: `names` (long headings).  A script
    of the page finds rows by the values of `filters`, keys of theirs.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    label: str = ""
    caption: str = ""
    only: str = ""
    quiet: str = ""
    look: str = ""
    filters: Sequence[str] = ()


class Chart(NamedTuple):
    """A drawing, for the forms that can show it, and its numbered caption; its figures are in a table."""

    caption: str
    svg: str
    only: str = ""


class Charts(NamedTuple):
    """Drawings side by side that have titles in them: `name` of the file, `svg`, and `title` of some."""

    drawn: Sequence[Mapping[str, str]]
    only: str = ""


class Fold(NamedTuple):
    """Blocks that are below `summary`, unfolded by a click where a form can do that.

    With an `id` the summary is the heading of a section.
    """

    summary: str
    blocks: Sequence[Any]
    only: str = ""
    id: str = ""


class Download(NamedTuple):
    """Files that a page carries with it: their `name`, and their texts by how it ends, csv or json."""

    name: str
    texts: Mapping[str, str]
    only: str = "html"


Block = Union[  # noqa: UP007 (evaluated on import)
    Heading, Paragraph, Items, Settings, Code, Table, Chart, Charts, Fold, Download
]


def meant_for(form: str, parts: Iterable[Any]) -> list[Any]:
    """Return the blocks or columns that are for a form: md, html, docx, xlsx or txt."""
    return [part for part in parts if not part.only or form in part.only.split()]


def titled(title: str, id: str, table: Table, *about: Block) -> list[Block]:
    """Return the section of a table, which has its title for a label: what is said about it comes first."""
    return [Heading(2, title, id), *about, table._replace(label=title)]


NONE = "–"


def figure(value: float | None) -> Cell:
    """Return a measured or computed number, four digits of it shown; a dash for none."""
    return NONE if value is None else Figure(value, readable(value))


def exact(value: float | None) -> Cell:
    """Return a number as it was given or published, with all its digits: 40, 0.5, 4,899.52."""
    return NONE if value is None else Figure(value, all_digits(value))


def times(value: float | None) -> Cell:
    """Return a speedup or another quotient, two decimals of it shown; a dash for none."""
    return NONE if value is None else Figure(value, quotient(value))
