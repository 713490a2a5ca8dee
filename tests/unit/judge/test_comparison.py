# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Two campaigns side by side: which cases pair, and what is said to differ."""

import pytest
from ansible.module_utils.scalebook.judge import comparison
from ansible.module_utils.scalebook.judge.campaign import Baseline
from ansible.module_utils.scalebook.workload import Workload
from cases import case

H100, H200 = ([{"nodes": ["NODE1"], "gpus": [{"name": name}]}] for name in ("H100", "H200"))


def row(*rates, **fields):
    """Return a row of one run of each rate."""
    runs = [{"repeat": repeat, "rate": rate} for repeat, rate in enumerate(rates, 1)]
    values = {"settings": {}, **case(**{"device": "gpu", **fields}), "runs": runs}
    return {**values, "case": values["name"], "machines": None}


def side(name, *rows, hardware=H200, versions=None):
    provenance = {"workloads": {"tf2_bert": {"NODE1": versions}}} if versions else {}
    return Baseline(name, name, rows, 0.03, hardware, provenance)


def compare(now, before, **declared):
    return comparison.compare(now, before, declared)


def differs(made):
    return [(each["what"], each["before"], each["now"]) for each in made["differs"]]


def test_a_case_on_another_model_of_gpu_is_compared_and_the_model_named():
    made = compare(side("b", row(220.0, 220.0, 220.0)), side("a", row(200.0, 200.0, 200.0), hardware=H100))
    assert [each["ratio"] for each in made["rows"]] == [pytest.approx(1.1)]
    assert differs(made) == [("hardware", "H100", "H200")]


def test_hardware_that_was_not_recorded_differs():
    made = compare(side("b", row(1.0)), side("a", row(1.0), hardware=()))
    assert differs(made) == [("hardware", "", "H200")]


@pytest.mark.parametrize(("field", "value"), [("bsz", 2), ("gpus", 2), ("dtype", "bf16"), ("model", "large")])
def test_another_case_does_not_pair(field, value):
    made = compare(side("b", row(1.0)), side("a", row(1.0, **{field: value})))
    assert made["rows"] == []
    assert (made["only_before"], made["only_now"]) == (1, 1)


def test_of_several_settings_the_nearest_pair():
    near = row(100.0, settings={"data": "x", "clip": 1})
    far = row(50.0, settings={"data": "y", "clip": 2})
    made = compare(side("b", row(110.0, settings={"data": "x", "clip": 3})), side("a", far, near))
    assert [each["before"] for each in made["rows"]] == [100.0]
    assert differs(made) == [("clip", "1", "3")]


def test_a_setting_that_came_later_has_the_value_from_before():
    made = compare(
        side("b", row(1.0, settings={"loader": "auto"})),
        side("a", row(1.0)),
        tf2_bert=Workload(settings_before={"loader": "auto"}),
    )
    assert differs(made) == []


def test_what_differs_in_some_cases_stands_at_these():
    now = side("b", row(1.0), row(1.0, bsz=32, window=20))
    [first, second] = compare(now, side("a", row(1.0), row(1.0, bsz=32)))["rows"]
    assert first["differs"] == []
    assert [each["what"] for each in second["differs"]] == ["window"]


def test_versions_differ_that_both_recorded():
    now = side("b", row(1.0), versions={"framework": "torch 2.11.0", "build": "CUDA 13.0"})
    before = side("a", row(1.0), versions={"framework": "torch 2.9.0"})
    assert differs(compare(now, before)) == [("framework", "torch 2.9.0", "torch 2.11.0")]


def test_a_campaign_without_versions_has_no_known_framework():
    now = side("b", row(1.0), versions={"framework": "torch 2.11.0", "driver": "580"})
    assert differs(compare(now, side("a", row(1.0)))) == [("framework", "", "torch 2.11.0")]


def test_there_is_an_interval_from_six_runs_on_both_sides():
    rates = (100.0, 100.1, 99.9, 100.2, 99.8, 100.0)
    six = compare(side("b", row(*rates)), side("a", row(*rates)))
    three = compare(side("b", row(*rates)), side("a", row(*rates[:3])))
    assert [made["rows"][0]["interval"] is None for made in (six, three)] == [False, True]
