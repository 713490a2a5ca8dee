# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before a row is used: the only place where a flag is made.

A flag never changes a number.  Its code is for programs and stands in FLAGS, its message for people.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware, network, stats
from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    ENOUGH_RUNS,
    Flag,
    GpuState,
    Hardware,
    Message,
    Mfu,
    Row,
    Run,
    Usage,
    message,
)
from ansible.module_utils.scalebook.judge import mfu, sharing
from ansible.module_utils.scalebook.judge.campaign import Campaign, ManifestCheck, message_of
from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS
from ansible.module_utils.scalebook.judge.utilisation import valid_by_case
from ansible.module_utils.scalebook.throughput import DIFFER, tolerance
from ansible.module_utils.scalebook.workload import UNKNOWN, Workloads

SUPERLINEAR = 1.02  # speedup over devices that asks for an explanation
UNSTEADY_BASELINE = 0.05  # spread of 1n1g from which it is the first suspect
SCATTERED = 0.1  # spread above which a row is flagged

FLAGS = {
    "incomplete": "No run is valid. The excluded runs are listed with their reasons.",
    "runs": "Not all planned runs are valid.",
    "provisional": f"Fewer than {ENOUGH_RUNS} runs are valid. Run the same command again, or raise "
    "`repeats`.",
    "outlier": f"A run that Grubbs' test finds at {100 * stats.OUTLIER_LEVEL:g} %, and that is more than "
    f"{100 * stats.OUTLIER_SHARE:g} % from the median, from {stats.OUTLIER_RUNS} runs on. It is kept.",
    "scattered": f"The slowest and the fastest run differ by more than {100 * SCATTERED:g} % of "
    "the median, and no run is an outlier. Compare ranges, not medians. Look for other programs and virtual "
    "machines on the node, and for clocks held down. Raise `window` if it lasts a few seconds.",
    "shared-machine": "The nodes of the case were on fewer machines than there are nodes: simulated nodes, "
    "or containers of one host (boot_id of Linux), or containers of which no record says where they were. "
    "Such a row says nothing about a network between machines.",
    "above-peak": "The rate is above the peak of the device's data sheet (MFU above 100 %): the batch, the "
    "dtype, the model or the number of devices is not what the case says.",
    "not-on-tensor-cores": "The MFU takes the peak of tensor cores, which were active for less than "
    f"{THRESHOLDS['tensor-share'].value:g} times as much of the window (tensor pipe active): the framework "
    "did not use them for this dtype. Use another version of it, or 16 bits.",
    "time-sources-differ": "The rate by the trainer's time stamps and the rate by another time source differ "
    f"by more than {100 * DIFFER:g} %; where one is when the lines came, by a step of the window more. Check "
    "the clock of the first node, and whether the trainer buffers its output.",
    "warm-up-not-over": "The first steps of the window were slower than the rest, in half of the runs or "
    "more. Raise `warmup`.",
    "slowing-down": "The last quarter of the window was slower than the first by "
    f"{100 * stats.STEADY_SHARE:g} % and by {stats.STEADY_ERRORS:g} standard errors, in half of the runs or "
    "more. Look for clocks held down, and raise `window`.",
    "no-baseline": f"There is no valid run of {BASELINE} to divide by. Measure it: `topology=1n1g,…`.",
    "superlinear": f"The speedup is more than {SUPERLINEAR:g} times the number of devices: "
    f"{BASELINE} is too slow, or the accumulation differs.",
    "baseline-provisional": f"The speedup divides by a provisional {BASELINE}.",
    "slower-than-one": "Several devices are slower than one. The workload names what to check first; with "
    "Horovod it is NCCL.",
    "changed-file": "A log or a record has changed since the report was made.",
    "power-limited": "The power limit held the clocks of a GPU down for "
    f"{THRESHOLDS['held-down'].value:g} % of the window or more. Normal for large batches on large GPUs.",
    "throttled": "The temperature, or the hardware, held the clocks of a GPU down. Check its cooling.",
    "stolen": "The hypervisor ran other virtual machines on the processors of a node for "
    f"{THRESHOLDS['stolen'].value:g} % of the time that the node needed them, or more (`steal` in "
    "/proc/stat). Repeats differ for it. Use a host or processors of your own.",
    "machine-changed": (
        "Runs were made on different machines under the same names, such as virtual machines that were made "
        "again, or a machine was started again between them (boot_id of Linux). The flag names the repeats, "
        "or those of 1n1g on machines that the case did not use. Repeat the campaign on one set of machines."
    ),
    "transports-differ": "NCCL did not connect the GPUs by the same in all repeats: their rates do not "
    "measure the same. Repeat the case.",
    "sockets": "NCCL used sockets where InfiniBand or RoCE is up, and `network=any` accepted it. "
    "docs/how-to/networks.md says what to look for.",
    "gpudirect-off": "NCCL went through the memory of the host for other nodes, not from GPU to adapter "
    "(GPUDirect RDMA). Load nvidia_peermem, and look at PCIe ACS and NCCL_NET_GDR_LEVEL.",
    "far-adapter": "A GPU used an adapter farther away than another one of its node. Look at "
    "NCCL_IB_HCA, and whether the nearer one is up.",
    "gpu-swings": f"A GPU was idle for {THRESHOLDS['idle'].value:g} % of the window or more, and busy at "
    "other times: it waits for input, for the processor or for the network.",
}
"""Each flag that a row can have -> what it means and what to do, as the documents say it."""

STOP = ("incomplete", "superlinear", "above-peak", "changed-file")
NOTE = ("power-limited", "gpu-swings")
LEVELS = {code: "stop" if code in STOP else "note" if code in NOTE else "care" for code in FLAGS}
"""Each flag -> whether a row with it must not be used (`stop`), needs care (`care`), or is sound (`note`)."""

HELD_DOWN = {
    # column of the readings -> its flag, and the sentence
    "throttle_power_cap": ("power-limited", "power-limited"),
    "throttle_thermal": ("throttled", "throttled"),
    "throttle_hardware": ("throttled", "throttled-hardware"),
}

Flagged = tuple[Row, Flag]


def usable(row: Row) -> bool:
    """Return whether a row has a rate and no flag forbids its use."""
    return row["median"] is not None and not any(LEVELS[flag["code"]] == "stop" for flag in row["flags"])


def flag(code: str, sentence: str = "", **values: Any) -> Flag:
    """Return a flag of FLAGS; `sentence` is that of its message where it has several."""
    return {"code": code, "message": message(f"flag.{sentence or code}", **values)}


def repeats(count: int) -> Message:
    """Return such as `3 repeats`."""
    return message("flag.repeat" if count == 1 else "flag.repeats", count=count)


# What follows from the runs of one case


def _too_far_apart(run: Run, window: int | None) -> float | None:
    """Return how far two time sources of a run differ, where that is more than they may."""
    share = abs(run["differs"] or 0.0)
    second = (run["second"] or {}).get("time_source")
    return share if share > tolerance(window, run["time_source"], second) else None


def of_runs(row: Row) -> list[Flag]:
    """Return the flags that follow from the rates of the runs of one case."""
    good, planned = row["good"], row["planned"]
    if not good:
        return [flag("incomplete", repeats=repeats(planned))]
    own_flags = [flag("runs", good=good, planned=planned)] if good < planned else []
    own_flags += of_status(row)
    if row["outliers"]:
        own_flags.append(flag("outlier", repeats=row["outliers"]))
    elif row["spread"] is not None and row["spread"] > SCATTERED:
        own_flags.append(flag("scattered", percent=100 * row["spread"]))
    shares = {run["repeat"]: _too_far_apart(run, row["window"]) for run in row["runs"]}
    large = {repeat: share for repeat, share in shares.items() if share}
    if large:
        own_flags.append(flag("time-sources-differ", percent=100 * max(large.values()), repeats=list(large)))
    # A single run off is noise or an outlier; half of them and more is how the case behaves.
    for code, count in sorted(Counter(run["steady"] for run in row["runs"] if run["steady"]).items()):
        if 2 * count >= good:
            own_flags.append(flag(code, count=count, repeats=repeats(good)))
    return own_flags


def of_status(row: Row) -> list[Flag]:
    """Return the flag of a row with too few valid runs."""
    if row["status"] != "provisional":
        return []
    return [flag("provisional", good=row["good"], needed=ENOUGH_RUNS)]


# What follows from the row that it is divided by


def of_speedup(row: Row, base: Row | None) -> list[Flag]:
    """Return the flags of a speedup over the 1n1g of the same table, None without a valid run."""
    if base is None:
        return [flag("no-baseline")]
    return _of_quotient(row, row["speedup"], base, _suspects(row, base), repeats(base["good"]))


def of_strong_speedup(row: Row, speedup: float | None, base: Row | None) -> list[Flag]:
    """Return the flags of a speedup over the 1n1g of the same global batch."""
    if base is None:
        return [flag("no-baseline", "no-baseline-of-batch")]
    cause = message("flag.slow-alone", samples=base["bsz"])
    return _of_quotient(row, speedup, base, [cause], message("flag.valid", count=base["good"]))


def _of_quotient(
    row: Row, speedup: float | None, base: Row, causes: list[Message], runs: Message
) -> list[Flag]:
    """Return the flags of a speedup; `causes` are why it may be above linear, `runs` how many `base` has."""
    devices = row["devices"]
    if speedup is not None and speedup > devices * SUPERLINEAR:
        return [flag("superlinear", speedup=speedup, devices=devices, causes=causes)]
    if base["status"] == "provisional" and row is not base:
        return [flag("baseline-provisional", runs=runs)]
    return []


def _suspects(row: Row, base: Row) -> list[Message]:
    """Return what a speedup above linear likely comes from, the most likely cause first."""
    causes = []
    if base["good"] < ENOUGH_RUNS:
        causes.append(message("flag.baseline-few", repeats=repeats(base["good"])))
    elif base["spread"] is not None and base["spread"] > UNSTEADY_BASELINE:
        causes.append(message("flag.baseline-scattered", percent=100 * base["spread"]))
    elif any(run["steady"] for run in base["runs"]):
        causes.append(message("flag.baseline-unsteady"))
    if row["accumulation"] != 1:
        causes.append(message("flag.accumulation"))
    return causes or [message("flag.baseline-slow")]


# What follows from the rest of the campaign


def attach(
    rows: Sequence[Row],
    campaign: Campaign,
    workloads: Workloads,
    check: ManifestCheck | None,
    shares: Iterable[Mfu],
    usage: Iterable[Usage],
) -> None:
    """Give each row the flags of its files, its GPUs, its nodes and its peak.

    `check` is the comparison of its files with the manifest, `shares` its MFU, `usage` its utilisation.
    """
    valid = valid_by_case(campaign.runs)
    for row, own_flag in [
        *_changed_files(rows, check),
        *_slower_than_one(rows, workloads),
        *of_gpus(rows, valid),
        *_stolen(rows, valid),
        *_of_networks(rows, valid),
        *_machine_changed(rows, valid),
        *_shared(rows, campaign.hardware),
        *_of_peaks(rows, shares, usage),
    ]:
        row["flags"].append(own_flag)


def _changed_files(rows: Iterable[Row], check: ManifestCheck | None) -> list[Flagged]:
    by_case = {row["case"]: row for row in rows}
    flagged_rows = []
    for problem in check.wrong if check else ():
        # One of no run is of no row; the notes have it.
        _, case, repeat = problem["run"].split("/") if problem["run"] else ("", "", "")
        if case in by_case:
            flagged_rows.append(
                (by_case[case], flag("changed-file", repeat=repeat, problem=message_of(problem)))
            )
    return flagged_rows


def _slower_than_one(rows: Iterable[Row], workloads: Workloads) -> list[Flagged]:
    flagged_rows = []
    for row in rows:
        # The hints are about NCCL, which CPUs have no use for.
        hint = workloads.get(row["workload"], UNKNOWN).slower if row["device"] == "gpu" else ""
        if hint and row["speedup"] is not None and row["devices"] > 1 and row["speedup"] < 1:
            flagged_rows.append((row, flag("slower-than-one", hint=message("text", text=hint))))
    return flagged_rows


def of_gpus(rows: Iterable[Row], valid: Mapping[str, Sequence[Run]]) -> list[Flagged]:
    """Return flags of GPUs that a limit held down, or that were idle now and then.

    A share of the window is the mean over the valid runs.
    """
    flagged_rows = []
    for row in rows:
        gpus: dict[str, list[GpuState]] = {}
        for run in valid.get(row["case"], []):
            for state in run.get("gpus") or []:
                gpus.setdefault(f"{state['node']} GPU {state['gpu']}", []).append(state)
        for column, (code, sentence) in HELD_DOWN.items():
            shares = _shares(gpus, column, "held-down")
            if column == "throttle_power_cap":
                shares = {name: share for name, share in shares.items() if _near_its_limit(gpus[name])}
            if shares:
                flagged_rows.append((row, flag(code, sentence, gpus=_worst(shares))))
        idle = {name: share for name, share in _shares(gpus, "idle", "idle").items() if _swings(gpus[name])}
        if idle:
            flagged_rows.append((row, flag("gpu-swings", gpus=_worst(idle))))
    return flagged_rows


def _shares(gpus: Mapping[str, Sequence[GpuState]], what: str, threshold: str) -> dict[str, float]:
    """Return the mean share of the window of each GPU for which it reaches a threshold."""
    shares_by_code = {
        name: [each["shares"][what] for each in states if what in each["shares"]]
        for name, states in gpus.items()
    }
    means = {name: statistics.fmean(shares) for name, shares in shares_by_code.items() if shares}
    return {name: share for name, share in means.items() if 100 * share >= THRESHOLDS[threshold].value}


def _near_its_limit(states: Sequence[GpuState]) -> bool:
    """Return whether a GPU drew nearly its power limit on average; the driver's flag outlasts a burst."""
    shares_of_limit = [state["power_used"] for state in states if "power_used" in state]
    return bool(shares_of_limit) and 100 * statistics.fmean(shares_of_limit) >= THRESHOLDS["power-near"].value


def _swings(states: Sequence[GpuState]) -> bool:
    return max(state.get("highest", 0.0) for state in states) >= THRESHOLDS["swings-to"].value


def _worst(shares: Mapping[str, float]) -> Message:
    """Return the GPU with the largest share, and how many others there are."""
    name, share = max(shares.items(), key=lambda item: item[1])
    if len(shares) == 1:
        return message("flag.gpu", gpu=name, share=share)
    return message("flag.gpus", gpu=name, share=share, count=len(shares) - 1, least=min(shares.values()))


def _shared(rows: Iterable[Row], entries: Sequence[Hardware]) -> list[Flagged]:
    """Return flags of rows whose nodes shared machines, as simulated nodes and containers of one host do."""
    flagged_rows = []
    for row in rows:
        nodes, machines = row["nodes"], row["machines"]
        if hardware.shared(row):
            sentence = "shared-machine" if machines == 1 else "shared-machines"
            flagged_rows.append((row, flag("shared-machine", sentence, nodes=nodes, machines=machines)))
        elif sharing.unknown(entries, row):
            flagged_rows.append((row, flag("shared-machine", "machines-unknown", nodes=nodes)))
    return flagged_rows


def _stolen(rows: Iterable[Row], valid: Mapping[str, Sequence[Run]]) -> list[Flagged]:
    flagged_rows = []
    for row in rows:
        shares = {
            run["repeat"]: max((run.get("utilisation") or {}).get("stolen", [0.0]))
            for run in valid.get(row["case"], [])
        }
        large = {repeat: share for repeat, share in shares.items() if share >= THRESHOLDS["stolen"].value}
        if large:
            flagged_rows.append((row, flag("stolen", percent=max(large.values()), repeats=sorted(large))))
    return flagged_rows


def _of_networks(rows: Iterable[Row], valid: Mapping[str, Sequence[Run]]) -> list[Flagged]:
    """Return flags of rows whose GPUs were connected by something slow, or not by the same in all runs."""
    flagged_rows = []
    for row in rows:
        runs = [run for run in valid.get(row["case"], []) if "nccl" in run]
        ways = {run["repeat"]: network.transport(run["nccl"]) for run in runs}
        others = [repeat for repeat, way in ways.items() if way != ways[min(ways)]]
        if others:
            flagged_rows.append((row, flag("transports-differ", repeats=others)))
        up = {name for run in runs for name in network.unused(run["nccl"], run.get("hardware") or ())}
        if up:
            flagged_rows.append((row, flag("sockets", up=sorted(up))))
        repeats_without = [run["repeat"] for run in runs if network.gpudirect_off(run["nccl"])]
        if repeats_without:
            flagged_rows.append((row, flag("gpudirect-off", repeats=repeats_without)))
        far = [each for run in runs for each in run["nccl"]["far"]]
        if far:
            flagged_rows.append((row, flag("far-adapter", **far[0])))
    return flagged_rows


def _machine_changed(rows: Sequence[Row], valid: Mapping[str, Sequence[Run]]) -> list[Flagged]:
    """Return flags of rows whose runs, or whose 1n1g, ran on other machines under the same names.

    A virtual machine that is made again looks like one that was started again.
    """
    flagged_rows = []
    boots = {
        row["case"]: {
            run["repeat"]: set(boot_of_node.values())
            for run in valid.get(row["case"], ())
            if len(boot_of_node := run.get("boots") or {}) == row["nodes"]
        }
        for row in rows
    }
    boots_of_one = {row["group"]: boots[row["case"]] for row in rows if row["label"] == BASELINE}
    for row in rows:
        own = boots[row["case"]]
        first = own[min(own)] if own else set()
        others = [repeat for repeat in sorted(own) if own[repeat] != first]
        if others:
            flagged_rows.append((row, flag("machine-changed", repeats=others)))
        own_boots = set().union(*own.values())
        base = boots_of_one.get(row["group"], {})
        elsewhere = [repeat for repeat in sorted(base) if not base[repeat] <= own_boots]
        if own_boots and elsewhere:
            flagged_rows.append((row, flag("machine-changed", "baseline-elsewhere", repeats=elsewhere)))
    return flagged_rows


def _of_peaks(rows: Iterable[Row], entries: Iterable[Mfu], usage: Iterable[Usage]) -> list[Flagged]:
    """Return flags of rows whose MFU cannot be true, or is of a peak that does not count.

    Where tensor cores do all the arithmetic that the workload declares, they are active for about as much of
    the window as the MFU says.
    """
    by_case = {row["case"]: row for row in rows}
    active = {each["case"]: each["mean"] for each in usage if each["quantity"] == "pipe_tensor_active"}
    flagged_rows = []
    for entry in entries:
        if entry["mfu"] is None or entry["peak_of"] is None:
            continue
        percent, row = 100 * entry["mfu"], by_case[entry["case"]]
        if percent > 100:
            flagged_rows.append((row, flag("above-peak", percent=percent, peak=entry["peak_of"])))
        pipe = active.get(entry["case"])
        limit = THRESHOLDS["tensor-share"].value * percent
        if mfu.on_tensor_cores(entry["peak_of"]) and pipe is not None and pipe < limit:
            flagged_rows.append((row, flag("not-on-tensor-cores", active=pipe, percent=percent)))
    return flagged_rows
