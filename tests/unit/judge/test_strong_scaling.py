# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Strong scaling: what shares a global batch, and what it is divided by."""

import pytest
from ansible.module_utils.scalebook.judge import strong_scaling, weak_scaling
from ansible.module_utils.scalebook.pages.catalogue import sentence
from report_records import case
from row_runs import run


def tables(*cases_and_rates):
    cases, made = [], []
    for of, rates in cases_and_rates:
        cases.append(of)
        made += [run(of, repeat, rate) for repeat, rate in enumerate(rates, 1)]
    return strong_scaling.tabulate(weak_scaling.tabulate(cases, made)["rows"])


FIXED = (
    (case(1, 1, bsz=64), [100.0, 101.0, 99.0]),
    (case(1, 2, bsz=32), [180.0, 181.0, 179.0]),
    (case(2, 2, bsz=16), [300.0, 302.0, 298.0]),
)


def test_rows_of_one_global_batch_are_held_against_its_1n1g():
    (table,) = tables(*FIXED)
    assert table["global_batch"] == 64
    assert [(row["label"], row["bsz"], row["speedup"], row["efficiency"]) for row in table["rows"]] == [
        ("1n1g", 64, 1.0, 1.0),
        ("1n2g", 32, 1.8, 0.9),
        ("2n2g", 16, 3.0, 0.75),
    ]


def test_a_speedup_of_three_repeats_has_a_range_around_it_and_no_interval():
    (table,) = tables(*FIXED)
    assert [row["speedup_interval"] for row in table["rows"]] == [None] * 3
    for row in table["rows"][1:]:
        low, high = row["speedup_range"]
        assert low < row["speedup"] < high


def test_a_speedup_of_six_repeats_has_an_interval_within_its_range():
    (table,) = tables(*((of, rates * 2) for of, rates in FIXED))
    for row in table["rows"][1:]:
        low, high = row["speedup_interval"]
        assert row["speedup_range"][0] < low < row["speedup"] < high < row["speedup_range"][1]


def test_weak_scaling_alone_makes_no_table():
    assert tables(*((case(n, 1), [100.0 * n] * 3) for n in (1, 2, 4))) == []


def test_the_tables_of_weak_scaling_do_not_change():
    cases = [of for of, _ in FIXED]
    made = [run(of, i, rate) for of, rates in FIXED for i, rate in enumerate(rates, 1)]
    rows = weak_scaling.tabulate(cases, made)["rows"]
    assert [(row["label"], row["speedup"]) for row in rows] == [("2n2g", None), ("1n2g", None), ("1n1g", 1.0)]


def test_accumulation_counts_into_the_global_batch():
    (table,) = tables((case(1, 1, bsz=16, accumulation=4), [50.0] * 3), (case(1, 4, bsz=16), [180.0] * 3))
    assert (table["global_batch"], [row["label"] for row in table["rows"]]) == (64, ["1n1g", "1n4g"])


@pytest.mark.parametrize(
    "other", [{"dtype": "fp16"}, {"xla": True}, {"settings": {"seq": 512}}, {"window": 50}]
)
def test_what_did_other_work_shares_no_table(other):
    odd = case(1, 2, bsz=32, **other)
    odd["name"] += "-odd"
    assert tables(FIXED[0], (odd, [180.0] * 3)) == []


def test_without_1n1g_the_speedup_is_not_available():
    (table,) = tables(*FIXED[1:])
    assert [row["speedup"] for row in table["rows"]] == [None, None]
    assert {mark["code"] for row in table["rows"] for mark in row["flags"]} == {"no-baseline"}


def test_a_case_without_a_good_run_is_in_no_table():
    assert tables(FIXED[0], (case(1, 2, bsz=32), [None, None])) == []


def test_too_few_repeats_and_too_much_speedup_are_marked():
    (table,) = tables((case(1, 1, bsz=64), [100.0, 100.0]), (case(1, 2, bsz=32), [250.0] * 3))
    codes = [[mark["code"] for mark in row["flags"]] for row in table["rows"]]
    assert codes == [["provisional"], ["superlinear"]]


def test_a_provisional_1n1g_is_named_beside_every_speedup_over_it():
    (table,) = tables((case(1, 1, bsz=64), [100.0, 100.0]), (case(1, 2, bsz=32), [150.0] * 3))
    assert [mark["code"] for mark in table["rows"][1]["flags"]] == ["baseline-provisional"]


@pytest.mark.parametrize(
    ("change", "words"),
    [({"window": 200}, ["window 100", "window 200"]), ({"warmup": 40}, ["warmup 20", "warmup 40"])],
)
def test_tables_that_differ_in_one_field_have_titles_that_name_it(change, words):
    longer = [({**of, **change, "name": f"{of['name']}-longer"}, rates) for of, rates in FIXED]
    first, second = tables(*FIXED, *longer)
    assert [words[0] in sentence(first["title"]), words[1] in sentence(second["title"])] == [True, True]


def test_a_title_names_a_setting_in_which_a_case_without_a_table_differs():
    settings = [{"bucket_mb": mb, "seq_length": 128} for mb in (25, 200)]
    fixed = [({**of, "settings": settings[0]}, rates) for of, rates in FIXED]
    alone = ({**FIXED[0][0], "name": "alone", "settings": settings[1]}, FIXED[0][1])
    (table,) = tables(*fixed, alone)
    assert "bucket_mb=25 global batch" in sentence(table["title"])


def test_a_title_is_short_where_the_tables_agree():
    (table,) = tables(*FIXED)
    assert "window" not in sentence(table["title"])
