# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Searches what a program printed for the first cause of its failure (failure_causes.py has the table)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ansible.module_utils.scalebook.contracts import Message, as_message, message
from ansible.module_utils.scalebook.failure_causes import CAUSES, EFFECT, HARMLESS, UNKNOWN, VAGUE, Cause

GAP = "…"
STEPS = 4
"""Steps of other ranks that may still be logged when one of them has failed."""

_WITHIN = 240
"""Bytes that a gap of a text may stand for."""

# What run_node puts before every line: monotonic and wall-clock seconds.
_STAMPS = re.compile(rb"\d{1,12}\.\d{6} (\d{1,12}\.\d{6}) ")
# Lines that report no failure: of information levels, warnings of C++ libraries (glog), and what a program or
# a shell says of its options.
_INFORMATION = re.compile(
    rb"(?:^|[\s\[(|])(?:INFO|DEBUG|TRACE)[\s\]):|]|(?:^|: |\.\d+ )I (?:tensorflow|external|xla)|^\[?[IW]\d{4}"
    rb"|^SCALEBOOK \{|^\++ |^export |^\s*# |^usage: |\bNamespace\(|^[A-Z][A-Z0-9_]+ [\w.]+="
)
# … and what stands before a text that is the value of an option or a piece of code.
_VALUE = re.compile(
    rb"(?:=|[=:] *\[[^\]\"']*|--[\w-]+) *$"  # name=TEXT, name: [TEXT, --name TEXT
    rb"|^\s*[a-z][\w.]*(?: {2,}|\s*\.{3,}\s*)$"  # name ..... TEXT
    rb"|(?:^|[{,]) *(?:- )?[a-z][a-z0-9]*(?:_[a-z0-9]+)+ *: *$"  # some_name: TEXT
    rb"|^\s*(?:- *[\"']?|[\"'])$|--[\w-]+ +[\"']$"  # - TEXT, "TEXT
)
_QUOTED = re.compile(rb"([\w.-]*)[\"']?\s*[=:\[,({][\s=:\[,({]*b?([\"'])(?:(?!\2).)*$")  # name: "TEXT
_SAYS = re.compile(
    rb".*(?:Error|Exception)|error|exception|(?:error_|grpc_)?message|msg|reason|description|[Hh]int"
)
"""Names of which a quoted text is what an exception says."""

# An uncaught exception of another kind after something vague is what ended the program.
_EXCEPTION = re.compile(
    rb"^(?:\d{1,12}\.\d{6} \d{1,12}\.\d{6} )?(?:\[?rank ?\d+\]?: ?)?"
    rb"(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception)(?:: |$)",
    re.MULTILINE,
)
_WRAPPERS = (b"ChildFailedError", b"CalledProcessError", b"DistBackendError", b"HorovodInternalError")


_BEFORE = 400
"""Bytes before a text that tell whether it is a value: a hostile line must not cost time."""


class Hit(NamedTuple):
    """A cause that a line tells: the words in it, and its time of day where the line has a stamp."""

    cause: Cause
    text: str
    line: str
    moment: float | None


def advice(cause: Cause) -> Message | None:
    """Return what the cause is and what helps, None where its words say all."""
    if cause.why:
        return as_message(cause.why)
    return None if cause.ended or cause is UNKNOWN else message(f"failure.{cause.name}")


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


class _Search:
    """What is known of the lines read so far: the first cause, the first vague one, and steps since then."""

    def __init__(self, texts: Sequence[_Text], step: bytes) -> None:
        self.texts, self.step = texts, step
        self.hit: Hit | None = None
        self.vague: Hit | None = None
        self.unknown: Hit | None = None
        self.steps = 0

    def read(self, block: bytes) -> None:
        """Read a block of whole lines."""
        size_read = 0
        for place, line, present in _candidates(block, self.texts):
            self._pass_by(block, size_read, place)
            size_read = place
            hit = _hit(line, present) if self.hit is None else None
            if hit and hit.cause.kind == EFFECT and self.unknown is not None:
                continue  # what failed before is nearer the cause
            if hit and hit.cause.kind != VAGUE:
                self.hit, self.steps = hit, 0
            elif hit and self.vague is None:
                self.vague, self.steps, size_read = hit, 0, place + len(line)
        self._pass_by(block, size_read, len(block))

    def _pass_by(self, block: bytes, start: int, end: int) -> None:
        """Forget what the program went on from: steps follow, or an exception of another kind."""
        if self.step:
            self.steps += block.count(self.step, start, end)
            if self.steps > STEPS:
                self.hit = self.vague = self.unknown = None
        if self.hit is None:
            other = _other_exception(block[start:end], self.texts)
            if other is not None:
                self.vague, self.unknown = None, self.unknown or other
                self.steps = 0


def first_cause(blocks: Iterable[bytes], own: Sequence[Cause] = (), step: bytes = b"") -> Hit | None:
    """Return the first cause that `blocks` of whole lines tell; of those `own` to a workload, too.

    A vague one counts if there is no other, and no exception of another kind follows it.  None counts that
    several lines with the text `step` follow: the training went on.
    """
    search = _Search([*_compiled(own, own=True), *_TABLE], step)
    for block in blocks:
        search.read(block)
    return search.hit or search.vague or search.unknown


def _candidates(block: bytes, texts: Iterable[_Text]) -> Iterator[tuple[int, bytes, list[_Text]]]:
    """Yield the lines that have the first part of texts, with their places and these texts, in order."""
    lines: dict[int, list[_Text]] = {}
    for text in texts:
        start = block.find(text.first)
        while start >= 0:
            lines.setdefault(block.rfind(b"\n", 0, start) + 1, []).append(text)
            end = block.find(b"\n", start)
            start = block.find(text.first, end) if end >= 0 else -1
    for place in sorted(lines):
        end = block.find(b"\n", place)
        yield place, block[place : end if end >= 0 else len(block)], lines[place]


def _hit(line: bytes, texts: Iterable[_Text]) -> Hit | None:
    stamps = _STAMPS.match(line)
    body = line[stamps.end() :] if stamps else line
    for text in texts:
        span = _span(body, text)
        if span and (text.own or text.cause.certain or not _harmless(body, span[0])):
            words = body[span[0] : span[1]].decode(errors="replace")
            moment = float(stamps[1]) if stamps else None
            return Hit(text.cause, words[:160], body.decode(errors="replace").strip(), moment)
    return None


def _span(body: bytes, text: _Text) -> tuple[int, int] | None:
    if text.pattern is None:
        start = body.find(text.first)
        return (start, start + len(text.first)) if start >= 0 else None
    match = text.pattern.search(body)
    return match.span() if match else None


def _harmless(body: bytes, start: int) -> bool:
    """Say whether the line reports no failure, or the text at `start` is the value of an option."""
    if _INFORMATION.search(body) or any(_span(body, text) for text in _HARMLESS):
        return True
    before = (body[: start + 1] if body[start : start + 1] == b":" else body[:start])[-_BEFORE:]
    quoted = _QUOTED.search(before)
    if quoted:
        return not _SAYS.fullmatch(quoted[1])
    return bool(_VALUE.search(before))


def _other_exception(data: bytes, texts: Sequence[_Text]) -> Hit | None:
    """Return the first uncaught exception in `data` that is none of the table, None where there is none."""
    for match in _EXCEPTION.finditer(data):
        end = data.find(b"\n", match.end())
        line = data[match.start() : end if end >= 0 else len(data)]
        stamps = _STAMPS.match(line)
        body = line[stamps.end() :] if stamps else line
        if any(name in body for name in _WRAPPERS) or _harmless(body, 0) or _hit(body, texts):
            continue
        text = body.decode(errors="replace").strip()
        return Hit(UNKNOWN, text[:160], text, float(stamps[1]) if stamps else None)
    return None
