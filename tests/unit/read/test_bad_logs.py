# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is done to logs in the wild, row by row: each comes to the right number or is named with its reason.

The first eleven are what DLPerf's own extractor crashes on, counts wrong or passes in silence.
"""

import gzip
from datetime import datetime

import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.read import import_dlperf
from ansible.module_utils.scalebook.read.import_dlperf import TreeError, import_tree
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.throughput import measure
from dlperf_logs import WORKLOAD, log_of_speed, log_text, step_times
from dlperf_trees import place, read

GOOD = log_of_speed(128.0)
CUT = log_text(step_times(0.5, count=60), last=120)
TWICE = "".join(f"{line}\n" * 2 for line in GOOD.splitlines())
NIGHT = log_of_speed(128.0, start=datetime(2020, 8, 26, 23, 59, 30))
BACK = GOOD.replace("I0826 18:07:3", "I0826 17:07:3")
MIXED = GOOD.replace("Train Step: 70/120", "Train Step: 69/120")

# what: (folder, content, status, words of the reason or the note)
ROWS = {
    "a good log": ("1n1g", GOOD, "ok", ""),
    "16 nodes": ("16n8g", log_of_speed(128.0, 16, 8), "ok", ""),
    "125 nodes": ("125n8g", log_of_speed(128.0, 125, 8), "ok", ""),
    "it stops at step 60": ("1n1g", CUT, "incomplete", "stops at step 60, step 120 is required"),
    "over midnight": ("1n1g", NIGHT, "ok", ""),
    "two bytes that are not UTF-8": ("1n1g", b"\xff\xfe" + GOOD.encode(), "ok", "bytes that are not UTF-8"),
    "every line twice": ("1n1g", TWICE, "refused", "logged twice"),
    "empty": ("1n1g", b"", "incomplete", "is empty"),
    "NUL bytes": ("1n1g", GOOD.encode().replace(b"Train Step", b"\0Train\0 Step"), "ok", ""),
    "a line of 64 MB": ("1n1g", b"x" * (64 << 20) + b"\n" + GOOD.encode(), "ok", "line of more than 16 KiB"),
    "CRLF": ("1n1g", GOOD.replace("\n", "\r\n"), "ok", ""),
    "ANSI colours": ("1n1g", GOOD.replace("Train", "\x1b[1mTrain\x1b[0m"), "ok", ""),
    "gzip, cut off": ("1n1g", gzip.compress(GOOD.encode())[:-40], "incomplete", "shows no step"),
    "two ranks mixed": ("1n1g", MIXED, "refused", "step 69 is logged twice"),
    "a loss of NaN": ("1n1g", GOOD.replace("7.02980375289917", "nan"), "refused", "the loss is nan"),
    "a loss of infinity": ("1n1g", GOOD.replace("7.02980375289917", "inf"), "refused", "the loss is inf"),
    "time that goes back": ("1n1g", BACK, "refused", "the clock goes back"),
    "commas of another locale": ("1n1g", GOOD.replace(".", ","), "incomplete", "shows no step"),
}  # fmt: skip


def rows(out):
    """Return the rows of the report on what was imported to `out`."""
    return build_results(load_campaign(out))["rows"]


@pytest.fixture
def root(tmp_path):
    return tmp_path / "bz64"


@pytest.mark.parametrize("what", ROWS)
def test_a_log_gives_its_number_or_its_reason(root, what):
    folder, content, status, words = ROWS[what]
    place(root, f"{folder}/bert_b64_fp32_1.log", text=content)
    _, records = read(root)
    [record] = records.values()
    said = f"{record['reason'] or ''} {' '.join(record['notes'])}"
    assert (record["status"], words in said) == (status, True), said
    if status == "ok":
        assert measure(record)["rate"] == pytest.approx(128.0)


def test_logs_that_do_not_count_leave_the_median_to_the_others(root, tmp_path):
    place(root, "1n1g/bert_b64_fp32_1.log")
    place(root, "1n1g/bert_b64_fp32_2.log", "1n1g/bert_b64_fp32_3.log", text=CUT)
    read(root, tmp_path / "out")
    [row] = rows(tmp_path / "out")
    assert (row["median"], row["good"]) == (128.0, 1)


def test_without_a_baseline_there_is_no_speedup(root, tmp_path):
    place(root, "2n8g/bert_b64_fp32_1.log", text=log_of_speed(1237.0, 2, 8))
    read(root, tmp_path / "out")
    [row] = rows(tmp_path / "out")
    assert row["speedup"] is None


def test_a_speedup_above_the_number_of_devices_is_marked(root, tmp_path):
    place(root, "1n1g/bert_b64_fp32_1.log", text=log_of_speed(100.0))
    place(root, "1n8g/bert_b64_fp32_1.log", text=log_of_speed(889.0, 1, 8))
    read(root, tmp_path / "out")
    made = [flag["message"] for row in rows(tmp_path / "out") for flag in row["flags"]]
    (found,) = [each for each in made if each["code"] == "flag.superlinear"]
    assert found["values"]["speedup"] == pytest.approx(8.89, abs=0.01)


def test_a_link_out_of_the_tree_is_named_and_not_followed(root, tmp_path):
    place(root, "1n1g/bert_b64_fp32_1.log")
    place(tmp_path, "secret.log")
    (root / "1n1g/bert_b64_fp32_2.log").symlink_to(tmp_path / "secret.log")
    result, records = read(root)
    assert len(records) == 1
    assert [entry["reason"] for entry in result["unread"]] == ["is a link out of the tree"]


def test_more_files_than_a_campaign_can_have_are_refused_before_they_are_read(root, monkeypatch):
    monkeypatch.setattr(import_dlperf, "MOST_FILES", 50)
    place(root, *(f"1n1g/bert_b64_fp32_{repeat}.log" for repeat in range(60)), text=b"")
    with pytest.raises(TreeError, match="1n1g: more than 50 files up to here"):
        import_tree(root, root.parent / "out", "tf2_bert", WORKLOAD)
