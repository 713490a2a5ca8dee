# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What reports conclude from recorded campaigns, and how far they say that it can be trusted."""

import functools
from pathlib import Path

import measured
import pytest
from ansible.module_utils.scalebook.judge import conclusions, effects, flags
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.workloads import load_workloads

ROOT = Path(__file__).parents[3]
CAMPAIGNS = measured.campaigns()
GPT2 = "h200x4-2026-11-26/torch_gpt2"


@functools.cache
def results(name):
    return build_results(load_campaign(ROOT / "docs/results" / name), load_workloads([str(ROOT / "roles")]))


def sentences(name):
    return [sentence(each["message"]) for each in results(name)["conclusions"]]


def rows(name=GPT2):
    return results(name)["rows"]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_recorded_campaign_has_one_to_five_conclusions_and_none_twice(name):
    found = sentences(name)
    assert 1 <= len(found) <= 5
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_best_row_of_a_workload_is_usable_and_at_the_most_devices(name):
    cases = {row["case"]: row for row in rows(name)}
    for case in results(name)["best"]:
        best = cases[case]
        same = [
            row
            for row in cases.values()
            if (row["workload"], row["model"]) == (best["workload"], best["model"])
        ]
        assert flags.usable(best)
        assert best["devices"] == max(row["devices"] for row in same if flags.usable(row))


def test_the_setting_that_wins_is_named_with_its_gain():
    assert "bucket_mb=2000 is 7.5 % faster than bucket_mb=25 (1n4g; elsewhere 3.0 % or more)." in sentences(
        GPT2
    )


def test_from_twice_on_a_gain_is_a_quotient():
    expected = "compile_mode=reduce-overhead is 2.67 times as fast as compile_mode=default (1n1g)."
    assert expected in sentences("h100x2-2026-11-25/torch")


def test_what_bounds_the_best_row_has_one_evidence():
    expected = (
        "1n4g: Power-limited: the power limit held the clocks of the GPUs down "
        "(time at the power limit 100 %)."
    )
    assert expected in sentences(GPT2)


def test_a_loss_of_efficiency_is_told_apart():
    expected = (
        "1n4g loses 45.3 % of linear scaling: 5.9 % of a step is waiting for the slowest device, "
        "40.2 % is exchange and the rest."
    )
    assert expected in sentences("h200x4-2026-11-26/tf2_bert")


def test_rows_with_few_runs_are_what_to_measure_next():
    assert sentences(GPT2)[-1] == "Next: repeats=3 (6 of 13 rows have fewer valid runs)."


def test_rows_that_must_not_be_used_are_what_to_measure_next():
    assert sentences("h100x2-2026-11-25/torch")[-1].startswith("Next: measure 1n2g again")


def test_nodes_on_one_machine_are_never_praised():
    assert sentences("containers-2026-11-25/hf_mlm")[-1].startswith("Next: nodes on machines of their own.")


def test_no_advice_names_a_value_that_the_campaign_measured_as_slower():
    """The review's case: bucket_mb=200 was advised where 2000 had won."""
    texts = [sentence(each["message"]) for each in results(GPT2)["bottlenecks"]]
    assert not any("bucket_mb=200)" in text for text in texts)
    assert any("bucket_mb=2000 (measured here: +" in text for text in texts)


def test_an_effect_is_of_rows_that_differ_in_one_setting():
    for effect in effects.effects(rows()):
        one, two = map(effects.settings_of, (effect.faster, effect.slower))
        assert [name for name in one if one[name] != two[name]] == [effect.setting]


def test_ranges_that_overlap_are_no_clear_effect():
    row = {**rows()[0], "min": 100.0, "max": 110.0, "median": 105.0, "dtype": "fp16", "case": "other"}
    same = {**rows()[0], "min": 104.0, "max": 120.0, "median": 112.0}
    assert [each.clear for each in effects.effects([row, same])] == [False]


def trust_of(level, count=1):
    code = {"stop": "superlinear", "care": "scattered", "note": "power-limited"}[level]
    flagged = [{**rows()[0], "flags": [{"code": code, "message": {"code": "text", "values": {}}}]}] * count
    return [*flagged, {**rows()[0], "flags": []}]


@pytest.mark.parametrize(("level", "expected"), [("note", "sound"), ("care", "care"), ("stop", "care")])
def test_trust_is_that_of_the_worst_flag(level, expected):
    assert conclusions.trust(trust_of(level), [{"nodes": []}])["level"] == expected


def test_a_report_without_a_usable_row_must_not_be_used():
    assert conclusions.trust(trust_of("stop")[:1], [{"nodes": []}])["level"] == "stop"


def test_unknown_hardware_is_never_sound():
    assert conclusions.trust(trust_of("note"), [])["level"] == "care"


def test_every_flag_has_a_level():
    assert set(flags.LEVELS) == set(flags.FLAGS)
    assert {*flags.STOP, *flags.NOTE} <= set(flags.FLAGS)
