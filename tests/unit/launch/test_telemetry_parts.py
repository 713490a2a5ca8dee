# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/telemetry with a stand-in for NVIDIA's driver: what the sampler takes is shown by part."""

import re
import subprocess
import sys
from pathlib import Path

import fake_nvml
import pytest

ROOT = Path(__file__).parents[3]


def measure(fault, *options):
    """Return what the benchmark prints; its exit status is whether limits are kept: not in short windows."""
    argv = [sys.executable, ROOT / "tests/bench/telemetry", "--interval", "0.2", *options]
    done = subprocess.run(argv, env=fake_nvml.environment(fault), capture_output=True, text=True)
    return done.stdout or done.stderr


def cells_of(shown):
    """Return the cells of each row of the tables, by the first one."""
    lines = [line.split("|")[1:-1] for line in shown.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


@pytest.fixture(scope="module")
def shown():
    return measure("slow", "--pairs", "0", "--long", "1", "--gpus", "0", "--threads", "50")


@pytest.fixture(scope="module")
def rows(shown):
    return cells_of(shown)


def test_each_question_to_the_driver_has_its_processor_time(rows):
    full, other = (float(cell) for cell in rows["NVML: DeviceGetFieldValues 138 139"][:2])
    assert full >= 5 > other  # what the stand-in makes slow is put off
    questions = {
        name.partition(": ")[2] for name in rows if name.startswith("NVML: ") and float(rows[name][0]) < 1
    }
    assert {"GpmSampleGet", "GpmMetricsGet", "DeviceGetPowerUsage", "DeviceGetClockInfo 1"} <= questions


def test_the_parts_of_a_reading_add_up(rows):
    for kind in (0, 1):
        parts = [
            float(cells[kind])
            for name, cells in rows.items()
            if re.match("NVML: |GPU: |job: |host: |writing|waking|cells", name)
        ]
        assert sum(parts) == pytest.approx(float(rows["all"][kind]), abs=0.02)
    assert float(rows["job: waiting of its threads"][0]) > 0


def test_memory_is_shown_after_each_step(rows):
    steps = ["Python itself", "the sampler's modules", "the modules for GPUs", "NVML loaded"]
    sizes = [[float(cell) for cell in rows[step]] for step in [*steps, "the end"]]
    assert [resident for resident, *_ in sizes[:-1]] == sorted(resident for resident, *_ in sizes[:-1])
    assert float(rows["nvmlInit, and pages let go"][0]) < sizes[-2][0] - 1
    assert all(most >= resident >= proportional >= private for resident, most, proportional, private in sizes)
    assert any(name.endswith("libnvidia-ml.so.1") for name in rows)


def test_the_whole_is_that_of_a_sampler_without_clocks(shown):
    assert re.search(
        r"^sampler: [\d.]+% of a core, [\d.]+ s to start and end, [\d.]+ MB$", shown, re.MULTILINE
    )


def test_ways_to_save_memory_are_compared_in_a_line_each():
    """The stand-in takes 12 MB when it is opened, and gives half of them back in pieces."""
    rows = cells_of(measure("large", "--gpus", "0", "--try", "none;trim;arena,main-thread,mmap-threshold"))
    assert list(rows) == ["tried", "none", "trim", "arena,main-thread,mmap-threshold"]
    sizes = {way: [float(cell) for cell in cells] for way, cells in rows.items() if way != "tried"}
    (resident, most, *_), (trimmed, before, *_), _ = sizes.values()
    assert trimmed < resident - 3 and trimmed < before - 2 and before <= most + 0.2
    assert all(most > proportional > private > 12 for _, most, proportional, private in [*sizes.values()][2:])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--gpus", "0", "--try", "none;tirm"], "--try tirm: the words are arena, "),
        (["--try", "trim"], "--try trim changes how GPUs are read: name some with --gpus"),
    ],
)
def test_what_cannot_be_tried_is_refused(options, complaint):
    assert complaint in measure("", *options)
