# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lines that nodes print of their steps, with stand-ins for the programs of role microbench."""

import base64
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nets import free_ports
from role_files import load

FILES = Path(__file__).parents[3] / "roles/acceptance/files"
MICROBENCH = """
import os, sys
def arguments(argv):
    return argv
def measured(argv):
    gpu = os.environ["CUDA_VISIBLE_DEVICES"]
    if gpu == "1" and {broken}: sys.exit("CUDA error: unspecified launch failure")
    row = dict(seconds=1.0, tflops=None, gbytes_per_second=None, reason=None)
    oom = dict(code="microbench.oom", values=dict())
    rows = [dict(row, benchmark="matmul", variant="bf16", tflops=700.0 + int(gpu or 0)),
            dict(row, benchmark="memory", variant="copy", gbytes_per_second=2900.0),
            dict(row, benchmark="memory", variant="to_device", seconds=None, reason=oom)][:{rows}]
    print("a line that is not an answer")
    wanted = argv[argv.index("--only") + 1].split(",")
    return dict(name="NVIDIA H100", measurements=[row for row in rows if row["benchmark"] in wanted])
"""
COLLECTIVES = """
import os, sys, time
from types import SimpleNamespace
def arguments(argv):
    return argv
def join(device, folder):
    return SimpleNamespace(rank=int(os.environ["RANK"]))
def leave():
    pass
def nccl_lines(group):
    return b"lines" if {said} else b""
def measured(argv, group):
    if group.rank == 1 and "{failing}" in argv: sys.exit("gave wrong numbers on rank 1")
    # As a process that waits for one that has ended.
    if "{failing}" in argv: time.sleep(60)
    names = argv[argv.index("--only") + 1].split(",") if "--only" in argv else []
    rows = [dict(collective=name, busbw_gb_per_second=40.0) for name in names]
    pairs = [dict(source=0, target=1, gb_per_second=50.0)]
    return dict(measurements=rows, pairs=pairs, largest=1 << 20)
"""
TRACE = "def trace(device): return 'aa bb torch 2.11'"
FIO = """#!/bin/sh
for option; do case "$option" in --rw=*) way=${option#--rw=};; esac; done
echo '{"jobs": [{"'$way'": {"bw_bytes": 2000000000}}]}'
"""
GPUS = ("--device", "gpu", "--devices", "2")


class Programs:
    """The programs of a node in a folder, two of which are stand-ins."""

    def __init__(self, folder, broken=False, rows=2, failing="nothing", seconds=2, said=False):
        self.folder, self.running = folder, []
        [self.port] = free_ports(1)
        own = (FILES / "measure_parts.py").read_text()
        written = {
            "measure_parts.py": own.replace("SECONDS_OF_START = 120", f"SECONDS_OF_START = {seconds}"),
            "measure_device.py": (FILES / "measure_device.py").read_text(),
            "microbench.py": MICROBENCH.format(broken=broken, rows=rows),
            "collectives.py": COLLECTIVES.format(failing=failing, said=said),
            "training_trace.py": TRACE,
            "nvidia-smi": "#!/bin/sh\nprintf 'GPU-a\\nGPU-b\\n'\n",
            "fio": FIO,
        }
        for name, text in written.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def start(self, steps, *options, node="NODE1"):
        argv = [sys.executable, self.folder / "measure_parts.py", "--node", node, "--seconds", "0"]
        argv += [*(options or ("--device", "cpu")), "--steps", json.dumps(steps)]
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin"}
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.running.append(process)
        return process

    def alone(self, *options, **step):
        """Return the line of a node alone."""
        [line] = lines_of(self.start([{"at": 0, **step}], *options))
        return line

    def step(self, at, *nodes):
        """Return a step of several nodes."""
        return {"at": at, "nodes": nodes or ("NODE1", "NODE2"), "address": "127.0.0.1", "port": self.port}


def lines_of(process):
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    return [json.loads(line) for line in stdout.splitlines()]


@pytest.fixture
def programs(tmp_path):
    made = []

    def make(**options):
        made.append(Programs(tmp_path, **options))
        return made[-1]

    yield make
    for process in made[-1].running:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def test_each_gpu_has_rates_by_quantity_and_the_node_has_those_of_all_of_them(programs):
    line = programs().alone(*GPUS)
    del line["rates"]["host"], line["processor"], line["sizes"]
    collectives = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv")
    assert line == {
        "at": 0,
        "name": "NVIDIA H100",
        "rates": {
            "GPU0": {"matmul_bf16": 700.0, "copy": 2900.0},
            "GPU1": {"matmul_bf16": 701.0, "copy": 2900.0},
            "GPUs": dict.fromkeys(collectives, 40.0),
        },
        "pairs": [{"source": 0, "target": 1, "gb_per_second": 50.0}],
        "traces": {"GPU0": "aa bb torch 2.11", "GPU1": "aa bb torch 2.11"},
        "problems": {},
        "gpus": ["GPU-a", "GPU-b"],
    }


def test_only_what_is_asked_for_is_measured(programs):
    line = programs().alone(only=["memory", "host"])
    assert (line["rates"]["CPU"], line["traces"]) == ({"copy": 2900.0}, {})
    assert {*line["rates"]} == {"CPU", "host"}


def test_sizes_that_are_left_out_have_a_reason(programs):
    *_, last = programs().alone(*GPUS, only=["GPUs"])["sizes"]
    assert last == {
        "largest": 1 << 20, "reason": {"code": "acceptance.sizes-memory", "values": {"bytes": 1 << 20}},
    }  # fmt: skip


def test_a_gpu_that_fails_is_a_problem_and_the_others_are_measured(programs):
    line = programs(broken=True).alone(*GPUS)
    assert "CUDA error: unspecified launch failure" in line["problems"].pop("GPU1")["values"]["line"]
    assert (set(line["rates"]), line["problems"]) == ({"GPU0", "GPUs", "host"}, {})


def test_processor_memory_and_where_fio_is_installed_the_disk_have_rates(programs):
    rates = programs().alone()["rates"]["host"]
    assert min(rates["processor"], rates["memory"]) > 0
    assert (rates["disk_write"], rates["disk_read"]) == (2.0, 2.0)


def test_a_process_that_fails_ends_the_others_and_is_the_problem(programs):
    problems = programs(failing="--pairs").alone(*GPUS)["problems"]
    assert "gave wrong numbers on rank 1" in problems["node"]["values"]["line"]


def test_an_operation_without_a_rate_is_a_problem_of_the_part(programs):
    why = {"code": "acceptance.out-of-memory", "values": {"quantity": "to_device"}}
    assert programs(rows=3).alone()["problems"] == {"CPU": why}


def of_two(programs, steps, *options):
    """Return the lines of two nodes."""
    started = [programs.start(of_node, *options, node=node) for node, of_node in steps.items()]
    return [lines_of(process) for process in started]


def test_the_first_node_of_a_pair_prints_both_directions_of_each_step(programs):
    made = programs()
    steps = [made.step(1), made.step(2)]
    both = {"forward": 40.0, "backward": 40.0}
    assert [
        [line["rates"] for line in lines] for lines in of_two(made, {"NODE1": steps, "NODE2": steps})
    ] == [
        [both, both],
        [{}, {}],
    ]


def test_a_link_of_a_node_that_cannot_be_measured_is_not_tried_and_nobody_waits(programs):
    made = programs(rows=3)
    steps = {"NODE1": [{"at": 0, "only": ["memory"]}, made.step(1)], "NODE2": [made.step(1)]}
    begun = time.monotonic()
    (alone, of_first), (of_second,) = of_two(made, steps)
    assert (list(alone["problems"]), of_first["rates"], of_second["problems"]) == (["CPU"], {}, {})
    assert time.monotonic() - begun < 20


def test_a_failure_of_one_node_ends_the_step_of_the_other_and_the_next_one_begins(programs):
    made = programs(failing="forward,backward")
    steps = [made.step(1), {"at": 2, "only": ["memory"]}]
    first, second = of_two(made, {"NODE1": steps, "NODE2": steps}, "--device", "cpu", "--timeout", "50")
    assert first[0]["problems"] == {}
    assert "gave wrong numbers on rank 1" in second[0]["problems"]["node"]["values"]["line"]
    assert [lines[1]["rates"]["CPU"]["copy"] for lines in (first, second)] == [2900.0, 2900.0]


def test_a_node_that_dies_leaves_its_links_out_and_the_others_go_on(programs):
    made = programs()
    group = ("NODE1", "NODE2")
    other = made.start([{"at": 0, "only": ["host"]}, {"at": 1}, made.step(9)], node="NODE2")
    first = made.start([made.step(9, *group), {"at": 10, "only": ["memory"]}])
    other.stdout.readline()
    other.kill()
    link, alone = lines_of(first)
    assert (link["rates"], link["problems"], alone["rates"]["CPU"]["copy"]) == ({}, {}, 2900.0)


def test_two_nodes_of_a_group_measure_collectives_whoever_of_them_is_the_first(programs):
    made, [port] = programs(), free_ports(1)
    of_group = {**made.step(2, "NODE2", "NODE1"), "port": port, "group": [["NODE2", "NODE1"]]}
    steps = [made.step(1), of_group, made.step(3)]
    first, second = of_two(made, {"NODE1": steps, "NODE2": steps})
    collectives = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
    assert [{*each["rates"]} for each in first] == [{"forward", "backward"}, set(), {"forward", "backward"}]
    assert [{*each["rates"]} for each in second] == [set(), collectives, set()]
    assert [each["problems"] for each in (*first, *second)] == [{}] * 6


def test_a_node_that_does_not_start_is_waited_for_and_left_out(programs):
    made = programs(seconds=1)
    [line, alone] = lines_of(made.start([made.step(0), {"at": 1, "only": ["memory"]}]))
    assert (line["rates"], alone["rates"]["CPU"]["copy"]) == ({}, 2900.0)


def test_a_step_that_does_not_end_is_a_problem_of_its_part_and_the_next_one_begins(programs):
    made = programs()
    (made.folder / "training_trace.py").write_text("import time\ndef trace(device): time.sleep(60)")
    steps = [{"at": 0, "only": ["trace"]}, {"at": 1, "only": ["memory"]}]
    line, after = lines_of(made.start(steps, "--device", "cpu", "--timeout", "1"))
    late = {"code": "acceptance.not-ended", "values": {"seconds": 1}}
    assert (line["problems"], after["rates"]["CPU"]["copy"]) == ({"CPU": late}, 2900.0)


def test_the_packed_lines_of_nccl_are_printed_too(programs):
    made = programs(said=True)
    assert base64.b64decode(made.alone(*GPUS, only=["GPUs"])["nccl"]) == b"lines"
    (first, of_all), (second, _, _) = of_two(
        made, {"NODE1": [made.step(1), made.step(2)], "NODE2": [made.step(1), made.step(2), {"at": 3}]}
    )
    assert base64.b64decode(first["nccl"]) == base64.b64decode(of_all["nccl"]) == b"lines"
    assert "nccl" not in second


def test_a_gpu_that_hangs_leaves_the_next_one_its_time(programs):
    made = programs()
    hangs = "time.sleep(60 if os.environ['CUDA_VISIBLE_DEVICES'] == '0' else 0)"
    (made.folder / "training_trace.py").write_text(f"import os, time\ndef trace(device): {hangs}")
    [line] = lines_of(made.start([{"at": 0, "only": ["trace"]}], *GPUS, "--timeout", "2"))
    assert ([*line["problems"]], [*line["traces"]]) == (["GPU0"], ["GPU1"])


def test_the_first_try_of_the_processor_and_its_memory_does_not_count():
    """It gets the memory from the kernel: on a busy machine it was the only one, at 4 % of the rate."""
    tries = iter([0.05, 0.002, 0.001, 0.002])
    assert load("acceptance", "measure_parts").repeated(lambda: time.sleep(next(tries)), 0) > 1 / 0.05
    assert [*tries] == []
