# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How a form of the report says things: its language and its numbers.

The English text is the key of every other language, as with gettext: a catalogue maps it to the
translation, both with the same `{names}`.  Sentences that the document holds in English are recognised
by the catalogue's texts as patterns, so results.json has one language.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, as_message
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.text import clean, readable, two_decimals

_NAME = re.compile(r"\{(\w+)\}")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")
_JOINTS = (
    (re.compile(r"(?<=\.) "), ""),
    (re.compile(r"; (?![^()]*\))"), "；"),
    (re.compile(", | and "), "、"),
)
"""What joins the parts of a sentence in English and in Chinese; a semicolon in brackets joins none."""


LISTS = ("why", "verdict", "text")
"""Names of a text that may stand for several sentences; others stand for less than one."""
WITHIN = {
    **dict.fromkeys(("causes", "what"), r"(?:(?!\. ).)"),
    "evidence": r"(?:(?!\. )[^()])",
    "cause": "[^();]",
}
"""A character of what a name stands for that ends with its sentence, or before its brackets."""
LONGEST = 2000  # characters of a sentence; a longer one is a line of a log
FEW_TENTHS = 0.00095  # below it one decimal of a per cent says nothing
LANGUAGES = ("en", "zh")


def load(templates: str, language: str) -> dict[str, str]:
    """Return the catalogue of a language, `texts.<language>.json`; the English one is empty."""
    if language not in LANGUAGES:
        raise ValueError(f"report_language={language}: must be one of {', '.join(LANGUAGES)}")
    if language == "en":
        return {}
    catalogue: dict[str, str] = json.loads(
        (Path(templates) / f"texts.{language}.json").read_text(encoding="utf-8")
    )
    return catalogue


class Wording:
    """The texts and numbers of one form of the report."""

    def __init__(self, of: str | Mapping[str, str] = "en", for_people: bool = False) -> None:
        """Keep the language, or the translations by their English text; numbers are rounded for people."""
        self.catalogue = {"en": of} if isinstance(of, str) else dict(of)
        self.language = self.catalogue.get("en", "en")
        self.for_people = for_people
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        # The text with the most letters of its own is the one that fits best.
        for english in sorted(self.catalogue, key=lambda text: -len(_NAME.sub("", text))):
            if _NAME.search(english):
                self._patterns.append((_pattern(english), self.catalogue[english]))
        self.sentence = functools.lru_cache(maxsize=4096)(self._sentence)

    def __call__(self, text: str, **values: Any) -> str:
        """Return `text` in the language of the report, its `{names}` replaced by `values`.

        A text is the code of a message (`head.speedup`), or still its English words.
        """
        if text in catalogue.CATALOGUES["en"]:
            return catalogue.phrase(text, values, self.language)
        chosen = self.catalogue.get(text, text)
        return _NAME.sub(lambda match: str(values[match[1]]), chosen) if values else chosen

    def name(self, section: str, value: Any) -> str:
        """Return what a value is called, such as a unit or a status; a name is its own."""
        code = f"{section}.{value}".replace(" ", "-")
        return catalogue.CATALOGUES[self.language].get(code, clean(value))

    def join(self, parts: Iterable[str], kind: str = "parts") -> str:
        """Return the parts of a line as one text."""
        return catalogue.CATALOGUES[self.language][f"join.{kind}"].join(parts)

    def about(self, what: str, text: str) -> str:
        """Return a text with what it is about before it."""
        return f"{what}{self('join.about')}{text}"

    def count(self, number: int, noun: str) -> str:
        """Return `1 case`, `2 cases`; `{count} case` is the text of the catalogue."""
        code = f"count.{noun}".replace(" ", "-") + ("" if number == 1 else "s")
        if code in catalogue.CATALOGUES["en"]:
            return self(code, count=number)
        key = f"{{count}} {noun}"
        if key in self.catalogue:
            return self(key, count=number)
        return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

    def tell(self, given: str | Message) -> str:
        """Return a message, or a sentence of an earlier version, in the language of the report."""
        try:
            return catalogue.sentence(
                as_message(given), self.language, lambda text: self.sentence(clean(text))
            )
        except (catalogue.CatalogueError, RecursionError):  # of a later version, or changed by hand
            return clean(given)

    def _sentence(self, text: str) -> str:
        """Return a sentence of the document in the language of the report.

        What the catalogue does not know stays as it is: names, and lines of logs.
        """
        if not self.catalogue or not text:
            return text
        if text in self.catalogue:
            return self.catalogue[text]
        for pattern, translation in self._patterns if len(text) < LONGEST else ():
            match = pattern.fullmatch(text)
            if match:
                values = {name: self.sentence(value) for name, value in match.groupdict().items()}
                return _NAME.sub(lambda found, values=values: values[found[1]], translation)  # type: ignore[misc]
        for separator, joint in _JOINTS:
            parts = separator.split(text)
            said = [self.sentence(part) for part in parts] if len(parts) > 1 else parts
            if said != parts:
                return joint.join(said)
        return text

    def number(self, value: float | None, missing: str = "n/a") -> str:
        """Return a rate: as DLPerf prints it, or with thousands separators and four digits for people.

        A rate below 1 has four digits everywhere: two decimals would round 0.0049 to 0.
        """
        if value is None:
            return self.name("report", missing)
        return readable(value) if self.for_people or abs(value) < 1 else two_decimals(value)

    def speedup(self, value: float | None, missing: str = "n/a") -> str:
        """Return a speedup, `1` for the baseline itself."""
        if value is None:
            return self.name("report", missing)
        if value == 1:
            return "1"
        return f"{value:.2f}" if self.for_people else two_decimals(value)

    def moment(self, stamp: str) -> str:
        """Return `2026-11-21T08:29:33Z` as `2026-11-21 08:29 UTC` for people."""
        found = _STAMP.fullmatch(stamp)
        return f"{found[1]} {found[2]} UTC" if found and self.for_people else stamp

    def milliseconds(self, seconds: float) -> str:
        """Return seconds as milliseconds, one decimal below ten seconds."""
        separator = "," if self.for_people else ""
        return f"{1000 * seconds:{separator}.{1 if seconds < 10 else 0}f}"

    def percent(self, value: float | None, digits: int = 1) -> str:
        """Return a fraction as per cent, 'n/a' for None."""
        if value is not None and self.for_people and 0 < abs(value) < FEW_TENTHS:
            digits += 1
        # Rounded first: -0.0004 would print as -0.0.
        return self("report.n/a") if value is None else f"{round(100 * value, digits) + 0.0:.{digits}f} %"

    def between(self, pair: Sequence[float] | None, missing: str = "n/a", rates: bool = False) -> str:
        """Return a range or an interval, of `rates` or of quotients."""
        if pair is None:
            return self.name("report", missing)
        texts = [
            self.number(value) if rates and (self.for_people or value < 1) else f"{value:.2f}"
            for value in pair
        ]
        return " – ".join(texts)


def _pattern(english: str) -> re.Pattern[str]:
    """Return the pattern of sentences with the words of `english` and anything for its names."""
    seen: set[str] = set()
    out, end = [], 0
    for match in _NAME.finditer(english):
        out.append(re.escape(english[end : match.start()]))
        anything = WITHIN.get(match[1], "." if match[1] in LISTS else "[^;]")
        out.append(f"(?P={match[1]})" if match[1] in seen else f"(?P<{match[1]}>{anything}+?)")
        seen.add(match[1])
        end = match.end()
    return re.compile("".join([*out, re.escape(english[end:])]))


ENGLISH = Wording()
