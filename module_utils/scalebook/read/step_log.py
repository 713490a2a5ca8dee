# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One log file -> its step numbers, their times and what it shows of itself.

Logs are untrusted bytes of any size.  They are read in blocks; in a block the literal of a step line
is searched and only its line is matched.  Reading stops after the last step that is needed; what
stands at the end (the closing lines, the last steps) is read from the last 64 KiB.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import tempfile
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import lt
from typing import Any, BinaryIO

from ansible.module_utils.scalebook.contracts import Message, MessageError, message
from ansible.module_utils.scalebook.files import open_regular
from ansible.module_utils.scalebook.read.blocks import ANSI, BLOCK, LINE, Blocks
from ansible.module_utils.scalebook.read.timestamps import Clock, ClockError
from ansible.module_utils.scalebook.workload import LinePattern, Workload

TAIL = 1 << 16
CLOCK_SET = 0.5
"""Seconds by which the time of day and the monotonic clock part in a run whose clock was set meanwhile."""
LAST_LINES = 20
_VALUES = 8  # different values of one sanity line that are kept; the second already contradicts the first

# What run_node puts before every line: monotonic and wall-clock seconds.
_STAMP = re.compile(rb"(\d{1,12}\.\d{6}) (\d{1,12}\.\d{6}) ")
_RUN_NODE = b"SCALEBOOK {"
_STACK = _RUN_NODE + b'"event": "stack"'
# Tabs and line ends of any alphabet, control characters, and what turns the direction of text round.
_CONTROL = re.compile(r"[^\S ]|[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SPECIAL = (b"^", b"]", b"\\", b"-", b"[")  # bytes that mean something else among characters to exclude
_NAMED = ("time", "last", "loss", "rate", "latency", "mean", "micro")


class LogError(MessageError):
    """A log that is not valid; `message` says why."""


class MixedError(LogError):
    """A log whose steps are not those of one run of one process."""


@dataclass
class Log:
    """What one log shows.

    `steps` are the step numbers up to the last one needed; `times` (the framework's own stamps) and
    `received` (run_node's monotonic ones) their microseconds, `rates` the rate printed for each
    (NaN for none), `means` the mean rate up to each, `own` rates that are only compared, by the last step of
    each, `losses` the loss of each where it has to fall.  `micro_steps` says that these are steps of which
    `accumulation` make one of the optimizer, None where the log does not tell.
    `offset` is the time of day minus the monotonic clock of run_node's first stamps, in
    seconds.  `found` are the values of the sanity rules by name, `excused` the rules that the log need not
    show.  `refusal` says why the log is not plausible, None when it is; `mixed` that the reason may be
    several ranks or runs.
    """

    size: int = 0
    steps: array[int] = field(default_factory=lambda: array("q"))
    times: array[int] | None = None
    received: array[int] | None = None
    offset: float | None = None
    rates: array[float] | None = None
    means: array[float] | None = None
    own: dict[int, float] = field(default_factory=dict)
    losses: array[float] | None = None
    micro_steps: bool | None = None
    last_step: int | None = None
    declared: set[str] = field(default_factory=set)
    first_loss: float | None = None
    last_loss: float | None = None
    found: dict[str, list[str]] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    start: dict[str, Any] | None = None
    exit: dict[str, Any] | None = None
    last_lines: list[str] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    refusal: Message | None = None
    mixed: bool = False


def read_log(path: str | os.PathLike[str], workload: Workload, block: int = BLOCK) -> Log:
    """Read the log at `path`.

    Raises OSError when it cannot be read and LogError when it is not a regular file.
    """
    with open_regular(path) as file:
        return _Reader(workload, file, block).read()


def read_lines(lines: Iterable[bytes], workload: Workload) -> Log:
    """Read lines of a log as read_log does a file."""
    with tempfile.TemporaryFile() as file:
        file.writelines(lines)
        file.seek(0)
        return _Reader(workload, file, BLOCK).read()


def plain_lines(data: bytes, count: int = LAST_LINES) -> list[str]:
    """Return the last lines of `data` as text fit for a record: no stamps, no control characters."""
    lines = []
    for line in reversed(data.splitlines()):
        body = _body(line.replace(b"\0", b""))[0]
        text = _CONTROL.sub(" ", ANSI.sub(b"", body[:LINE]).decode(errors="replace")).rstrip()[:500]
        if text and not body.startswith(_RUN_NODE):
            lines.append(text)
            if len(lines) == count:
                break
    return lines[::-1]


def number(text: bytes) -> float:
    """Return a printed number; a decimal comma is one, a comma before three digits is ambiguous.

    Raises ValueError if `text` is not a number.
    """
    try:
        return float(text)
    except ValueError:
        if re.fullmatch(rb"[-+]?\d+,\d+", text) and not re.fullmatch(rb"[-+]?\d{1,3},\d{3}", text):
            return float(text.replace(b",", b"."))
        raise


class _Reader:
    def __init__(self, workload: Workload, file: BinaryIO, block: int) -> None:
        self.workload = workload
        self.file = file
        self.blocks = Blocks(file, block)
        self.log = Log(size=os.fstat(file.fileno()).st_size)
        groups = workload.log.step.pattern.groupindex
        self.columns = {name: groups[name] - 1 for name in ("step", *_NAMED) if name in groups}
        self.clock = Clock(workload.log.time) if workload.log.time else None
        self.stamped = False
        self.unstamped = 0
        self.dense: re.Pattern[bytes] | None = None
        self.quick: tuple[bytes, re.Pattern[bytes]] | tuple[()] | None = None  # None: not looked for yet
        self.per_line = 0  # how often the literal stands in a step line
        self.done = False
        self.waiting = [rule for rule in workload.sanity if not rule.at_end]
        self.printed: dict[int, float] = {}  # rates from lines of their own, by step
        self.odd_loss: tuple[int, bytes] | None = None
        self.ignored = 0
        if self.clock:
            self.log.times = array("q")
        self.printed_as = next((name for name in ("rate", "latency") if name in self.columns), "")
        if self.printed_as and workload.log.rate is None:
            self.log.rates = array("d")
        if "mean" in self.columns:
            self.log.means = array("d")
        if workload.log.falling_loss:
            self.log.losses = array("d")

    def read(self) -> Log:
        first = True
        for data in self.blocks:
            if first:
                self._begin(data)
                first = False
            only_steps = False
            try:
                only_steps = self._steps(data)
            except LogError as exc:
                self._refuse(exc)
            if self.waiting and not only_steps:
                self._sanity(data)
            if self.done or self.log.refusal:
                break
        self._end()
        return self._result()

    # What stands where

    def _begin(self, data: bytes) -> None:
        rules = self.workload.sanity
        self.log.excused = {rule.name for rule in rules if rule.only_if and rule.only_if not in data}
        line = data[: data.find(b"\n") + 1] or data
        stamps = _STAMP.match(line)
        self.stamped = stamps is not None
        if stamps:
            self.log.offset = float(stamps[2]) - float(stamps[1])
            self.log.received = array("q")
            self.log.start = _event(line, "start")
            self._clock_set(self.log.offset)
        self.dense = _line_pattern(self.workload.log.step.pattern, self.stamped)

    def _clock_set(self, before: float) -> None:
        """Leave the log's own stamps out where the clock was set between the first line and the last."""
        size = self.log.size
        tail = os.pread(self.file.fileno(), TAIL, max(0, size - TAIL))
        stamps = _STAMP.match(tail[tail.rstrip().rfind(b"\n") + 1 :])
        moved = float(stamps[2]) - float(stamps[1]) - before if stamps else 0.0
        if self.clock and abs(moved) > CLOCK_SET:
            self.clock = self.log.times = None
            self.log.notes.append(message("run.clock-set", seconds=moved))

    def _sanity(self, data: bytes) -> None:
        """Note the sanity lines of this block; one that has been seen is not searched any further."""
        for rule in self.waiting:
            self._find(rule.name, rule.line, data)
            if rule.unless and rule.unless in data:
                self.log.excused.add(rule.name)
        answered = self.log.found.keys() | self.log.excused
        self.waiting = [rule for rule in self.waiting if rule.name not in answered]

    def _find(self, name: str, line_pattern: LinePattern, data: bytes) -> None:
        has_value = "value" in line_pattern.pattern.groupindex
        if not has_value and name in self.log.found:
            return
        for _, line in _lines_with(line_pattern.literal, data):
            match = line_pattern.pattern.search(_body(line)[0] if self.stamped else line)
            if match:
                value = match["value"] if has_value else None
                values = self.log.found.setdefault(name, [])
                text = (value or b"").decode(errors="replace")[:100]
                if text not in values and len(values) < _VALUES:
                    values.append(text)

    def _end(self) -> None:
        """Read the last 64 KiB: closing lines, and steps beyond the place where reading stopped."""
        offset = self.blocks.offset
        start = max(0, self.log.size - TAIL)
        self.file.seek(start)
        tail = b""
        while chunk := self.file.read(TAIL + 1 - len(tail)):
            tail += chunk
        # The stacks of a run that hung come behind its last lines, which tell what it did before.
        self.log.last_lines = plain_lines(tail.partition(_STACK)[0]) or plain_lines(tail)
        if start:  # the first line is a piece of one
            start += tail.find(b"\n") + 1
            tail = tail[tail.find(b"\n") + 1 :]
        data = b"".join(Blocks(io.BytesIO(tail)))
        for rule in self.workload.sanity:
            self._find(rule.name, rule.line, data)
        self.log.exit = _event(data[data.rstrip().rfind(b"\n") + 1 :], "exit")
        if self.done and not self.log.refusal:
            try:
                for rest in Blocks(io.BytesIO(tail[max(0, offset - start) :])):
                    self._steps(rest)
            except LogError as exc:
                self._refuse(exc)

    def _refuse(self, error: LogError) -> None:
        self.log.refusal, self.log.mixed = error.message, isinstance(error, MixedError)

    # Steps

    def _steps(self, data: bytes) -> bool:
        """Take the step lines of a block; return whether it has no other lines."""
        line_pattern, dense = self.workload.log.step, self.dense
        first_line = data.find(b"\n")
        if self.per_line and dense and data.find(line_pattern.literal, 0, first_line) >= 0 and _plain(data):
            lines = data.count(b"\n")
            dense = self._choose(dense, data, lines)
            # Every line is a step line: one call matches them all.  Each match takes at least one
            # newline, so as many matches as lines means one match for each line, within it.
            if dense:
                parts = dense.split(data)
                width = dense.groups + 1
                if len(parts) == lines * width + 1:
                    self._take([parts[index::width] for index in range(1, width)])
                    return True
        rows = []
        places = []
        unfinished = not data.endswith(b"\n")
        end = len(data)
        for place, line in _lines_with(line_pattern.literal, data):
            body, received = _body(line) if self.stamped else (line, None)
            match = line_pattern.pattern.search(body)
            if not match:
                self.ignored += 1
                continue
            if unfinished and place + len(line) == end and match.end() == len(body):
                continue  # cut off within what it tells: its last digits may be missing
            often = body.count(line_pattern.literal)
            if not self.per_line:
                self.per_line = often
            if often != self.per_line:
                raise MixedError("reason.several-entries", step=_text(match["step"]))
            groups = match.groups(b"")
            if self.stamped:
                if received is None:
                    self.unstamped += 1
                groups = (received or b"0.000000", *groups)
            rows.append(groups)
            places.append(place)
        before, steps_done = self.log.last_step, self.done
        if rows:
            self._take(list(zip(*rows, strict=True)))
        if (self.workload.log.rate or self.workload.log.own) and not steps_done:
            column = self.columns["step"] + self.stamped
            self._rates(data, places, [int(row[column]) for row in rows], before)
        return False

    def _choose(self, dense: re.Pattern[bytes], data: bytes, lines: int) -> re.Pattern[bytes] | None:
        """Return what matches the lines of a block if each may be a step line, None if one is none."""
        literal = self.workload.log.step.literal
        if self.quick is None and self.per_line == 1:
            self.quick = _quick_pattern(dense, literal, data, lines)
        if self.quick:
            byte, pattern = self.quick
            # Each match holds the literal, and no byte of this value is left for a second one.
            if data.count(byte) == lines * literal.count(byte):
                return pattern
        return dense if data.count(literal) == lines * self.per_line else None

    def _take(self, columns: list[Sequence[bytes]]) -> None:
        """Add step lines to what is known, given as one list for each group of their pattern."""
        received = columns.pop(0) if self.stamped else None
        cells = {name: columns[index] for name, index in self.columns.items()}
        steps = _whole_numbers(cells["step"])
        before = self.log.last_step
        ordered = steps if before is None else [before, *steps]
        if not all(map(lt, ordered, islice(ordered, 1, None))):
            self._refuse_order(ordered)
        if steps[-1] >= 1 << 62:
            raise LogError("reason.step-too-large")
        if "last" in cells:
            self.log.declared |= {_text(text) for text in set(cells["last"]) if text}
        losses = self._losses(steps, cells["loss"]) if "loss" in cells else []
        if "micro" in cells:
            self._micro_steps(steps, cells["micro"])
        self.log.last_step = steps[-1]
        if self.done:
            return
        need = self.workload.need
        keep = bisect_right(steps, need)
        # A rate on a line of its own may follow the last step's line.
        without_rates = self.workload.log.rate is None and self.workload.log.own is None
        self.done = steps[-1] > need or (steps[-1] == need and without_rates)
        self.log.steps.fromlist(steps[:keep])
        if self.clock and self.log.times is not None:
            self._times(cells["time"][:keep])
        if received is not None and self.log.received is not None:
            self.log.received.fromlist([int(stamp.replace(b".", b"")) for stamp in received[:keep]])
        if self.log.rates is not None:
            self.log.rates.extend(self._rate(text) for text in cells[self.printed_as][:keep])
        if self.log.losses is not None:
            self.log.losses.fromlist(losses[:keep])
        if self.log.means is not None:
            self.log.means.extend(_means(cells["mean"][:keep]))

    def _micro_steps(self, steps: Sequence[int], counts: Sequence[bytes | None]) -> None:
        """Note what the steps are: where a line has no count of micro-steps beside them, they are those."""
        micro_steps = not counts[0]
        mixed = any(counts) if micro_steps else not all(counts)
        if mixed or self.log.micro_steps is (not micro_steps):
            raise MixedError("reason.mixed-micro-steps")
        self.log.micro_steps = micro_steps
        if not micro_steps:
            micro, step = _whole_numbers([counts[-1] or b""])[0], steps[-1]
            values = self.log.found.setdefault("accumulation", [])
            if step and micro % step == 0 and str(micro // step) not in values:
                values.append(str(micro // step))

    def _refuse_order(self, steps: Sequence[int]) -> None:
        for before, step in zip(steps, steps[1:], strict=False):
            if step <= before:
                repeated = step == before or step in self.log.steps or step in steps[: steps.index(before)]
                if repeated:
                    raise MixedError("reason.step-twice", step=step)
                raise MixedError("reason.step-after", step=step, before=before)

    def _times(self, stamps: Sequence[bytes]) -> None:
        clock, times, steps = self.clock, self.log.times, self.log.steps
        if clock is None or times is None:  # pragma: no cover - the caller has looked
            return
        try:
            try:
                read = clock.read(stamps)
            except TypeError:  # where a whole block was matched, a group that took no part is None
                read = clock.read([stamp or b"" for stamp in stamps])
        except ClockError as exc:
            raise LogError("reason.no-time", why=exc.message) from None
        count = len(times)
        times.fromlist(read)
        ordered = read if not count else [times[count - 1], *read]
        if ordered != sorted(ordered):
            offset = len(times) - len(ordered)
            index = next(i for i in range(1, len(ordered)) if ordered[i] < ordered[i - 1]) + offset
            raise LogError("reason.clock-back", before=steps[index - 1], step=steps[index])

    def _losses(self, steps: Sequence[int], texts: Sequence[bytes]) -> list[float]:
        """Note the first loss and the last, and return all."""
        try:
            values = list(map(float, texts))
        except (TypeError, ValueError):
            values = [self._loss(step, text) for step, text in zip(steps, texts, strict=True)]
        if not math.isfinite(sum(values)):
            for step, value in zip(steps, values, strict=True):
                if not math.isfinite(value):
                    self.log.last_step = step
                    raise LogError("reason.loss", value=str(value), step=step)
        if self.log.first_loss is None:
            self.log.first_loss = values[0]
        self.log.last_loss = values[-1]
        return values

    def _loss(self, step: int, text: bytes | None) -> float:
        """Return a loss whose text float() refuses. If it is not a number, note it and return 0."""
        if not text:
            return self.log.last_loss or 0.0
        try:
            return number(text.strip(b",;)]}'\""))
        except ValueError:
            if self.odd_loss is None:
                self.odd_loss = step, text
            return math.nan if re.search(rb"nan|inf", text, re.IGNORECASE) else self.log.last_loss or 0.0

    def _rate(self, text: bytes | None) -> float:
        if not text:
            return math.nan
        try:
            value = number(text)
        except ValueError:
            raise LogError("reason.odd-rate", text=repr(_text(text))) from None
        if not math.isfinite(value) or value <= 0:
            raise LogError("reason.rate", text=_text(text))
        return 1000 * self.workload.global_batch / value if self.printed_as == "latency" else value

    def _rates(self, data: bytes, places: list[int], steps: list[int], before: int | None) -> None:
        """Note rates from lines of their own: of the step they name, else of the last step before them."""
        rate, own = self.workload.log.rate, self.workload.log.own
        for step, match in self._at_steps(rate, data, places, steps, before) if rate else ():
            self.printed.setdefault(step, self._rate(match["rate"]))
        for step, match in self._at_steps(own.line, data, places, steps, before) if own else ():
            value = _mean(match["rate"])
            if 0 < value < math.inf:
                self.log.own.setdefault(step, value)

    def _at_steps(
        self, line_pattern: LinePattern, data: bytes, places: list[int], steps: list[int], before: int | None
    ) -> Iterator[tuple[int, re.Match[bytes]]]:
        names_step = "step" in line_pattern.pattern.groupindex
        for place, line in _lines_with(line_pattern.literal, data):
            match = line_pattern.pattern.search(_body(line)[0] if self.stamped else line)
            if not match:
                continue
            step: int | None
            if names_step:
                step = _whole_numbers([match["step"]])[0]
            else:
                index = bisect_left(places, place + 1) - 1
                step = steps[index] if index >= 0 else before
            if step is not None:
                yield step, match

    # The result

    def _result(self) -> Log:
        log = self.log
        if log.rates is not None and all(map(math.isnan, log.rates)):
            log.rates = None
        if self.printed:
            log.rates = array("d", [self.printed.get(step, math.nan) for step in log.steps])
        if self.unstamped:
            log.received = None
            log.notes.append(message("run.unstamped", count=self.unstamped))
        if log.received is not None and log.received != array("q", sorted(log.received)):
            log.received = None
            log.notes.append(message("run.received-back"))
        if self.ignored:
            log.notes.append(message("run.unread-lines", count=self.ignored))
        if self.odd_loss:
            step, text = self.odd_loss
            log.notes.append(message("run.odd-loss", step=step, text=repr(_text(text))))
        log.notes.extend(self.blocks.notes)
        return log


def _plain(data: bytes) -> bool:
    return data.endswith(b"\n") and b"\r" not in data


def _lines_with(literal: bytes, data: bytes) -> list[tuple[int, bytes]]:
    """Return place and text of the lines of `data` that contain `literal`."""
    lines = []
    find, rfind = data.find, data.rfind
    place = find(literal)
    after = 0
    while place >= 0:
        start = rfind(b"\n", after, place) + 1 or after
        after = find(b"\n", place) + 1
        if not after:
            lines.append((start, data[start:]))
            break
        line = data[start : after - 1]
        lines.append((start, line[:-1] if line.endswith(b"\r") else line))
        place = find(literal, after)
    return lines


def _body(line: bytes) -> tuple[bytes, bytes | None]:
    """Return the line without run_node's stamps, and the monotonic one."""
    match = _STAMP.match(line)
    return (line[match.end() :], match[1]) if match else (line, None)


def _event(line: bytes, event: str) -> dict[str, Any] | None:
    """Return the event that run_node reports in this line, None if the line is from another program."""
    body = _body(line.strip())[0]
    if not body.startswith(_RUN_NODE):
        return None
    try:
        fields = json.loads(body[len(_RUN_NODE) - 1 :])
        json.dumps(fields, allow_nan=False)  # it becomes part of a record, which is JSON
    except (ValueError, RecursionError):
        return None
    whole = isinstance(fields, dict) and fields.get("event") == event
    return fields if whole and (event != "exit" or isinstance(fields.get("status"), str)) else None


def _line_pattern(pattern: re.Pattern[bytes], stamped: bool) -> re.Pattern[bytes] | None:
    """Return `pattern` made to take its whole line, stamps and all; None where that could change it."""
    source = pattern.pattern
    if re.search(rb"\\[1-9AZ]|\(\?[^:P]|(?<!\[)\^|\$", source):
        return None  # back references, anchors, look-around, flags: their meaning depends on the place
    stamp = rb"(\d{1,12}\.\d{6}) \d{1,12}\.\d{6} .*?" if stamped else b""
    try:
        return re.compile(rb"(?m:^)" * stamped + stamp + b"(?:" + source + rb")[^\n]*\n")
    except re.error:
        return None


def _quick_pattern(
    dense: re.Pattern[bytes], literal: bytes, data: bytes, lines: int
) -> tuple[bytes, re.Pattern[bytes]] | tuple[()]:
    """Return a byte and `dense` with `.*` before the literal made a search for that byte; () if none will do.

    In a block where the byte stands in the literals only, one in each line, both match the same: what
    lies before the literal cannot hold the byte, and there is no other place where it may end.
    """
    source = dense.pattern
    for spelling in (literal, re.escape(literal)):
        before, separator, after = source.partition(b".*" + spelling)
        if not separator or before.endswith(b"\\") or before.count(b"[") != before.count(b"]"):
            continue
        for byte in sorted({literal[i : i + 1] for i in range(len(literal))} - set(_SPECIAL)):
            if data.count(byte) == lines * literal.count(byte):
                return byte, re.compile(before + b"[^" + byte + b"]*" + spelling + after)
    return ()


def _whole_numbers(texts: Sequence[bytes]) -> list[int]:
    try:
        return list(map(int, texts))
    except (TypeError, ValueError):
        raise LogError("reason.no-step-number") from None


def _means(texts: Sequence[bytes | None]) -> list[float]:
    """Return mean rates; one that is not a number, as before the first step that counts for it, is NaN."""
    try:
        return list(map(float, texts))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [_mean(text) for text in texts]


def _mean(text: bytes | None) -> float:
    try:
        return float(text or b"nan")
    except ValueError:
        return math.nan


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")[:60]
