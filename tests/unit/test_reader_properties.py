# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to a log's bytes: the right number, or a word about it. Never a crash, never silence."""

import random
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.record import log_record, run_record
from ansible.module_utils.scalebook.runs import STATUSES
from ansible.module_utils.scalebook.throughput import measure
from ansible.module_utils.scalebook.workload import compile_workload
from dlperf_logs import WORKLOAD, exit_record, stamped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_throughput import case

DATA = Path(__file__).resolve().parents[1] / "data" / "tf2_bert"
GENUINE = (DATA / "1n_mirrored.log").read_bytes()
TRUTH = 1600 / 6.944191
TF2 = compile_workload(WORKLOAD)
SHORT = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# A false stamp within its neighbours' moves an end of the window by less than two of a hundred steps.
TOLERANCE = 0.12


def judge(record):
    """Assert that a record is right, or says what is wrong."""
    assert record["status"] in STATUSES
    if record["status"] != "ok":
        assert record["reason"]
        return
    rate = measure(record)["rate"]
    assert record["notes"] or abs(rate - TRUTH) <= TOLERANCE * TRUTH, rate


def flip(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def digit(data, rng):
    places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    place = rng.choice(places or [0])
    return data[:place] + str(rng.randrange(10)).encode() + data[place + 1 :]


def cut(data, rng):
    return data[: rng.randrange(len(data))]


def drop_line(data, rng):
    lines = data.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def repeat_line(data, rng):
    lines = data.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return b"".join(lines)


def join_lines(data, rng):
    place = rng.choice([place for place, byte in enumerate(data) if byte == 10] or [0])
    return data[:place] + data[place + 1 :]


def insert(data, rng):
    place = rng.randrange(len(data))
    junk = rng.choice([b"\0" * 50, b"\xff", b"\r\n", b"\x1b[31m", b"Train Step: ", b"x" * 20_000, b"nan"])
    return data[:place] + junk + data[place:]


MUTATIONS = [flip, digit, cut, drop_line, repeat_line, join_lines, insert]


@SHORT
@given(seed=st.integers(0, 2**32), kinds=st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=3))
def test_a_mutated_log_gives_the_right_number_or_a_reason(tmp_path, seed, kinds):
    rng = random.Random(seed)
    data = GENUINE
    for kind in kinds:
        data = kind(data, rng) or b"\n"
    path = tmp_path / "x.log"
    path.write_bytes(data)
    judge(log_record(path, case(), 1, TF2, "x.log"))


@SHORT
@given(seed=st.integers(0, 2**32), kinds=st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=3))
def test_a_mutated_run_gives_the_right_number_or_a_reason(tmp_path, seed, kinds):
    rng = random.Random(seed)
    data = stamped(GENUINE.decode(), every=0.06944191, exit_record=exit_record()).encode()
    for kind in kinds:
        data = kind(data, rng) or b"\n"
    (tmp_path / "NODE1.log").write_bytes(data)
    judge(run_record(tmp_path, case(), 1, WORKLOAD, ["NODE1"], {"rc": 0, "seconds": 9.0}))


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
    assert (record["status"], record["notes"]) == ("ok", notes if last else [])
