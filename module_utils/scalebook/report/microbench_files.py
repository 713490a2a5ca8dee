# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The directory of micro-benchmarks from the files of their programs to those of their report.

Needs what render.py needs.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import nccl_lines, network, shapes
from ansible.module_utils.scalebook.contracts import (
    KINDS,
    MICROBENCH_SCHEMA,
    Hardware,
    Interconnect,
    Microbench,
    ProgramEnd,
)
from ansible.module_utils.scalebook.files import read_table, write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import mfu, prices
from ansible.module_utils.scalebook.judge import microbench_records as judge
from ansible.module_utils.scalebook.judge.campaign import notes_of
from ansible.module_utils.scalebook.pages import terminal, wording
from ansible.module_utils.scalebook.pages.blocks import Table
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.report import microbench, render
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.source import MICROBENCH, Source, open_microbench
from ansible.module_utils.scalebook.store.write import write_manifest
from ansible.module_utils.scalebook.unpack import UnpackError, unpacked

SCHEMA = 1
LINES = "collectives.nccl.xz"
"""The file with the lines of NCCL of all ranks (nccl_file.py of role microbench)."""
MOST_LINES = 1 << 26
"""Bytes of these lines that are read at most."""


def _read(source: Source, name: str, what: str, check: Callable[[bytes], Any]) -> Any:
    """Return what a file holds, None where there is none; raise ValueError where it is not `what`."""
    try:
        return check(source.read(name))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{source.top / name}: is not {what}: {error}") from error


def _result(content: bytes, expected: Mapping[str, Any]) -> Mapping[str, Any]:
    result = decode(content)
    for name, value in {"schema": SCHEMA, **expected}.items():
        if result.get(name) != value:
            raise ValueError(f"{name} is {result.get(name)!r}, must be {value!r}")
    if not result.get("measurements"):
        raise ValueError("it holds no measurements")
    return result


def _about(content: bytes) -> Mapping[str, Any]:
    about = decode(content)
    if set(about.get("jobs") or {}) - set(KINDS):
        raise ValueError("it names other programs than compute and collectives")
    return about


def _hardware(content: bytes) -> list[Hardware]:
    entries: list[Hardware] = json.loads(content)
    shapes.check(list[Hardware], entries)
    return entries


def load_files(source: Source, expect: Mapping[str, Any]) -> judge.Files:
    """Return what was measured; raise ValueError for what is missing or of another group.

    `expect` is the group that collectives must have been measured over, empty for any.
    """
    about = _read(source, "about.json", "what role microbench writes", _about) or {}
    machines = _read(source, "hardware.json", "a description of hardware", _hardware) or []
    group = {}
    if expect and int(expect["devices"]) > 1:
        backend = "nccl" if expect["device"] == "gpu" else "gloo"
        group = {"world_size": int(expect["devices"]), "nodes": int(expect["nodes"]), "backend": backend}
    jobs = about.get("jobs") or {}
    results: dict[str, Mapping[str, Any]] = {}
    for kind, expected_fields in (("compute", {}), ("collectives", group)):
        failed, name = (jobs.get(kind) or {}).get("rc"), f"{kind}.json"
        check = functools.partial(_result, expected={"kind": kind, **expected_fields})
        result = None if failed else _read(source, name, f"the expected result of {kind}", check)
        results |= {kind: result} if result else {}
        if expected_fields and not failed and not result:
            raise ValueError(f"{source.top / name}: was not written")
    if "compute" not in results and not jobs:
        raise ValueError(f"{source.top}: holds no compute.json")
    connected = _connected(source, jobs, machines) if "collectives" in results else None
    return judge.Files(results, about, machines, connected)


def _connected(
    source: Source, jobs: Mapping[str, ProgramEnd], machines: Sequence[Hardware]
) -> Interconnect | None:
    """Return what NCCL said in collectives.nccl.xz, None where there is none."""
    job = jobs.get("collectives")
    nodes = job["nodes"] if job else [node for each in machines for node in each["nodes"]]
    try:
        text = unpacked(source.read(LINES), MOST_LINES).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except UnpackError as error:
        raise ValueError(f"{source.top / LINES}: {error}") from None
    return nccl_lines.of_text(nodes, text)


def without_refused(files: judge.Files) -> judge.Files:
    """Return the files without collectives over sockets where InfiniBand or RoCE is up."""
    why, jobs = network.refusal(files.nccl, files.machines), files.about.get("jobs") or {}
    if not why:
        return files
    end: ProgramEnd = {"rc": 0, "seconds": None, "started": None, "ended": None, "nodes": []}
    refused = {**end, **jobs.get("collectives", {}), "reason": why}
    results = {kind: result for kind, result in files.results.items() if kind != "collectives"}
    return files._replace(results=results, about={**files.about, "jobs": {**jobs, "collectives": refused}})


def report(options: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the report that the options of module microbench_report ask for; return the module's result."""
    if render.MISSING:
        raise ValueError(
            f"microbench_report needs pandas, Jinja2 and PyYAML on the control node: {render.MISSING}"
        )
    source = open_microbench(Path(options["path"]))
    path, files = source.top / "report.html", load_files(source, options["expect"])
    if options.get("network") != "any":
        files = without_refused(files)
    records = judge.records(files)
    measured = [_measured(result, options)] if (result := files.results.get("compute")) else []
    devices = [*measured, *read_table(options["published"], judge.read_published)]
    summary: Microbench = {
        "schema": MICROBENCH_SCHEMA,
        "name": judge.name_of(files),
        "best": [rate for device in measured for rate in device.best()],
        "records": records,
    }
    # They never change: another start removes the manifest with them.
    check = manifest.extend(manifest.read(source), manifest.files_of(source), {manifest.NO_RUN: "ok"})
    language = wording.Wording(options["report_language"])
    names = [*manifest.files_of(source), manifest.NAME]
    if source.sealed:
        names = source.kept_paths(source.top)
    view = microbench.View(files, records, devices, language, notes_of(check), bool(check.wrong), names)
    texts = microbench.texts(view, render.tools(), options["templates"])
    changed = [write_json(source.top / MICROBENCH, summary, write)]
    changed += [write_whole(source.top / name, text.encode(), write) for name, text in texts.items()]
    if not source.sealed:
        changed.append(write_manifest(source.top, check.manifest, write))
    return {
        "changed": any(changed),
        "display": "\n\n".join([*_tables(view), language("terminal.report", path=path)]),
        "report": str(path),
        "unmeasured": [*map(sentence, judge.failures(records))],
    }


def _tables(view: microbench.View) -> list[str]:
    """Return the tables of the report as the terminal shows them."""
    return [
        "\n".join(terminal.aligned(terminal.texts(each, view.wording), left_columns=1))
        for each in microbench.body(view)
        if isinstance(each, Table)
    ]


def _measured(result: Mapping[str, Any], options: Mapping[str, Any]) -> judge.Device:
    """Return the device that was measured, with its peaks and prices."""
    listed = prices.read_file(Path(options["prices"])) if options.get("prices") else []
    peaks = read_table(options["gpus"], mfu.read_peaks)
    return judge.measured(result, peaks, prices.of_gpu(listed, result["name"]))
