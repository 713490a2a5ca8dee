# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The line that a node prints of its parts, with programs that print what those of role microbench would."""

import base64
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
COLLECTIVES = """
import json, os, sys
if os.environ["RANK"] == "1" and "{failing}" in sys.argv: sys.exit("gave wrong numbers on rank 1")
if os.environ["RANK"] == "0":
    names = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else []
    rows = [dict(collective=name, busbw_gb_per_second=40.0) for name in names]
    pairs = [dict(source=0, target=1, gb_per_second=50.0)]
    if {said}: open(os.path.join(sys.argv[-1], "collectives.nccl.xz"), "wb").write(b"lines")
    json.dump(dict(measurements=rows, pairs=pairs), open(os.path.join(sys.argv[-1], "collectives.json"), "w"))
"""
COLLECTIVES_OF_A_NODE = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv")
FIO = """#!/bin/sh
for option; do case "$option" in --rw=*) way=${option#--rw=};; esac; done
echo '{"jobs": [{"'$way'": {"bw_bytes": 2000000000}}]}'
"""


@pytest.fixture
def printed(tmp_path):
    def start(*options, broken=False, rows=2, failing="nothing", said=False):
        (tmp_path / "collectives.py").write_text(COLLECTIVES.format(failing=failing, said=said))
        (tmp_path / "microbench.py").write_text(MICROBENCH.format(broken=broken, rows=rows))
        (tmp_path / "training_trace.py").write_text("print('aa bb')")
        (tmp_path / PROGRAM.name).write_text(PROGRAM.read_text())
        argv = [sys.executable, tmp_path / PROGRAM.name, *options]
        programs = {"nvidia-smi": "#!/bin/sh\nprintf 'GPU-a\\nGPU-b\\n'\n", "fio": FIO}
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        environment = {"PYTHONPATH": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
        done = subprocess.run(argv, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return start


def test_each_gpu_has_rates_by_quantity_and_the_node_has_those_of_all_of_them(printed):
    line = printed("alone", "--device", "gpu", "--devices", "2", "--seconds", "0")
    del line["rates"]["host"], line["processor"], line["sizes"]
    assert line == {
        "name": "NVIDIA H100",
        "rates": {
            "GPU0": {"matmul_bf16": 700.0, "copy": 2900.0},
            "GPU1": {"matmul_bf16": 701.0, "copy": 2900.0},
            "GPUs": dict.fromkeys(
                ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv"), 40.0
            ),
        },
        "pairs": [{"source": 0, "target": 1, "gb_per_second": 50.0}],
        "traces": {"GPU0": "aa bb torch 2.11", "GPU1": "aa bb torch 2.11"},
        "problems": {},
        "gpus": ["GPU-a", "GPU-b"],
    }


def test_a_gpu_that_fails_is_a_problem_and_the_others_are_measured(printed):
    line = printed("alone", "--device", "gpu", "--devices", "2", broken=True)
    assert "CUDA error: unspecified launch failure" in line["problems"].pop("GPU1")["values"]["line"]
    assert (set(line["rates"]), line["problems"]) == ({"GPU0", "GPUs", "host"}, {})


def test_processor_memory_and_where_fio_is_installed_the_disk_have_rates(printed):
    rates = printed("alone", "--device", "cpu")["rates"]["host"]
    assert min(rates["processor"], rates["memory"]) > 0
    assert (rates["disk_write"], rates["disk_read"]) == (2.0, 2.0)


def test_a_process_that_fails_ends_the_others_and_is_the_problem(printed):
    problems = printed("alone", "--device", "gpu", "--devices", "2", failing="--pairs")["problems"]
    assert "gave wrong numbers on rank 1" in problems["node"]["values"]["line"]


def test_an_operation_without_a_rate_is_a_problem_of_the_part(printed):
    why = {"code": "acceptance.out-of-memory", "values": {"quantity": "to_device"}}
    assert printed("alone", "--device", "cpu", rows=3)["problems"] == {"CPU": why}


@pytest.mark.parametrize(("rank", "rates"), [("0", {"forward": 40.0, "backward": 40.0}), ("1", {})])
def test_the_first_node_of_a_pair_prints_both_directions(printed, rank, rates):
    assert printed("pair", "--device", "cpu", "--rank", rank)["rates"] == rates


@pytest.mark.parametrize("options", [["alone", "--devices", "2"], ["pair"], ["all", "--nodes", "3"]])
def test_the_packed_lines_of_nccl_are_printed_too(printed, options):
    assert base64.b64decode(printed(*options, "--device", "gpu", said=True)["nccl"]) == b"lines"
