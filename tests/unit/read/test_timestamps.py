# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stamps of logs: what they leave out must not cost the right number."""

from datetime import datetime, timedelta

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.read.timestamps import SECOND, Clock, ClockError
from hypothesis import example, given, settings
from hypothesis import strategies as st

DAY = 86_400 * SECOND


def gaps(kind, *stamps):
    times = Clock(kind).read([stamp.encode() for stamp in stamps])
    return [after - before for before, after in zip(times, times[1:], strict=False)]


@pytest.mark.parametrize(
    ("kind", "before", "after", "microseconds"),
    [
        ("absl", "1120 23:53:37.720254", "1120 23:53:38.000001", 279_747),
        ("absl", "1120 23:59:59.900000", "1121 00:00:00.100000", 200_000),
        ("absl", "1231 23:59:59.500000", "0101 00:00:00.500000", SECOND),
        ("absl", "0131 23:59:59.000000", "0201 00:00:00.000000", SECOND),
        ("absl", "0228 23:59:59.000000", "0301 00:00:00.000000", SECOND),
        ("absl", "0228 23:59:59.000000", "0229 00:00:00.000000", SECOND),
        ("absl", "0229 23:59:59.000000", "0301 00:00:00.000000", SECOND),
        ("absl", "0227 12:00:00.000000", "0302 12:00:00.000000", 3 * DAY),
        ("datetime", "2020-08-26 18:06:39.031755", "2020-08-26 18:06:40.031756", 1_000_001),
        ("datetime", "2021-05-29 19:53:43,103", "2021-05-29 19:53:44,003", 900_000),
        ("datetime", "2020-02-28T23:59:59", "2020-03-01T00:00:00", DAY + SECOND),
        ("datetime", "2019-12-31 23:59:59.5", "2020-01-01 00:00:00.25", 750_000),
        ("clock", "23:59:59.500000", "00:00:01.000000", 1_500_000),
        ("clock", "9:59:59.5", "10:00:00.25", 750_000),
        ("unix", "1598056519.8844702", "1598056520.0000000", 115_530),
        ("unix", "1598056519", "1598056520,5", 1_500_000),
    ],
)
def test_the_time_between_two_stamps(kind, before, after, microseconds):
    assert gaps(kind, before, after) == [microseconds]


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("absl", "1120 23:53:37.720254", "1120 23:53:35.720254"),
        ("absl", "1121 00:00:01.000000", "1120 23:59:59.000000"),
        ("absl", "0101 00:00:01.000000", "1231 23:59:59.000000"),
        ("absl", "0301 00:00:01.000000", "0228 23:59:59.000000"),
        ("clock", "12:00:05.000000", "12:00:03.000000"),
        ("clock", "00:00:01.000000", "23:59:59.000000"),
        ("datetime", "2020-08-26 18:06:39.031755", "2020-08-26 18:06:38.031755"),
        ("unix", "1598056520.0", "1598056519.0"),
    ],
)
def test_a_clock_that_was_set_back_goes_back(kind, before, after):
    assert gaps(kind, before, after)[0] < 0


def test_a_time_of_day_may_come_again_the_next_day():
    assert gaps("clock", "10:00:00.0", "20:00:00.0", "05:00:00.0", "10:00:00.0") == [
        10 * 3600 * SECOND,
        9 * 3600 * SECOND,
        5 * 3600 * SECOND,
    ]


def test_the_minute_of_the_first_stamp_may_come_again_the_next_day():
    hours = [6400 * SECOND, 40_000 * SECOND, 40_000 * SECOND]
    assert gaps("clock", "00:00:00.0", "01:46:40.0", "12:53:20.0", "00:00:00.0") == hours


@pytest.mark.parametrize(
    ("kind", "stamp"),
    [
        ("absl", "1320 23:53:37.720254"),
        ("absl", "0230 23:53:37.720254"),
        ("absl", "1120 24:53:37.720254"),
        ("absl", "1120 23:60:37.720254"),
        ("absl", "1120 23:53:61.720254"),
        ("absl", "1120 23:53:37.72x254"),
        ("absl", ""),
        ("datetime", "2021-02-29 00:00:00.000000"),
        ("datetime", "0000-01-01 00:00:00.000000"),
        ("clock", "25:00:00"),
        ("unix", "nan"),
        ("unix", "1e9"),
        ("unix", "-5"),
    ],
)
def test_what_is_no_time_is_named(kind, stamp):
    with pytest.raises(ClockError) as error:
        Clock(kind).read([stamp.encode()])
    assert error.value.message == message("reason.odd-time", text=repr(stamp), format=kind)


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="unknown time format 'swatch': allowed are absl, datetime"):
        Clock("swatch")


@settings(max_examples=60, deadline=None)
@given(
    start=st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    seconds=st.lists(st.floats(0, 40_000), min_size=1, max_size=60),
    kind=st.sampled_from(["absl", "datetime", "clock"]),
    cut=st.integers(0, 60),
)
@example(
    start=datetime(2000, 1, 1),
    seconds=[0.0, 3260.0, 40000.0, 6460.0, 40000.0, 40000.0, 0.0, 0.0],
    kind="clock",
    cut=1,
)  # four stamps of one minute after a midnight were read twice, and so was the midnight
def test_stamps_read_in_pieces_give_the_time_that_passed(start, seconds, kind, cut):
    layout = {"absl": "%m%d %H:%M:%S.%f", "datetime": "%Y-%m-%d %H:%M:%S.%f", "clock": "%H:%M:%S.%f"}[kind]
    moments = [start]
    for gap in seconds:
        moments.append(moments[-1] + timedelta(seconds=gap))
    stamps = [f"{moment:{layout}}".encode() for moment in moments]
    clock = Clock(kind)
    times = clock.read(stamps[:cut]) + clock.read(stamps[cut:])
    assert times[-1] - times[0] == (moments[-1] - start) // timedelta(microseconds=1) or _leap(moments, kind)


def _leap(moments, kind):
    """Without a year, a jump over 29 February is read as if there were none."""
    return kind == "absl" and any(
        before.date() < datetime(before.year, 3, 1).date() <= after.date()
        and (before.month, before.day) != (2, 29)
        for before, after in zip(moments, moments[1:], strict=False)
    )


@settings(max_examples=200, deadline=None)
@given(
    start=st.datetimes(datetime(2020, 3, 1), datetime(2021, 2, 1)),
    gaps=st.lists(st.sampled_from((0.0, 0.4, 3.0, 61.0, 90_000.0, -0.2)), min_size=1, max_size=60),
    odd=st.lists(
        st.tuples(st.integers(0, 59), st.sampled_from((b"0", b":", b"", b"1120 ", b"x"))), max_size=1
    ),
)
def test_stamps_read_together_are_those_read_one_by_one(start, gaps, odd):
    moments = [start + timedelta(seconds=sum(gaps[:index])) for index in range(len(gaps))]
    stamps = [f"{moment:%m%d %H:%M:%S.%f}".encode() for moment in moments]
    for index, text in odd:
        stamps[index % len(stamps)] = text + stamps[index % len(stamps)]
    try:
        alone = Clock("absl")
        expected = [alone.read([stamp])[0] for stamp in stamps]
    except ClockError as exc:
        with pytest.raises(ClockError) as error:
            Clock("absl").read(stamps)
        assert error.value.message == exc.message
    else:
        assert Clock("absl").read(stamps) == expected
