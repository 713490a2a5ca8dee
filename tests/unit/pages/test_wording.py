# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Numbers for people, and sentences in another language."""

from __future__ import annotations

import pytest
from ansible.module_utils.scalebook.contracts import because, message
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording, readable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (23097.54, "23,098"),
        (6127.4, "6,127"),
        (999.96, "1,000"),
        (805.43, "805.4"),
        (58.519, "58.52"),
        (1.2345, "1.234"),
        (0.12346, "0.1235"),
        (0.5, "0.5"),
        (0.0000123, "1.23e-05"),
        (0, "0"),
    ],
)
def test_people_read_four_digits_and_thousands(value, text):
    assert readable(value) == text


def test_other_readers_get_the_digits_of_dlperf():
    assert (Wording().number(23097.539), Wording(for_people=True).number(23097.539)) == ("23097.54", "23,098")


def test_a_rate_below_1_has_four_digits_for_all_readers():
    assert (Wording().number(0.0049), Wording().between((0.0049, 1.5), rates=True)) == (
        "0.0049",
        "0.0049 – 1.50",
    )


def test_a_spread_below_a_tenth_of_a_per_cent_has_two_decimals():
    assert Wording(for_people=True).percent(0.0004) == "0.04 %"
    assert Wording(for_people=True).percent(0.942) == "94.2 %"


def test_a_value_with_braces_is_not_filled_in_again():
    assert Wording()("report.lines-of", file="{lines}", lines=1) == "{lines}, lines 1"


@pytest.mark.parametrize(("number", "text"), [(1, "1 case"), (3, "3 cases")])
def test_english_counts_have_their_plural(number, text):
    assert Wording().count(number, "case") == text


@pytest.mark.parametrize(
    ("language", "text"), [("en", "2026-11-21 20:29 UTC"), ("zh", "2026-11-22 04:29 UTC+08:00")]
)
def test_a_moment_is_in_the_zone_of_the_readers(language, text):
    assert Wording(language, for_people=True).moment("2026-11-21T20:29:33.5Z") == text


def test_missing_numbers_are_said_in_the_language():
    wording = Wording("zh")
    assert {wording.number(None), wording.percent(None), wording.between(None)} == {"–"}


def test_a_unit_is_said_in_the_language_and_a_name_stays():
    assert [Wording("zh").name("unit", unit) for unit in ("samples", "cells")] == ["样本", "cells"]


def test_what_a_workload_declares_is_translated_within_a_message():
    why = message("text", text="each process trained a model of its own")
    assert Wording("zh").tell(because("OSError: no space left", why)) == (
        "OSError: no space left：每个进程各自训练了一个模型"
    )


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("8 tfrecord files with random images", "8 随机图像的 tfrecord 文件"),
        ("pairs of sentences, samples=64 seed=2020", "句对，samples=64 seed=2020"),
        ("synthetic, random words", "合成数据，随机词"),
        ("16 cells of another program", "16 cells of another program"),
    ],
)
def test_the_data_of_a_workload_are_translated_between_their_numbers(recorded, shown):
    assert Wording("zh").fact(recorded) == shown
    assert ENGLISH.fact(recorded) == recorded


def test_a_language_without_a_catalogue_is_refused():
    with pytest.raises(ValueError, match="report_language=de"):
        Wording("de")


@pytest.mark.parametrize("given", [message("of.tomorrow", count=7), message("reason.lost"), message("text")])
def test_a_message_that_this_version_cannot_say_costs_no_report(given):
    assert isinstance(ENGLISH.tell(given), str)
