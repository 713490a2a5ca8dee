# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/telemetry_calls with a stand-in for NVML: what the sampler asks has a row, as on a GPU."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_each_question_of_the_sampler_has_its_processor_time(tmp_path):
    shutil.copy(ROOT / "tests/helpers/fake_nvml.py", tmp_path / "pynvml.py")
    argv = [sys.executable, ROOT / "tests/bench/telemetry_calls", "--readings", "2", "--pause", "0"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "FAKE_NVML": "slow"}
    shown = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines() if "|" in line]
    asked = {name: int(cpu) for name, calls, cpu, _ in (row for row in rows if len(row) == 4) if calls == "2"}
    # What the stand-in makes slow is dear; the others cost next to nothing.
    assert max(asked, key=asked.get) == "nvmlDeviceGetFieldValues (138, 139)"
    assert asked["nvmlDeviceGetFieldValues (138, 139)"] >= 5000
    assert {
        "nvmlGpmSampleGet",
        "nvmlGpmMetricsGet",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetClockInfo (1)",
    } <= set(asked)
    steps = [row[0] for row in rows if len(row) == 3]
    assert "import of nvidia-ml-py, not compiled before" in steps
    every = {row[0]: row[2] for row in rows if row[0].startswith("GPU: ")}
    assert int(every["GPU: nvlink"]) == 10 > int(every["GPU: energy"])
    assert re.search(r"Together [\d.]+ ms per reading, at one per second [\d.]+% of a core", shown)
