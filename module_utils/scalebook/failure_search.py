# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Searches what a program printed for the first cause of its failure (failure_causes.py has the table)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ansible.module_utils.scalebook.failure_causes import CAUSES, HARMLESS, VAGUE, Cause

GAP = "…"
_WITHIN = 240
"""Bytes that a gap of a text may stand for."""

# What run_node puts before every line: monotonic and wall-clock seconds.
_STAMPS = re.compile(rb"\d{1,12}\.\d{6} (\d{1,12}\.\d{6}) ")
# Lines that report no failure: of information levels, and what a program or a shell says of its options.
_INFORMATION = re.compile(
    rb"(?:^|[\s\[(|])(?:INFO|DEBUG|TRACE)[\s\]):|]|(?:^|: |\.\d+ )I (?:tensorflow|external|xla)|^I\d{4} "
    rb"|^SCALEBOOK \{|^\++ |\bNamespace\(|^[A-Z][A-Z0-9_]+ [\w.]+="
)
# … and what stands before a text that is the value of an option or a piece of code.
_VALUE = re.compile(
    rb"(?:=|[\[,(]|--[\w-]+) *[\"'`]?$"  # name=TEXT, [TEXT, (TEXT, --name TEXT
    rb"|[\"'][\w.-]+[\"'] *: *[\"'\[]*$"  # "name": TEXT
    rb"|[=:\[,] *([\"'])(?:(?!\1).)*$"  # a quotation that begins with a value
    rb"|(?:^|[\s{,])[a-z][a-z0-9]*(?:_[a-z0-9]+)+ *: *$"  # some_name: TEXT
)
# Of these the value is what an exception says.
_RAISED = re.compile(
    rb"(?:(?:Error|Exception)|(?<![\w-])(?:error|exception|message|msg|reason|what\(\))[\"']?)"
    rb"[(:] *b?[\"']?[^\"']*$"
)
# An uncaught exception of another kind after something vague is what ended the program.
_EXCEPTION = re.compile(rb"^(?:\[?rank ?\d+\]?: ?)?(?:\w+\.)*\w*(?:Error|Exception)(?:: |$)")
_WRAPPERS = (b"ChildFailedError", b"CalledProcessError", b"DistBackendError", b"HorovodInternalError")


class Hit(NamedTuple):
    """A cause that a line tells: the words in it, and its time of day where the line has a stamp."""

    cause: Cause
    text: str
    line: str
    moment: float | None


def advice(cause: Cause) -> str:
    """Return the cause's sentence and its fix."""
    return cause.why + (f". Fix: {cause.fix}" if cause.fix else "")


class _Text(NamedTuple):
    """A text of the table: its first part, a pattern where it has gaps, and the cause."""

    first: bytes
    pattern: re.Pattern[bytes] | None
    cause: Cause
    own: bool


def _compiled(causes: Iterable[Cause], own: bool) -> list[_Text]:
    texts = []
    for cause in causes:
        for text in cause.texts:
            parts = [part.strip().encode() if GAP in text else part.encode() for part in text.split(GAP)]
            gap = rb".{0,%d}?" % _WITHIN
            pattern = re.compile(gap.join(map(re.escape, parts))) if len(parts) > 1 else None
            texts.append(_Text(parts[0], pattern, cause, own))
    return texts


_TABLE = _compiled(CAUSES, own=False)
_HARMLESS = _compiled([Cause("harmless", HARMLESS)], own=False)


def first_cause(blocks: Iterable[bytes], own: Sequence[Cause] = ()) -> Hit | None:
    """Return the first cause that `blocks` of whole lines tell; of those `own` to a workload, too.

    A vague one counts if there is no other, and no exception of another kind follows it.
    """
    texts = [*_compiled(own, own=True), *_TABLE]
    vague: Hit | None = None
    for block in blocks:
        after = 0
        for place, line, present in _candidates(block, texts):
            hit = _hit(line, present)
            if hit and hit.cause.kind != VAGUE:
                return hit
            if hit and vague is None:
                vague, after = hit, place + len(line)
        if vague is not None and _other_exception(block[after:], texts):
            vague = None
    return vague


def _candidates(block: bytes, texts: Iterable[_Text]) -> Iterator[tuple[int, bytes, list[_Text]]]:
    """Yield the lines that have the first part of texts, with their places and these texts, in order."""
    lines: dict[int, list[_Text]] = {}
    for text in texts:
        at = block.find(text.first)
        while at >= 0:
            lines.setdefault(block.rfind(b"\n", 0, at) + 1, []).append(text)
            end = block.find(b"\n", at)
            at = block.find(text.first, end) if end >= 0 else -1
    for place in sorted(lines):
        end = block.find(b"\n", place)
        yield place, block[place : end if end >= 0 else len(block)], lines[place]


def _hit(line: bytes, texts: Iterable[_Text]) -> Hit | None:
    stamps = _STAMPS.match(line)
    body = line[stamps.end() :] if stamps else line
    for text in texts:
        span = _span(body, text)
        if span and (text.own or not _harmless(body, span[0])):
            words = body[span[0] : span[1]].decode(errors="replace")
            moment = float(stamps[1]) if stamps else None
            return Hit(text.cause, words[:160], body.decode(errors="replace").strip(), moment)
    return None


def _span(body: bytes, text: _Text) -> tuple[int, int] | None:
    if text.pattern is None:
        at = body.find(text.first)
        return (at, at + len(text.first)) if at >= 0 else None
    match = text.pattern.search(body)
    return match.span() if match else None


def _harmless(body: bytes, at: int) -> bool:
    """Say whether the line reports no failure, or the text at `at` is the value of an option."""
    if _INFORMATION.search(body) or any(_span(body, text) for text in _HARMLESS):
        return True
    before = body[: at + 1] if body[at : at + 1] == b":" else body[:at]
    return bool(_VALUE.search(before)) and not _RAISED.search(before)


def _other_exception(data: bytes, texts: Iterable[_Text]) -> bool:
    for line in data.split(b"\n"):
        stamps = _STAMPS.match(line)
        body = line[stamps.end() :] if stamps else line
        if _EXCEPTION.match(body) and not any(name in body for name in _WRAPPERS) and not _hit(body, texts):
            return True
    return False
