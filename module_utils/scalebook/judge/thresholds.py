# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The limits by which telemetry is judged, each with its reason; docs/utilisation.md prints them."""

from __future__ import annotations

from typing import NamedTuple


class Threshold(NamedTuple):
    """A limit and the reason for it; docs/utilisation.md has both."""

    value: float
    why: str


DCGM = "NVIDIA's DCGM user guide, Profiling Metrics"
THRESHOLDS = {
    "gpu-bound": Threshold(90, f"SM active, %. {DCGM}: 80 % is necessary, but not sufficient"),
    "memory-bound": Threshold(
        60, f"DRAM active, %: three quarters of the 80 % that {DCGM}, gives as reachable"
    ),
    "sm-low": Threshold(50, f"SM active, %. {DCGM}: less than 50 % is likely an ineffective use of the GPU"),
    "gpu-often": Threshold(50, "GPU utilisation, %: some kernel ran for half of the time or more"),
    "gpu-waits": Threshold(80, "GPU utilisation, %: below it the GPU is idle for a fifth of the time"),
    "one-thread": Threshold(
        0.9,
        "processors per device, or per process that drives all devices of its node: a thread that never "
        "waits takes 1.0, less the ticks",
    ),
    "thread-busy": Threshold(
        90, "busiest thread, %: computing, or without a processor that it could compute on"
    ),
    "threads-wait": Threshold(
        80, "next busiest thread, %: below it all but the busiest wait for a fifth of the time"
    ),
    "workers": Threshold(1.5, "processors per device: more than the one thread that starts kernels"),
    "host-busy": Threshold(80, "CPU or busiest disk, %: queues grow long from there on"),
    "cpu-bound": Threshold(90, "CPU, %, of a run on CPUs: there is next to nothing left"),
    "own-share": Threshold(50, "job's part of the busy processors, %: below it other programs take most"),
    "several": Threshold(2, "nodes per machine: simulated nodes, or containers of one host"),
    "queued": Threshold(
        0.2, "processors per device that the job waits for: less is the scatter of a scheduler"
    ),
    "storage": Threshold(
        0.5, "processors that have nothing to do but wait for storage: one thread reads half of the time"
    ),
    "efficiency": Threshold(0.9, "efficiency: a loss of a tenth exceeds the spread of most cases"),
    "exchange": Threshold(
        3, "part of a step, %, that the slowest device does not explain: repeats of busy GPUs differ by less"
    ),
    "link": Threshold(70, "busiest link, % of its capacity: with this mean it is full during the exchanges"),
    "sm-loss": Threshold(10, "SM active of 1n1g minus that of the case, points: far above its spread"),
    "idle-loss": Threshold(
        0.1, "processors per device of 1n1g minus those of the case: a tenth of a device that now waits"
    ),
    "power": Threshold(50, "share of the window at the power limit, %: most of the time"),
    "power-near": Threshold(
        90,
        "GPU power, % of its limit. The driver reports the limit for a second after a burst: an H200 that "
        "drew 269 of 700 W on average reported it for 91 % of the window",
    ),
    "tensor-share": Threshold(
        0.5,
        "tensor pipe active as a part of MFU, from which products ran on tensor cores: on H100 and H200 "
        "it was 0.89 to 1.28",
    ),
    "held-down": Threshold(
        5, "share of the window, %, from which clocks held down are flagged: less is scatter"
    ),
    "stolen": Threshold(
        5,
        "processor time that a hypervisor took, % of the time that the node needed (used and stolen): from "
        "there on tf2_bert on H100 hosts lost 3 % of its throughput and more",
    ),
    "idle": Threshold(
        5, "share of the window, %, from which a GPU that swings is flagged: a gap of one sample"
    ),
    "swings-to": Threshold(
        80, "highest GPU utilisation, %: a GPU that never reaches it is slow for another reason"
    ),
    "memory-full": Threshold(90, "memory of a run on CPUs, %: twice the batch cannot fit"),
    "memory-free": Threshold(45, "GPU memory, %: twice of it fits"),
}
