# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The course of a node for a chart: few points, means by time, nothing where nothing was read."""

import pytest
from ansible.module_utils.scalebook.read.telemetry import summary
from ansible.module_utils.scalebook.read.timeline import POINTS, decimate
from hypothesis import given
from hypothesis import strategies as st
from recordings import recorded
from test_telemetry import readings_of


def test_a_value_is_the_mean_of_its_time():
    made = decimate({"memory::used": [(0.0, 1.5, 10.0), (1.5, 2.0, 30.0), (2.0, 4.0, 7.0)]}, 1.0, 3.0, 2.0)
    assert made == {"begin": -1.0, "step": 2.0, "window": 2.0, "columns": {"memory::used": [15.0, 7.0]}}


def test_time_without_a_reading_has_no_value():
    made = decimate({"cpu::busy": [(0.0, 1.0, 1.0), (2.0, 3.0, 2.0)]}, 0.0, 3.0, 1.0)
    assert made["columns"]["cpu::busy"] == [1.0, None, 2.0]


def test_what_no_chart_shows_is_left_out():
    samples = {"cpu::busy": [(0.0, 1.0, 1.0)], "core:0:busy": [(0.0, 1.0, 1.0)], "gpu:0:temperature": []}
    assert list(decimate(samples, 0.0, 1.0, 1.0)["columns"]) == ["cpu::busy"]
    assert decimate({"core:0:busy": [(0.0, 1.0, 1.0)]}, 0.0, 1.0, 1.0) is None


def test_the_course_of_the_power_is_what_each_reading_says_of_it():
    """The energy counter, which is the mean over the window, may have been read at its ends alone."""
    powers = [(0.0, 1.0, 100.0), (1.0, 2.0, 700.0)]
    made = decimate({"gpu:0:power": powers, "gpu:0:energy": [(0.0, 2.0, 400.0)]}, 0.0, 2.0, 1.0)
    assert made["columns"] == {"gpu:0:power": [100.0, 700.0]}


@given(st.integers(1, 5000), st.integers(1, 100), st.integers(0, 1000))
def test_a_long_run_has_no_more_points_than_a_short_one(seconds, window, begin):
    samples = [(float(second), second + 1.0, 1.0) for second in range(seconds)]
    made = decimate({"cpu::busy": samples}, float(begin), float(begin + window), 1.0)
    if made:
        assert len(made["columns"]["cpu::busy"]) <= POINTS
        assert set(made["columns"]["cpu::busy"]) <= {1.0, None}


def test_the_first_node_alone_has_a_course():
    first, second = recorded("containers_tf2_bert")
    assert "timeline" not in second
    line = first["timeline"]
    assert (line["begin"], line["window"]) == (-10.0, 14.709)
    assert sorted(line["columns"]) == [
        "cpu::busy",
        "disk:vda:read",
        "disk:vda:written",
        "memory::used",
        "network:eth0:received",
        "network:eth0:sent",
        "network:lo:received",
        "network:lo:sent",
    ]


@pytest.mark.parametrize(("values", "share"), [((100, 10, 95), 0.0), ((0, 100, 9), 0.8), ((0, 0, 0), 1.0)])
def test_the_idle_share_of_a_gpu_is_weighted_by_time(values, share):
    """The samples are two, one and two seconds long."""
    rows = [(at, "", value) for at, value in zip((0, 2, 3, 5), (50, *values), strict=True)]
    made = summary(readings_of(*rows, columns=[["gpu:0:utilization", "gauge", "%"]]), 0.0, 5.0)
    assert made["gpu_idle"] == {"0": share}
