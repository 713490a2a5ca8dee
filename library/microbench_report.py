#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Results of the micro-benchmarks -> table and picture; see DOCUMENTATION."""

from __future__ import annotations  # runs on the control node only

DOCUMENTATION = r"""
module: microbench_report
short_description: Compare the micro-benchmarks of a device with published ones
description:
  - Reads C(compute.json) in O(path) and, if they exist, C(collectives.json), C(hardware.json) and
    C(about.json).
  - Writes C(report.html), C(report.md), C(microbench.json) and, where a peak is known, C(theory.svg) there.
    C(microbench.json) holds the records; its schema is in C(docs/reference).
  - C(manifest.json) keeps the first checksums of what was read; the report names a file that has changed
    since, and so does M(results_verify).
  - A program that failed, as C(about.json) says, is in RV(unmeasured), in the records and on the page.
  - Runs on the control node; needs pandas, Jinja2 and PyYAML there.
options:
  path:
    description: Directory of the results.
    type: path
    required: true
  published:
    description: The CSV of published results.
    type: path
    required: true
  gpus:
    description: The CSV of the peaks of devices.
    type: path
    required: true
  prices:
    description: List of prices, such as C(data/prices.yml). Those of the device are shown with their source.
    type: path
  templates:
    description: Directory that holds C(microbench.md.j2) and C(microbench.html.j2).
    type: path
    required: true
  report_language:
    description: Language of C(report.html), C(report.md) and C(theory.svg).
    type: str
    choices: [en, zh]
    default: en
  expect:
    description:
      - The group that C(collectives.json) must have, C(nodes), C(devices) in total and C(device) (cpu or
        gpu). Another group is refused.
      - Empty where results are only reported again.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Computes everything and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Report on the devices
  microbench_report:
    path: results/microbench
    published: "{{ ansible_config_file | dirname }}/data/microbench-published.csv"
    gpus: "{{ ansible_config_file | dirname }}/data/gpus.csv"
    templates: "{{ ansible_config_file | dirname }}/templates"
"""

RETURN = r"""
display:
  description: What the terminal shows; the tables and where the report is.
  returned: success
  type: str
report:
  description: Path of C(report.html).
  returned: success
  type: str
unmeasured:
  description: A sentence for each program that failed.
  returned: success
  type: list
  elements: str
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook import shapes
from ansible.module_utils.scalebook.contracts import KINDS, MICROBENCH_SCHEMA, Hardware
from ansible.module_utils.scalebook.evaluate import prices
from ansible.module_utils.scalebook.files import read_small, write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import microbench_records
from ansible.module_utils.scalebook.judge.campaign import sentences
from ansible.module_utils.scalebook.pages import wording
from ansible.module_utils.scalebook.report import microbench, render
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.source import MICROBENCH, MicrobenchSource
from ansible.module_utils.scalebook.store.write import write_manifest
from ansible.module_utils.scalebook.text import aligned, clean
from ansible.module_utils.scalebook.yaml_file import read_yaml


def argument_spec() -> dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "published": {"type": "path", "required": True},
        "gpus": {"type": "path", "required": True},
        "prices": {"type": "path"},
        "templates": {"type": "path", "required": True},
        "report_language": {"type": "str", "choices": list(wording.LANGUAGES), "default": "en"},
        "expect": {"type": "dict", "default": {}},
    }


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


def prices_of(path: str, device: str) -> list[dict[str, Any]]:
    """Return the prices of a device from a list, as microbench.measured takes them."""
    try:
        content = read_yaml(Path(path))
    except ValueError as error:
        raise microbench.MicrobenchError(" ".join(str(error).split())) from error
    if not isinstance(content, dict) or not isinstance(content.get("prices"), list):
        raise microbench.MicrobenchError(f"{path}: it must have a list `prices`, as data/prices.yml has")
    return [
        {
            "amount": price["amount"],
            "unit": f"{price['currency']}/{price['per']}",
            "source": f"{price['source']}, {price['date']}",
        }
        for price in prices.of_gpu(prices.read(content["prices"]), device)
    ]


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
    """Write the report and return what the module returns."""
    directory = Path(given["path"])
    files = load_files(directory, given["expect"])
    made = microbench_records.records(files)
    with Path(given["published"]).open(newline="") as file:
        columns = microbench.read_published(file)
    best: list[dict[str, Any]] = []
    if "compute" in files.results:
        result = files.results["compute"]
        listed = prices_of(given["prices"], result["name"]) if given.get("prices") else []
        with Path(given["gpus"]).open(newline="") as file:
            mine = microbench.measured(result, microbench.read_gpus(file), listed)
        columns.insert(0, mine)
        best = [
            {
                "benchmark": name,
                "variant": variant,
                "tflops": value,
                "peak_tflops": mine["theory"].get((name, variant)),
            }
            for (name, variant), value in mine["figures"].items()
        ]
    source = MicrobenchSource(directory)
    # They never change: another start removes the manifest with them.
    check = manifest.extend(manifest.read(source), manifest.files_of(source), {manifest.NO_RUN: "ok"})
    said = wording.Wording(wording.load(given["templates"], given["report_language"]))
    page = microbench.page(files, made, columns, said)
    page["notes"] += [said.tell(text) for text in [*sentences(check), *check.notes]]
    chart, picture = (microbench.chart(columns, alone, said) for alone in (False, True))
    drawn = ["theory.svg"] if picture else []
    names = [MICROBENCH, "report.md", *drawn, *manifest.files_of(source), manifest.NAME]
    page |= {"changed": bool(check.wrong), "files": names}
    texts = render.microbench(page, chart, picture, given["templates"], said)
    summary = {
        "schema": MICROBENCH_SCHEMA,
        "name": microbench.name_of(made),
        "best": best,
        "records": made,
    }
    changed = write_json(directory / MICROBENCH, summary, write)
    for name, text in texts.items():
        changed |= write_whole(directory / name, text.encode(), write)
    changed |= write_manifest(directory, check.manifest, write)
    shown = ["\n".join(aligned(microbench.table(columns), left=1))]
    if "collectives" in files.results:
        shown.append("\n".join(aligned(microbench.collectives_table(files.results["collectives"]), left=1)))
    path = str(directory / "report.html")
    shown.append(f"report: {path}")
    failures = [clean(text) for text in microbench_records.failures(made)]
    return {"changed": changed, "display": "\n\n".join(shown), "report": path, "unmeasured": failures}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    if render.MISSING:
        module.fail_json(
            msg=f"microbench_report needs pandas, Jinja2 and PyYAML on the control node: {render.MISSING}"
        )
    try:
        answer = report(module.params, not module.check_mode)
    except (OSError, ValueError, render.TEMPLATE_ERROR) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
