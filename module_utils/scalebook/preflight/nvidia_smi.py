# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Parses the texts of NVIDIA's driver that module node_probe returns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree  # noqa: S405 - reads what the driver's own tool prints

KEPT = {
    "product_name", "uuid", "minor_number", "pci", "mig_mode", "compute_mode", "gpu_recovery_action",
    "fabric", "ecc_mode", "ecc_errors", "retired_pages", "remapped_rows", "fb_memory_usage", "temperature",
    "clocks_event_reasons", "clocks_throttle_reasons", "gpu_power_readings", "power_readings",
    "persistence_mode", "clocks", "clocks_event_reasons_counters",
}  # fmt: skip
"""Parts of a report that concern the health of a GPU."""


class ReportError(ValueError):
    """A text that is not a report of nvidia-smi."""


def read_gpus(report: str, processes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return {"driver", "cuda", "warning", "gpus": [{"bus", "values": {path: text}, "processes"}]}.

    `report` is the output of `nvidia-smi -q -x`, `processes` {pid: {"user", "command"}} describes the
    processes in it; `warning` is what nvidia-smi prints behind it. The paths are the report's own, such as
    `remapped_rows/remapped_row_pending`; their names depend on the driver (gpus.py).  Raises ReportError.
    """
    text, end, warning = report.partition("</nvidia_smi_log>")
    try:
        top = ElementTree.fromstring(text + end)  # noqa: S314 - of the driver's own tool
    except ElementTree.ParseError as error:
        raise ReportError(f"nvidia-smi -q -x prints no report: {error}") from None
    gpus = []
    for gpu in top.findall("gpu"):
        values: dict[str, str] = {}
        _flatten(gpu, "", values)
        used_by = [_process(one, processes) for one in gpu.iter("process_info")]
        gpus.append({"bus": gpu.get("id", ""), "values": values, "processes": used_by})
    driver, cuda = top.findtext("driver_version", ""), top.findtext("cuda_version", "")
    return {"driver": driver, "cuda": cuda, "warning": " ".join(warning.split()), "gpus": gpus}


def _process(info: ElementTree.Element, processes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    pid = info.findtext("pid", "0")
    about = processes.get(pid, {})
    return {
        "pid": int(pid),
        "user": about.get("user", "?"),
        "type": info.findtext("type", ""),
        # The driver knows only the program; of a process in another container nothing else is known.
        "command": about.get("command") or info.findtext("process_name", ""),
        "memory": info.findtext("used_memory", ""),
    }


def _flatten(element: ElementTree.Element, path: str, values: dict[str, str]) -> None:
    """Put the texts of the leaves below `element` into `values`."""
    for child in element:
        place, text = path + child.tag, (child.text or "").strip()
        if path or child.tag in KEPT:
            if len(child):
                _flatten(child, place + "/", values)
            elif text:
                values[place] = text


def read_nvlink(report: str) -> dict[str, dict[str, str | None]]:
    """Return {"0": {"0": "26.562 GB/s", "1": None}}: the links of each GPU, None for one that is down.

    `report` is the text of `nvidia-smi nvlink --status`.
    """
    gpus: dict[str, dict[str, str | None]] = {}
    links: dict[str, str | None] = {}
    for line in report.splitlines():
        head = re.match(r"GPU (\d+):", line)
        link = re.match(r"\s+Link (\d+): (.*)", line)
        if head:
            links = gpus.setdefault(head[1], {})
        elif link:
            links[link[1]] = None if "inactive" in link[2].lower() else link[2].strip()
    return gpus


# "(PCI:0000:dc:00): 149, NETIR_LINK_EVT  Fatal …", with an instance of a divided GPU behind the bus
_ERROR = re.compile(r"\b(NVRM: Xid|SXid) \((?:PCI:)?([0-9a-fA-F:.]+)[^)]*\): (\d+), ?(.*)")


def read_xids(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the errors of GPUs, and of NVSwitches (`switch`), in lines of the kernel's log.

    Each is {"bus", "xid", "text", "count", "fatal", "switch"}; `fatal` is None where the driver does not say
    whether it is. The same error of the same device is one entry, with the last text of the worst kind.
    """
    errors: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line in lines:
        match = _ERROR.search(line)
        if not match:
            continue
        kind, bus, xid, text = match.groups()
        key = (kind, bus, xid)
        more = kind == "SXid" and re.match(r"Severity|Data", text)  # a line about the one before it
        if more and key in errors:
            continue
        new = {"bus": bus, "xid": int(xid), "count": 0, "fatal": None, "switch": kind == "SXid"}
        entry = errors.setdefault(key, new)
        severity = re.search(r"\b(non-?)?fatal\b", text, re.IGNORECASE)
        entry["count"] += 1
        if severity:
            milder = bool(entry["fatal"]) and bool(severity[1])
            entry["fatal"] = bool(entry["fatal"]) or not severity[1]
            if milder:
                continue
        entry["text"] = text[:200]
    return sorted(errors.values(), key=lambda entry: (entry["bus"], entry["xid"]))
