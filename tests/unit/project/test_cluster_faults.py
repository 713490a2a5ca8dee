# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the fault tests find wrong with the record of a run that a fault hit."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "cluster"))

from testcluster import faults  # noqa: E402

NODE = SimpleNamespace(name="NODE2")
KILLED = next(fault for fault in faults.DURING_A_RUN if fault.name == "sampler killed")


def record(*reasons, status="ok"):
    parts = [{"node": f"NODE{number}", "reason": reason} for number, reason in enumerate(reasons, 1)]
    return {"status": status, "reason": None, "telemetry": parts}


def test_a_run_counts_whose_record_says_that_the_sampler_of_the_node_was_killed():
    assert faults.problem_with(KILLED, NODE, record(None, "the sampler was ended by signal 9", None)) == ""


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (record(None, None, None), "the telemetry does not say the sampler was ended by signal 9"),
        (record("the sampler was ended by signal 9", None), "the telemetry does not say"),
        ({"status": "ok", "reason": None}, "the telemetry does not say"),
        (record(None, "the sampler was ended by signal 9", status="failed"), "failed, None"),
    ],
)
def test_a_record_that_does_not_say_so_of_this_node_is_a_problem(made, problem):
    assert problem in faults.problem_with(KILLED, NODE, made)


def test_a_fault_that_says_nothing_of_telemetry_wants_none():
    fault = next(fault for fault in faults.DURING_A_RUN if fault.name == "link back after 5 s")
    assert faults.problem_with(fault, NODE, {"status": "ok", "reason": None}) == ""
