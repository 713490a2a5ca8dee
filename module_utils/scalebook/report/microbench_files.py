# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The directory of micro-benchmarks from the files of their programs to those of their report.

Needs what render.py needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import shapes
from ansible.module_utils.scalebook.contracts import KINDS, MICROBENCH_SCHEMA, Hardware, MicrobenchRecord
from ansible.module_utils.scalebook.files import read_small, write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import microbench_records, prices
from ansible.module_utils.scalebook.judge.campaign import notes_of
from ansible.module_utils.scalebook.pages import wording
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.report import microbench, render
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.source import MICROBENCH, MicrobenchSource
from ansible.module_utils.scalebook.store.write import write_manifest
from ansible.module_utils.scalebook.text import aligned


def load(path: Path, kind: str) -> Mapping[str, Any] | None:
    """Return a checked result, or None where there is none."""
    try:
        return microbench.check(decode(read_small(path)), kind, str(path))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise microbench.MicrobenchError(f"{path}: {error}") from error


def load_about(path: Path) -> dict[str, Any]:
    """Return the content of about.json, {} for results that were made without microbench.yml."""
    try:
        about = decode(read_small(path))
        if set(about.get("jobs") or {}) - set(KINDS):
            raise ValueError("it names other programs than compute and collectives")
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise microbench.MicrobenchError(f"{path}: is not what role microbench writes: {error}") from error
    return about


def load_hardware(path: Path) -> list[Hardware]:
    """Return the entries of hardware.json, none for results of before it was written."""
    try:
        entries: list[Hardware] = json.loads(read_small(path))
        shapes.check(list[Hardware], entries)
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError) as error:
        raise microbench.MicrobenchError(f"{path}: is not a description of hardware: {error}") from error
    return entries


def load_files(directory: Path, wanted: Mapping[str, Any]) -> microbench_records.Files:
    """Return what is in the directory; raise MicrobenchError for what is missing or of another group."""
    about = load_about(directory / "about.json")
    jobs = about.get("jobs") or {}
    results = {}
    for kind in KINDS:
        failed = bool((jobs.get(kind) or {}).get("rc"))
        result = None if failed else load(directory / f"{kind}.json", kind)
        if result:
            results[kind] = result
    if "compute" not in results and not jobs:
        raise microbench.MicrobenchError(f"{directory}: holds no compute.json")
    if wanted and int(wanted["devices"]) > 1 and not (jobs.get("collectives") or {}).get("rc"):
        place = str(directory / "collectives.json")
        if "collectives" not in results:
            raise microbench.MicrobenchError(f"{place}: was not written")
        group = results["collectives"]
        microbench.check_group(group, int(wanted["nodes"]), int(wanted["devices"]), wanted["device"], place)
    return microbench_records.Files(results, about, load_hardware(directory / "hardware.json"))


def report(given: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the report that the options of module microbench_report ask for; return the module's result."""
    directory, path = Path(given["path"]), str(Path(given["path"]) / "report.html")
    files = load_files(directory, given["expect"])
    made = microbench_records.records(files)
    with Path(given["published"]).open(newline="") as file:
        columns = microbench.read_published(file)
    best: list[dict[str, Any]] = []
    if "compute" in files.results:
        columns.insert(0, _measured(files.results["compute"], given))
        best = _best(columns[0])
    shown = [microbench.table(columns)]
    if "collectives" in files.results:
        shown.append(microbench.collectives_table(files.results["collectives"]))
    summary = {
        "schema": MICROBENCH_SCHEMA,
        "name": microbench.name_of(made),
        "best": best,
        "records": made,
    }
    changed = write_json(directory / MICROBENCH, summary, write)
    changed |= _write_pages(given, files, made, columns, write)
    tables = ["\n".join(aligned(table, left=1)) for table in shown]
    failures = [*map(sentence, microbench_records.failures(made))]
    display = "\n\n".join([*tables, f"report: {path}"])
    return {"changed": changed, "display": display, "report": path, "unmeasured": failures}


def _measured(result: Mapping[str, Any], given: Mapping[str, Any]) -> microbench.Column:
    """Return the column of the device that was measured, with its peaks and prices."""
    listed = prices.read_file(Path(given["prices"])) if given.get("prices") else []
    own = [
        {
            "amount": price["amount"],
            "unit": f"{price['currency']}/{price['per']}",
            "source": f"{price['source']}, {price['date']}",
        }
        for price in prices.of_gpu(listed, result["name"])
    ]
    with Path(given["gpus"]).open(newline="") as file:
        return microbench.measured(result, microbench.read_gpus(file), own)


def _best(mine: microbench.Column) -> list[dict[str, Any]]:
    """Return the best of each operation as microbench.json has it."""
    return [
        {
            "benchmark": name,
            "variant": variant,
            "tflops": value,
            "peak_tflops": mine["theory"].get((name, variant)),
        }
        for (name, variant), value in mine["figures"].items()
    ]


def _write_pages(
    given: Mapping[str, Any],
    files: microbench_records.Files,
    made: Sequence[MicrobenchRecord],
    columns: Sequence[microbench.Column],
    write: bool,
) -> bool:
    """Write the page, its picture and the manifest; return whether one differs from what was there."""
    source = MicrobenchSource(Path(given["path"]))
    # They never change: another start removes the manifest with them.
    check = manifest.extend(manifest.read(source), manifest.files_of(source), {manifest.NO_RUN: "ok"})
    said = wording.Wording(wording.load(given["templates"], given["report_language"]))
    page = microbench.page(files, made, columns, said)
    page["notes"] += [said.tell(note) for note in notes_of(check)]
    chart, picture = (microbench.chart(columns, alone, said) for alone in (False, True))
    drawn = ["theory.svg"] if picture else []
    names = [MICROBENCH, "report.md", *drawn, *manifest.files_of(source), manifest.NAME]
    page |= {"changed": bool(check.wrong), "files": names}
    texts = render.microbench(page, chart, picture, given["templates"], said)
    changed = [write_whole(source.top / name, text.encode(), write) for name, text in texts.items()]
    return write_manifest(source.top, check.manifest, write) or any(changed)
