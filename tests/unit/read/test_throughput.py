# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Throughput: samples over the window, by the best reading there is."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.read.record import log_record
from ansible.module_utils.scalebook.throughput import ThroughputError, measure, tolerance
from cases import case
from dlperf_logs import WORKLOAD

DATA = Path(__file__).resolve().parents[2] / "data" / "tf2_bert"


def record(steps, times=None, received=None, rates=None, **of_case):
    node = {"task_index": 0, "steps": steps, "times": times, "received": received, "rates": rates}
    return {"case": case(**{"warmup": 1, "window": 4, **of_case}), "nodes": [{"task_index": 1}, node]}


STEPS = [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("name", "nodes", "rate"),
    [
        ("1n_mirrored", 1, 1600 / 6.944191),
        ("2n_w0", 2, 3200 / 22.428402),
        ("2n_w1", 2, 3200 / 22.431732),
        ("lo2_seedpatch_only_w0", 2, 3200 / 11.754122),
        ("unpatched_single", 1, 1600 / 9.73742),
    ],
)
def test_a_genuine_log_gives_its_exact_rate(name, nodes, rate):
    workload = WORKLOAD
    measured = measure(log_record(DATA / f"{name}.log", case(nodes), 1, workload, name))
    assert measured["rate"] == rate
    assert (measured["time_source"], measured["second"], measured["differs"]) == ("times", None, None)


def test_the_rate_is_all_samples_over_the_windows_seconds():
    measured = measure(record(STEPS, [0.0, 1.0, 2.0, 3.0, 8.0], nodes=2, gpus=8, bsz=32, accumulation=4))
    assert measured["rate"] == 16 * 32 * 4 * 4 / 8
    assert measured["seconds"] == 8.0


def test_steps_outside_the_window_do_not_count():
    assert (
        measure(record([1, 2, 3, 4, 5, 6], [0.0, 9.0, 10.0, 11.0, 12.0, 99.0], warmup=2, window=3))["seconds"]
        == 3.0
    )


def test_a_format_that_logs_every_tenth_step_is_measured():
    assert measure(record([10, 20, 30], [0.0, 1.0, 3.0], warmup=10, window=20))["seconds"] == 3.0


def test_the_receive_stamps_are_the_second_reading():
    measured = measure(record(STEPS, [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0, 5.0]))
    assert measured["second"] == {"time_source": "received", "rate": 16 * 4 / 5}
    assert measured["differs"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("sources", "most"), [(("times", "received"), 0.27), (("received",), 0.27), (("times", "rates"), 0.02)]
)
def test_lines_may_come_a_step_late(sources, most):
    assert tolerance(4, *sources) == pytest.approx(most)


def test_printed_rates_are_averaged_as_work_over_time():
    assert measure(record(STEPS, rates=[1.0, 100.0, 100.0, 50.0, 50.0]))["rate"] == pytest.approx(200 / 3)


def test_rates_of_every_second_step_count():
    assert measure(record(STEPS, rates=[None, None, 100.0, None, 50.0]))["rate"] == pytest.approx(200 / 3)


def test_a_rate_of_one_rank_is_multiplied_by_the_devices():
    rated = {**record(STEPS, rates=[None, 10.0, 10.0, 10.0, 10.0], nodes=2, gpus=2), "rate_scope": "rank"}
    measured = measure(rated)
    assert (measured["rate"], measured["time_source"]) == (40.0, "rates")
    assert measured["seconds"] == 4 * 16 * 4 / 40


@pytest.mark.parametrize(
    "bad",
    [
        record(STEPS),
        record([], []),
        record([1, 2, 3], [0.0, 1.0, 2.0]),
        record([2, 3, 4, 5], [0.0, 1.0, 2.0, 3.0]),
        record(STEPS, [1.0, 1.0, 1.0, 1.0, 1.0]),
        record(STEPS, [1.0]),
        record([1, 2, 3, 4], rates=[1.0, 1.0, 1.0, 1.0]),
        record(STEPS, rates=[None] * 5),
        record(STEPS, rates=[1.0, 1.0, 1.0, None, None]),
        record(STEPS, rates=[None, None, None, 1.0, 1.0]),
        record(STEPS, rates=[1.0, 1.0, 1.0, None, 1.0]),
        {**record(STEPS), "nodes": []},
    ],
    ids=[
        "nothing",
        "no step",
        "too short",
        "begins late",
        "no time passes",
        "stamps lost",
        "rates too short",
        "no rate",
        "rates end early",
        "rates begin late",
        "a rate is missing",
        "no node",
    ],
)
def test_a_window_that_is_not_covered_is_never_a_number(bad):
    with pytest.raises(ThroughputError):
        measure(bad)
