#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Campaigns -> an evaluation; see DOCUMENTATION."""

from __future__ import annotations  # runs on the control node only

DOCUMENTATION = r"""
module: evaluation
short_description: Turn the results of campaigns into an evaluation document
description:
  - Reads C(results.json) of each campaign and writes C(evaluation.json), C(evaluation.md),
    C(evaluation.html), C(evaluation.xlsx) and C(evaluation.docx), which have a verdict for each criterion,
    results by model family, time and cost of a training, and the best value.
  - Every figure comes from the records of the campaigns, from published tables or from the list of prices.
  - Runs on the control node; needs PyYAML, Jinja2, pandas and XlsxWriter there.
options:
  evaluation:
    description: What the user asks for; relative paths count from O(here).
    type: dict
    required: true
    suboptions:
      title:
        description: Title of the document.
        type: str
        required: true
      language:
        description: Language of the document.
        type: str
        choices: [en, zh]
        default: en
      platform:
        description: What the document says of the platform - its name, address, and what is available there.
        type: str
        default: ""
      texts:
        description:
          - Paragraphs of the user's own by section - C(introduction), C(platform), C(frameworks), C(models),
            C(environment), C(configuration), C(rules), C(metrics), C(problems), or the name of a model
            family that the document has.
        type: dict
        default: {}
      campaigns:
        description: Directories of campaigns with a report or archive, or their C(results.json), each once.
        type: list
        elements: path
        default: []
      published:
        description:
          - Published results to show beside the measured ones - C(hf_trainer), 19 runs of Hugging Face
            Trainer on V100 and A100, C(dlperf), the 509 rows of DLPerf, and C(insightface), its 92 rows of
            InsightFace, which no workload trains.
        type: list
        elements: str
        choices: [hf_trainer, dlperf, insightface]
        default: []
      prices:
        description: List of prices, such as C(data/prices.yml).
        type: path
      electricity:
        description: Price of a kWh in the currency of the prices, from 0 on, for the measured energy of GPUs.
        type: float
      task:
        description: The training whose time and cost are computed.
        type: dict
        apply_defaults: true
        suboptions:
          name:
            description: What it is called. Default is its number of samples.
            type: str
            default: ""
          samples:
            description: Number of samples of an epoch, from 1 on.
            type: int
            default: 1000000
          epochs:
            description: Number of epochs, above 0.
            type: float
            default: 1
      deadline_hours:
        description: Hours, above 0, in which the training must be done; the cheapest option within is named.
        type: float
      budget:
        description: What the training may cost, above 0; the fastest option within is named.
        type: float
      criteria:
        description: Thresholds of the criteria.
        type: dict
        apply_defaults: true
        suboptions:
          efficiency:
            description: Parallel efficiency that is required on many machines, in per cent from 1 to 100.
            type: float
            default: 80
          machines:
            description: From how many machines on it is required, 1 or more.
            type: int
            default: 20
          utilisation:
            description: Mean utilisation that is required of every case, in per cent from 1 to 100.
            type: float
            default: 80
          ahead:
            description: The workload that must be faster than every other one of its family.
            type: str
            default: ""
      out:
        description: Directory to write to; it is made. The default is below O(here).
        type: path
        default: evaluation
  here:
    description: Directory from which relative paths count.
    type: path
    required: true
  templates:
    description: Directory of the page, its style and the texts by language.
    type: path
    required: true
  data:
    description: Directory of the published tables.
    type: path
    required: true
  workloads:
    description: The declarations of the workloads by name, as lookup C(scalebook_workloads) returns them.
    type: dict
    required: true
attributes:
  check_mode: {support: full}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Write the evaluation
  evaluation:
    evaluation:
      title: BERT on two clusters
      campaigns: [results/first, results/second]
      prices: data/prices.yml
      out: evaluation
    here: /srv/scalebook
    templates: templates
    data: data
    workloads: "{{ lookup('scalebook_workloads') }}"
"""

RETURN = r"""
display:
  description: The conclusion, line by line, and the path of the document.
  returned: success
  type: list
  elements: str
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.evaluate import content, document, fields, prices, published
from ansible.module_utils.scalebook.evaluate.options import Option
from ansible.module_utils.scalebook.evaluate.sentences import conclusion
from ansible.module_utils.scalebook.files import read_small, write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import mfu
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import docx, html, html_page, markdown, spreadsheet
from ansible.module_utils.scalebook.pages.wording import Wording, load
from ansible.module_utils.scalebook.results_file import check_results
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import ARCHIVE
from ansible.module_utils.scalebook.yaml_file import read_yaml

try:
    import yaml

    MISSING = html_page.MISSING or spreadsheet.MISSING
except ImportError as exc:
    MISSING = str(exc)


class EvaluationError(ValueError):
    """Input that no evaluation can be made of; the text names it and the fix."""


UNNAMED = (ValueError, UnicodeEncodeError)
"""What Python itself raises, without the name of a file."""


def asked_spec() -> dict[str, Any]:
    """Return the spec of what the user asks for."""
    return {
        "title": {"type": "str", "required": True},
        "language": {"type": "str", "choices": ["en", "zh"], "default": "en"},
        "platform": {"type": "str", "default": ""},
        "texts": {"type": "dict", "default": {}},
        "campaigns": {"type": "list", "elements": "path", "default": []},
        "published": {"type": "list", "elements": "str", "choices": [*published.SOURCES], "default": []},
        "prices": {"type": "path"},
        "electricity": {"type": "float"},
        "task": {
            "type": "dict",
            "apply_defaults": True,
            "options": {
                "name": {"type": "str", "default": ""},
                "samples": {"type": "int", "default": 1000000},
                "epochs": {"type": "float", "default": 1},
            },
        },
        "deadline_hours": {"type": "float"},
        "budget": {"type": "float"},
        "criteria": {
            "type": "dict",
            "apply_defaults": True,
            "options": {
                "efficiency": {"type": "float", "default": 80},
                "machines": {"type": "int", "default": 20},
                "utilisation": {"type": "float", "default": 80},
                "ahead": {"type": "str", "default": ""},
            },
        },
        "out": {"type": "path", "default": "evaluation"},
    }


def argument_spec() -> dict[str, Any]:
    return {
        "evaluation": {"type": "dict", "required": True, "options": asked_spec()},
        "here": {"type": "path", "required": True},
        "templates": {"type": "path", "required": True},
        "data": {"type": "path", "required": True},
        "workloads": {"type": "dict", "required": True},
    }


TABLES = {
    published.TRAINER: "hf-trainer-published.csv",
    published.DLPERF: "dlperf-published-results.csv",
    published.INSIGHTFACE: "dlperf-insightface.csv",
}


def results_file(path: Path) -> Path:
    """Return results.json or the archive of a campaign's directory, or that file itself."""
    files = (
        [path] if path.is_file() else [path / "report/results.json", path / "results.json", path / ARCHIVE]
    )
    found = [file for file in files if file.is_file()]
    if not found:
        raise EvaluationError(
            f"{path}: has no report/results.json. Fix: ansible-playbook report.yml -e campaign_dir={path}"
        )
    return found[0]


def results_of(file: Path, data: Path, workloads: Mapping[str, Any]) -> Results:
    """Return the content of a results.json, or of what report.yml makes of an archive."""
    try:
        if not file.name.endswith(".tar.xz"):
            return check_results(decode(read_small(file)))
        with (data / "gpus.csv").open(encoding="utf-8", newline="") as lines:
            peaks = mfu.read_peaks(lines)
        made = build_results(load_campaign(file), workloads, peaks=peaks)
        return check_results(json.loads(json.dumps(made)))
    except ValueError as error:
        raise EvaluationError(f"{file}: {error}") from error


def published_options(name: str, data: Path, workloads: Mapping[str, Any]) -> list[Option]:
    """Return the options of a published table."""
    with (data / TABLES[name]).open(newline="") as file:
        if name == published.DLPERF:
            return published.of_dlperf(file, workloads)
        return published.of_trainer(file) if name == published.TRAINER else published.of_insightface(file)


def checksums(files: Iterable[Path], here: Path) -> dict[str, str]:
    """Return the SHA-256 of files by their path below `here`, or their whole path elsewhere."""

    def name(file: Path) -> str:
        return str(file.relative_to(here) if file.is_relative_to(here) else file)

    return {name(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def price_list(here: Path, name: str) -> list[prices.Price]:
    """Return the prices of a file; none where no file is given."""
    if not name:
        return []
    path = here / name
    try:
        path.open("rb").close()
        content = read_yaml(path)
    except OSError as error:
        allowed = f"files such as data/prices.yml ({error.strerror})"
        raise EvaluationError(fields.refusal("prices", name, allowed)) from error
    except ValueError as error:
        raise EvaluationError(" ".join(str(error).replace("is not YAML: ", "").split())) from error
    if not isinstance(content, dict) or not isinstance(content.get("prices"), list):
        raise EvaluationError(f"{path}: it must have a list `prices`, as data/prices.yml has")
    try:
        return prices.read(content["prices"])
    except prices.PriceError as error:
        raise EvaluationError(f"{path}: {error}") from error


def campaign_files(names: Sequence[str], here: Path) -> list[Path]:
    """Return the file of each campaign; refuse a campaign that is listed twice, whatever its path."""
    files = [results_file(here / name) for name in names]
    contents = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    fields.check_differ("campaigns", list(zip(names, contents, strict=True)))
    return files


def evaluate(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the evaluation and return what the module returns."""
    try:
        return _evaluate(params, write)
    except Exception as error:
        # What is wrong with the input has a class of its own and names it; what nobody foresaw does not.
        if isinstance(error, OSError) or (isinstance(error, ValueError) and type(error) not in UNNAMED):
            raise
        names = ", ".join(map(str, campaign_files(params["evaluation"]["campaigns"], Path(params["here"]))))
        raise EvaluationError(f"{names}: cannot be evaluated: {type(error).__name__}: {error}") from error


def _evaluate(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    given, here, templates = params["evaluation"], Path(params["here"]), Path(params["templates"])
    data, workloads = Path(params["data"]), params["workloads"]
    fields.check_values(given)
    if not given["campaigns"] and not given["published"]:
        raise EvaluationError("campaigns and published are empty. Fix: name at least one campaign")
    texts = yaml.safe_load((templates / f"evaluation.{given['language']}.yml").read_text())
    files = campaign_files(given["campaigns"], here)
    campaigns = [results_of(file, data, workloads) for file in files]
    others = [option for name in given["published"] for option in published_options(name, data, workloads)]
    check_names(given, campaigns, others, workloads)
    listed = price_list(here, given["prices"])
    archives = [here / path / ARCHIVE for path in given["campaigns"]]
    read = [*files, *(file for file in archives if file.is_file())]
    read += [data / TABLES[name] for name in given["published"]]
    read += [here / given["prices"]] if given["prices"] else []
    evaluation = document.document(given, campaigns, others, listed, workloads, checksums(read, here))
    wording = Wording(load(str(templates), given["language"]))
    blocks = content.blocks(evaluation, texts, wording.tell)
    forms = {
        "md": markdown.document(evaluation["title"], blocks).encode(),
        "html": html.document(evaluation["title"], blocks, texts, str(templates)).encode(),
        "xlsx": spreadsheet.of_tables(evaluation["title"], blocks),
        "docx": docx.document(evaluation["title"], blocks, given["language"], str(templates)),
    }
    out = here / given["out"]
    try:
        changed = written(out, evaluation, forms, write)
    except OSError as error:
        allowed = f"directories that can be written to ({error.strerror})"
        raise EvaluationError(fields.refusal("out", given["out"], allowed)) from error
    shown = [*conclusion(evaluation, texts), f"evaluation: {out / 'evaluation.md'}"]
    return {"changed": changed, "display": shown}


def check_names(
    given: Mapping[str, Any],
    campaigns: Sequence[Results],
    others: Sequence[Option],
    workloads: Mapping[str, Any],
) -> None:
    """Refuse a workload or a section that does not exist."""
    groups = [group for results in campaigns for group in results["groups"]]
    families = [str(group.get("family", "")) for group in groups] + [option["family"] for option in others]
    fields.check_names(given, [*workloads, *(group["workload"] for group in groups)], families)


def written(out: Path, evaluation: Mapping[str, Any], forms: Mapping[str, bytes], write: bool) -> bool:
    """Write the files of an evaluation if `write`; return whether one differs from what was there."""
    if write:
        out.mkdir(parents=True, exist_ok=True)
    changed = write_json(out / "evaluation.json", evaluation, write)
    for form, made in forms.items():
        changed |= write_whole(out / f"evaluation.{form}", made, write)
    return changed


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    if MISSING:
        module.fail_json(msg=f"{MISSING}. Fix: pip install --require-hashes -r requirements.txt")
    try:
        answer = evaluate(module.params, not module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
