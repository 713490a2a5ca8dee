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
    C(evaluation.html) and C(evaluation.xlsx), which have a verdict for each criterion, throughput by model
    family, time and cost of a training, and the best value.
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
        description: What the document says of the platform - its name, address, and what can be had there.
        type: str
        default: ""
      texts:
        description:
          - Paragraphs of the user's own by section - C(introduction), C(platform), C(frameworks),
            C(configuration), C(rules), C(problems), or the name of a model family.
        type: dict
        default: {}
      campaigns:
        description: Directories of campaigns that were reported on, or their C(results.json).
        type: list
        elements: path
        required: true
      published:
        description: Whether the published runs of HF Trainer are offered beside the measured ones.
        type: bool
        default: false
      prices:
        description: List of prices, such as C(data/prices.yml).
        type: path
      electricity:
        description: Price of a kWh in the currency of the prices, for the measured energy of GPUs.
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
            description: Number of samples of an epoch.
            type: int
            default: 1000000
          epochs:
            description: Number of epochs.
            type: float
            default: 1
      deadline_hours:
        description: Hours in which the training must be done; the cheapest option within is named.
        type: float
      budget:
        description: What the training may cost; the fastest option within is named.
        type: float
      criteria:
        description: Thresholds of the criteria.
        type: dict
        apply_defaults: true
        suboptions:
          efficiency:
            description: Parallel efficiency in per cent that is required on many machines.
            type: float
            default: 80
          machines:
            description: From how many machines on it is required.
            type: int
            default: 20
          utilisation:
            description: Mean utilisation in per cent that is required of every case.
            type: float
            default: 80
          ahead:
            description: The workload that must be faster than every other one of its family.
            type: str
            default: ""
      out:
        description: Directory to write to.
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
  trainer_runs:
    description: The CSV of published runs of HF Trainer.
    type: path
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
    trainer_runs: data/hf-trainer-published.csv
"""

RETURN = r"""
display:
  description: The conclusion, line by line, and the path of the document.
  returned: success
  type: list
  elements: str
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.evaluate import content, document, options, prices, render
from ansible.module_utils.scalebook.files import write_json, write_whole

try:
    import yaml

    MISSING = render.MISSING
except ImportError as exc:
    MISSING = str(exc)


class EvaluationError(ValueError):
    """Input that no evaluation can be made of; the text names it and the fix."""


def asked_spec() -> dict[str, Any]:
    """Return the spec of what the user asks for."""
    return {
        "title": {"type": "str", "required": True},
        "language": {"type": "str", "choices": ["en", "zh"], "default": "en"},
        "platform": {"type": "str", "default": ""},
        "texts": {"type": "dict", "default": {}},
        "campaigns": {"type": "list", "elements": "path", "required": True},
        "published": {"type": "bool", "default": False},
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
        "trainer_runs": {"type": "path", "required": True},
    }


def results_of(path: Path) -> dict[str, Any]:
    """Return the content of results.json of a campaign's directory, or of that file itself."""
    files = [path] if path.is_file() else [path / "report/results.json", path / "results.json"]
    found = [file for file in files if file.is_file()]
    if not found:
        raise EvaluationError(
            f"{path}: has no report/results.json. Fix: ansible-playbook report.yml -e campaign_dir={path}"
        )
    try:
        content = json.loads(found[0].read_bytes())
    except ValueError as error:
        raise EvaluationError(f"{found[0]}: {error}") from error
    if not isinstance(content, dict) or content.get("schema") != 2 or "rows" not in content:
        raise EvaluationError(f"{found[0]}: is not a results.json of schema 2. Fix: run report.yml again")
    return content


def price_list(path: Path) -> list[prices.Price]:
    """Return the prices of a file."""
    try:
        content = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise EvaluationError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not isinstance(content.get("prices"), list):
        raise EvaluationError(f"{path}: it must have a list `prices`, as data/prices.yml has")
    return prices.read(content["prices"])


def evaluate(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the evaluation and return what the module returns."""
    given, here, templates = params["evaluation"], Path(params["here"]), Path(params["templates"])
    texts = yaml.safe_load((templates / f"evaluation.{given['language']}.yml").read_text())
    campaigns = [results_of(here / path) for path in given["campaigns"]]
    listed = price_list(here / given["prices"]) if given["prices"] else []
    published = []
    if given["published"]:
        with Path(params["trainer_runs"]).open(newline="") as file:
            published = options.published_by_trainer(file)
    evaluation = document.document(given, campaigns, published, listed)
    blocks = content.blocks(evaluation, texts)
    forms = {
        "md": render.markdown(evaluation["title"], blocks).encode(),
        "html": render.html(evaluation["title"], blocks, texts, str(templates)).encode(),
        "xlsx": render.xlsx(evaluation["title"], blocks),
    }
    out = here / given["out"]
    if write:
        out.mkdir(parents=True, exist_ok=True)
    changed = write_json(out / "evaluation.json", evaluation, write)
    for form, data in forms.items():
        changed |= write_whole(out / f"evaluation.{form}", data, write)
    shown = [*content.conclusion(evaluation, texts), f"evaluation: {out / 'evaluation.md'}"]
    return {"changed": changed, "display": shown}


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
