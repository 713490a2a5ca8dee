# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Operations per second of a case as a share of its device's peak, and the reason where that is not known."""

from pathlib import Path

import measured
import printed
import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge import mfu
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.report import csv_sheet, usage
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import Campaign, load_campaign
from ansible.module_utils.scalebook.workload import Workload
from ansible.module_utils.scalebook.workloads import load_workloads
from report_records import case
from row_runs import run

ROOT = Path(__file__).resolve().parents[3]
PEAKS = mfu.read_peaks((ROOT / "data/gpus.csv").read_text().splitlines())
H200 = [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H200"}]}]
V100 = [{"nodes": ["NODE1"], "gpus": [{"name": "Tesla V100-SXM2-16GB"}]}]
WORKLOADS = {
    "tf2_bert": Workload(flops=flops.Flops("2e9 * words", "", {"base": {"words": 5}}, "tf32")),
}


def made(hardware=H200, rate=1000.0, unit="samples", **fields):
    of = case(**{"dtype": "fp16", **fields})
    runs = [run(of, repeat, rate, unit=unit) for repeat in (1, 2, 3)]
    campaign = Campaign("night", cases={of["name"]: of}, runs=runs, hardware=hardware)
    return build_results(campaign, WORKLOADS, peaks=PEAKS)


def entry(*args, **fields):
    return made(*args, **fields)["mfu"][0]


def test_the_rate_of_one_device_times_the_operations_is_divided_by_its_peak():
    found = entry(gpus=2)
    assert (found["flop"], found["tflops"], found["peak_tflops"]) == (10e9, 5.0, 989.4)
    assert found["mfu"] == pytest.approx(5.0 / 989.4)
    assert (sentence(found["peak_of"]), found["reason"]) == ("NVIDIA H200, dense fp16", None)


@pytest.mark.parametrize(("rate", "flagged"), [(98_000.0, False), (99_000.0, True)])
def test_a_rate_above_the_peak_of_the_device_is_flagged(rate, flagged):
    row = made(rate=rate)["rows"][0]
    assert ("above-peak" in {flag["code"] for flag in row["flags"]}) is flagged


def codes_with(pipe, **fields):
    """Return the flags of a case with an MFU of 1.01 % whose tensor pipe was active for `pipe` %."""
    of = case(**{"dtype": "fp16", **fields})
    used = {"utilisation": {"pipe_tensor_active": [pipe]}}
    runs = [{**run(of, repeat, 1000.0), **used} for repeat in (1, 2, 3)]
    campaign = Campaign("night", cases={of["name"]: of}, runs=runs, hardware=H200)
    (row,) = build_results(campaign, WORKLOADS, peaks=PEAKS)["rows"]
    return {flag["code"] for flag in row["flags"]}


@pytest.mark.parametrize(("pipe", "flagged"), [(0.5, True), (0.51, False), (3.0, False)])
def test_a_case_that_hardly_used_the_tensor_cores_of_its_peak_is_flagged(pipe, flagged):
    assert ("not-on-tensor-cores" in codes_with(pipe)) is flagged


def test_the_declared_operations_agree_with_the_counter_of_tensor_cores():
    """The counter does not know them: it is the time that tensor cores of H100 and H200 were active."""
    ratios = []
    for name in measured.campaigns("h?00*"):
        document = measured.results(name)
        active = {
            each["case"]: each["mean"] / 100
            for each in document.get("utilisation") or []
            if each["quantity"] == "pipe_tensor_active"
        }
        others = {
            row["case"]
            for row in document["rows"]
            if "not-on-tensor-cores" in {flag["code"] for flag in row["flags"]}
            # Computes again what MFU does not count.
            or row["settings"].get("checkpointing") in (True, "selective", "full")
            # The counter is read once a second: of a shorter window it tells what came before, too.
            or min((each["seconds"] for each in row["runs"]), default=0) < 1
        }
        ratios += [
            active[each["case"]] / each["mfu"]
            for each in document.get("mfu") or []
            if each["mfu"] and each["case"] in active.keys() - others
        ]
    assert len(ratios) >= 90
    assert 0.85 < min(ratios) < max(ratios) < 1.35


def test_fp32_without_tf32_needs_no_tensor_cores():
    slow = {"dtype": "fp32", "settings": {"tf32": False}}
    assert "not-on-tensor-cores" not in codes_with(0.0, **slow)


def test_tensorflow_2_15_does_not_use_the_tensor_cores_of_an_h200_for_fp32():
    campaign = load_campaign(ROOT / "docs/results/h200-2026-11-26/tf2_bert_2.15")
    rows = build_results(campaign, load_workloads([str(ROOT / "roles")]), peaks=PEAKS)["rows"]
    flagged = {
        (row["dtype"], row["xla"]): sentence(flag["message"])
        for row in rows
        for flag in row["flags"]
        if flag["code"] == "not-on-tensor-cores"
    }
    assert flagged == {
        ("fp32", False): "tensor pipe active 0.27 %, MFU 4.5 %: most products did not run on tensor cores, "
        "whose peak the MFU takes"
    }


def test_fp32_with_tf32_is_compared_with_the_peak_of_tensor_cores():
    assert entry(dtype="fp32", settings={"tf32": True})["peak_tflops"] == 494.7
    assert entry(dtype="fp32", settings={"tf32": False})["peak_tflops"] == 66.9


def test_fp8_is_compared_with_the_peak_of_fp8():
    found = entry(dtype="fp8")
    assert (found["peak_tflops"], sentence(found["peak_of"])) == (1978.9, "NVIDIA H200, dense fp8")


def test_fp32_on_a_gpu_without_tf32_is_compared_with_its_peak_of_fp32():
    assert entry(V100, dtype="fp32", settings={"tf32": True})["peak_tflops"] == 15.7


@pytest.mark.parametrize(
    ("hardware", "fields", "reason"),
    [
        (H200, {"device": "cpu"}, "there is no peak of a CPU to compare with"),
        ([], {}, "no record names the GPUs"),
        (H200 + V100, {}, "the nodes have several kinds of GPU (NVIDIA H200, Tesla V100-SXM2-16GB)"),
        ([{"nodes": ["a"], "gpus": [{"name": "Other"}]}], {}, "data/gpus.csv has no Other"),
        (V100, {"dtype": "bf16"}, "data/gpus.csv has no peak of Tesla V100-SXM2-16GB in bf16"),
    ],
)
def test_without_a_peak_there_is_no_share_but_the_reason(hardware, fields, reason):
    found = entry(hardware, **fields)
    assert (found["mfu"], sentence(found["reason"]), found["tflops"]) == (None, reason, 10.0)


def test_without_the_operations_there_is_neither():
    found = entry(model="large")
    assert (found["flop"], found["tflops"], found["mfu"]) == (None, None, None)
    assert found["reason"] == message("mfu.unknown-model", model="large")


def test_a_case_without_a_rate_or_a_workload_without_a_formula_has_no_entry():
    assert made(rate=None)["mfu"] == []
    assert made(workload="scripted")["mfu"] == []


def test_the_page_names_the_unit_of_the_workload():
    (shown,) = printed.rows(usage.flops(View(made(unit="images"))))
    assert (shown["unit"], shown["flop"], shown["tflops"], shown["mfu"]) == ("images", "10", "10", "1.0 %")


def test_the_sheet_has_the_share():
    (row,) = csv_sheet.sheet(made()).rows
    assert (row["flop_per_sample"], row["tflops_per_device"]) == (10e9, 10.0)
    assert row["mfu"] == pytest.approx(10 / 989.4)


def test_tf2_bert_on_an_h200_has_the_share_of_its_committed_campaign():
    campaign = load_campaign(ROOT / "docs/results/h200-2026-11-23/tf2_plain")
    made_of = build_results(campaign, load_workloads([str(ROOT / "roles")]), peaks=PEAKS)
    row = next(row for row in made_of["rows"] if row["median"] == 529.7553655941108)
    found = next(each for each in made_of["mfu"] if each["case"] == row["case"])
    assert (row["dtype"], sentence(found["peak_of"])) == ("fp32", "NVIDIA H200, dense tf32")
    assert found["flop"] == 69_928_989_696
    assert found["tflops"] == pytest.approx(37.0453, abs=1e-4)
    assert found["mfu"] == pytest.approx(0.07488, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "bf16", "memory_gb"),
    [
        ("NVIDIA B200", 2250.0, 180),
        ("NVIDIA GB200", 2500.0, 186),
        ("NVIDIA B300 SXM6 AC", 2250.0, 270),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 500.0, 96),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 503.8, 96),
    ],
)
def test_a_gpu_of_blackwell_has_its_own_peaks_by_the_name_of_its_driver(name, bf16, memory_gb):
    peaks = mfu.of_gpu(PEAKS, name)
    assert peaks is not None and (peaks["bf16"], peaks["memory_gb"]) == (bf16, memory_gb)


def test_another_edition_of_a_gpu_takes_no_peaks_of_its_relatives():
    assert mfu.of_gpu(PEAKS, "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition") is None
