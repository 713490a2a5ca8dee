# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/report.md: every column and every flag of a report."""

from __future__ import annotations

from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.contracts import BASELINE, ENOUGH_RUNS, STATUSES, message
from ansible.module_utils.scalebook.judge.flags import FLAGS, LEVELS
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.quantities import TABLE

from generated.text import table

LEVEL_WORDS = {"stop": "do not use", "care": "use with care", "note": "note"}
TABLE_COLUMNS = {
    "node_num": "nodes of the case",
    "gpu_num": "devices of the case, of all nodes together",
    "samples/s": "median throughput of the valid runs, of all devices together; the unit is the workload's",
    "latency, ms": "milliseconds of a step at that throughput, of workloads that declare a latency",
    "tokens/s": "the same in tokens, of workloads that count sequences",
    "speedup": f"median throughput divided by that of {BASELINE} in the same table; n/a without it",
    "efficiency": "speedup divided by the number of devices",
    "runs": "valid runs / planned runs",
    "spread": "(fastest − slowest) / median",
    "range": "the slowest and the fastest run",
    "95 % interval": f"of the median, by order statistics, from {stats.INTERVAL_RUNS} runs on",
    "flags": "what to know before the row is used; see below",
}
"""Columns of the first table of report.md."""

CSV_COLUMNS = {
    "campaign": "name of the campaign",
    "unit": "what is counted: samples, tokens …",
    "case": "name of the case, with a hash of its values; also its directory",
    "label": "nodes and devices per node, such as 4n8g",
    "workload": "workload",
    "model": "model of the workload",
    "device": "cpu or gpu",
    "dtype": "number format",
    "xla": "True if the model was compiled",
    "bsz": "batch size per device",
    "accumulation": "gradient accumulation steps",
    "warmup": "steps before the window",
    "window": "steps of the window",
    "epoch_samples": "samples of an epoch, of workloads whose window is one",
    "nodes": "number of nodes",
    "gpus": "devices per node",
    "devices": "devices of all nodes",
    "status": f"ok, provisional (fewer than {ENOUGH_RUNS} valid runs) or incomplete",
    "good": "valid runs",
    "planned": "planned runs",
    "median": "median rate of the valid runs, units per second",
    "mean": "mean rate",
    "min": "slowest run",
    "max": "fastest run",
    "spread": "(max − min) / median, a fraction",
    "cv_percent": "standard deviation / mean, per cent",
    "latency_ms": "milliseconds of a step at the median rate; empty if the workload declares no latency",
    "tokens_per_second": "tokens of the median rate; empty where no sequences of a known length are counted",
    "speedup": f"median / median of {BASELINE}",
    "efficiency": "speedup / devices, a fraction",
    "settings": "the workload's own variables, as name=value",
    "median_interval95_low": f"95 % interval of the median, from {stats.INTERVAL_RUNS} runs on",
    "median_interval95_high": "its upper end",
    "speedup_range_low": f"least quotient of a run and one of {BASELINE}",
    "speedup_range_high": "largest quotient",
    "speedup_interval95_low": f"95 % interval of the speedup, from {stats.INTERVAL_RUNS} runs of both on",
    "speedup_interval95_high": "its upper end",
    "average_speed": "mean as DLPerf computes it, each run rounded to 2 decimals first",
    "median_speed": "median as DLPerf computes it",
    "step_mean_seconds": "mean duration of a step of the window, over all valid runs",
    "step_slowest_seconds": f"what it would be if devices only waited for the slowest: the mean of "
    f"the longest of as many steps of {BASELINE}",
    "step_p50_seconds": "median duration",
    "step_p95_seconds": "95th percentile",
    "step_p99_seconds": "99th percentile",
    **{
        f"{each.name}_mean": f"{catalogue.sentence(message(each.code))}, mean of the window over nodes or "
        f"devices, {each.unit}; empty if not recorded"
        for each in TABLE
    },
    "flop_per_sample": "operations of a sample, forward and backward, that the workload declares",
    "tflops_per_device": "flop_per_sample times the rate of a device, in TFLOP/s",
    "mfu": "tflops_per_device / peak_tflops_per_device (model FLOPs utilization)",
    "peak_tflops_per_device": "the peak of the data sheet, dense, in TFLOP/s",
    "peak_of": "the GPU and the number format of that peak",
    "global_batch": "samples of one update over all devices",
    "strong_speedup": f"speedup over {BASELINE} with the same global batch",
    "strong_efficiency": "strong_speedup / devices",
    "baseline_median": "median of the same case in the baseline",
    "baseline_ratio": "median / baseline_median",
    "baseline_range_low": "least quotient of a run and one of the baseline",
    "baseline_range_high": "largest quotient",
    "baseline_interval95_low": f"95 % interval of the ratio, from {stats.INTERVAL_RUNS} runs of both on",
    "baseline_interval95_high": "its upper end",
    "baseline_verdict": "same, faster, slower, or only here",
    "flags": "sentences of all flags",
    "machines": "`4 nodes, 1 machine` where the nodes of the case shared machines",
    "hardware": "what the case used of its nodes, kinds of nodes separated by ` / `",
    "software": "framework, CUDA, NCCL, MPI, Python and the commit of scalebook",
}
"""Columns of results.csv, in their order."""

RUN_STATUSES = {
    "ok": "The run reached the end of its window and passed every check.",
    "incomplete": "The log ends before the window does.",
    "failed": "A process ended with an error, a node was lost, or a node did not start.",
    "hung": "A node logged nothing for `campaign_stall` seconds after its first step.",
    "oom": "A device or a node ran out of memory.",
    "refused": "The log shows another run than the case requires, for example another number of devices.",
    "skipped": "The run was not started; the reason says why.",
}
"""What each status of a run means."""


def files() -> dict[str, str]:
    """Return the page."""
    parts = [
        "# Columns and flags of the report\n",
        "Made by `scripts/pages` from the definitions in `scripts/generated/report.py`.\n",
        "## report.md and report.html\n",
        table(("column", "meaning"), TABLE_COLUMNS.items()),
        "Rates are of all devices together. Rows of one table differ in nodes and devices only, so they can "
        f"be divided by each other. `{BASELINE}` is one node with one device.\n",
        "## Flags\n",
        "A flag never changes a number. Its level says whether a row with it can be used: the worst one of a "
        "report is its word of trust. `results.json` has its code, and a message with the values.\n",
        table(
            ("code", "level", "meaning and what to do"),
            [(f"`{code}`", LEVEL_WORDS[LEVELS[code]], text) for code, text in FLAGS.items()],
        ),
        "## Statuses of a run\n",
        "Only `ok` counts. The same command repeats every other run.\n",
        table(("status", "meaning"), [(f"`{status}`", RUN_STATUSES[status]) for status in STATUSES]),
        "## results.csv\n",
        "One line per case; numbers are unrounded, and what is missing is empty.\n",
        table(("column", "meaning"), [(f"`{name}`", text) for name, text in CSV_COLUMNS.items()]),
    ]
    return {"docs/reference/report.md": "\n".join(parts)}
