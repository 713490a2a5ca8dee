# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Readings of a node -> what they say of exactly the window, by hand-made readings whose answer is known."""

import json
import lzma

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge.runs import check_record
from ansible.module_utils.scalebook.pages.catalogue import in_words, sentence
from ansible.module_utils.scalebook.read import telemetry
from ansible.module_utils.scalebook.read.record import run_record
from ansible.module_utils.scalebook.read.telemetry import TelemetryError, ends, parse, summary
from cases import case
from dlperf_logs import WORKLOAD
from hypothesis import given
from hypothesis import strategies as st
from in_english import in_english
from node_logs import JOB, node_log

COLUMNS = [
    ["cpu::busy", "counter", "s"],
    ["core:0:busy", "counter", "s"],
    ["memory::used", "gauge", "B"],
    ["gpu:0:power", "gauge", "W"],
]


def text_of(rows, columns=COLUMNS, wall=1000.0, tail=True, **head):
    """Return a file with these readings: (at, mark, values…), None for an empty cell."""
    about = {"cores": 2}
    made = {"schema": 1, "interval": 1, "columns": columns, "about": about, "monotonic": 0.0, "wall": wall}
    lines = ["# " + json.dumps({**made, **head}), ",".join(["at", "mark", *(name for name, _, _ in columns)])]
    for at, mark, *values in rows:
        lines.append(
            ",".join([f"{at:.6f}", mark, *("" if value is None else str(value) for value in values)])
        )
    if tail:
        lines.append("# " + json.dumps({"absent": {"infiniband": "no port"}, "about": {"gpus": {"0": {}}}}))
    return "".join(line + "\n" for line in lines)


def readings_of(*rows, **more):
    return parse(text_of(rows, **more))


STEADY = [
    # at, mark, cpu, core 0, memory, power
    (9.0, "", 0.0, 0.0, 1.0, 100),
    (10.001, "first", 2.0, 1.0, 1.0, 100),
    (11.0, "", 3.0, 1.5, 5.0, 200),
    (12.0, "", 4.0, 2.0, 5.0, 200),
    (12.501, "last", 5.0, 2.25, 9.0, 400),
    (13.5, "", 99.0, 99.0, 99.0, 999),
]


def test_the_window_is_what_lies_between_its_two_readings():
    made = summary(readings_of(*STEADY), 10.0, 12.5)
    cpu = made["quantities"]["cpu::busy"]
    assert (made["seconds"], made["covered"]) == (2.5, 1.0)
    assert (cpu["total"], cpu["mean"], cpu["unit"], cpu["samples"]) == (3.0, 1.2, "s/s", 3)
    assert (cpu["max"], cpu["min"]) == (pytest.approx(1 / 0.501, abs=1e-6), 1.0)
    assert made["cores"] == [0.5]


def test_a_gauge_is_weighted_by_the_time_that_it_stands_for():
    made = summary(readings_of(*STEADY), 10.0, 12.5)["quantities"]["memory::used"]
    assert made["mean"] == pytest.approx((0.999 * 5 + 1.0 * 5 + 0.501 * 9) / 2.5, abs=1e-6)
    assert (made["min"], made["max"], made["p50"], made["p95"]) == (5.0, 9.0, 5.0, 9.0)
    assert "total" not in made


def test_a_sample_that_reaches_out_of_the_window_is_not_of_it():
    """Without the readings that the steps ask for, the window is what lies whole in it."""
    rows = [(at, "", *values) for at, _, *values in STEADY]
    made = summary(readings_of(*rows), 10.0, 12.5)
    # 9.0 to 10.001 begins before the window, 12.0 to 12.501 ends after it.
    assert made["seconds"] == pytest.approx(1.999)
    assert made["covered"] == pytest.approx(1.999 / 2.5)
    assert made["quantities"]["cpu::busy"]["total"] == 2.0


@pytest.mark.parametrize(("late", "last"), [(0.02, 2), (0.03, 1)])
def test_a_reading_that_comes_late_is_not_the_windows_end(late, last):
    """One per cent of the window is the limit: 25 ms of 2.5 s."""
    rows = [(10.0, "first", 0, 0, 0, 0), (11.0, "", 1, 1, 0, 0), (12.5 + late, "last", 2, 2, 0, 0)]
    assert ends(readings_of(*rows), 10.0, 12.5) == (0, last)


@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 500)), min_size=3, max_size=40),
    st.integers(0, 60000),
    st.integers(1, 60000),
)
def test_what_is_counted_never_lies_outside_the_window(steps, begin, length):
    at, total, rows = 0, 0, []
    for milliseconds, more in steps:
        at, total = at + milliseconds, total + more
        rows.append((at / 1000, "", total, 0, 0, 0))
    readings = readings_of(*rows)
    found = ends(readings, begin / 1000, (begin + length) / 1000)
    inside = [index for index, row in enumerate(rows) if begin / 1000 <= row[0] <= (begin + length) / 1000]
    assert found == ((inside[0], inside[-1]) if len(inside) > 1 else None)
    if found:
        made = summary(readings, begin / 1000, (begin + length) / 1000)
        difference = rows[inside[-1]][2] - rows[inside[0]][2]
        assert made["quantities"]["cpu::busy"]["total"] == difference


# What is missing


def test_a_value_that_is_missing_is_not_zero():
    rows = [(at, mark, cpu, core, memory, None) for at, mark, cpu, core, memory, _ in STEADY]
    made = summary(readings_of(*rows), 10.0, 12.5)
    assert "gpu:0:power" not in made["quantities"]
    assert in_words(made["absent"]) == {"infiniband": "no port", "gpu:0:power": "no sample in the window"}


def test_a_counter_between_whose_ends_readings_are_missing_keeps_its_total():
    rows = [list(row) for row in STEADY]
    rows[2][2] = rows[3][2] = None
    made = summary(readings_of(*rows), 10.0, 12.5)["quantities"]["cpu::busy"]
    assert (made["total"], made["seconds"], made["samples"]) == (3.0, 2.5, 1)


def test_a_sample_of_a_gauge_that_was_put_off_begins_where_it_was_read_before():
    rows = [list(row) for row in STEADY]
    rows[2][4] = rows[3][4] = "-"
    made = summary(readings_of(*rows), 10.0, 12.5)["quantities"]["memory::used"]
    assert (made["mean"], made["seconds"], made["samples"]) == (9.0, 2.5, 1)


def test_a_counter_without_its_end_says_how_much_of_the_window_it_knows():
    rows = [list(row) for row in STEADY]
    rows[4][2] = None
    made = summary(readings_of(*rows), 10.0, 12.5)["quantities"]["cpu::busy"]
    assert (made["total"], made["seconds"]) == (2.0, 1.999)


def test_a_counter_that_went_backwards_is_absent_with_this_reason():
    rows = [list(row) for row in STEADY]
    rows[3][2] = 0.5
    made = summary(readings_of(*rows), 10.0, 12.5)
    assert sentence(made["absent"]["cpu::busy"]) == "the counter went backwards"
    assert "cpu::busy" not in made["quantities"]


def test_a_window_with_one_reading_has_a_reason_and_no_numbers():
    made = summary(readings_of(*STEADY), 10.5, 11.5)
    assert made["reason"] == message("run.no-readings", seconds=1.0)
    assert made["quantities"] == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "readings.no-head"),
        ("at,mark\n1,2\n", "readings.no-head"),
        (text_of([], schema=9), "readings.schema"),
        (text_of([(1.0, "", 1, 2, 3)]), "readings.other-count"),
        (text_of([(1.0, "", 1, 2, 3, "x")]), "readings.no-number"),
        (text_of([(1.0, "", 1, 2, 3, "nan")]), "readings.not-finite"),
        (text_of([(2.0, "", 1, 2, 3, 4), (1.0, "", 1, 2, 3, 4)]), "readings.back"),
        (text_of([]).replace("memory::used,", "", 1), "readings.other-columns"),
    ],
)
def test_a_file_that_no_sampler_wrote_is_refused(text, code):
    with pytest.raises(TelemetryError) as refused:
        parse(text)
    assert refused.value.message["code"] == code


def test_the_line_that_a_killed_sampler_was_writing_is_dropped():
    whole = text_of([(1.0, "", 1, 2, 3, 4)], tail=False)
    assert parse(whole + "2.0,,5").at == [1.0]


# The record


def test_a_run_without_telemetry_has_none_in_its_record(tmp_path):
    (tmp_path / "NODE1.log").write_text(node_log(0, 1))
    record = run_record(tmp_path, case(1), 1, WORKLOAD, ["NODE1"], JOB)
    assert record["status"] == "ok" and "telemetry" not in record


def said(**values):
    return {"telemetry": {"file": "f", "reason": None, "cpu_seconds": 0.1, **values}}


def measured(tmp_path, nodes, **files):
    for name, content in files.items():
        (tmp_path / f"{name}.telemetry.csv.xz").write_bytes(lzma.compress(content.encode()))
    return telemetry.of_run(tmp_path, nodes)


def test_each_node_has_its_own_window(tmp_path):
    later = [(at + 5, *rest) for at, *rest in STEADY]
    nodes = [("A", said(), (10.0, 12.5)), ("B", said(), (15.0, 17.5))]
    made = measured(tmp_path, nodes, A=text_of(STEADY), B=text_of(later))
    assert [node["quantities"]["cpu::busy"]["total"] for node in made] == [3.0, 3.0]
    assert {node["placed_by"] for node in made} == {"own-steps"}
    assert made[0]["file"] == "A.telemetry.csv.xz" and len(made[0]["sha256"]) == 64
    assert made[0]["sampler"] == {"cpu_seconds": 0.1}


def test_a_node_that_logs_no_steps_takes_the_first_nodes_window_by_the_time_of_day(tmp_path):
    later = [(at + 5, *rest) for at, *rest in STEADY]
    nodes = [("A", said(), (10.0, 12.6)), ("B", said(), None)]
    made = measured(tmp_path, nodes, A=text_of(STEADY, wall=1000.0), B=text_of(later, wall=995.0))
    assert made[1]["quantities"]["cpu::busy"]["total"] == 3.0
    assert made[1]["placed_by"] == "first-node"


@pytest.mark.parametrize("jump", [-3600.0, 0.7, 3600.0])
def test_a_clock_that_jumps_moves_no_window_of_a_node_that_logs_steps(tmp_path, jump):
    """Its window and its readings are by the monotonic clock; the time of day is in the head alone."""
    nodes = [("A", said(), (10.0, 12.5)), ("B", said(), (10.0, 12.5)), ("C", said(), None)]
    jumped = text_of(STEADY, wall=1000.0 + jump)
    made = measured(tmp_path, nodes, A=text_of(STEADY), B=jumped, C=jumped)
    assert [node["quantities"]["cpu::busy"]["total"] for node in made[:2]] == [3.0, 3.0]
    # A node that logs no steps has only the time of day: it tells how much of the window it still has.
    if abs(jump) > 3:
        assert made[2]["reason"]["code"] == "run.no-readings" and not made[2]["quantities"]
    else:
        assert made[2]["covered"] < 1


def test_what_went_wrong_on_a_node_is_its_reason(tmp_path):
    (tmp_path / "C.telemetry.csv.xz").write_bytes(b"no archive")
    nodes = [
        ("A", said(reason="the sampler was ended by signal 9"), (10.0, 12.5)),
        ("B", said(), (10.0, 12.5)),
        ("C", said(), (10.0, 12.5)),
        ("D", {}, (10.0, 12.5)),
    ]
    made = measured(tmp_path, nodes, A=text_of(STEADY, tail=False))
    assert in_english([node["reason"] for node in made]) == [
        "the sampler was ended by signal 9",
        "B.telemetry.csv.xz is missing",
        "C.telemetry.csv.xz is not a file of readings",
        "D.telemetry.csv.xz is missing",
    ]
    assert made[0]["quantities"] and not any("quantities" in node for node in made[1:])


def test_the_record_of_a_run_has_the_telemetry_of_its_window(tmp_path):
    """The log's own stamps say when the window was: the first step line is the one of step 1."""
    log = node_log(0, 1, exits=said())
    (tmp_path / "NODE1.log").write_text(log)
    record = run_record(tmp_path, case(1), 1, WORKLOAD, ["NODE1"], JOB)
    assert in_english(record["telemetry"][0]["reason"]) == "NODE1.telemetry.csv.xz is missing"
    stamps = [float(line.split()[0]) for line in log.splitlines()]
    rows = [(at, "", at, 0, 0, 0) for at in sorted(set(stamps))]
    (tmp_path / "NODE1.telemetry.csv").write_text(text_of(rows))
    record = run_record(tmp_path, case(1), 1, WORKLOAD, ["NODE1"], JOB)
    check_record(record)
    [made] = record["telemetry"]
    assert (made["reason"], made["file"], made["covered"]) == (None, "NODE1.telemetry.csv", 1.0)
    assert made["quantities"]["cpu::busy"]["mean"] == 1.0
    assert made["seconds"] == record["nodes"][0]["received"][119] - record["nodes"][0]["received"][19]
