# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""deepspeed_bert: DeepSpeed's logs, genuine ones of today and the line in its earlier forms."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.throughput import measure
from in_english import log_record
from role_files import declaration

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles/deepspeed_bert"
LOGS = ROOT / "tests/data/deepspeed_bert"
WORKLOAD = declaration("deepspeed_bert")


def case(**other):
    values = {
        "workload": "deepspeed_bert",
        "model": "tiny",
        "dtype": "fp32",
        "xla": False,
        "bsz": 8,
        "nodes": 1,
        "gpus": 2,
        "devices": 2,
        "global_batch": 16,
        "accumulation": 1,
        "device": "cpu",
        "warmup": 4,
        "window": 8,
        "label": "1n2g",
        "name": "case",
    }
    return {**values, **other}


def record(path, **other):
    return log_record(path, case(**other), 1, WORKLOAD, path.name)


def written(directory, lines):
    path = directory / "bert_b32_fp32_1.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def timer(step, milliseconds, rest):
    """Return a line of DeepSpeed's throughput timer; `milliseconds` after 11:28."""
    seconds, fraction = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    stamp = f"2020-10-27 11:{28 + minutes}:{seconds:02},{fraction:03}"
    return f"[{stamp}] [INFO] [timer.py:157:stop] 0/{step}, {rest}"


def test_the_first_node_alone_prints_steps():
    assert WORKLOAD.log.first_node


def test_the_stamps_of_a_genuine_log_give_the_rate():
    read = record(LOGS / "ds_1n2p_info.log")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(16 * 8 / (8.187 - 7.634))


def test_a_genuine_log_through_pdsh_is_read_behind_the_names_of_its_nodes():
    read = record(LOGS / "ds_2n_pdsh.log", nodes=2, gpus=1, window=4)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(16 * 4 / (57.575 - 57.276))


def test_the_rate_of_each_step_is_the_second_reading():
    second = measure(record(LOGS / "ds_1n2p_info.log"))["second"]
    assert second["time_source"] == "rates"
    assert second["rate"] == pytest.approx(240, abs=30)


def test_a_log_without_rates_of_steps_is_read_by_its_timestamps(tmp_path):
    # Ten times slower until step 20: the mean never forgets that, the window does.
    moments = [1000 * step if step <= 20 else 20000 + 100 * (step - 20) for step in range(3, 121)]
    lines = [
        timer(step, moment, f"SamplesPerSec={32 * (step - 2) / (moment / 1000 - 2)}")
        for step, moment in zip(range(3, 121), moments, strict=True)
    ]
    path = written(tmp_path, lines)
    measured = measure(record(path, bsz=32, gpus=1, devices=1, global_batch=32, warmup=20, window=100))
    assert measured["rate"] == pytest.approx(320)
    assert measured["second"] is None


def test_a_form_of_the_line_without_a_rate_of_the_step_is_no_gap(tmp_path):
    path = written(tmp_path, [timer(step, 100 * step, "SamplesPerSec=147.8") for step in range(3, 13)])
    assert record(path)["notes"] == []


@pytest.mark.parametrize(
    "rest",
    [
        "SamplesPerSec=1166.1363801104596",
        "SamplesPerSec=83.48609168106144, MemAllocated=0.26GB, MaxMemAllocated=9.02GB",
        "RunningAvgSamplesPerSec=83.4, CurrSamplesPerSec=83.9, MemAllocated=0.26GB, MaxMemAllocated=9.02GB",
    ],
)
def test_the_line_is_known_in_all_its_forms(tmp_path, rest):
    path = written(tmp_path, [timer(step, 100 * step, rest) for step in range(3, 13)])
    assert measure(record(path))["rate"] == pytest.approx(160)


def test_a_run_that_ended_at_the_first_boundary_is_incomplete(tmp_path):
    """The fp32 runs of 2020 on 4 nodes stopped at micro-step 32; a mean over fewer steps is none."""
    path = written(tmp_path, [timer(step, 100 * step, "SamplesPerSec=4900.1") for step in range(3, 32)])
    read = record(path, bsz=32, nodes=4, gpus=8, devices=32, warmup=20, window=100)
    assert read["status"] == "incomplete"


def test_every_locked_package_has_a_hash():
    for name in ("deepspeed-0.19.8-needs.txt", "deepspeed-0.19.8.txt"):
        text = (ROLE / "files" / name).read_text().replace("\\\n", " ")
        pins = [line for line in text.splitlines() if line and not line.startswith(("#", "--no-binary "))]
        assert pins and [pin for pin in pins if "--hash=sha256:" not in pin] == []


def ours(name, **other):
    values = {"bsz": 4, "gpus": 1, "devices": 1, "global_batch": 4, "warmup": 20, "window": 100}
    return record(LOGS / name, **{**values, **other})


TWO = {"nodes": 2, "devices": 2, "global_batch": 8}


def test_our_own_log_gives_the_rate_of_its_stamps():
    read = ours("current_2n.log", **TWO)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(51.07, abs=0.01)


@pytest.mark.parametrize("wrong", [{"devices": 4}, {"nodes": 4}, {"dtype": "bf16"}, {"accumulation": 2}])
def test_a_log_that_contradicts_its_case_is_refused(wrong):
    read = ours("current_2n.log", **{**TWO, **wrong})
    assert read["status"] == "refused"
    assert next(iter(wrong)) in read["reason"]


def test_a_run_that_should_be_two_nodes_and_was_one_is_refused():
    read = ours("current_1n.log", **TWO)
    assert (read["status"], "shows devices 1, the case has devices 2" in read["reason"]) == ("refused", True)


def test_the_run_script_is_sh_and_hides_the_variables_of_mpirun_from_deepspeed():
    text = (ROLE / "templates/run.sh.j2").read_text()
    assert text.startswith("#!/bin/sh\n") and "OMPI" in text and "2>&1" in text


def test_the_published_table_is_known_by_its_name():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    assert any(row.startswith(f"{WORKLOAD.dlperf.frameworks[0]},bert-base,") for row in rows)
