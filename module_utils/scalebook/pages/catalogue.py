# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Messages -> sentences of one language: the only place that knows both.

A catalogue maps the code of a message to its sentence (messages_en.py, messages_zh.py, and heads.py for the
headings of columns). In a sentence

    {name}          stands for a value: text, a number as it is, or another message
    {name:.1f}      for a number, as Python formats it; also `d`, `,d`, `.3g` …
    {name:percent}  for a share, in per cent with one decimal; `percent3` has three digits,
                    `hundredths` no sign
    {name:clock}    for seconds, as hours, minutes and seconds
    {name:list}     for a list whose parts are joined by `join.list`, as with every other key below `join`

What is text already (`"3.4 %"` of a record that was converted) stays as it is, whatever its kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Message
from ansible.module_utils.scalebook.pages import messages_en, messages_zh
from ansible.module_utils.scalebook.pages.heads import HEADS
from ansible.module_utils.scalebook.pages.numbers import as_published, clock, readable
from ansible.module_utils.scalebook.text import clean

CATALOGUES: Mapping[str, Mapping[str, str]] = {
    language: {**messages, **{code: texts[index] for code, texts in HEADS.items()}}
    for index, (language, messages) in enumerate(
        {"en": messages_en.MESSAGES, "zh": messages_zh.MESSAGES}.items()
    )
}
DECLARED: Mapping[str, Mapping[str, str]] = {"en": {}, "zh": messages_zh.DECLARED}
LANGUAGES = tuple(CATALOGUES)
TEXT = "text"
"""The code of a message that is its own sentence: a line of a log, or what a workload declares."""

PLACE = re.compile(r"\{(\w+)(?::([^{}]+))?\}")
KINDS: Mapping[str, Callable[[float], str]] = {
    # Rounded first: -0.0004 would print as -0.0.
    "percent": lambda value: f"{round(100 * value, 1) + 0.0:.1f}",
    "hundredths": lambda value: f"{round(100 * value, 1) + 0.0:.1f}",
    "gain": lambda value: f"{100 * (value - 1):+.1f}",
    "percent3": lambda value: f"{100 * value:.3g}",
    "readable": readable,
    "published": as_published,
    "clock": clock,
}
SHARES = ("percent", "percent3", "gain")
PERCENT = {"en": " %", "zh": "%"}
"""What stands behind the number of a share."""
CHINESE = "[\u201c\u201d\u3001-\u9fff\uff01-\uff5e]"
GAP = re.compile(rf"(?<={CHINESE})(?= ?\0)\0* \0*(?={CHINESE})")
"""A blank between Chinese characters or marks where a value begins or ends, at a NUL."""


class CatalogueError(ValueError):
    """A message that a catalogue cannot say; the error names its code and language."""


def sentence(statement: str | Message, language: str = "en") -> str:
    """Return a message in a language, on one line. Raises CatalogueError."""
    return clean(_text_of(statement, language))


def phrase(code: str, values: Mapping[str, Any], language: str) -> str:
    """Return a message with the blanks at its ends: a part of a line. Raises CatalogueError."""
    return _filled({"code": code, "values": values}, language)


def in_words(value: Any) -> Any:
    """Return data, the messages in it as English sentences."""
    if isinstance(value, Mapping):
        message = {"code", "values"} == value.keys()
        return sentence(value) if message else {key: in_words(each) for key, each in value.items()}  # type: ignore[arg-type]
    return [in_words(each) for each in value] if isinstance(value, list) else value


def _text_of(value: Any, language: str, kind: str = "") -> str:
    if isinstance(value, Mapping):
        return _filled(value, language)
    if isinstance(value, (list, tuple)):
        joint = CATALOGUES[language][f"join.{kind or 'list'}"]
        return joint.join(_text_of(each, language) for each in value)
    if not kind or isinstance(value, str):
        return str(value)
    if kind not in KINDS:
        return format(value, kind)
    return KINDS[kind](value) + (PERCENT[language] if kind in SHARES else "")


def _filled(statement: Mapping[str, Any], language: str) -> str:
    code, values = statement["code"], statement["values"]
    pattern = CATALOGUES[language].get(code)
    if code == TEXT:
        text = str(values.get("text", ""))
        pattern = DECLARED[language].get(clean(text), text)
        if len(values) <= 1:
            return pattern
    if pattern is None:
        raise CatalogueError(f"messages_{language}.py has no {code}")
    try:
        if language != "zh":
            return PLACE.sub(lambda place: _text_of(values[place[1]], language, place[2] or ""), pattern)
        marked = PLACE.sub(
            lambda place: f"\0{_text_of(values[place[1]], language, place[2] or '')}\0", pattern
        )
        return GAP.sub("", marked).replace("\0", "")
    except (KeyError, ValueError, TypeError) as error:
        raise CatalogueError(f"{code} cannot be said in {language} with {dict(values)}: {error!r}") from error
