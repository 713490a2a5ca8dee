# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Time stamps of logs -> one time line in microseconds, whatever the stamp leaves out.

absl prints no year and some frameworks no date at all; a run over midnight or New Year must still
come out right.  Where two readings are possible the shorter one is taken.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import date

SECOND = 1_000_000
"""Times are whole microseconds: sums of floats would not give the printed digits back."""
DAY = 86_400
HALF_DAY = 12 * 60  # in minutes

# Days before each month of a leap year, so that 29 February has a place.
_MONTHS = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_DAY = 59

_DATE = {
    "absl": rb"(\d\d)(\d\d) ",
    "datetime": rb"(\d{4})-(\d\d)-(\d\d)[ T]",
    "clock": b"",
}
_MINUTE = {kind: re.compile(date + rb"(\d{1,2}):(\d\d):") for kind, date in _DATE.items()}
_STAMP = re.compile(rb"(.*:)(\d\d)(?:[.,](\d{1,9}))?", re.DOTALL)
_SIX_DECIMALS = re.compile(rb"[\d T-]*\d:\d\d:\d\d[.,]\d{6}")
_MARKS = b" T-:.,"
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_IN_MINUTE = 100_000_000  # the last eight digits of a stamp: seconds and microseconds
_UNIX = re.compile(rb"(\d{1,11})(?:[.,](\d{1,9}))?")

FORMATS = (*_DATE, "unix")
"""absl: `MMDD HH:MM:SS.f`; datetime: `YYYY-MM-DD HH:MM:SS[.,]f`; clock: `HH:MM:SS.f`; unix: seconds."""


class ClockError(ValueError):
    """A stamp that is no time of its format."""


class Clock:
    """Read the stamps of one log in their order."""

    def __init__(self, kind: str) -> None:
        if kind not in FORMATS:
            raise ClockError(f"unknown time format {kind!r}: allowed are {', '.join(FORMATS)}")
        self._kind = kind
        self._minutes: dict[bytes, int] = {}  # "1120 23:53:" -> microseconds
        self._last: tuple[int, int] | None = None  # day of the year, minute of the day
        self._day = 0

    def read(self, stamps: Sequence[bytes]) -> list[int]:
        """Return the time of each stamp in microseconds since an arbitrary but fixed moment.

        A clock that was set back gives a time before its predecessor's; judging that is the caller's.
        Raises ClockError naming the stamp that is no time.
        """
        fast = self._read_alike(stamps)
        return fast if fast is not None else [self._read_one(stamp) for stamp in stamps]

    def _read_alike(self, stamps: Sequence[bytes]) -> list[int] | None:
        """Return the times if all stamps look the same and have six decimals; else None.

        Without their marks such stamps are numbers, and within a minute these differ by microseconds.
        """
        count, first = len(stamps), stamps[0] if stamps else b""
        text = b"\n".join(stamps) + b"\n"
        alike = _SIX_DECIMALS.fullmatch(first) and (first.translate(_DIGITS) + b"\n") * count
        if not alike or text.translate(_DIGITS) != alike:
            return None
        numbers = list(map(int, text.translate(None, _MARKS).split()))
        times: list[int] = []
        while len(times) < count:
            begin = len(times)
            minute = numbers[begin] // _IN_MINUTE * _IN_MINUTE
            run = numbers[begin : bisect_left(numbers, minute + _IN_MINUTE, begin)]
            if min(run) < minute or max(run) >= minute + 61 * SECOND:
                return None  # a clock that went back, or no time: one by one
            try:
                offset = self._minute(stamps[begin][:-9]) - minute
            except ClockError:
                return None  # the other way names the stamp
            times += [number + offset for number in run]
        return times

    def _read_one(self, stamp: bytes) -> int:
        if self._kind == "unix":
            match = _UNIX.fullmatch(stamp)
            if match:
                return int(match[1]) * SECOND + _microseconds(match[2])
        else:
            match = _STAMP.fullmatch(stamp)
            try:
                if match and int(match[2]) <= 60:
                    return self._minute(match[1]) + int(match[2]) * SECOND + _microseconds(match[3])
            except ClockError:
                pass  # named below with the whole stamp
        raise ClockError(f"{stamp[:40].decode(errors='replace')!r} is no time of the format {self._kind}")

    def _minute(self, text: bytes) -> int:
        """Return the microseconds of a minute, given as the stamp has it: up to its second colon."""
        value = self._minutes.get(text)
        if value is None:
            match = _MINUTE[self._kind].fullmatch(text)
            if not match:
                raise ClockError
            *day, hour, minute = (int(field) for field in match.groups())
            if hour > 23 or minute > 59:
                raise ClockError
            of_day = hour * 60 + minute
            value = (self._days(day, of_day) * DAY + of_day * 60) * SECOND
            self._minutes[text] = value
        return value

    def _days(self, fields: list[int], of_day: int) -> int:
        """Return the day that a stamp with these date fields lies on, counted from the first stamp's."""
        if self._kind == "datetime":
            try:
                return date(*fields).toordinal()
            except ValueError:
                raise ClockError from None
        if self._kind == "absl":
            month, day = fields
            if not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1]:
                raise ClockError
            of_year = _MONTHS[month - 1] + day - 1
            forward = _days_between(self._last[0], of_year) if self._last else 0
        else:
            of_year = 0
            forward = _midnights(self._last[1], of_day) if self._last else 0
        self._last = of_year, of_day
        self._day += forward
        if forward and self._kind == "clock":
            self._minutes.clear()  # the same time of day comes again
        return self._day


def _days_between(before: int, after: int) -> int:
    """Return the days from one day of the year to another, forward over New Year, negative if backward.

    The year is not known: 28 February to 1 March is one day unless the log shows the 29th.
    """
    forward = (after - before) % 366
    passed_leap_day = (_LEAP_DAY - before) % 366 < forward and before != _LEAP_DAY
    if passed_leap_day:
        forward -= 1
    return forward if forward <= 183 else forward - (365 if passed_leap_day else 366)


def _midnights(before: int, after: int) -> int:
    """Return how many midnights lie between two minutes of the day, read the shorter way round."""
    if before - after > HALF_DAY:
        return 1
    return -1 if after - before > HALF_DAY else 0


def _microseconds(fraction: bytes | None) -> int:
    return int((fraction or b"0").ljust(6, b"0")[:6])
