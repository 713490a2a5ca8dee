# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to a log's bytes: the right number, or a word about it. Never a crash, never silence."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.read.record import log_record
from cases import case
from dlperf_logs import WORKLOAD
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).resolve().parents[2] / "fuzz"))

import properties  # noqa: E402
from in_english import in_english

GENUINE = properties.recording("1n_mirrored")
TF2 = WORKLOAD
SHORT = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(SHORT, max_examples=15)

nodes = st.sampled_from((1, 2))
seeds = st.integers(0, 2**40)


@SHORT
@given(nodes, seeds)
def test_a_mutated_log_gives_the_right_number_or_a_reason(tmp_path, nodes, seed):
    properties.import_log(tmp_path, nodes, seed, Counter())


@SHORT
@given(nodes, seeds)
def test_a_mutated_run_gives_the_right_number_or_a_reason(tmp_path, nodes, seed):
    properties.measured_run(tmp_path, nodes, seed, Counter())


@FEW
@given(st.lists(st.tuples(nodes, seeds), min_size=1, max_size=3), seeds, st.integers(0, 4))
def test_a_report_of_mutated_records_holds_no_number_of_its_own(tmp_path, logs, seed, hurts):
    said = Counter()
    records = [properties.import_log(tmp_path, *each, said)[0] for each in logs]
    properties.report_of(tmp_path / "campaign", records, seed, hurts, said)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "1e999"])
def test_what_is_no_number_in_a_record_reaches_no_file(tmp_path, constant):
    record, _ = properties.import_log(tmp_path, 1, 0, Counter())
    record["nodes"][0]["times"] = [0.0] * 200
    properties.report_of(tmp_path / "campaign", [dict(record, repeat=float(constant))], 0, 0, Counter())


@SHORT
@given(st.binary(max_size=2000))
def test_any_bytes_are_survived(tmp_path, data):
    path = tmp_path / "x.log"
    path.write_bytes(data)
    assert log_record(path, case(), 1, TF2, "x.log")["status"] != "ok"


@pytest.mark.parametrize("last", [True, False])
def test_a_false_stamp_at_the_end_of_the_window_is_not_silent(tmp_path, last):
    old, new = (b"1120 23:53:45.763550", b"1120 23:59:45.763550")
    assert GENUINE.count(old) == 1
    path = tmp_path / "x.log"
    path.write_bytes(GENUINE.replace(old, new) if last else GENUINE)
    record = log_record(path, case(), 1, TF2, "x.log")
    notes = ["step 120 alone takes 360.074 s of the window's 366.944 s"]
    assert (record["status"], in_english(record["notes"])) == ("ok", notes if last else [])
