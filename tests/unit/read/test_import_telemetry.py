# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Telemetry beside imported logs, by a campaign that was recorded on an H200: the same numbers come out."""

import json
import lzma
import re

import measured
import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import in_words
from ansible.module_utils.scalebook.read.import_dlperf import import_tree
from ansible.module_utils.scalebook.store import openmetrics
from ansible.module_utils.scalebook.store.load import load_campaign
from declared import vary
from dlperf_logs import WORKLOAD
from dlperf_trees import place, read

UNIX_TIME = vary(
    WORKLOAD,
    sanity=[],
    log={
        "literal": "step=",
        "step": r"step=(?P<step>\d+)/(?P<last>\d+) time=(?P<time>[\d.]+)",
        "time": "unix",
    },
)


@pytest.fixture(scope="module")
def campaign():
    """Return (log, readings, record) of each repeat of the case in fp16."""
    source = measured.source("h200-2026-11-23/tf2_plain")
    [case] = {file.split("/")[1] for file in source.records() if "-fp16-" in file}
    return [
        (
            source.read(f"runs/{case}/{repeat}/NODE1.log"),
            source.read(f"runs/{case}/{repeat}/NODE1.telemetry.csv.xz"),
            source.decode(f"runs/{case}/{repeat}/result.json"),
        )
        for repeat in (1, 2, 3)
    ]


def tree(tmp_path, campaign, readings="base_b64_fp16_{repeat}.NODE1.telemetry.csv.xz"):
    root = tmp_path / "bz64"
    for repeat, (log, packed, _) in enumerate(campaign, 1):
        place(root, f"1n1g/base_b64_fp16_{repeat}.log", text=log)
        place(root, "1n1g/" + readings.format(repeat=repeat), text=packed)
    return root


def telemetry(records, repeat=1):
    [made] = records[f"bz64/1n1g/base_b64_fp16_{repeat}.log"]["telemetry"]
    return made


def test_imported_logs_have_the_telemetry_that_the_campaign_recorded(tmp_path, campaign):
    result, records = read(tree(tmp_path, campaign))
    assert result["counts"] == {"ok": 3} and result["unread"] == []
    for repeat, (_, _, record) in enumerate(campaign, 1):
        [recorded] = record["telemetry"]
        expected = {**in_words(recorded), "file": f"base_b64_fp16_{repeat}.NODE1.telemetry.csv.xz"}
        made = telemetry(records, repeat)
        # The campaign's records are older than `timeline` and `gpu_idle`.
        assert made == {**expected, "timeline": made["timeline"], "gpu_idle": {"0": 0.0}}
        assert recorded["quantities"]["gpu:0:sm_active"]["mean"] > 0


def test_the_report_of_an_import_shows_its_utilisation(tmp_path, campaign):
    read(tree(tmp_path, campaign), overrides={"device": "gpu"})
    made = build_results(load_campaign(tmp_path / "out"))
    shown = {line["quantity"]: line for line in made["utilisation"]}
    assert {"cpu", "memory", "gpu", "sm_active", "gpu_power", "gpu_energy"} <= shown.keys()
    means = [record["telemetry"][0]["quantities"]["gpu:0:sm_active"]["mean"] for _, _, record in campaign]
    assert shown["sm_active"]["mean"] == pytest.approx(sum(means) / 3)
    assert shown["sm_active"]["runs"] == 3
    assert [entry["case"] for entry in made["bottlenecks"]] == [made["rows"][0]["case"]]
    assert "scalebook_gpu_sm_active_ratio" in openmetrics.text(made)


def test_one_file_of_a_node_serves_all_logs_of_the_folder_whose_window_it_covers(tmp_path, campaign):
    _, records = read(tree(tmp_path, campaign[:1], "NODE1.telemetry.csv.xz"))
    alone = telemetry(records)
    root = tree(tmp_path, campaign[:1], "NODE1.telemetry.csv.xz")
    place(root, "1n1g/base_b64_fp16_2.log", text=campaign[1][0])
    _, records = read(root)
    assert telemetry(records) == alone
    assert re.fullmatch(
        r"the window of \d+\.\d+ s has fewer than two readings", telemetry(records, 2)["reason"]
    )


def test_readings_of_another_node_are_placed_by_the_time_of_day(tmp_path, campaign):
    log, packed, record = campaign[0]
    # The clock of the other node is a quarter of a second behind.
    head, _, rest = lzma.decompress(packed).decode().partition("\n")
    facts = json.loads(head.removeprefix("# "))
    facts["wall"] -= 0.25
    root = tree(tmp_path, campaign[:1])
    place(root, "1n1g/NODE2.telemetry.csv", text="# " + json.dumps(facts) + "\n" + rest)
    _, records = read(root)
    first, second = records["bz64/1n1g/base_b64_fp16_1.log"]["telemetry"]
    assert (first["node"], first["placed_by"]) == ("NODE1", "own-steps")
    assert (second["node"], second["placed_by"]) == ("NODE2", "first-node")
    assert second["covered"] < 1 and second["quantities"]["gpu:0:power"]["mean"] > 0
    assert "timeline" not in second


def without_run_nodes_stamps(log):
    lines = [line.split(b" ", 2)[2] for line in log.splitlines(keepends=True)]
    return b"".join(line for line in lines if not line.startswith(b"SCALEBOOK"))


def test_a_log_of_local_times_has_a_reason_and_no_numbers(tmp_path, campaign):
    """TensorFlow prints neither the year nor the time zone: nothing tells when its window was."""
    root = tree(tmp_path, campaign[:1])
    place(root, "1n1g/base_b64_fp16_1.log", text=without_run_nodes_stamps(campaign[0][0]))
    _, records = read(root)
    made = telemetry(records)
    assert "Unix time" in made["reason"] and "quantities" not in made


def test_a_log_of_unix_times_is_placed_by_them(tmp_path, campaign):
    log, packed, record = campaign[0]
    head = json.loads(lzma.decompress(packed).decode().partition("\n")[0].removeprefix("# "))
    begin = 720 + head["wall"] - head["monotonic"]
    text = "".join(f"step={step}/120 time={begin + step / 10:.6f}\n" for step in range(1, 121))
    root = tree(tmp_path, campaign[:1], "NODE7.telemetry.csv.xz")
    place(root, "1n1g/base_b64_fp16_1.log", text=text)
    import_tree(root, tmp_path / "out", "torch_bert", UNIX_TIME)
    [path] = tmp_path.glob("out/runs/*/1/result.json")
    [made] = json.loads(path.read_text())["telemetry"]
    assert (made["node"], made["reason"], made["seconds"]) == ("NODE7", None, pytest.approx(9, abs=1.1))


def test_a_file_that_is_no_readings_is_named_and_the_log_counts(tmp_path, campaign):
    root = tree(tmp_path, campaign[:1])
    place(root, "1n1g/base_b64_fp16_1.NODE1.telemetry.csv.xz", text="no archive")
    result, records = read(root)
    assert result["counts"] == {"ok": 1}
    assert telemetry(records)["reason"] == "base_b64_fp16_1.NODE1.telemetry.csv.xz is not a file of readings"


def test_a_link_out_of_the_tree_is_not_followed(tmp_path, campaign):
    root = tree(tmp_path, campaign[:1])
    (tmp_path / "secret").write_text("x")
    (root / "1n1g/NODE2.telemetry.csv").symlink_to(tmp_path / "secret")
    result, records = read(root)
    assert result["unread"] == [
        {"path": "bz64/1n1g/NODE2.telemetry.csv", "reason": "is a link out of the tree"}
    ]
    assert telemetry(records)["node"] == "NODE1"
