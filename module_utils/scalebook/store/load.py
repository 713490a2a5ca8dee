# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of a campaign -> what a report is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ansible.module_utils.scalebook import hardware, shapes
from ansible.module_utils.scalebook.contracts import (
    PLAN_SCHEMA,
    SCHEMAS_READ,
    Case,
    FileSum,
    MachineIdentity,
    Message,
    MessageError,
    Plan,
    ProvenanceFile,
    Record,
    Run,
    as_message,
    because,
    message,
    upgrade,
    why_of,
)
from ansible.module_utils.scalebook.files import read_small
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import baseline, evidence, runs, sharing, weak_scaling
from ansible.module_utils.scalebook.judge.campaign import Baseline, Campaign, Problem
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.source import (
    ARCHIVE,
    SEAL,
    ArchiveSource,
    MicrobenchSource,
    Source,
    SourceError,
    open_archive,
    open_source,
)


def load_campaign(path: str | Path, reading: str = "stamps") -> Campaign:
    """Return the campaign at `path`, a directory or an archive; raise ValueError for what is not one."""
    source = open_source(Path(path))
    return read_source(source, reading, manifest.files_of(source))


def read_source(
    source: Source, reading: str = "stamps", files: Mapping[str, FileSum] | None = None
) -> Campaign:
    """Return the campaign whose files are in `source`, or raise ValueError.

    `files` are those that manifest.files_of returns: the logs are compared with their records, which needs
    the checksum of each.
    """
    plan = cast(Plan, _read(source, "plan.json", _plan))
    campaign = Campaign(
        name=source.name,
        plan=plan,
        cases={case["name"]: case for case in plan.get("cases") or []},
        provenance=_read(source, "provenance.json", _provenance),
        reading=reading,
        doubts=_unsealed(source),
    )
    _read_records(source, campaign, files)
    for search in campaign.plan.get("searches") or ():
        for trial in search["trials"]:
            campaign.statuses[f"search/{trial['case']}/1"] = trial["status"]
    # What an import found that is not the log of a case.
    campaign.unreadable.extend(
        message("import.unread", path=entry["path"], why=as_message(entry["reason"]))
        for entry in plan.get("unread") or []
    )
    return campaign


def _read(source: Source, file: str, check: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Return the object in `file`, checked, {} where there is no such file; raise ValueError naming it."""
    try:
        return check(source.decode(file) if source.exists(file) else {})
    except (OSError, ValueError) as exc:
        raise ValueError(f"{source.top / file}: {exc}") from exc


def _plan(content: dict[str, Any]) -> dict[str, Any]:
    """Return a plan as those of today; raise ValueError for what is none."""
    plan = upgrade(content)
    if plan.get("schema", PLAN_SCHEMA) != PLAN_SCHEMA:
        raise ValueError(f"has schema {plan['schema']!r}, {SCHEMAS_READ}")
    shapes.check(Plan, plan)
    for case in plan.get("cases") or []:
        runs.check_case(case)
    return plan


def _provenance(content: dict[str, Any]) -> dict[str, Any]:
    """Return a provenance; raise ValueError for what is none."""
    shapes.check(ProvenanceFile, content)
    return content


def _unsealed(source: Source) -> list[Message]:
    """Return what an archive lacks to check its files with; runs.tar.xz has no archive.json."""
    if not isinstance(source, ArchiveSource):
        return []
    names = [manifest.NAME] if source.archive.name == ARCHIVE else [SEAL, manifest.NAME]
    lacking = [name for name in names if not source.exists(name)]
    return [message("note.unsealed", lacking=lacking)] if lacking else []


def counted_records(campaign: Campaign, source: Source) -> Iterator[tuple[str, Record]]:
    """Yield (directory, record) of each run of a campaign that counts, whole, from its files."""
    for run in campaign.runs:
        if run["rate"] is not None:
            folder = f"runs/{run['case']}/{run['repeat']}"
            yield folder, runs.check_record(upgrade(source.decode(f"{folder}/result.json")))


def check_files(source: Source, path: str | Path) -> tuple[int, list[Problem]]:
    """Return how many files the manifest of what is at `path` names, and which differ from it.

    Raises ValueError where there is no manifest.
    """
    signed = manifest.read(source)
    if signed is None:
        raise ValueError(
            f"The campaign {path} has no {manifest.NAME} to verify with. Fix: {_what_signs(source, path)}"
        )
    return len(signed["files"]), manifest.differences(signed, manifest.files_of(source))


def _what_signs(source: Source, path: str | Path) -> str:
    """Return what writes the manifest of a campaign that has none, as its files are by then."""
    if source.sealed:
        return "unpack it, and run ansible-playbook report.yml -e campaign_dir=DIR on its directory"
    if isinstance(source, MicrobenchSource):
        return f"ansible-playbook microbench.yml -e measured={path}"
    return f"ansible-playbook report.yml -e campaign_dir={path}"


def load_baseline(path: str | Path, limit: float, reading: str = "stamps") -> Baseline:
    """Return what `path` names, a campaign, an archive or a results.json; raise ValueError naming it."""
    path = Path(path)
    try:
        packed = path.name.endswith(".tar.xz") or (not path.exists() and open_archive(path))
        if packed or path.is_dir():
            campaign = read_source(open_source(path), reading)
            tables = weak_scaling.tabulate(
                list(campaign.cases.values()), campaign.runs, campaign.plan.get("runs") or ()
            )
            sharing.attach(tables["rows"], campaign.runs, campaign.hardware)
            return Baseline(str(path), campaign.name, tables["rows"], limit, campaign.hardware)
        content = read_small(path)
        try:
            document = decode(content)
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise ValueError("is not JSON: name a results.json, a campaign or its .tar.xz") from None
        rows = baseline.check(document)
        name = str(document.get("campaign") or path)
        return Baseline(str(path), name, rows, limit, document.get("hardware") or ())
    except FileNotFoundError:
        raise ValueError(f"baseline={path}: does not exist") from None
    except SourceError as exc:
        raise ValueError(str(exc).replace("campaign_dir=", "baseline=", 1)) from None
    except (OSError, ValueError) as exc:
        raise ValueError(f"baseline={path}: {exc}") from exc


def _read_records(source: Source, campaign: Campaign, files: Mapping[str, FileSum] | None) -> None:
    """Add every record to `campaign`, and the cases that only records have.

    Each record is reduced as it is read: thousands of them with every step would not fit.  Of runs whose
    logs have the same content only the first counts: a copied directory is not a measurement.
    """
    logs: dict[str, str] = {}
    planned = dict(campaign.cases)
    machines = dict(campaign.plan.get("machines") or {})
    for file in sorted(source.records(), key=_order):
        try:
            record = runs.check_record(upgrade(source.decode(file)))
            case, folder = record["case"], file.rpartition("/")[0]
            own = f"runs/{case['name']}/{record['repeat']}/result.json"
            if file != own:
                raise MessageError("run.moved", place=own)
            differs = _differing(record, campaign.plan, planned.get(case["name"]), machines)
            merged = hardware.merge([*campaign.hardware, *(record.get("hardware") or [])])
            run = runs.digest(record, campaign.reading)
            if differs and record["status"] == "ok":
                run = runs.refused(run, because(file, differs))
            if run["rate"] is not None:
                run["notes"] += evidence.log_notes(record, folder, files) if files else []
                run = _unless_copied(run, record, folder, logs)
        except (OSError, ValueError) as exc:
            campaign.unreadable.append(because(file, why_of(exc)))
        except Exception as exc:  # one unforeseen record must not cost the others their report
            campaign.unreadable.append(because(file, f"{type(exc).__name__}: {exc}"))
        else:
            campaign.cases.setdefault(case["name"], case)
            machines = {**record.get("machines", {}), **machines}
            campaign.hardware[:] = merged
            campaign.runs.append(run)
            campaign.statuses[folder] = record["status"]


def _differing(
    record: Record, plan: Plan, planned: Case | None, machines: Mapping[str, MachineIdentity]
) -> Message | None:
    """Return in what a record is not one of the campaign with this plan, None where it is.

    Raises MessageError where the case of the record is not `planned`, and not what its name says.
    """
    differs = evidence.differing_case(record["case"], planned)
    if differs and planned is None:
        raise MessageError(differs["code"], **differs["values"])
    if "source" in record and plan and not plan.get("source"):
        differs = differs or message("run.imported")
    return differs or evidence.differing_machines(record, machines)


def _unless_copied(run: Run, record: Record, folder: str, logs: dict[str, str]) -> Run:
    """Return a run, refused where another one has the same log; `logs` has the places of all logs so far."""
    log, place = runs.log_of(record), str(record.get("source") or folder)
    if log and logs.setdefault(log, place) != place:
        return runs.refused(run, message("run.same-log", place=logs[log]))
    return run


def _order(file: str) -> tuple[str, int, str]:
    """Return the order of records: by case, then repeat, 10 after 9."""
    _, case, repeat, _ = file.split("/")
    return case, len(repeat), file
