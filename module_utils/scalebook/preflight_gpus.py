# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Checks of the GPUs (preflight.judge asks them all).

What a GPU says of itself is the report of `nvidia-smi -q -x`, as paths and texts (look.py, read_gpus).
Drivers before 530 or so call some of it otherwise; both names are asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible.module_utils.scalebook.preflight_site import Finding, Site, finding

MINIMUM_DRIVER = {
    "10.1": "418.39", "10.2": "440.33", "11": "450.80.02", "12": "525.60.13", "13": "580.65.06",
}  # fmt: skip
"""Driver that a CUDA version needs at least, from 11 on any minor version of it.

https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/ (CUDA Toolkit and Minimum Required Driver Version)
"""

# https://docs.nvidia.com/deploy/xid-errors/: those whose immediate action is a reset, a reboot or a repair …
HARDWARE = {
    46: "it stopped processing", 48: "an uncorrectable memory error", 54: "its power cable is not connected",
    62: "its internal processor halted", 64: "a bad memory row could not be remapped", 74: "an NVLink error",
    79: "it has fallen off the bus", 95: "an uncontained memory error", 110: "a security fault",
    119: "its system processor does not answer", 120: "its system processor failed",
    140: "an unrecovered memory error", 143: "it could not be initialised",
}  # fmt: skip
# … and those that a program brings upon itself, or that only tell of the end of one.
OF_PROGRAMS = {8, 11, 13, 31, 32, 37, 43, 45, 68, 69}

RESET = "nvidia-smi --gpu-reset -i N with nothing on it, or reboot; if it comes again, have it replaced"

Gpu = Mapping[str, Any]
"""`{"bus", "values": {path: text}, "processes"}`"""


def each(site: Site) -> Iterator[tuple[Mapping[str, Any], int, Gpu]]:
    """Yield every GPU with its machine and its index there."""
    for machine, smi in site.facts("smi"):
        for index, gpu in enumerate(smi["gpus"]):
            yield machine, index, gpu


def value(gpu: Gpu, *paths: str) -> str | None:
    """Return the text of the first of `paths` that the GPU has an answer for."""
    for path in paths:
        text = gpu["values"].get(path)
        if text is not None and text not in ("N/A", "[N/A]", "[Not Supported]", "Not Supported"):
            return str(text)
    return None


def number(gpu: Gpu, *paths: str) -> float | None:
    """Return the number that the first of `paths` begins with: `700.00 W`, `16x`."""
    match = re.match(r"-?\d+(\.\d+)?", value(gpu, *paths) or "")
    return float(match.group()) if match else None


def model(gpu: Gpu) -> str:
    """Return what kind of GPU it is."""
    return value(gpu, "product_name") or "?"


def _when_gpus(look: Callable[[Site], Iterator[Finding]]) -> Callable[[Site], Iterator[Finding] | None]:
    """Ask a check only where there are GPUs."""
    return lambda site: look(site) if any(True for _ in each(site)) else None


def _of(check: str, level: str, machine: Mapping[str, Any], index: int, gpu: Gpu, *said: str) -> Finding:
    """Return a finding on one GPU; `said` is what was found, what was wanted, and the cure."""
    found, wanted, cure = said
    return finding(check, level, machine["nodes"], f"GPU {index} ({gpu['bus']}): {found}", wanted, cure)


def count(site: Site) -> Iterator[Finding] | None:
    """Every machine has the GPUs that the inventory says, and they answer."""
    nvidia = any(True for _ in site.facts("smi")) or any(bus for _, bus in site.facts("bus"))
    failing = any(site.failure(machine, "smi") for machine in site.machines)
    return _count(site) if site.device != "cpu" and (nvidia or failing or site.device == "gpu") else None


def _count(site: Site) -> Iterator[Finding]:
    # A machine that has an NVIDIA card for its screen only measures its processors.
    level = "refuse" if site.with_gpus else "warn"
    driver = "look at dmesg and at the driver's installation; -e device=cpu measures the processors"
    for machine in site.machines:
        if not site.seen.get(machine["name"], {}).get("facts"):
            continue  # not reached at all
        smi, bus, why = site.fact(machine, "smi"), site.fact(machine, "bus"), site.failure(machine, "smi")
        here = len(smi["gpus"]) if smi else 0
        wanted = 1 if machine["local"] else machine["slots"]
        if why is not None:
            yield finding("gpu", level, machine["nodes"], why, "an answer of nvidia-smi", driver)
        elif not smi and bus:
            found = f"{bus} NVIDIA devices on the bus, but no nvidia-smi"
            yield finding("gpu", level, machine["nodes"], found, "a driver", driver)
        elif site.with_gpus and here < wanted:
            found = f"{here} of {wanted} GPUs answer"
            cure = "nvidia-smi -L, lspci and dmesg show what is gone; or set slots to what there is"
            yield finding("gpu", "refuse", machine["nodes"], found, f"slots: {wanted}", cure)
        elif site.with_gpus and here > wanted and not machine["local"]:
            found = f"{here} GPUs, the inventory says {wanted}; all {here} are used"
            cure = f"set slots: {here}"
            yield finding("gpu", "warn", machine["nodes"], found, f"slots: {wanted}", cure)
    for machine, index, gpu in each(site):
        lost = [text for text in gpu["values"].values() if re.search(r"ERR!|Unknown Error|GPU is lost", text)]
        if lost:
            said = f"it answers {lost[0]}", "an answer", RESET
            yield _of("gpu", "refuse", machine, index, gpu, *said)
    models = Counter(model(gpu) for _, _, gpu in each(site))
    if len(models) > 1:
        usual = models.most_common(1)[0][0]
        for machine, index, gpu in each(site):
            if model(gpu) != usual:
                said = (
                    f"it is an {model(gpu)}, most are {usual}",
                    usual,
                    "measure like with like: fewer nodes",
                )
                yield _of("gpu", "warn", machine, index, gpu, *said)


def driver(site: Site) -> Iterator[Finding]:
    """The driver is the same everywhere, and new enough for CUDA."""
    wanted = str(site.limits.get("cuda") or "")
    least = MINIMUM_DRIVER.get(wanted) or MINIMUM_DRIVER.get(wanted.split(".")[0])
    versions: dict[str, list[str]] = {}
    for machine, smi in site.facts("smi"):
        versions.setdefault(smi["driver"], []).extend(machine["nodes"])
        if least and _version(smi["driver"]) < _version(least):
            found = f"driver {smi['driver']} (CUDA {smi['cuda']} at most)"
            cure = f"install driver {least} or newer, or choose another stack_name"
            said = found, f"{least} or newer for CUDA {wanted}", cure
            yield finding("driver", "refuse", machine["nodes"], *said)
    if len(versions) > 1:
        found = "; ".join(f"{version}: {', '.join(nodes)}" for version, nodes in sorted(versions.items()))
        fewest = min(versions.values(), key=len)
        yield finding("driver", "refuse", fewest, found, "one version", "install the same driver everywhere")


def _version(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def process(site: Site) -> Iterator[Finding]:
    """Nobody else computes on the GPUs."""
    for machine, index, gpu in each(site):
        for one in gpu["processes"]:
            if "C" in one["type"]:  # C, C+G, M+C; a screen's G may stay
                who = f"{one['command'][:80]} (pid {one['pid']}, user {one.get('user', '?')})"
                found = f"{who} uses {one['memory']}"
                cure = "ask its owner to end it, or measure other nodes"
                yield _of("process", "refuse", machine, index, gpu, found, "no process", cure)


def memory(site: Site) -> Iterator[Finding]:
    """The GPUs' memory is free."""
    wanted = float(site.limits["gpu_memory_free"])
    for machine, index, gpu in each(site):
        total, free = number(gpu, "fb_memory_usage/total"), number(gpu, "fb_memory_usage/free")
        reserved = number(gpu, "fb_memory_usage/reserved") or 0.0
        if not total or free is None or free >= wanted * (total - reserved):
            continue
        kinds = {one["type"] for one in gpu["processes"]}
        if any("C" in kind for kind in kinds):
            continue  # the check above names whose it is
        level = "warn" if kinds else "refuse"
        whose = "a screen" if kinds else "a process that cannot be seen from here"
        found = f"{free:g} of {total - reserved:g} MiB free, {whose} has the rest"
        cure = "end what uses it (fuser -v /dev/nvidia*); it may be in another container"
        yield _of("memory", level, machine, index, gpu, found, f"{wanted:.0%} free", cure)


def ecc(site: Site) -> Iterator[Finding]:
    """No uncorrectable memory error since the driver was loaded, and error correction as on the others."""
    modes = Counter(value(gpu, "ecc_mode/current_ecc") for _, _, gpu in each(site))
    usual = modes.most_common(1)[0][0]
    for machine, index, gpu in each(site):
        bad = [
            f"{path.rsplit('ecc_errors/', 1)[-1]}: {text}"
            for path, text in gpu["values"].items()
            if path.startswith("ecc_errors/volatile/")
            and ("uncorrectable" in path or path.endswith("double_bit/total"))
            and (number(gpu, path) or 0) > 0
        ]
        flags = ("channel_repair_pending", "tpc_repair_pending", "unrepairable_memory")
        bad += [
            f"{path.removeprefix('ecc_errors/')}: {text}"
            for path, text in gpu["values"].items()
            if text == "Yes" and (path.endswith("/sram_threshold_exceeded") or path.endswith(flags))
        ]
        if bad:
            yield _of("ecc", "refuse", machine, index, gpu, ", ".join(bad), "none", RESET)
        mode, pending = value(gpu, "ecc_mode/current_ecc"), value(gpu, "ecc_mode/pending_ecc")
        if mode != pending or mode != usual:
            found = f"error correction is {mode}, after a reset {pending}, on most GPUs {usual}"
            cure = "nvidia-smi -e 1 (or 0) on all of them, then a reset"
            yield _of("ecc", "warn", machine, index, gpu, found, f"{usual}", cure)


def rows(site: Site) -> Iterator[Finding]:
    """No bad memory row waits to be remapped.

    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
    """
    for machine, index, gpu in each(site):
        if value(gpu, "remapped_rows/remapped_row_failure") == "Yes":
            said = "remapping a bad memory row failed", "no failure", "have it replaced"
            yield _of("rows", "refuse", machine, index, gpu, *said)
        if value(gpu, "remapped_rows/remapped_row_pending") == "Yes":
            said = "a bad memory row is to be remapped", "none pending", RESET
            yield _of("rows", "refuse", machine, index, gpu, *said)
        pending = ("pending_retirement", "pending_blacklist", "pending_blacklist_page")
        if value(gpu, *(f"retired_pages/{name}" for name in pending)) == "Yes":
            yield _of(
                "rows", "refuse", machine, index, gpu, "a bad memory page is to be retired", "none", RESET
            )


THROTTLING = {
    "hw_thermal_slowdown": ("refuse", "the hardware slows it down: too hot"),
    "hw_power_brake_slowdown": ("refuse", "the hardware slows it down: the power supply asks for it"),
    "hw_slowdown": ("refuse", "the hardware slows it down"),
    "sw_thermal_slowdown": ("warn", "the driver slows it down: too hot"),
}


def throttle(site: Site) -> Iterator[Finding]:
    """Nothing slows the GPUs down, and they are cool before the work begins."""
    degrees = float(site.limits["gpu_spare_degrees"])
    cure = "look at fans, air flow and power supplies (nvidia-smi -q -d PERFORMANCE,TEMPERATURE)"
    for machine, index, gpu in each(site):
        for reason, (level, found) in THROTTLING.items():
            now = value(
                gpu,
                f"clocks_event_reasons/clocks_event_reason_{reason}",
                f"clocks_throttle_reasons/clocks_throttle_reason_{reason}",
            )
            if now == "Active":
                yield _of("throttle", level, machine, index, gpu, found, "full speed", cure)
                break
        left = _degrees_left(gpu)
        if left is not None and left < degrees:
            found = f"{left:g} °C below the point where it slows down, with nothing to do"
            yield _of("throttle", "warn", machine, index, gpu, found, f"{degrees:g} °C", cure)


def _degrees_left(gpu: Gpu) -> float | None:
    """Return how many degrees the GPU may get warmer before it slows down."""
    limit, slow = (
        number(gpu, "temperature/gpu_temp_tlimit"),
        number(gpu, "temperature/gpu_temp_slow_tlimit_threshold"),
    )
    if limit is not None and slow is not None:
        return limit - slow
    now, slow = number(gpu, "temperature/gpu_temp"), number(gpu, "temperature/gpu_temp_slow_threshold")
    return slow - now if now is not None and slow is not None else None


def power(site: Site) -> Iterator[Finding]:
    """No GPU's power is capped below what it is made for."""
    for machine, index, gpu in each(site):
        limit = number(
            gpu,
            "gpu_power_readings/current_power_limit",
            "power_readings/enforced_power_limit",
            "power_readings/power_limit",
        )
        usual = number(gpu, "gpu_power_readings/default_power_limit", "power_readings/default_power_limit")
        if limit is not None and usual is not None and limit < usual - 0.5:
            found = f"its power is capped at {limit:g} W"
            said = (
                found,
                f"{usual:g} W",
                f"nvidia-smi -i {index} -pl {usual:g}, or report it with the numbers",
            )
            yield _of("power", "warn", machine, index, gpu, *said)


def pcie(site: Site) -> Iterator[Finding]:
    """Every GPU has all the PCIe lanes that the others of its kind have."""
    widths: dict[str, float] = {}
    lanes = "pci/pci_gpu_link_info/link_widths/"
    for _, _, gpu in each(site):
        widths[model(gpu)] = max(widths.get(model(gpu), 0), number(gpu, lanes + "current_link_width") or 0)
    for machine, index, gpu in each(site):
        most, now = number(gpu, lanes + "max_link_width"), number(gpu, lanes + "current_link_width")
        if most is None or now is None or now >= most:
            continue
        # Some servers wire fewer lanes to all of them: slow, but no fault of this one.
        level = "refuse" if now < widths[model(gpu)] else "warn"
        found = f"{now:g} of {most:g} PCIe lanes"
        cure = "reseat the card or its riser; lspci -vv shows LnkSta"
        yield _of("pcie", level, machine, index, gpu, found, f"{most:g} lanes", cure)


def nvlink(site: Site) -> Iterator[Finding]:
    """All NVLinks of a GPU that has any in use are up, as many as on the others, and so is their fabric."""
    active: dict[str, int] = {}
    for machine, index, gpu in each(site):
        links = _links(site, machine, index)
        active[model(gpu)] = max(active.get(model(gpu), 0), sum(link is not None for link in links.values()))
    cure = "nvidia-smi nvlink --status; look at nvidia-fabricmanager and dmesg; reset all GPUs of the machine"
    for machine, index, gpu in each(site):
        links, usual = _links(site, machine, index), active[model(gpu)]
        down = [link for link, speed in links.items() if speed is None]
        up = len(links) - len(down)
        # Where none is in use anywhere there are none to use: one GPU, or no bridge.
        if links and usual and (down or up < usual):
            which = f", down: {', '.join(down)}" if down else ""
            found = f"{up} NVLinks are up{which}"
            wanted = f"{max(usual, len(links))} links"
            yield _of("nvlink", "refuse", machine, index, gpu, found, wanted, cure)
        state, status = value(gpu, "fabric/state"), value(gpu, "fabric/status")
        if state is not None and (state != "Completed" or status not in (None, "Success")):
            found = f"its NVLink fabric is {state}, {status}"
            yield _of("nvlink", "refuse", machine, index, gpu, found, "Completed, Success", cure)


def _links(site: Site, machine: Mapping[str, Any], index: int) -> Mapping[str, str | None]:
    links: Mapping[str, str | None] = (site.fact(machine, "nvlink") or {}).get(str(index), {})
    return links


def xid(site: Site) -> Iterator[Finding] | None:
    """The kernel's log tells of no sick GPU since the machine started."""
    told = any(errors for _, errors in site.facts("xids"))  # of a machine whose only GPU is gone, too
    return _xid(site) if told or any(True for _ in each(site)) else None


def _xid(site: Site) -> Iterator[Finding]:
    for machine, errors in site.facts("xids"):
        for error in errors:
            number_, told = error["xid"], f"Xid {error['xid']} of {error['bus']}, {error['count']} times"
            if number_ in OF_PROGRAMS:
                continue
            level = "refuse" if number_ in HARDWARE else "warn"
            found = f"{told}: {HARDWARE.get(number_, error['text'])}"
            cure = (
                "reboot, or have it replaced; https://docs.nvidia.com/deploy/xid-errors says more. "
                "-e preflight_accept=xid where that is done"
            )
            yield finding("xid", level, machine["nodes"], found, "none", cure)
    cure = "ask as root, or sysctl kernel.dmesg_restrict=0"
    for made in site.failures("xids", "xid", "warn", "a kernel log that can be read", cure):
        if any(True for _ in each(site)):
            yield {**made, "found": f"Xid errors are not known: {made['found']}"}


def mode(site: Site) -> Iterator[Finding]:
    """The GPUs are whole, may compute, and wait for no repair."""
    for machine, index, gpu in each(site):
        if value(gpu, "mig_mode/current_mig") == "Enabled":
            said = "it is cut into instances (MIG)", "whole GPUs", f"nvidia-smi -i {index} -mig 0"
            yield _of("mode", "refuse", machine, index, gpu, *said)
        if value(gpu, "compute_mode") == "Prohibited":
            said = "computing on it is prohibited", "Default", f"nvidia-smi -i {index} -c DEFAULT"
            yield _of("mode", "refuse", machine, index, gpu, *said)
        action = value(gpu, "gpu_recovery_action")
        if action not in (None, "None"):
            yield _of("mode", "refuse", machine, index, gpu, f"it waits for: {action}", "none", RESET)


CHECKS: tuple[tuple[str, Callable[[Site], Iterator[Finding] | None]], ...] = (
    ("gpu", count),
    *(
        (look.__name__, _when_gpus(look))
        for look in (driver, process, memory, ecc, rows, throttle, power, pcie, nvlink, mode)
    ),
    ("xid", xid),
)
