# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The files of a run of microbench.yml -> its records: what was measured, where, with what, and what was not.

`compute.json` and `collectives.json` are what the programs write, `hardware.json` and `about.json` what role
microbench writes: the hardware of the nodes, and how and where each program was started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import (
    KINDS,
    Hardware,
    JobEnd,
    Measurement,
    Message,
    MicrobenchRecord,
    ProgramEnd,
    as_message,
    message,
)

SOFTWARE = ("torch", "cuda", "nccl", "python")
SETTINGS = (
    *("device", "size", "layer_dtype", "layer_attention", "tf32", "threads", "seconds"),
    *("backend", "world_size", "iterations"),
)
RATES = ("tflops", "gbytes_per_second", "algbw_gb_per_second", "busbw_gb_per_second")


class Files(NamedTuple):
    """The content of the files: {kind: result} of the programs that ended well, the rest as it is there."""

    results: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Any]
    machines: Sequence[Hardware]


def records(files: Files) -> list[MicrobenchRecord]:
    """Return a record of each program that was started, or that has left a result."""
    jobs = files.about.get("jobs") or {}
    return [_record(kind, files, jobs.get(kind)) for kind in KINDS if kind in jobs or kind in files.results]


def _record(kind: str, files: Files, job: ProgramEnd | None) -> MicrobenchRecord:
    result = files.results.get(kind)
    nodes = list(job["nodes"]) if job else []
    said = result or {}
    why = (job or {}).get("reason") or message("program.no-result")
    facts = {key: said[key] for key in SOFTWARE if said.get(key)}
    record: MicrobenchRecord = {
        "kind": kind,
        "status": "ok" if result else "failed",
        "reason": None if result else as_message(why),
        "nodes": nodes,
        "settings": {key: said[key] for key in SETTINGS if said.get(key) is not None},
        "job": _job_end(job) if job else None,
        "hardware": hardware.of_nodes(files.machines, nodes) if nodes else list(files.machines),
        "software": [{"nodes": nodes, **facts}] if facts else [],
        "measurements": [_measurement(row) for row in said.get("measurements") or ()],
    }
    if said.get("name"):
        record["device"] = said["name"]
    for key in ("scalebook", "command"):
        if files.about.get(key):
            record[key] = files.about[key]
    return record


def _job_end(job: ProgramEnd) -> JobEnd:
    return {"rc": job["rc"], "seconds": job["seconds"], "started": job["started"], "ended": job["ended"]}


def _measurement(read: Mapping[str, Any]) -> Measurement:
    """Return one measurement of a program: what has no time did not fit into the memory."""
    return {
        "benchmark": read.get("benchmark") or read["collective"],
        "variant": read.get("variant"),
        "shape": read["shape"] if "shape" in read else {"bytes": read["bytes"]},
        "status": "oom" if read["seconds"] is None else "ok",
        "reason": read.get("reason"),
        "seconds": read["seconds"],
        **{rate: read.get(rate) for rate in RATES},  # type: ignore[typeddict-item]
    }


def failures(made: Sequence[MicrobenchRecord]) -> list[Message]:
    """Return why each program failed that did."""
    return [message(f"program.{each['kind']}", why=each["reason"]) for each in made if each["status"] != "ok"]


def simulated(by_kind: Mapping[str, Mapping[str, Any]]) -> dict[str, int] | None:
    """Return how many nodes shared how many machines, None where each was a machine of its own."""
    group = by_kind.get("collectives") or {}
    nodes, hosts = group.get("nodes") or 0, len(group.get("hosts") or ())
    return {"machines": hosts, "nodes": nodes} if 0 < hosts < nodes else None


def provenance(made: Sequence[MicrobenchRecord]) -> dict[str, Any]:
    """Return the software of all records and the commit, as provenance.json of a campaign has them."""
    facts: dict[str, Any] = {}
    for record in made:
        for entry in record["software"]:
            facts.update({key: value for key, value in entry.items() if key != "nodes"})
    commit = next((record["scalebook"] for record in made if "scalebook" in record), {})
    return {"scalebook": commit, "nodes": {"": facts} if facts else {}}
