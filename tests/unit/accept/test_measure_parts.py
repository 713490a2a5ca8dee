# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The line that a node prints of its parts, with programs that print what those of role microbench would."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "roles/acceptance/files/measure_parts.py"
MICROBENCH = """
import json, os, sys
gpu = os.environ["CUDA_VISIBLE_DEVICES"]
if gpu == "1" and {broken}: sys.exit("CUDA error: unspecified launch failure")
row = dict(seconds=1.0, tflops=None, gbytes_per_second=None, reason=None)
rows = [dict(row, benchmark="matmul", variant="bf16", tflops=700.0 + int(gpu or 0)),
        dict(row, benchmark="memory", variant="copy", gbytes_per_second=2900.0),
        dict(row, benchmark="memory", variant="to_device", seconds=None, reason="out of memory")][:{rows}]
content = dict(name="NVIDIA H100", torch="2.11", measurements=rows)
json.dump(content, open(os.path.join(sys.argv[-1], "compute.json"), "w"))
"""
TORCHRUN = """
import json, os, sys
if "--node_rank" not in sys.argv or "0" in sys.argv[sys.argv.index("--node_rank") + 1]:
    names = sys.argv[sys.argv.index("--only") + 1].split(",")
    rows = [dict(collective=name, busbw_gb_per_second=40.0) for name in names]
    json.dump(dict(measurements=rows), open(os.path.join(sys.argv[-1], "collectives.json"), "w"))
"""


@pytest.fixture
def printed(tmp_path):
    def start(*options, broken=False, rows=2):
        (tmp_path / "torch/distributed").mkdir(parents=True)
        (tmp_path / "torch/distributed/run.py").write_text(TORCHRUN)
        (tmp_path / "microbench.py").write_text(MICROBENCH.format(broken=broken, rows=rows))
        (tmp_path / "training_trace.py").write_text("print('aa bb')")
        (tmp_path / PROGRAM.name).write_text(PROGRAM.read_text())
        argv = [sys.executable, tmp_path / PROGRAM.name, *options]
        smi = tmp_path / "nvidia-smi"
        smi.write_text("#!/bin/sh\nprintf 'GPU-a\\nGPU-b\\n'\n")
        smi.chmod(0o755)
        environment = {"PYTHONPATH": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
        done = subprocess.run(argv, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return start


def test_each_gpu_has_rates_by_quantity_and_the_node_has_those_of_all_of_them(printed):
    assert printed("alone", "--device", "gpu", "--devices", "2") == {
        "name": "NVIDIA H100",
        "rates": {
            "GPU0": {"matmul_bf16": 700.0, "copy": 2900.0},
            "GPU1": {"matmul_bf16": 701.0, "copy": 2900.0},
            "GPUs": {"all_reduce": 40.0},
        },
        "traces": {"GPU0": "aa bb torch 2.11", "GPU1": "aa bb torch 2.11"},
        "problems": {},
        "gpus": ["GPU-a", "GPU-b"],
    }


def test_a_gpu_that_fails_is_a_problem_and_the_others_are_measured(printed):
    line = printed("alone", "--device", "gpu", "--devices", "2", broken=True)
    assert "CUDA error: unspecified launch failure" in line["problems"].pop("GPU1")
    assert (set(line["rates"]), line["problems"]) == ({"GPU0", "GPUs"}, {})


def test_an_operation_without_a_rate_is_a_problem_of_the_part(printed):
    assert printed("alone", "--device", "cpu", rows=3)["problems"] == {"CPU": "to_device: out of memory"}


@pytest.mark.parametrize(("rank", "rates"), [("0", {"forward": 40.0, "backward": 40.0}), ("1", {})])
def test_the_first_node_of_a_pair_prints_both_directions(printed, rank, rates):
    assert printed("pair", "--device", "cpu", "--rank", rank)["rates"] == rates
