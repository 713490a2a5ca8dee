# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The report of a search for the largest batch: a row of its own, and no failure of the campaign."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.contracts import BatchSearch, LargestBatch
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import in_words, sentence
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import render, scaling, terminal
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import open_source
from ansible.module_utils.scalebook.workload import Workload
from report_records import campaign, case, record

ROOT = Path(__file__).resolve().parents[3]
WORKLOADS = {"torch_bert": Workload(compiler="torch.compile")}


def search(last="oom", **other):
    trials = [(32, "ok"), (64, "oom"), (48, "ok"), (56, last)]
    return {
        "workload": "torch_bert",
        "model": "base",
        "device": "gpu",
        "dtype": "fp16",
        "xla": True,
        "accumulation": 1,
        "settings": {},
        "points": ["1n1g", "1n2g"],
        "first": 32,
        "limit": 16,
        "trials": [
            {"case": f"b{batch}", "label": "1n1g", "bsz": batch, "status": status, "reason": "NODE1 died"}
            for batch, status in trials
        ],
        "next": None,
        "largest": 48,
        "failed": 56,
        "failed_at": "1n1g",
        "reason": None,
        **other,
    }


def build(top, *searches):
    campaign(top, [record(case(bsz=48), repeat) for repeat in (1, 2, 3)], searches=list(searches))
    return build_results(load_campaign(top), WORKLOADS)


def test_a_search_is_a_row_with_its_answer_what_failed_and_its_runs(tmp_path):
    (row,) = build(tmp_path, search())["largest_batches"]
    assert in_words(row) == {
        "title": "torch_bert base fp16 torch.compile",
        "points": ["1n1g", "1n2g"],
        "largest": 48,
        "failed": 56,
        "failed_at": "1n1g",
        "runs": 4,
        "reason": None,
    }
    assert set(row) == set(LargestBatch.__annotations__)
    assert set(search()) == set(BatchSearch.__annotations__)


def test_the_row_stands_on_the_page_and_in_the_terminal(tmp_path):
    made = build(tmp_path, search(reason="the limit was reached"))
    (row,) = scaling.searches(made["largest_batches"], ENGLISH)
    assert (row["largest"], row["failed"], row["searches"]) == ("48", "56 (1n1g)", "4")
    assert (
        "torch_bert base fp16 torch.compile, 1n1g, 1n2g: 48 per device "
        "(out of memory with: 56 (1n1g); search runs: 4); the limit was reached"
    ) in terminal.display(made, "/r")


def test_a_run_that_is_out_of_memory_is_no_failure(tmp_path):
    assert build(tmp_path, search())["uncounted"] == []


@pytest.mark.parametrize("status", ["failed", "hung", "refused", "skipped"])
def test_a_run_that_ended_a_search_does_not_count(tmp_path, status):
    made = build(tmp_path, search(status, largest=None))
    (entry,) = made["uncounted"]
    assert (entry["status"], sentence(entry["reason"])) == (
        status,
        "search for the largest batch: NODE1 died",
    )
    assert f"1n1g repeat 1: {status}, search for the largest batch: NODE1 died" in terminal.display(
        made, "/r"
    )


def test_a_campaign_without_a_search_has_no_row(tmp_path):
    assert build(tmp_path)["largest_batches"] == []


def test_a_record_of_a_search_that_was_changed_is_found(tmp_path):
    build(tmp_path, search())
    place = tmp_path / "search/b48/1"
    place.mkdir(parents=True)
    (place / "result.json").write_text("{}")
    source = open_source(tmp_path)
    made = load_campaign(tmp_path)
    first = manifest.extend(None, manifest.files_of(source), made.statuses)
    (place / "result.json").write_text('{"status": "ok"}')
    second = manifest.extend(first.manifest, manifest.files_of(source), made.statuses)
    assert [problem["file"] for problem in second.wrong] == ["search/b48/1/result.json"]


@pytest.mark.parametrize(("language", "heading"), [("en", "Largest batch"), ("zh", "最大 batch")])
def test_the_table_is_in_both_pages_and_both_languages(tmp_path, language, heading):
    made = build(tmp_path, search())
    texts = render.files(made, str(ROOT / "templates"), language=language)
    assert f"## {heading}\n" in texts["report.md"]
    assert '<h2 id="largest-batch">' in texts["report.html"]
    assert "| 48 | 56 (1n1g) | 4 |" in texts["report.md"].replace("\\", "")
