# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A DLPerf tree: every log its number or its reason, and none at another's cost."""

import json
import os
import time

import pytest
from ansible.module_utils.scalebook import contracts
from ansible.module_utils.scalebook.read import import_dlperf
from ansible.module_utils.scalebook.read.import_dlperf import TreeError, import_tree
from ansible.module_utils.scalebook.throughput import measure
from dlperf_figures import PUBLISHED, SPEEDS
from dlperf_logs import WORKLOAD, log_of_speed, log_text, step_times, write_tree
from dlperf_trees import place, read


@pytest.fixture
def root(tmp_path):
    return tmp_path / "bz64"


def test_dlperfs_thirty_logs_give_its_printed_speeds(tmp_path):
    result, records = read(write_tree(tmp_path))
    assert result["counts"] == {"ok": 30} and result["refused"] == result["unread"] == []
    speeds = {}
    for record in records.values():
        assert record["notes"] == []
        speeds.setdefault(record["case"]["label"], {})[record["repeat"]] = round(measure(record)["rate"], 2)
    assert {label: [rates[i] for i in range(1, 6)] for label, rates in speeds.items()} == SPEEDS
    medians = {label: sorted(rates.values())[2] for label, rates in speeds.items()}
    assert medians == {label: entry["median_speed"] for label, entry in PUBLISHED.items()}


def test_the_case_is_in_the_names(root):
    place(root, "4n8g/bert_base_v1.5_b96_fp16_3.log", text=log_of_speed(4168.79, 4, 8, 96))
    _, records = read(root, overrides={"xla": "true", "accumulation": 2})
    record = records["bz64/4n8g/bert_base_v1.5_b96_fp16_3.log"]
    expected = {
        "workload": "tf2_bert",
        "model": "bert_base_v1.5",
        "dtype": "fp16",
        "xla": True,
        "bsz": 96,
        "nodes": 4,
        "gpus": 8,
        "devices": 32,
        "accumulation": 2,
        "device": None,
        "label": "4n8g",
        "warmup": 20,
        "window": 100,
    }
    assert {key: record["case"][key] for key in expected} == expected
    assert record["repeat"] == 3 and record["job"] is None


def test_the_plan_lists_what_was_found(tmp_path):
    logs = write_tree(tmp_path)
    place(logs, "1n1g/notes.txt")
    out = tmp_path / "out"
    read(logs, out)
    plan = json.loads((out / "plan.json").read_text())
    assert (plan["campaign"], plan["repeats"], len(plan["cases"]), len(plan["runs"])) == ("bz64", 5, 6, 30)
    assert [case["label"] for case in plan["cases"]] == list(SPEEDS)
    assert plan["unread"] == [{"path": "bz64/1n1g/notes.txt", "reason": contracts.message("import.no-log")}]


@pytest.mark.parametrize(("label", "devices"), [("16n8g", 128), ("125n8g", 1000), ("1n16g", 16)])
def test_any_number_of_nodes_and_gpus_is_read(root, label, devices):
    nodes, gpus = map(int, label[:-1].split("n"))
    place(root, f"{label}/bert_b64_fp32_1.log", text=log_of_speed(128.0 * devices, nodes, gpus))
    _, records = read(root)
    record = records[f"bz64/{label}/bert_b64_fp32_1.log"]
    assert (record["status"], record["case"]["devices"]) == ("ok", devices)
    assert measure(record)["rate"] == pytest.approx(128.0 * devices)


def test_a_trailing_slash_changes_nothing(tmp_path):
    logs = write_tree(tmp_path)
    import_tree(f"{logs}/", tmp_path / "a", "tf2_bert", WORKLOAD)
    import_tree(f"{logs}", tmp_path / "b", "tf2_bert", WORKLOAD)
    assert (tmp_path / "a/plan.json").read_bytes() == (tmp_path / "b/plan.json").read_bytes()


BAD = {
    "empty": (b"", "incomplete", "is empty, step 120 is required"),
    "cut at step 60": (
        log_text(step_times(0.5, count=60), last=120),
        "incomplete",
        "stops at step 60, step 120 is required",
    ),
    "every line twice": (
        "".join(line * 2 for line in log_of_speed(128.0).splitlines(keepends=True)),
        "refused",
        "is not plausible: step 1 is logged twice: two ranks or two runs in one file",
    ),
    "of another case": (
        log_of_speed(128.0, 2, 8),
        "refused",
        "shows devices 16, the case has devices 1",
    ),
    "NaN": (
        log_of_speed(128.0).replace("7.02980375289917", "nan"),
        "refused",
        "is not plausible: the loss is nan at step 1",
    ),
    "binary": (bytes(range(256)) * 4000, "incomplete", "shows no step, step 120 is required"),
}


@pytest.mark.parametrize("what", BAD)
def test_one_bad_log_never_costs_the_others_their_numbers(root, what):
    content, status, reason = BAD[what]
    place(root, *(f"1n1g/bert_b64_fp32_{repeat}.log" for repeat in (1, 2, 3)))
    place(root, "1n1g/bert_b64_fp32_2.log", text=content)
    result, records = read(root)
    source = "bz64/1n1g/bert_b64_fp32_2.log"
    assert result["counts"] == {"ok": 2, status: 1}
    assert result["refused"] == [{"source": source, "status": status, "reason": f"{source} {reason}"}]
    good = [record for record in records.values() if record["status"] == "ok"]
    assert [measure(record)["rate"] for record in good] == [128.0, 128.0]


def test_two_bytes_that_are_no_text_cost_nothing(root):
    place(root, "1n1g/bert_b64_fp32_1.log", text=b"\xff\xfe" + log_of_speed(128.0).encode())
    _, records = read(root)
    record = records["bz64/1n1g/bert_b64_fp32_1.log"]
    assert measure(record)["rate"] == 128.0
    assert record["notes"] == ["bz64/1n1g/bert_b64_fp32_1.log: has bytes that are not UTF-8"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("1n1g/bert_b64_fp32_1.log.bz2", "is not named <model>_b<B>_<dtype>_<i>.log"),
        ("1n1g/bert_fp32_1.log", "is not named <model>_b<B>_<dtype>_<i>.log"),
        ("1n1g/bert_b0_fp32_1.log", "is not named <model>_b<B>_<dtype>_<i>.log"),
        ("1n1g/..x_b64_fp32_1.log", "is not named <model>_b<B>_<dtype>_<i>.log"),
        ("1n1g/a..b_b64_fp32_1.log", "is not named <model>_b<B>_<dtype>_<i>.log"),
        ("1n1g/$(id)_b64_fp32_1.log", "is not named <model>_b<B>_<dtype>_<i>.log"),
        ("1n1g/bert_b64_fp32_01.log", "is the same run as bz64/1n1g/bert_b64_fp32_01.log"),
        ("0n1g/bert_b64_fp32_1.log", "is not named <N>n<G>g"),
        ("9999999n1g/bert_b64_fp32_1.log", "is not named <N>n<G>g"),
        ("1n1g.old/bert_b64_fp32_1.log", "is not named <N>n<G>g"),
        ("README.md", "is not named <N>n<G>g"),
    ],
)
def test_what_is_no_log_of_a_case_is_listed(root, name, reason):
    place(root, "1n1g/bert_b64_fp32_1.log", name)
    result, _ = read(root)
    assert result["counts"] == {"ok": 1}
    assert [entry["reason"] for entry in result["unread"]] == [reason]


def test_a_directory_named_like_a_log_is_listed(root):
    place(root, "1n1g/bert_b64_fp32_1.log")
    (root / "1n1g/bert_b64_fp32_2.log").mkdir()
    os.mkfifo(root / "1n1g/bert_b64_fp32_3.log")
    result, _ = read(root)
    assert result["unread"] == [
        {"path": "bz64/1n1g/bert_b64_fp32_2.log", "reason": "is a directory"},
        {"path": "bz64/1n1g/bert_b64_fp32_3.log", "reason": "is not a regular file"},
    ]


def test_links_out_of_the_tree_are_refused(root, tmp_path):
    place(root, "1n1g/bert_b64_fp32_1.log")
    place(tmp_path, "secret/bert_b64_fp32_1.log")
    (root / "1n1g/bert_b64_fp32_2.log").symlink_to(tmp_path / "secret/bert_b64_fp32_1.log")
    (root / "1n1g/bert_b64_fp32_3.log").symlink_to("nowhere")
    (root / "1n2g").symlink_to(tmp_path / "secret")
    result, records = read(root)
    assert len(records) == 1
    assert {entry["path"]: entry["reason"] for entry in result["unread"]} == {
        "bz64/1n1g/bert_b64_fp32_2.log": "is a link out of the tree",
        "bz64/1n1g/bert_b64_fp32_3.log": "cannot be read: No such file or directory",
        "bz64/1n2g": "is a link out of the tree",
    }


def test_a_link_within_the_tree_is_not_a_second_run(root):
    place(root, "1n1g/bert_b64_fp32_1.log")
    (root / "1n1g/bert_b64_fp32_2.log").symlink_to("bert_b64_fp32_1.log")
    os.link(root / "1n1g/bert_b64_fp32_1.log", root / "1n1g/bert_b64_fp32_3.log")
    result, records = read(root)
    assert len(records) == 1
    assert {entry["reason"] for entry in result["unread"]} == {
        "is the same file as bz64/1n1g/bert_b64_fp32_1.log"
    }


def test_an_unreadable_log_is_refused_and_the_others_are_not(root, monkeypatch):
    place(root, "1n1g/bert_b64_fp32_1.log", "1n1g/bert_b64_fp32_2.log")
    real = os.open

    def denied(path, *args, **options):
        if str(path).endswith("fp32_2.log"):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", denied)
    result, _ = read(root)
    source = "bz64/1n1g/bert_b64_fp32_2.log"
    assert result["refused"] == [
        {"source": source, "status": "refused", "reason": f"{source} cannot be read: Permission denied"}
    ]


def test_an_error_nobody_thought_of_costs_one_log_only(root, monkeypatch):
    place(root, "1n1g/bert_b64_fp32_1.log", "1n1g/bert_b64_fp32_2.log")
    real = import_dlperf.log_record

    def broken(path, *args):
        if path.endswith("2.log"):
            raise RuntimeError("out of luck")
        return real(path, *args)

    monkeypatch.setattr(import_dlperf, "log_record", broken)
    result, _ = read(root)
    assert result["counts"] == {"ok": 1, "refused": 1}
    assert result["refused"][0]["reason"].endswith("cannot be read: RuntimeError: out of luck")


def test_small_logs_have_a_checksum_and_large_ones_on_demand(root, monkeypatch):
    monkeypatch.setattr(import_dlperf, "CHECKSUM_LIMIT", 30_000)
    place(root, "1n1g/bert_b64_fp32_1.log")
    place(root, "1n1g/bert_b64_fp32_2.log", text=log_of_speed(128.0) + "end\n" * 10_000)

    def sums(**options):
        return [record["nodes"][0]["sha256"] for record in read(root, **options)[1].values()]

    small, large = sums()
    assert len(small) == 64 and large is None
    assert sums(checksums=True)[0] == small and len(sums(checksums=True)[1]) == 64


def test_importing_again_changes_nothing(root):
    place(root, "1n1g/bert_b64_fp32_1.log")
    assert read(root)[0]["changed"] is True
    assert read(root)[0]["changed"] is False


def test_a_log_that_is_gone_takes_its_record_with_it(root):
    place(root, "1n1g/bert_b64_fp32_1.log", "1n1g/bert_b64_fp32_2.log")
    read(root)
    (root / "1n1g/bert_b64_fp32_2.log").unlink()
    result, records = read(root)
    assert list(records) == ["bz64/1n1g/bert_b64_fp32_1.log"] and result["changed"]


def test_only_looking_writes_nothing(root):
    place(root, "1n1g/bert_b64_fp32_1.log")
    result, _ = read(root, write=False)
    assert result["counts"] == {"ok": 1} and result["changed"] is True
    assert not (root.parent / "out").exists()


def test_a_campaign_is_never_written_over(root, tmp_path):
    place(root, "1n1g/bert_b64_fp32_1.log")
    out = tmp_path / "out"
    (out / "runs").mkdir(parents=True)
    with pytest.raises(TreeError, match="has runs but no plan.json"):
        read(root, out)
    (out / "plan.json").write_text('{"campaign": "mine"}')
    with pytest.raises(TreeError, match="holds a campaign: choose another directory"):
        read(root, out)


def test_a_tree_without_logs_is_an_error(root):
    place(root, "bz32/n1g1/bert_b32_fp32_1.log")
    with pytest.raises(TreeError, match="no log below ") as refused:
        read(root)
    assert refused.value.example == {"path": "bz64/bz32", "reason": contracts.message("import.no-folder")}
    with pytest.raises(TreeError, match="No such file or directory"):
        read(root / "nowhere")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"xla": "maybe"}, "xla='maybe' is not allowed"),
        ({"accumulation": 0}, "accumulation='0' is not allowed"),
        ({"warmup": -1}, "warmup='-1' is not allowed"),
        ({"window": "1e9"}, "window='1e9' is not allowed"),
        ({"device": "tpu"}, "device='tpu' is not allowed"),
    ],
)
def test_wrong_overrides_are_refused(root, overrides, message):
    place(root, "1n1g/bert_b64_fp32_1.log")
    with pytest.raises(TreeError, match=message):
        read(root, overrides=overrides)


def test_several_processes_read_the_same_as_one(root, tmp_path, monkeypatch):
    place(root, *(f"1n1g/bert_b64_fp32_{repeat}.log" for repeat in range(1, 20)))
    alone = read(root)
    monkeypatch.setattr(import_dlperf, "_PARALLEL", 0)
    monkeypatch.setattr(import_dlperf, "processes", lambda: 2)
    together = read(root, tmp_path / "out2")
    assert together == alone


def test_two_thousand_tiny_logs_are_read_in_little_time(root):
    folder = root / "1n1g"
    folder.mkdir(parents=True)
    for repeat in range(1, 2_001):
        (folder / f"bert_b64_fp32_{repeat}.log").write_bytes(b"I0826 18:06:39.031755 nothing\n")
    start = time.process_time()
    result = import_tree(root, root.parent / "out", "tf2_bert", WORKLOAD, write=False)
    assert result["counts"] == {"incomplete": 2_000}
    assert time.process_time() - start < 6
