# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sequences of a known length are shown in tokens too: the rate, and the energy of one."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import csv_sheet, render, terminal
from ansible.module_utils.scalebook.store.load import Campaign
from ansible.module_utils.scalebook.workload import Workload
from report_records import case
from row_runs import run

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"
PEAKS = {"NVIDIA H200": {"bf16": 989.4, "fp8": 1978.9}}
HARDWARE = [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H200"}]}]
DECLARED = {"size": "seq_length", "flops": flops.Flops("1e12", "", {"base": {}}, False)}


def made(unit="sequences", dtypes=("bf16", "fp8"), **declared):
    """Two GPUs of 500 W each train 10 sequences of 2,048 tokens a second, in each dtype."""
    cases = [case(1, 2, dtype=dtype, settings={"seq_length": 2048}) for dtype in dtypes]
    used = {"utilisation": {"gpu_power": [500.0, 500.0]}}
    runs = [{**run(of, repeat, 10.0, unit=unit), **used} for of in cases for repeat in (1, 2, 3)]
    campaign = Campaign("night", cases={of["name"]: of for of in cases}, runs=runs, hardware=HARDWARE)
    return build_results(campaign, {"tf2_bert": Workload(**DECLARED, **declared)}, peaks=PEAKS)


def test_the_rate_in_tokens_is_that_in_sequences_times_their_length():
    assert [row["tokens_per_second"] for row in made()["rows"]] == [20480.0, 20480.0]


def test_samples_are_no_sequences():
    assert [row["tokens_per_second"] for row in made("samples")["rows"]] == [None, None]


def test_the_terminal_and_the_sheet_have_the_rate_of_all_devices():
    assert "tokens/s" in terminal.table(made())
    assert [row["tokens_per_second"] for row in csv_sheet.sheet(made()).rows] == [20480.0, 20480.0]


def test_a_token_takes_the_energy_of_its_sequence_divided_by_their_number():
    energy = {line["quantity"]: line["mean"] for line in made()["utilisation"]}
    assert energy["gpu_energy"] == pytest.approx(100.0)
    assert energy["gpu_energy_per_token"] == pytest.approx(100.0 / 2048)


def test_the_report_has_the_tokens_of_a_device_and_its_tflops_where_the_peaks_differ():
    report = render.files(made(), str(TEMPLATES))["report.md"]
    assert "tokens/s per GPU" in report
    assert "989.4 TFLOP/s, NVIDIA H200, dense bf16" in report
    assert "1978.9 TFLOP/s, NVIDIA H200, dense fp8" in report
    assert "MFU | TFLOP/s per device | spread" in report


def test_with_one_peak_the_table_of_results_needs_no_tflops():
    report = render.files(made(dtypes=["bf16"]), str(TEMPLATES))["report.md"]
    assert "MFU | spread" in report
