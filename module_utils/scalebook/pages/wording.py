# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How a form of the report says things: its language and its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, as_message, message
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.pages.numbers import quotient, readable, two_decimals
from ansible.module_utils.scalebook.text import clean

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
HOURS_EAST = {"en": 0, "zh": 8}
"""The time zone of the readers of a language, as hours before UTC."""
FEW_TENTHS = 0.00095  # below it one decimal of a per cent says nothing


SPANS = (("min-s", 60, 1, 3600), ("h-min", 3600, 60, 2 * 86400), ("d-h", 86400, 3600, float("inf")))
"""How a time is said up to a number of seconds: in a unit and a smaller one, of so many seconds each."""


def duration(seconds: float) -> Message:
    """Return a time as people say it: `4 min 39 s`, `31 h 10 min`, `2 d 3 h`."""
    if round(seconds) < 60:
        return message("duration.s", seconds=seconds)
    code, large, small = next(each[:3] for each in SPANS if round(seconds / each[2]) * each[2] < each[3])
    count = round(seconds / small)
    return message(f"duration.{code}", large=count * small // large, small=count % (large // small))


class Wording:
    """The texts and numbers of one form of the report."""

    def __init__(self, language: str = "en", for_people: bool = False) -> None:
        """Keep the language, and whether numbers are rounded for people. Raises ValueError."""
        if language not in catalogue.LANGUAGES:
            raise ValueError(f"report_language={language}: must be one of {', '.join(catalogue.LANGUAGES)}")
        self.language = language
        self.for_people = for_people

    def __call__(self, code: str, **values: Any) -> str:
        """Return the text of a code in the language of the report, its places replaced by `values`."""
        return catalogue.phrase(code, values, self.language)

    def name(self, section: str, value: Any) -> str:
        """Return what a value is called, such as a unit or a status; a name is its own."""
        code = f"{section}.{value}".replace(" ", "-")
        return catalogue.CATALOGUES[self.language].get(code, clean(value))

    def per_second(self, unit: str) -> str:
        """Return the unit of a rate, such as `sequences/s`."""
        return f"{self.name('unit', unit)}/s"

    def fact(self, text: str) -> str:
        """Return what a node recorded."""
        return self._declared(text) or self.name("value", text)

    def _declared(self, text: str) -> str | None:
        """Return what a declaration says of data; a number may precede it, and `name=value` follow it."""
        declared = catalogue.DECLARED[self.language]
        what, _, values = text.partition(", ")
        number, space, rest = what.partition(" ")
        if not number.isdigit():
            number, space, rest = "", "", what
        if text in declared or rest not in declared or (values and "=" not in values):
            return declared.get(text)
        return self.join([f"{number}{space}{declared[rest]}", values])

    def join(self, parts: Iterable[str], kind: str = "parts") -> str:
        """Return the parts of a line as one text; one without text is none."""
        return catalogue.CATALOGUES[self.language][f"join.{kind}"].join(filter(None, parts))

    def about(self, what: str, text: str) -> str:
        """Return a text with what it is about before it."""
        return f"{what}{self('join.about')}{text}"

    def count(self, number: int, noun: str) -> str:
        """Return `1 case`, `2 cases`."""
        end = "s" if self.language == "en" and number != 1 else ""
        return self(f"count.{noun}".replace(" ", "-"), count=number) + end

    def tell(self, statement: str | Message) -> str:
        """Return a message in the language of the report; what a record has as text stays as it is."""
        try:
            return catalogue.sentence(as_message(statement), self.language)
        except (catalogue.CatalogueError, RecursionError):  # of a later version, or changed by hand
            return clean(statement)

    def number(self, value: float | None) -> str:
        """Return a rate: as DLPerf prints it, or with thousands separators and four digits for people.

        A rate below 1 has four digits everywhere: two decimals would round 0.0049 to 0.
        """
        if value is None:
            return self("report.n/a")
        return readable(value) if self.for_people or abs(value) < 1 else two_decimals(value)

    def speedup(self, value: float | None) -> str:
        """Return a speedup, `1` for the baseline itself."""
        if value is None:
            return self("report.n/a")
        if value == 1:
            return "1"
        return quotient(value) if self.for_people else two_decimals(value)

    def moment(self, stamp: str) -> str:
        """Return `2026-11-21T08:29:33Z` as `2026-11-21 08:29 UTC` for people, in Chinese as UTC+8."""
        if not self.for_people or not _STAMP.fullmatch(stamp):
            return stamp
        zone = timezone(timedelta(hours=HOURS_EAST[self.language]))
        return f"{datetime.fromisoformat(stamp[:19] + '+00:00').astimezone(zone):%Y-%m-%d %H:%M %Z}"

    def milliseconds(self, seconds: float) -> str:
        """Return seconds as milliseconds, one decimal below ten seconds."""
        separator = "," if self.for_people else ""
        return f"{1000 * seconds:{separator}.{1 if seconds < 10 else 0}f}"

    def percent(self, value: float | None) -> str:
        """Return a fraction as per cent, 'n/a' for None."""
        if value is None:
            return self("report.n/a")
        digits = 2 if self.for_people and 0 < abs(value) < FEW_TENTHS else 1
        # Rounded first: -0.0004 would print as -0.0.
        return f"{round(100 * value, digits) + 0.0:.{digits}f}{catalogue.PERCENT[self.language]}"

    def between(self, pair: Sequence[float] | None, rates: bool = False) -> str:
        """Return a range or an interval, of `rates` or of quotients."""
        if pair is None:
            return self("report.n/a")
        texts = [
            self.number(value) if rates and (self.for_people or value < 1) else quotient(value)
            for value in pair
        ]
        return " – ".join(texts)


ENGLISH = Wording()
