# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Launchers that silently start fewer processes than they were asked for: their logs are refused."""

from pathlib import Path

from declared import vary
from dlperf_logs import WORKLOAD
from in_english import log_record

LOGS = Path(__file__).resolve().parents[2] / "data/accelerate"
ACCELERATE = vary(
    WORKLOAD,
    log={
        "literal": "samples_per_sec=",
        "step": r"step=(?P<step>\d+) loss=[\d.]+ samples_per_sec=(?P<rate>[\d.]+)",
        "rate": {"scope": "global"},
        "nodes": "first",
    },
    sanity=[
        {"name": "devices", "literal": "world=", "pattern": r"world=(?P<value>\d+)", "expect": "devices"}
    ],
)
CASE = {
    "workload": "accelerate", "model": "tiny", "dtype": "fp32", "xla": False, "bsz": 8, "nodes": 1,
    "gpus": 2, "devices": 2, "global_batch": 16, "accumulation": 1, "device": "cpu", "warmup": 2, "window": 3,
    "label": "1n2g", "name": "case",
}  # fmt: skip


def read(name):
    path = LOGS / name
    return log_record(path, CASE, 1, ACCELERATE, path.name)


def test_accelerate_launch_that_started_one_process_on_a_cpu_is_refused():
    record = read("launch_2p.log")
    assert record["status"] == "refused"
    assert "shows devices 1, the case has devices 2" in record["reason"]


def test_two_processes_under_torchrun_are_accepted():
    assert read("torchrun_2p.log")["status"] == "ok"
