# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What an evaluation is made of, read from files: results of campaigns, published tables, prices."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import Hardware, Results
from ansible.module_utils.scalebook.evaluate import fields, published
from ansible.module_utils.scalebook.evaluate.options import Option
from ansible.module_utils.scalebook.files import read_small, read_table
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import mfu, prices
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.results_file import check_results
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import read_source
from ansible.module_utils.scalebook.store.source import ArchiveSource, DirectorySource, open_archive
from ansible.module_utils.scalebook.workload import Workloads
from ansible.module_utils.scalebook.yaml_file import read_yaml

TABLES = {
    published.TRAINER: "hf-trainer-published.csv",
    published.DLPERF: "dlperf-published-results.csv",
    published.INSIGHTFACE: "dlperf-insightface.csv",
}
NODES = "published-nodes.yml"


class EvaluationError(ValueError):
    """Input that no evaluation can be made of; the text names it and the fix."""


class Held(NamedTuple):
    """A results.json, or an archive and the directory in it that has a campaign, "" for the whole archive."""

    file: Path
    folder: str = ""


class Sources(NamedTuple):
    """What was read: results, options of published tables, what their nodes were, prices, and the checksum of
    each file.
    """

    campaigns: list[Results]
    others: list[Option]
    nodes: dict[str, list[Hardware]]
    prices: list[prices.Price]
    checksums: dict[str, str]


def sources(evaluation: Mapping[str, Any], here: Path, data: Path, workloads: Workloads) -> Sources:
    """Return what the fields of an evaluation name; relative paths count from `here`."""
    held = campaign_files(evaluation["campaigns"], here)
    read = [*(each.file for each in held), *(data / TABLES[name] for name in evaluation["published"])]
    read += [data / NODES] if evaluation["published"] else []
    read += [here / evaluation["prices"]] if evaluation["prices"] else []
    return Sources(
        [_results(each, data, workloads) for each in held],
        [option for name in evaluation["published"] for option in _published(name, data, workloads)],
        _nodes(evaluation["published"], data),
        _prices(here, evaluation["prices"]),
        _checksums(read, here),
    )


def campaign_files(names: Sequence[str], here: Path) -> list[Held]:
    """Return the file of each campaign; refuse a campaign that is listed twice, whatever its path."""
    held = [_held(here / name) for name in names]
    contents = [f"{hashlib.sha256(each.file.read_bytes()).hexdigest()} {each.folder}" for each in held]
    fields.check_differ("campaigns", list(zip(names, contents, strict=True)))
    return held


def _held(path: Path) -> Held:
    """Return the archive or results.json of a campaign's directory, or that file itself.

    The archive has what was measured, a report beside it may be one of earlier code or earlier records.  A
    report is refused if its manifest has not the records that are there: it was made before the last run.
    """
    if archive := open_archive(path):
        return Held(archive.archive, archive.folder)
    files = [path] if path.is_file() else [path / name for name in ("report/results.json", "results.json")]
    existing = [file for file in files if file.is_file()]
    if not existing:
        raise EvaluationError(
            f"{path}: has no report/results.json. Fix: ansible-playbook report.yml -e campaign_dir={path}"
        )
    if path.is_dir() and not _is_of_records(path):
        raise EvaluationError(
            f"{path}: runs were measured after its report. Fix: ansible-playbook report.yml "
            f"-e campaign_dir={path}"
        )
    return Held(existing[0])


def _is_of_records(top: Path) -> bool:
    """Return whether the manifest, which a report writes, has the records of a campaign as they are now."""
    source = DirectorySource(top)
    files = (manifest.read(source) or {"files": {}})["files"]
    return all(files.get(record) == source.checksum(record) for record in source.records())


def _results(held: Held, data: Path, workloads: Workloads) -> Results:
    """Return the content of a results.json, or that of an archive's report."""
    try:
        archived = held.file.name.endswith(".tar.xz")
        return check_results(_reported(held, data, workloads) if archived else decode(read_small(held.file)))
    except ValueError as error:
        raise EvaluationError(f"{held.file}: {error}") from error


def _reported(held: Held, data: Path, workloads: Workloads) -> dict[str, Any]:
    """Return the results.json that report.yml makes of an archive."""
    source = ArchiveSource(*held)
    files = manifest.files_of(source)
    campaign = read_source(source, files=files)
    checked = manifest.extend(manifest.read(source), files, campaign.statuses)
    peaks = read_table(data / "gpus.csv", mfu.read_peaks)
    results = build_results(campaign, workloads, check=checked, peaks=peaks)
    return dict(json.loads(json.dumps(results)))


def _published(name: str, data: Path, workloads: Workloads) -> list[Option]:
    """Return the options of a published table."""
    if name == published.TRAINER:
        return read_table(data / TABLES[name], published.of_trainer)
    return read_table(data / TABLES[name], lambda lines: published.of_dlperf(lines, workloads, name))


def _nodes(names: Sequence[str], data: Path) -> dict[str, list[Hardware]]:
    """Return what the nodes of published tables were, by the code of what the document calls a table."""
    nodes_by_name = read_yaml(data / NODES) if names else {}
    return {published.SOURCES[name]: nodes_by_name[name] for name in names}


def _prices(here: Path, name: str) -> list[prices.Price]:
    """Return the prices of a file; none where no file is given."""
    if not name:
        return []
    try:
        (here / name).open("rb").close()
    except OSError as error:
        allowed = f"files such as data/prices.yml ({error.strerror})"
        raise EvaluationError(fields.refusal("prices", name, allowed)) from error
    return prices.read_file(here / name)


def _checksums(files: Iterable[Path], here: Path) -> dict[str, str]:
    """Return the SHA-256 of files by their path below `here`, or their whole path elsewhere."""

    def name(file: Path) -> str:
        return str(file.relative_to(here) if file.is_relative_to(here) else file)

    return {name(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
