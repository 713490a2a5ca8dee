# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/telemetry_truth on a GPU, with stand-ins for NVIDIA's driver, for nvidia-smi and for torch."""

import subprocess
import sys
from pathlib import Path

import fake_nvml
import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
SMI = """#!/bin/sh
# It prints what the stand-in for the driver says, power POWER, with the head and the units of driver 580.
case $* in
*dmon*)
    echo "# gpu  pwr  gtemp  mtemp   sm  mem  enc  dec  jpg  ofa  mclk  pclk     fb  bar1  ccpm"
    echo "# Idx    W      C      C    %    %    %    %    %    %   MHz   MHz     MB    MB    MB"
    sleep 2
    DMON ;;
*) echo "POWER.00, 100, 26293, 1980, 3201, 61" ;;
esac
"""
LINE = """for _ in 1 2; do
        echo "    0  POWER   61      -  100   17    0    0    0    0  3201  1980  26293     4     0"
    done"""
TORCH = """
import types
bfloat16 = None
class Matrix:
    def __matmul__(self, other):
        return self
def randn(*size, **more):
    return Matrix()
cuda = types.SimpleNamespace(synchronize=lambda: None)
"""


def compared(folder, power=689, dmon=LINE):
    """Return what the comparison prints, in which nvidia-smi says this power."""
    (folder / "torch.py").write_text(TORCH)
    (folder / "nvidia-smi").write_text(SMI.replace("DMON", dmon).replace("POWER", str(power)))
    (folder / "nvidia-smi").chmod(0o755)
    environment = fake_nvml.environment()
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    environment["PYTHONPATH"] = str(folder)
    argv = [
        sys.executable,
        ROOT / "tests/bench/telemetry_truth",
        "--gpu",
        "0",
        "--seconds",
        "2",
        "--share",
        "5",
    ]
    return subprocess.run(argv, env=environment, cwd=folder, capture_output=True, text=True)


def rows_of_nvidia_smi(done):
    """The others hang on how busy this machine is."""
    return [row for row in done.stdout.splitlines() if "nvidia-smi" in row]


def test_where_both_say_the_same_nothing_is_too_much(tmp_path):
    done = compared(tmp_path)
    rows = rows_of_nvidia_smi(done)
    assert len(rows) == 12 and not [row for row in rows if "TOO MUCH" in row], done.stderr
    assert "| GPU, energy / time: power |" in done.stdout
    assert "| GPU, power: nvidia-smi dmon | 689.0 W | 689.0 W | +0.00 % |" in rows
    assert "| GPU, memory: nvidia-smi --query-gpu | 26293.0 MiB | 26293.0 MiB | +0.00 % |" in rows


def test_a_difference_beyond_the_limit_is_named(tmp_path):
    done = compared(tmp_path, power=670, dmon="exit 3")
    assert done.returncode == 1
    wrong = [row for row in rows_of_nvidia_smi(done) if "TOO MUCH" in row]
    assert wrong == ["| GPU, power: nvidia-smi --query-gpu | 689.0 W | 670.0 W | +2.84 % TOO MUCH |"]
    assert "dmon" not in done.stdout
