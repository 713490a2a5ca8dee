# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The first screen: what was measured, how fast, how well, how sure, how to repeat it."""

from __future__ import annotations

from pathlib import Path

import printed
import pytest
from ansible.module_utils.scalebook.judge import mfu
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import arithmetic, first_screen
from ansible.module_utils.scalebook.report.head import head
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store import links
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import open_source
from ansible.module_utils.scalebook.workload import Workload
from ansible.module_utils.scalebook.workloads import load_workloads

RESULTS = Path(__file__).parents[3] / "docs" / "results"
TORCH = {"torch_bert": Workload(compiler="torch.compile", title="PyTorch BERT pretraining")}


def cards(name):
    made = build_results(load_campaign(RESULTS / name), TORCH)
    return head(View(made, Wording(for_people=True)))["cards"]


def test_four_gpus_are_summed_up_as_they_were_measured():
    (card,) = cards("h200x4-2026-11-21/scaling")
    assert card["heading"] == "torch_bert · base · bf16 · torch.compile · batch 512 per GPU"
    said = {key: card[key] for key in ("rate", "unit", "device", "total", "devices", "label")}
    assert said == {
        "rate": "5,774",
        "unit": "samples",
        "device": "GPU",
        "total": "23,098",
        "devices": "4 GPUs",
        "label": "1n4g",
    }
    assert (card["efficiency"], card["steps"], card["spread"]) == ("94.2 %", "1 → 4 GPUs", "0.04 %")
    assert (card["runs"], card["flags"]) == ("9/9", "")


def test_the_mfu_is_the_one_that_the_workload_reports():
    (card,) = cards("h200x2-2026-11-22/plain")
    assert card["mfu"].endswith(" %")
    assert 10 < float(card["mfu"].split()[0]) < 70


def test_without_an_mfu_in_the_records_there_is_none():
    assert cards("h200x4-2026-11-21/scaling")[0]["mfu"] == ""


def flops_view(name):
    """Return the view of a campaign whose workloads declare their operations."""
    workloads = load_workloads([str(RESULTS.parents[1] / "roles")])
    with (RESULTS.parents[1] / "data/gpus.csv").open(newline="") as lines:
        peaks = mfu.read_peaks(lines)
    return View(
        build_results(load_campaign(RESULTS / name), workloads, peaks=peaks), Wording(for_people=True)
    )


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("h200x4-2026-11-26/torch_resnet50", "989.4 TFLOP/s, NVIDIA H200, dense bf16"),
        (
            "h200x2-2026-11-22/deepspeed_2020_fp32",
            "66.9 TFLOP/s, NVIDIA H200, dense fp32, as its runs report",
        ),
    ],
)
def test_the_page_has_one_mfu_with_its_peak(name, peak):
    view = flops_view(name)
    card, row = head(view)["cards"][0], printed.rows(arithmetic.flops(view), "html", view.wording)[-1]
    assert (card["mfu"], card["peak"]) == (row["mfu"], peak)
    assert "of mfu" not in [key for row in printed.rows(arithmetic.reported(view)) for key in row]


def test_a_case_says_how_many_gpus_it_could_see():
    lines = head(View(build_results(load_campaign(RESULTS / "h200x2-2026-11-25/torch_resnet50"))))["hardware"]
    assert len(lines) == 1
    assert lines[0].startswith("each node: 2 × NVIDIA H200 (140 GiB), PCIe 5 x16, linked by NV18; ")
    assert lines[0].endswith("; 1n1g had 1 of them visible")


def test_one_device_has_no_efficiency():
    assert [card["efficiency"] for card in cards("h200-2026-11-21/dtypes")] == [""] * 3


def test_groups_that_differ_in_one_setting_have_different_headings():
    headings = [card["heading"] for card in cards("h200x4-2026-11-26/torch_gpt2")]
    start = "torch_gpt2 · 345M · bf16 · compiled · batch"
    assert headings == [
        f"{start} {batch} per GPU · bucket_mb={mb}" for batch in (32, 64) for mb in (2000, 25)
    ]


def test_the_heading_leaves_the_settings_to_a_list():
    made = build_results(load_campaign(RESULTS / "h200x4-2026-11-21/hf_scaling"))
    named = dict(first_screen.settings(made["groups"][0], Wording()))
    assert (named["accumulation"], named["samples of an epoch"], named["length"]) == ("4", "2048", "512")


def test_the_runs_of_an_archive_have_no_links_and_the_archive_has_one():
    source = open_source(RESULTS / "h200x4-2026-11-21/scaling")
    linked = links.of_campaign(source, source.covered(), source.top / "report")
    assert linked.runs == {}
    assert linked.campaign == [("runs.tar.xz", "../runs.tar.xz")]


def test_a_run_of_many_nodes_has_the_log_of_the_first_and_the_directory(tmp_path):
    (tmp_path / "runs").mkdir()
    files = [f"runs/a b/1/{name}" for name in ("NODE10.log", "NODE2.log", "result.json", "exit.json")]
    linked = links.of_campaign(open_source(tmp_path), files, tmp_path / "elsewhere" / "report")
    top = "../../runs/a%20b/1"
    assert linked.runs[("a b", "1")] == [
        ("log", f"{top}/NODE2.log"),
        ("record", f"{top}/result.json"),
        ("all logs", f"{top}/"),
    ]


def test_the_flags_are_counted_by_their_kind():
    made = build_results(load_campaign(RESULTS / "h200x4-2026-11-26/tf2_bert"))
    assert head(View(made))["flagged"] == [
        {"code": "scattered", "id": "g7", "text": "1 × scattered"},
        {"code": "warm-up-not-over", "id": "g7", "text": "1 × warm-up not over"},
        {"code": "runs", "id": "g7", "text": "1 × runs excluded"},
        {"code": "provisional", "id": "g7", "text": "2 × provisional"},
        {"code": "power-limited", "id": "g10", "text": "1 × power limited"},
    ]


def test_the_first_run_is_dated_for_people():
    assert Wording(for_people=True).moment("2026-11-21T08:29:33Z") == "2026-11-21 08:29 UTC"
    assert Wording().moment("2026-11-21T08:29:33Z") == "2026-11-21T08:29:33Z"
