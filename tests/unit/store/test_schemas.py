# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The schemas in docs/reference are JSON schemas, and real files fit them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import measured
import preflight_report
import pytest
import results_verify
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import MICROBENCH
from ansible.module_utils.scalebook.workload import Workload
from dlperf_logs import WORKLOAD
from preflight_site import DATA, Cluster
from report_records import campaign, case, record
from run_module import call_module, run_module

DOCS = Path(__file__).parents[3] / "docs"
RESULTS = DOCS / "results"
FOLDER = DOCS / "reference"
SCHEMAS = sorted(FOLDER.glob("*.schema.json"))
CAMPAIGNS = [RESULTS / name for name in measured.campaigns()]


def check(name, value):
    """Raise ValidationError unless `value`, as JSON, fits the published schema `name`."""
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(value)))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_the_schemas_are_schemas(path):
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.mark.parametrize("top", CAMPAIGNS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_measured_files_fit_their_schemas(top):
    source = measured.source(top.relative_to(RESULTS).as_posix())
    check("plan", json.loads(source.read("plan.json")))
    for file in source.records():
        check("result", json.loads(source.read(file)))
    check("results", measured.results(top.relative_to(RESULTS).as_posix()))


def test_measured_micro_benchmarks_fit_their_schema(tmp_path):
    top = measured.micro_benchmarks(tmp_path)
    made = json.loads((top / MICROBENCH).read_text())
    check("microbench", made)
    [record] = made["records"]
    assert (record["device"], len(record["measurements"])) == ("NVIDIA H200", 100)
    assert call_module(results_verify, path=str(top))["problems"] == []


def test_a_report_of_today_fits_its_schema(tmp_path):
    records = [record(case(), repeat) for repeat in (1, 2, 3)]
    records += [record(case(workload="torch_bert"), 1), record(case(1, 2), 1, None)]
    top = campaign(tmp_path, records, skipped=[{"case": case(8, 8), "reason": "needs 8 nodes"}])
    made = build_results(load_campaign(top), {"tf2_bert": WORKLOAD, "torch_bert": Workload(family="bert")})
    check("results", made)


def preflight(tmp_path, facts, failures):
    """Return preflight.json of one machine whose probes returned this."""
    out = tmp_path / "preflight.json"
    cluster = Cluster(1)
    probed = {"NODE1": {"facts": {**cluster["NODE1"], "nvlink": "", **facts}, "failures": failures}}
    given = {"machines": cluster.machines, "limits": cluster.limits, "results": str(tmp_path)}
    call_module(preflight_report, probed=probed, out=[str(out)], **given)
    return json.loads(out.read_text())


def test_a_preflight_of_this_machine_fits_its_schema(tmp_path):
    probed = run_module("node_probe", None, work=str(tmp_path), seconds=10, login_seconds=0.1)
    made = preflight(tmp_path, probed["facts"], probed["failures"])
    assert made["probed"]["NODE1"]["facts"]["host"] == probed["facts"]["host"]
    check("preflight", made)


def test_a_preflight_of_a_recorded_h100_fits_its_schema(tmp_path):
    smi = {"report": (DATA / "h100-idle.xml").read_text(), "processes": {}}
    lines = (DATA / "h100-dmesg.txt").read_text().splitlines()
    made = preflight(tmp_path, {"smi": smi, "xids": lines}, {"peers": "no answer in 20 s"})
    assert made["probed"]["NODE1"]["facts"]["smi"]["gpus"]
    check("preflight", made)
    check("preflight", {**made, "probed": {"NODE1": {"error": "no answer"}}})


def test_an_unknown_key_does_not_fit():
    with pytest.raises(jsonschema.ValidationError, match="'marks' was unexpected"):
        check("results", {"marks": []})
