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
from ansible.module_utils.scalebook.report import environment, first_screen, method, scaling, usage
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import open_source
from ansible.module_utils.scalebook.workloads import load_workloads

RESULTS = Path(__file__).parents[3] / "docs" / "results"


def view_of(name, language="en"):
    """Return the view of a campaign whose workloads declare their operations."""
    workloads = load_workloads([str(RESULTS.parents[1] / "roles")])
    with (RESULTS.parents[1] / "data/gpus.csv").open(newline="") as lines:
        peaks = mfu.read_peaks(lines)
    return View(
        build_results(load_campaign(RESULTS / name), workloads, peaks=peaks),
        Wording(language, for_people=True),
    )


def best(name):
    return [each for each in first_screen.blocks(view_of(name)) if getattr(each, "look", "") == "best"]


def trust(name):
    [paragraph] = [
        each for each in first_screen.blocks(view_of(name)) if getattr(each, "look", "").startswith("trust")
    ]
    return paragraph


def test_the_title_says_in_words_what_was_measured_on_what():
    expected = "PyTorch GPT-2 345M, bf16, torch.compile; 4 × NVIDIA H200"
    assert first_screen.title(view_of("h200x4-2026-11-26/torch_gpt2")) == expected


def test_the_title_names_a_gpu_once_that_hosts_have_different_numbers_of():
    title = first_screen.title(view_of("h100x2-2026-11-25/tensorflow"))
    assert title.endswith("XLA; 1 and 2 × NVIDIA H100 80GB HBM3")


def test_simulated_nodes_stand_at_the_host_that_has_them():
    lines = [each.text for each in first_screen.blocks(view_of("h100x2-2026-11-25/tensorflow"))[:2]]
    assert ["simulated" in line for line in lines] == [True, False]


def test_the_processor_of_a_chinese_title_is_described_in_chinese():
    title = first_screen.title(view_of("containers-2026-11-25/resnet50", "zh"))
    assert title.endswith("AMD EPYC，1 路，2 核，2 线程")


def test_the_title_of_several_workloads_names_their_families():
    title = first_screen.title(view_of("h100x2-2026-11-25/torch"))
    assert title.startswith(
        "BERT, GPT-2 and ResNet-50 (5 workloads), bf16, fp16 and fp32, torch.compile; 2 × "
    )


def test_the_best_row_is_one_line():
    [line] = best("h200x4-2026-11-26/torch_gpt2")
    assert line.lead == "196.4 sequences/s per GPU"
    assert line.text == (
        "785.7 sequences/s on 4 GPUs, 97.5 % of linear scaling, "
        "MFU 49.3 % of 989.4 TFLOP/s, NVIDIA H200, dense bf16, 5 runs, spread 0.6 %"
    )
    assert line.parts[1] == ("b64 bucket_mb=2000 1n4g", "row", "#row-10")


def test_without_an_mfu_in_the_records_there_is_none():
    assert "MFU" not in best("h200x4-2026-11-21/hf_scaling")[0].text


def test_one_device_has_no_efficiency():
    assert "linear" not in best("h200-2026-11-21/dtypes")[0].text


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
    view = view_of(name)
    row = printed.rows(usage.flops(view), "html", view.wording)[-1]
    assert f"MFU {row['mfu']} of {peak}" in best(name)[0].text
    assert printed.rows([scaling.results(view)], "html", view.wording)[-1]["mfu"] == row["mfu"]
    assert "of mfu" not in [key for row in printed.rows(usage.reported(view)) for key in row]


def test_hardware_is_said_once_and_a_case_how_many_gpus_it_could_see():
    view = view_of("h200x2-2026-11-25/torch_resnet50")
    [first, *_] = [each.text for each in first_screen.blocks(view) if getattr(each, "look", "") == "lead"]
    assert ": 2 × NVIDIA H200 (140 GiB), PCIe 5 x16, linked by NV18; " in first
    [line] = environment.machines(view.document["hardware"], view.wording, view.document["rows"])
    assert line.endswith("; 1n1g had 1 of them visible")


def test_the_settings_that_all_groups_share_are_a_list_of_their_own():
    named = dict(method.settings(view_of("h200x4-2026-11-21/hf_scaling").document["groups"], Wording()))
    assert (named["accumulation"], named["samples of an epoch"], named["length"]) == ("4", "2048", "512")


def test_an_archive_keeps_everything_in_one_file():
    source = open_source(RESULTS / "h200x4-2026-11-21/scaling")
    assert source.kept_paths(source.top / "report") == ["../../runs.tar.xz"]


def test_the_files_of_a_directory_are_named_as_seen_from_the_report(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "plan.json").touch()
    source = open_source(tmp_path)
    assert source.kept_paths(tmp_path / "elsewhere" / "report") == ["../../plan.json", "../../runs"]


def test_trust_is_a_word_with_its_reasons_and_links_to_what_they_mean():
    paragraph = trust("h200x4-2026-11-26/torch_gpt2")
    assert (paragraph.look, paragraph.lead) == ("trust care", "Trust: use with care.")
    assert paragraph.parts[0] == ("provisional: 6 of 13 rows", "care", "#flag-provisional")


def test_unknown_hardware_stands_where_the_trust_is():
    assert "the hardware is not recorded" in [each[0] for each in trust("h200-2026-11-21/dtypes").parts]


def test_a_sound_report_says_so():
    assert trust("h200x4-2026-11-26/torch_resnet50").lead == "Trust: sound."


def test_every_conclusion_links_to_its_row():
    view = view_of("h200x4-2026-11-26/torch_gpt2")
    [items] = [each for each in first_screen.blocks(view) if getattr(each, "look", "") == "conclusions"]
    rows = {row["id"] for row in scaling.results(view).rows}
    assert {item.see.href.removeprefix("#") for item in items.texts} <= rows


def test_the_first_run_is_dated_for_people():
    assert Wording(for_people=True).moment("2026-11-21T08:29:33Z") == "2026-11-21 08:29 UTC"
    assert Wording().moment("2026-11-21T08:29:33Z") == "2026-11-21T08:29:33Z"
