# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Checks of the GPUs (preflight.judge runs them).

The values of a GPU are those of `nvidia-smi -q -x`, {path: text} (module node_probe, nvidia_smi.read_gpus).
Drivers before about 530 use other names for some paths; both are looked up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.scalebook.contracts import Finding, Message, Statement, as_message, message
from ansible.module_utils.scalebook.preflight.site import Check, Site, finding

MINIMUM_DRIVER = {
    "10.1": "418.39", "10.2": "440.33", "11": "450.80.02", "12": "525.60.13", "13": "580.65.06",
}  # fmt: skip
"""Oldest driver of each CUDA version; from 11 on of every minor version.

https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/ (CUDA Toolkit and Minimum Required Driver Version)
"""

# https://docs.nvidia.com/deploy/xid-errors/: those whose immediate action is a reset, a reboot or a repair …
HARDWARE = {
    46: "preflight.xid-stopped",
    48: "preflight.xid-memory-error",
    54: "preflight.xid-no-power-cable",
    62: "preflight.xid-processor-halted",
    64: "preflight.xid-row-not-remapped-now",
    74: "preflight.xid-nvlink-error",
    79: "preflight.xid-off-the-bus",
    95: "preflight.xid-uncontained-error",
    110: "preflight.xid-security-fault",
    119: "preflight.xid-no-answer-of-its-processor",
    120: "preflight.xid-processor-failed",
    140: "preflight.xid-unrecovered-error",
    143: "preflight.xid-not-initialised",
}
# … and those that a program causes itself, or that only report that one ended.
OF_PROGRAMS = {8, 11, 13, 31, 32, 37, 43, 45, 68, 69}

RECOVERY = 154
"""The Xid with which the driver says what a GPU needs: `GPU recovery action changed from … to …`."""

LOST = re.compile(
    r"ERR!|Unknown Error|GPU is lost|requires re(set|start)|determine the device handle", re.IGNORECASE
)
"""What nvidia-smi prints instead of values, and as an error, of a GPU that does not work."""

RESET = message("fix.reset")


@dataclass(frozen=True)
class Gpu:
    """A GPU of a machine, as nvidia_smi.read_gpus describes it."""

    machine: Mapping[str, Any]
    index: int
    bus: str
    values: Mapping[str, str]
    processes: Sequence[Mapping[str, Any]]

    def text(self, *paths: str) -> str | None:
        """Return the text of the first of `paths` that the GPU has an answer for."""
        for path in paths:
            text = self.values.get(path)
            if text is not None and text not in ("N/A", "[N/A]", "[Not Supported]", "Not Supported"):
                return text
        return None

    def number(self, *paths: str) -> float | None:
        """Return the number that the text of the first of `paths` begins with: `700.00 W`, `16x`."""
        match = re.match(r"-?\d+(\.\d+)?", self.text(*paths) or "")
        return float(match.group()) if match else None

    @property
    def model(self) -> str:
        """The product name."""
        return self.text("product_name") or "?"

    def finding(
        self, check: str, level: str, *, observed: Statement, expected: Statement, fix: Message
    ) -> Finding:
        """Return a finding on this GPU."""
        of_gpu = message("preflight.gpu", number=self.index, bus=self.bus, what=as_message(observed))
        return finding(check, level, self.machine["nodes"], observed=of_gpu, expected=expected, fix=fix)


def all_gpus(site: Site) -> Iterator[Gpu]:
    """Yield every GPU of every machine."""
    for machine, smi in site.facts("smi"):
        for index, gpu in enumerate(smi["gpus"]):
            yield Gpu(machine, index, gpu["bus"], gpu["values"], gpu["processes"])


def has_gpus(site: Site) -> bool:
    """Return whether a GPU answers on any machine."""
    return any(True for _ in all_gpus(site))


def count_applies(site: Site) -> bool:
    """Return whether GPUs are expected, or a driver is installed that fails."""
    nvidia = any(True for _ in site.facts("smi")) or any(bus for _, bus in site.facts("bus"))
    failing = any(site.failure(machine, "smi") for machine in site.machines)
    return site.device != "cpu" and (nvidia or failing or site.device == "gpu")


def count(site: Site) -> Iterator[Finding]:
    """Every machine has as many GPUs as the inventory says, all of one model, and they answer."""
    for machine in site.machines:
        # Where there are no facts it was not reached: check `reach` reports it.
        if site.probed.get(machine["name"], {}).get("facts"):
            yield from _differing_gpus(site, machine)
    yield from _warnings(site)
    yield from _silent_gpus(site)
    yield from _of_other_models(site)


def _differing_gpus(site: Site, machine: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the finding where the driver does not answer, or not with as many GPUs as the inventory says."""
    smi, bus, why = site.fact(machine, "smi"), site.fact(machine, "bus"), site.failure(machine, "smi")
    here = len(smi["gpus"]) if smi else 0
    slots = 1 if machine["local"] else machine["slots"]
    # A machine that has an NVIDIA card for its screen only measures its processors.
    level = "refuse" if site.with_gpus else "warn"
    expected, driver = as_message(f"slots: {slots}"), message("fix.check-driver")
    if why is not None:
        expected = message("expected.answer-of-nvidia-smi")
        fix = _reboot(why) or (RESET if LOST.search(why) else driver)
        yield finding("gpu", level, machine["nodes"], observed=why, expected=expected, fix=fix)
    elif not smi and bus:
        observed = message("preflight.no-nvidia-smi", count=bus)
        expected = message("expected.driver")
        yield finding("gpu", level, machine["nodes"], observed=observed, expected=expected, fix=driver)
    elif site.with_gpus and here < slots:
        observed = message("preflight.gpus-answer", count=here, slots=slots)
        fix = message("fix.compare-gpus")
        yield finding("gpu", "refuse", machine["nodes"], observed=observed, expected=expected, fix=fix)
    elif site.with_gpus and here > slots and not machine["local"]:
        observed = message("preflight.more-gpus", count=here, slots=slots)
        fix = message("fix.set", setting=f"slots: {here}")
        yield finding("gpu", "warn", machine["nodes"], observed=observed, expected=expected, fix=fix)


def _silent_gpus(site: Site) -> Iterator[Finding]:
    """Yield a finding for each GPU that is listed and does not answer."""
    for gpu in all_gpus(site):
        lost_texts = [text for text in gpu.values.values() if LOST.search(text)]
        if lost_texts:
            yield gpu.finding(
                "gpu",
                "refuse",
                observed=message("preflight.gpu-answers", text=lost_texts[0]),
                expected=message("expected.answer"),
                fix=RESET,
            )


def _of_other_models(site: Site) -> Iterator[Finding]:
    """Yield a finding for each GPU that is not of the model of most."""
    models = Counter(gpu.model for gpu in all_gpus(site))
    if len(models) > 1:
        usual = models.most_common(1)[0][0]
        for gpu in all_gpus(site):
            if gpu.model != usual:
                yield gpu.finding(
                    "gpu",
                    "warn",
                    observed=message("preflight.gpu-model", model=gpu.model, usual=usual),
                    expected=usual,
                    fix=message("fix.one-gpu-model"),
                )


def _warnings(site: Site) -> Iterator[Finding]:
    for machine, smi in site.facts("smi"):
        if smi.get("warning"):
            fix = message("fix.repair-if-it-stays")
            observed = message("preflight.nvidia-smi-warns", text=smi["warning"])
            yield finding(
                "gpu",
                "warn",
                machine["nodes"],
                observed=observed,
                expected=message("expected.no-warning"),
                fix=fix,
            )


def _reboot(why: str) -> Message | None:
    """Return the fix where the driver's loaded module and its libraries differ, else None."""
    if not re.search("version mismatch", why, re.IGNORECASE):
        return None
    library = re.search(r"library version: ([\d.]+)", why)
    module = re.search(r"loaded module: ([\d.]+)", why)
    newer = bool(library and module) and _version(module[1]) > _version(library[1])  # type: ignore[index]
    return message("fix.reboot-newer" if newer else "fix.reboot-older")


def driver(site: Site) -> Iterator[Finding]:
    """The driver is the same everywhere, and new enough for CUDA."""
    cuda = str(site.limits.get("cuda") or "")
    oldest = MINIMUM_DRIVER.get(cuda) or MINIMUM_DRIVER.get(cuda.split(".")[0])
    versions: dict[str, list[str]] = {}
    for machine, smi in site.facts("smi"):
        versions.setdefault(smi["driver"], []).extend(machine["nodes"])
        if oldest and _version(smi["driver"]) < _version(oldest):
            observed = message("preflight.driver", version=smi["driver"], cuda=smi["cuda"])
            fix = message("fix.newer-driver", oldest=oldest)
            yield finding(
                "driver",
                "refuse",
                machine["nodes"],
                observed=observed,
                expected=message("expected.newer-driver", oldest=oldest, cuda=cuda),
                fix=fix,
            )
    if len(versions) > 1:
        each_version = [f"{version}: {', '.join(nodes)}" for version, nodes in sorted(versions.items())]
        fewest = min(versions.values(), key=len)
        yield finding(
            "driver",
            "refuse",
            fewest,
            observed="; ".join(each_version),
            expected=message("expected.one-version"),
            fix=message("fix.same-driver"),
        )


def _version(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def processes(site: Site) -> Iterator[Finding]:
    """No process of another job computes on the GPUs."""
    for gpu in all_gpus(site):
        for process in gpu.processes:
            if "C" in process["type"]:  # C, C+G, M+C; G is a display
                observed = message(
                    "preflight.process-uses",
                    command=process["command"][:80],
                    pid=process["pid"],
                    user=process.get("user", "?"),
                    memory=process["memory"],
                )
                fix = message("fix.stop-process")
                yield gpu.finding(
                    "process", "refuse", observed=observed, expected=message("expected.no-process"), fix=fix
                )


def memory(site: Site) -> Iterator[Finding]:
    """The GPUs' memory is free."""
    part = float(site.limits["gpu_memory_free"])
    for gpu in all_gpus(site):
        total, free = gpu.number("fb_memory_usage/total"), gpu.number("fb_memory_usage/free")
        reserved = gpu.number("fb_memory_usage/reserved") or 0.0
        if not total or free is None or free >= part * (total - reserved):
            continue
        types = {process["type"] for process in gpu.processes}
        if any("C" in kind for kind in types):
            continue  # check `process` reports it
        level = "warn" if types else "refuse"
        code = "preflight.memory-of-a-display" if types else "preflight.memory-of-a-hidden-process"
        observed = message(code, free=free, total=total - reserved)
        fix = message("fix.free-gpu-memory")
        yield gpu.finding(
            "memory", level, observed=observed, expected=message("expected.free-share", share=part), fix=fix
        )


def ecc(site: Site) -> Iterator[Finding]:
    """No uncorrectable memory error since the driver was loaded, and one mode of error correction."""
    modes = Counter(gpu.text("ecc_mode/current_ecc") for gpu in all_gpus(site))
    usual = modes.most_common(1)[0][0]
    for gpu in all_gpus(site):
        bad = [
            f"{path.rsplit('ecc_errors/', 1)[-1]}: {text}"
            for path, text in gpu.values.items()
            if path.startswith("ecc_errors/volatile/")
            and ("uncorrectable" in path or path.endswith("double_bit/total"))
            and (gpu.number(path) or 0) > 0
        ]
        flags = ("channel_repair_pending", "tpc_repair_pending", "unrepairable_memory")
        bad += [
            f"{path.removeprefix('ecc_errors/')}: {text}"
            for path, text in gpu.values.items()
            if text == "Yes" and (path.endswith("/sram_threshold_exceeded") or path.endswith(flags))
        ]
        if bad:
            yield gpu.finding(
                "ecc", "refuse", observed=", ".join(bad), expected=message("expected.none"), fix=RESET
            )
        mode, pending = gpu.text("ecc_mode/current_ecc"), gpu.text("ecc_mode/pending_ecc")
        if mode != pending or mode != usual:
            observed = message("preflight.ecc-modes", mode=str(mode), pending=str(pending), usual=str(usual))
            fix = message("fix.same-ecc-mode")
            yield gpu.finding("ecc", "warn", observed=observed, expected=str(usual), fix=fix)


def rows(site: Site) -> Iterator[Finding]:
    """No bad memory row is waiting to be remapped.

    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
    """
    for gpu in all_gpus(site):
        if gpu.text("remapped_rows/remapped_row_failure") == "Yes":
            yield gpu.finding(
                "rows",
                "refuse",
                observed=message("preflight.row-not-remapped"),
                expected=message("expected.no-failure"),
                fix=message("fix.replace-gpu"),
            )
        if gpu.text("remapped_rows/remapped_row_pending") == "Yes":
            yield gpu.finding(
                "rows",
                "refuse",
                observed=message("preflight.row-pending"),
                expected=message("expected.none-pending"),
                fix=RESET,
            )
        pending = ("pending_retirement", "pending_blacklist", "pending_blacklist_page")
        if gpu.text(*(f"retired_pages/{name}" for name in pending)) == "Yes":
            yield gpu.finding(
                "rows",
                "refuse",
                observed=message("preflight.page-pending"),
                expected=message("expected.none"),
                fix=RESET,
            )


THROTTLING = {
    "hw_thermal_slowdown": ("refuse", "preflight.slow-too-hot"),
    "hw_power_brake_slowdown": ("refuse", "preflight.slow-power-supply"),
    "hw_slowdown": ("refuse", "preflight.slow-hardware"),
    "sw_thermal_slowdown": ("warn", "preflight.slow-driver-too-hot"),
}


def throttle(site: Site) -> Iterator[Finding]:
    """Nothing slows the GPUs down, and they are cool before the campaign starts."""
    degrees = float(site.limits["gpu_spare_degrees"])
    fix = message("fix.cooling")
    for gpu in all_gpus(site):
        for reason, (level, code) in THROTTLING.items():
            now = gpu.text(
                f"clocks_event_reasons/clocks_event_reason_{reason}",
                f"clocks_throttle_reasons/clocks_throttle_reason_{reason}",
            )
            if now == "Active":
                yield gpu.finding(
                    "throttle",
                    level,
                    observed=message(code),
                    expected=message("expected.full-speed"),
                    fix=fix,
                )
                break
        degrees_left = _degrees_left(gpu)
        if degrees_left is not None and degrees_left < degrees:
            observed = message("preflight.warm", degrees=degrees_left)
            yield gpu.finding(
                "throttle",
                "warn",
                observed=observed,
                expected=message("text", text="{degrees:g} °C", degrees=degrees),
                fix=fix,
            )


def _degrees_left(gpu: Gpu) -> float | None:
    """Return by how many degrees the GPU may warm up before it slows down."""
    limit, slow = (
        gpu.number("temperature/gpu_temp_tlimit"),
        gpu.number("temperature/gpu_temp_slow_tlimit_threshold"),
    )
    if limit is not None and slow is not None:
        return limit - slow
    now, slow = gpu.number("temperature/gpu_temp"), gpu.number("temperature/gpu_temp_slow_threshold")
    return slow - now if now is not None and slow is not None else None


def power(site: Site) -> Iterator[Finding]:
    """The power limit of no GPU is below its default."""
    for gpu in all_gpus(site):
        limit = gpu.number(
            "gpu_power_readings/current_power_limit",
            "power_readings/enforced_power_limit",
            "power_readings/power_limit",
        )
        usual = gpu.number("gpu_power_readings/default_power_limit", "power_readings/default_power_limit")
        if limit is not None and usual is not None and limit < usual - 0.5:
            observed = message("preflight.power-capped", watts=limit)
            yield gpu.finding(
                "power",
                "warn",
                observed=observed,
                expected=message("text", text="{watts:g} W", watts=usual),
                fix=message("fix.power-limit", index=gpu.index, watts=usual),
            )


def pcie(site: Site) -> Iterator[Finding]:
    """Every GPU has as many PCIe lanes, of as late a generation, as it, its slot and its equals have."""
    links = "pci/pci_gpu_link_info/"
    width, speed = f"{links}link_widths/current_link_width", f"{links}pcie_gen/max_link_gen"
    best: dict[tuple[str, str], float] = {}
    for gpu in all_gpus(site):
        for path in (width, speed):
            best[gpu.model, path] = max(best.get((gpu.model, path), 0), gpu.number(path) or 0)
    for gpu in all_gpus(site):
        now, equals = gpu.number(width), best[gpu.model, width]
        most = max(gpu.number(f"{links}link_widths/max_link_width") or 0, equals)
        if now is not None and now < most:
            # Some servers connect all GPUs with fewer lanes: slow, but not a fault of this one.
            level = "refuse" if now < equals else "warn"
            observed = message("preflight.lanes", count=now, most=most)
            fix = message("fix.reseat")
            yield gpu.finding(
                "pcie", level, observed=observed, expected=message("expected.lanes", count=most), fix=fix
            )
        yield from _generation(gpu, best[gpu.model, speed])


def _generation(gpu: Gpu, equals: float) -> Iterator[Finding]:
    """Yield what is wrong with the generation of PCIe; idle GPUs lower that of now, which then tells nothing.

    https://docs.nvidia.com/deploy/nvidia-smi/ (Link Generation): `max` is that of GPU and slot together.
    """
    path = "pci/pci_gpu_link_info/pcie_gen/"
    slot, own, now = (
        gpu.number(path + name) for name in ("max_link_gen", "max_device_link_gen", "current_link_gen")
    )
    idle = gpu.text(
        "clocks_event_reasons/clocks_event_reason_gpu_idle",
        "clocks_throttle_reasons/clocks_throttle_reason_gpu_idle",
    )
    most = max(own or 0, equals)
    if slot is not None and slot < most:
        level = "refuse" if slot < equals else "warn"
        observed = message("preflight.slot-generation", slot=slot, most=most)
        fix = message("fix.slot-speed")
        yield gpu.finding(
            "pcie", level, observed=observed, expected=message("expected.generation", number=most), fix=fix
        )
    elif slot is not None and now is not None and now < slot and idle == "Not Active":
        observed = message("preflight.generation", now=now, slot=slot)
        fix = message("fix.reseat")
        yield gpu.finding(
            "pcie", "refuse", observed=observed, expected=message("expected.generation", number=slot), fix=fix
        )


def persistence(site: Site) -> Iterator[Finding]:
    """The driver stays loaded while nothing uses the GPUs: it keeps their state, and starts are fast."""
    for gpu in all_gpus(site):
        if gpu.text("persistence_mode") == "Disabled":
            fix = message("fix.persistence")
            observed = message("preflight.persistence-off")
            yield gpu.finding(
                "persistence", "warn", observed=observed, expected=message("expected.on"), fix=fix
            )


def nvlink(site: Site) -> Iterator[Finding]:
    """Every GPU has as many NVLinks up as the others of its model, and their fabric is healthy."""
    fix = message("fix.nvlink")
    most: dict[tuple[str, str], int] = {}
    for gpu in all_gpus(site):
        for place in ("", str(gpu.machine["name"])):
            most[place, gpu.model] = max(most.get((place, gpu.model), 0), _up(site, gpu))
    for gpu in all_gpus(site):
        links, up = _links(site, gpu), _up(site, gpu)
        here, usual = most[str(gpu.machine["name"]), gpu.model], most["", gpu.model]
        down = [link for link, speed in links.items() if speed is None]
        which = (
            message("preflight.nvlinks-down", up=up, down=down)
            if down
            else message("preflight.nvlinks", up=up)
        )
        if links and up < usual:
            # Cards without a bridge on one machine, with one on another: slow, but not a fault of the GPU.
            level = "refuse" if here else "warn"
            yield gpu.finding(
                "nvlink", level, observed=which, expected=message("expected.links", count=usual), fix=fix
            )
        elif down and _switched(gpu) and (up or len(site.fact(gpu.machine, "smi")["gpus"]) > 1):
            # A GPU that a virtual machine has for itself has no links.
            observed = message("preflight.as-on-all", what=which, model=gpu.model)
            yield gpu.finding(
                "nvlink",
                "warn",
                observed=observed,
                expected=message("expected.links", count=len(links)),
                fix=fix,
            )
        yield from _fabric(gpu, fix)
    yield from _fabric_manager(site)


def _fabric_manager(site: Site) -> Iterator[Finding]:
    """Yield where the fabric manager is not of the driver's version: it then ends as soon as it starts.

    https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    """
    for machine, text in site.facts("fabric_manager"):
        version = re.search(r"version is\s*:\s*([\d.]+)", text)
        smi = site.fact(machine, "smi")
        states = [gpu.text("fabric/state") for gpu in all_gpus(site) if gpu.machine is machine]
        if version and smi and any(states) and version[1] != smi["driver"]:
            level = "warn" if set(states) == {"Completed"} else "refuse"
            observed = message("preflight.fabric-manager", version=version[1], driver=smi["driver"])
            fix = message(
                "fix.fabric-manager",
                version=smi["driver"],
                command="systemctl restart nvidia-fabricmanager",
            )
            yield finding(
                "nvlink",
                level,
                machine["nodes"],
                observed=observed,
                expected=message("expected.one-version"),
                fix=fix,
            )


def _switched(gpu: Gpu) -> bool:
    """Return whether the GPU is of a board that connects all its links; bridges of cards leave some out."""
    return "SXM" in gpu.model or gpu.text("fabric/state") is not None


def _fabric(gpu: Gpu, fix: Message) -> Iterator[Finding]:
    """Yield what is wrong with the fabric of NVSwitches, as far as the GPU has one and the driver tells."""
    state, status = gpu.text("fabric/state"), gpu.text("fabric/status")
    if state is not None and (state != "Completed" or status not in (None, "Success")):
        observed = message("preflight.fabric", state=state, status=str(status))
        yield gpu.finding(
            "nvlink", "refuse", observed=observed, expected=as_message("Completed, Success"), fix=fix
        )
    sick = [
        f"{path.rpartition('/')[2].replace('_', ' ')}: {text}"
        for path, text in gpu.values.items()
        if path.startswith("fabric/health/") and text not in HEALTHY
    ]
    if sick:
        observed = message("preflight.fabric-unhealthy", values=", ".join(sick))
        yield gpu.finding("nvlink", "refuse", observed=observed, expected="Healthy", fix=fix)


def _up(site: Site, gpu: Gpu) -> int:
    return sum(speed is not None for speed in _links(site, gpu).values())


def _links(site: Site, gpu: Gpu) -> Mapping[str, str | None]:
    links: Mapping[str, str | None] = (site.fact(gpu.machine, "nvlink") or {}).get(str(gpu.index), {})
    return links


HEALTHY = {"Healthy", "Full", "False", "No", "None", "N/A", "[N/A]", "Not Supported", "[Not Supported]"}
"""Texts of a fabric's health that report nothing wrong, of `nvidia-smi -q -x`."""


def xid_applies(site: Site) -> bool:
    """Return whether GPUs answer, or a kernel log holds errors (the only GPU may be gone)."""
    return any(errors for _, errors in site.facts("xids")) or has_gpus(site)


def xid(site: Site) -> Iterator[Finding]:
    """The kernel's log reports no faulty GPU since the machine started."""
    for machine, errors in site.facts("xids"):
        for error in errors:
            level, cause = _severity(error)
            if not level:
                continue
            observed = message(
                "preflight.xid",
                kind="SXid" if error["switch"] else "Xid",
                number=error["xid"],
                bus=error["bus"],
                count=error["count"],
                cause=cause,
            )
            fix = message("fix.xid")
            yield finding(
                "xid", level, machine["nodes"], observed=observed, expected=message("expected.none"), fix=fix
            )
    fix = message("fix.kernel-log")
    for failure in site.failures("xids", "xid", "warn", expected=message("expected.kernel-log"), fix=fix):
        if has_gpus(site):
            yield {**failure, "message": message("preflight.xids-not-known", why=failure["message"])}


def _severity(error: Mapping[str, Any]) -> tuple[str, Message]:
    """Return the level of an error in the kernel's log, "" for none, and what it means."""
    code, text = error["xid"], error["text"]
    if error["switch"]:
        return ("refuse" if error["fatal"] else "warn"), message("preflight.nvswitch-reports", text=text)
    if code == RECOVERY:
        action = re.search(r"\bto \S+ \((.*)\)", text)
        if action and action[1] == "None":
            return "", as_message("")
        return "refuse", message("preflight.driver-recommends", action=action[1] if action else text)
    if code in OF_PROGRAMS:
        return "", as_message("")
    if code in HARDWARE:
        return "refuse", message(HARDWARE[code])
    return ("refuse" if error["fatal"] else "warn"), as_message(text)


def mode(site: Site) -> Iterator[Finding]:
    """The GPUs are not divided, may compute, and need no repair."""
    for gpu in all_gpus(site):
        if gpu.text("mig_mode/current_mig") == "Enabled":
            yield gpu.finding(
                "mode",
                "refuse",
                observed=message("preflight.divided"),
                expected=message("expected.whole-gpus"),
                fix=as_message(f"nvidia-smi -i {gpu.index} -mig 0"),
            )
        if gpu.text("compute_mode") == "Prohibited":
            yield gpu.finding(
                "mode",
                "refuse",
                observed=message("preflight.prohibited"),
                expected="Default",
                fix=as_message(f"nvidia-smi -i {gpu.index} -c DEFAULT"),
            )
        action = gpu.text("gpu_recovery_action")
        if action not in (None, "None"):
            yield gpu.finding(
                "mode",
                "refuse",
                observed=message("preflight.driver-recommends", action=action),
                expected=message("expected.none"),
                fix=RESET,
            )


CHECKS = (
    Check("gpu", count, count_applies),
    Check("driver", driver, has_gpus),
    Check("process", processes, has_gpus),
    Check("memory", memory, has_gpus),
    Check("ecc", ecc, has_gpus),
    Check("rows", rows, has_gpus),
    Check("throttle", throttle, has_gpus),
    Check("power", power, has_gpus),
    Check("pcie", pcie, has_gpus),
    Check("persistence", persistence, has_gpus),
    Check("nvlink", nvlink, has_gpus),
    Check("mode", mode, has_gpus),
    Check("xid", xid, xid_applies),
)
