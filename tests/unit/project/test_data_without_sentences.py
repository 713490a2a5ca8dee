# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The files of a campaign are data: what people read there is a code with values, its words are elsewhere."""

import json
from collections import defaultdict

import evaluation
import measured
import pytest
import yaml
from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.files import read_table
from ansible.module_utils.scalebook.judge import language_models, mfu
from ansible.module_utils.scalebook.judge.language_rates import Table
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import index
from ansible.module_utils.scalebook.store.load import load_baseline, read_source
from ansible.module_utils.scalebook.workloads import load_workloads
from recordings import FOLDER, recorded
from run_module import call_module
from sentences import phrases_in

ROOT = measured.ROOT
WORKLOADS = load_workloads([str(ROOT / "roles")])
SYSTEM = ("processor", "gpus.name", "system", "gpu_topology", "model", "gpu", "device")
"""What a system calls its parts."""
SOFTWARE = (
    "framework",
    "software",
    "packages",
    "cuda",
    "cudnn",
    "nccl",
    "commit",
    "features",
    "values.value",
)
"""What a node has, as its packages and repositories call it."""
SAID = ("command", "commands", "last_lines", "line", "stderr")
"""Commands and the lines of logs."""
DECLARED = (
    "data",
    "data_set",
    "workload_title",
    "source",
    "best.title",
    "frameworks.title",
    "frameworks.name",
)
"""What the declaration of a workload says."""
PUBLISHED = ("compare.variant", "only_published.variant", "options.variant", "remarks", "date", "per")
"""What a publisher says, and the files of prices."""
OF_OTHERS = (*SYSTEM, *SOFTWARE, *SAID, *DECLARED, *PUBLISHED)


def said(*files, of_others=OF_OTHERS):
    """Return the phrases in files by their place, three of each."""
    found = defaultdict(dict)
    for file in files:
        for place, text in phrases_in(file, of_others):
            found[place][text] = None
    return {place: list(texts)[:3] for place, texts in found.items()}


@pytest.mark.parametrize("name", measured.campaigns())
def test_the_files_of_a_measured_campaign(name):
    source = measured.source(name)
    assert said(*(source.decode(file) for file in ("plan.json", "provenance.json", *source.records()))) == {}


@pytest.fixture(scope="module")
def tables():
    """Return the tables that are compared with."""
    data = ROOT / "data"
    dlperf = read_table(data / "dlperf-published-results.csv", published.read)
    language = Table(
        read_table(data / "llm-published.csv", language_models.read),
        read_table(data / "gpus.csv", language_models.gpu_patterns),
    )
    return dlperf, language, read_table(data / "gpus.csv", mfu.read_peaks)


@pytest.mark.parametrize("name", measured.campaigns())
def test_the_results_of_a_measured_campaign(tables, name):
    dlperf, language, peaks = tables
    campaign = read_source(measured.source(name))
    assert said(build_results(campaign, WORKLOADS, dlperf, peaks=peaks, language=language)) == {}


def test_the_results_beside_those_of_an_earlier_campaign():
    folder = "h200x4-2026-11-26"
    campaign = read_source(measured.source(f"{folder}/torch_gpt2"))
    before = load_baseline(measured.FOLDER / folder / "torch_gpt2_other_host", 0.03)
    results = build_results(campaign, WORKLOADS, earlier=before)
    assert results["baseline"]["rows"] and said(results) == {}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_the_telemetry_of_a_run(name):
    folders = [folder.relative_to(FOLDER) for folder in (FOLDER / name, *(FOLDER / name).glob("*n"))]
    read = [nodes for folder in folders if (nodes := recorded(folder))]
    assert read and said({"telemetry": read}) == {}


KINDS = ("campaigns.hardware", "series.hardware", "campaigns.models")
"""Names of kinds of hardware, by which campaigns are compared."""


def test_the_index_of_campaigns(tmp_path):
    for name in measured.campaigns():
        place = tmp_path / name / "report"
        place.mkdir(parents=True)
        (place / "results.json").write_text(json.dumps(measured.results(name)))
    contents = [
        "{",
        "{}",
        '{"schema": 1, "rows": []}',
        '{"schema": 3, "rows": [{}]}',
        '{"schema": 3, "rows": []}',
    ]
    for number, content in enumerate(contents):
        place = tmp_path / f"odd{number}/report"
        place.mkdir(parents=True)
        (place / "results.json").write_text(content)
    made = index.build(index.read(tmp_path, WORKLOADS))
    assert len(made["unread"]) == len(contents)
    assert said(made, of_others=(*OF_OTHERS, *KINDS)) == {}


def test_the_micro_benchmarks(tmp_path):
    folder = measured.micro_benchmarks(tmp_path)
    assert said(json.loads((folder / "microbench.json").read_text())) == {}


USERS = ("title", "platform", "texts", "task.name", "values.task")
"""What the user says of an evaluation."""


@pytest.mark.parametrize("path", sorted(measured.FOLDER.glob("evaluation-*/en.yml")), ids=str)
def test_an_evaluation(tmp_path, path):
    example = yaml.safe_load((ROOT / "playbooks/vars/evaluation.yml").read_text())["evaluation"]
    asked = {**example, **yaml.safe_load(path.read_text())["evaluation"], "out": str(tmp_path)}
    done = call_module(
        evaluation,
        evaluation=asked,
        here=str(ROOT),
        templates=str(ROOT / "templates"),
        data=str(ROOT / "data"),
        workloads={name: each.as_data() for name, each in WORKLOADS.items()},
    )
    assert done["changed"], done
    made = json.loads((tmp_path / "evaluation.json").read_text())
    assert said(made, of_others=(*OF_OTHERS, *USERS)) == {}
