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

from ansible.module_utils.scalebook.contracts import MessageError
from ansible.module_utils.scalebook.workload import TIME_FORMATS

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
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_FEW = 4  # stamps of a minute that are read one by one with less work
_UNIX = re.compile(rb"(\d{1,11})(?:[.,](\d{1,9}))?")


class ClockError(MessageError):
    """A stamp that is not a valid time in its format."""


class Clock:
    """Read the stamps of one log in their order."""

    def __init__(self, kind: str) -> None:
        if kind not in TIME_FORMATS:
            raise ValueError(f"unknown time format {kind!r}: allowed are {', '.join(TIME_FORMATS)}")
        self._kind = kind
        self._minutes: dict[bytes, int] = {}  # "1120 23:53:" -> microseconds
        self._last: tuple[int, int] | None = None  # day of the year, minute of the day
        self._day = 0

    def read(self, stamps: Sequence[bytes]) -> list[int]:
        """Return the time of each stamp in microseconds since an arbitrary but fixed moment.

        A clock that was set back gives a time before its predecessor's; judging that is the caller's.
        Raises ClockError, which names the stamp that cannot be read.
        """
        before = self._last, self._day, dict(self._minutes)
        fast = self._read_alike(stamps)
        if fast is not None:
            return fast
        # What the fast way has read of them would count their midnights twice.
        self._last, self._day, self._minutes = before
        return [self._read_one(stamp) for stamp in stamps]

    def _read_alike(self, stamps: Sequence[bytes]) -> list[int] | None:
        """Return the times if all stamps look the same and have six decimals; else None.

        Within a minute such stamps differ by their last nine characters, which are microseconds.
        """
        times: list[int] = []
        while len(times) < len(stamps):
            begin = len(times)
            first = stamps[begin]
            if not _SIX_DECIMALS.fullmatch(first):
                return None
            minute, seconds = first[:-9], first[-9:]
            # Beyond the last stamp of this minute, if they are in order; what is not is seen below.
            end = bisect_left(stamps, minute + b":", begin)
            if end - begin < _FEW:
                times += [self._read_one(stamp) for stamp in stamps[begin : max(end, begin + 1)]]
                continue
            run = end - begin
            text = b"\n".join(stamps[begin:end]) + b"\n"
            short = text.replace(minute, b"")
            # Every stamp begins with the minute, none is longer than that and its seconds, and all
            # seconds look like the first: so each stamp is the minute and its seconds.
            if (
                len(text) != run * (len(first) + 1)
                or text.count(b"\n" + minute) != run - 1
                or short.translate(_DIGITS) != (seconds.translate(_DIGITS) + b"\n") * run
            ):
                return None
            numbers = list(map(int, short.replace(seconds[2:3], b"").split()))
            if max(numbers) >= 61 * SECOND:
                return None
            try:
                offset = self._minute(minute)
            except ClockError:
                return None  # the other way names the stamp
            times += [offset + number for number in numbers]
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
        raise ClockError("reason.odd-time", text=repr(stamp[:40].decode(errors="replace")), format=self._kind)

    def _minute(self, text: bytes) -> int:
        """Return the microseconds of a minute, given as the stamp has it: up to its second colon."""
        value = self._minutes.get(text)
        if value is None:
            match = _MINUTE[self._kind].fullmatch(text)
            if not match:
                raise ClockError("reason.no-such-time")
            *day, hour, minute = (int(field) for field in match.groups())
            if hour > 23 or minute > 59:
                raise ClockError("reason.no-such-time")
            of_day = hour * 60 + minute
            value = (self._days(day, of_day) * DAY + of_day * 60) * SECOND
            if self._kind == "clock":
                self._minutes.clear()  # the same time of day comes again, on another day
            self._minutes[text] = value
        return value

    def _days(self, fields: list[int], of_day: int) -> int:
        """Return the day that a stamp with these date fields lies on, counted from the first stamp's."""
        if self._kind == "datetime":
            try:
                return date(*fields).toordinal()
            except ValueError:
                raise ClockError("reason.no-such-time") from None
        if self._kind == "absl":
            month, day = fields
            if not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1]:
                raise ClockError("reason.no-such-time")
            of_year = _MONTHS[month - 1] + day - 1
            forward = _days_between(self._last[0], of_year) if self._last else 0
        else:
            of_year = 0
            forward = _midnights(self._last[1], of_day) if self._last else 0
        self._last = of_year, of_day
        self._day += forward
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
