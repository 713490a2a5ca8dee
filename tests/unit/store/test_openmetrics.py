# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""metrics.prom: read by the parsers of prometheus_client, with the numbers of the document."""

import json
import re
from pathlib import Path

import measured
import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.quantities import TABLE
from ansible.module_utils.scalebook.store import openmetrics
from ansible.module_utils.scalebook.store.load import load_campaign
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as classic_families
from recordings import torch_bert
from report_records import campaign, case, dlperf_records, record

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
CAMPAIGNS = [RESULTS / name for name in measured.campaigns()]


def build(tmp_path, *records):
    return build_results(load_campaign(campaign(tmp_path, records)))


def samples(made):
    """Return every sample of metrics.prom as (name, labels, value)."""
    families = openmetrics_families(openmetrics.text(made))
    return [(each.name, each.labels, each.value) for family in families for each in family.samples]


def values(made, name, **labels):
    return [
        value
        for found, their, value in samples(made)
        if found == f"scalebook_{name}" and labels.items() <= their.items()
    ]


@pytest.mark.parametrize("top", CAMPAIGNS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_the_metrics_of_a_golden_report_are_openmetrics_with_its_numbers(top):
    made = build_results(load_campaign(top))
    medians = values(made, "throughput_samples_per_second", statistic="median")
    assert medians == [row["median"] for row in made["rows"] if row["good"]]
    assert sum(values(made, "runs", status="ok")) == made["counts"]["good"]


def test_the_metrics_can_be_read_by_the_textfile_collector_too(tmp_path):
    """It reads the older format of Prometheus, in which info and stateset do not exist."""
    made = build(tmp_path, torch_bert(64), record(case(1, 2), 1, None))
    read = [each for family in classic_families(openmetrics.text(made)) for each in family.samples]
    assert len(read) == len(samples(made)) > 50
    kinds = set(re.findall(r"^# TYPE \S+ (\S+)$", openmetrics.text(made), re.MULTILINE))
    assert kinds == {"gauge"}


def test_a_recorded_run_has_its_utilisation_in_base_units(tmp_path):
    made = build(tmp_path, torch_bert(64))
    assert values(made, "gpu_sm_active_ratio", statistic="mean") == [pytest.approx(0.4376, abs=1e-4)]
    assert values(made, "gpu_power_watts", statistic="mean", bsz="64") == [pytest.approx(433.294)]
    assert values(made, "gpu_energy_joules_per_sample", statistic="mean") == [pytest.approx(0.2058, abs=1e-4)]
    assert values(made, "disk_bytes_per_second", statistic="mean") == [pytest.approx(193593.11)]
    assert values(made, "utilisation_criterion_met", resource="gpu") == [0.0]
    assert values(made, "bottleneck_cause", cause="launch-bound", rank="1") == [1.0]
    assert values(made, "campaign_start_timestamp_seconds") == [1795222923.0]


def test_the_labels_are_the_fields_of_the_group(tmp_path):
    made = build(tmp_path, record(case(2, 4, xla=True), 1))
    [(_, labels, _)] = [each for each in samples(made) if each[0] == "scalebook_runs"]
    assert labels == {
        "campaign": made["campaign"],
        "case": made["rows"][0]["case"],
        "workload": "tf2_bert",
        "model": "base",
        "device": "gpu",
        "dtype": "fp32",
        "xla": "true",
        "bsz": "64",
        "accumulation": "1",
        "warmup": "20",
        "window": "100",
        "nodes": "2",
        "gpus": "4",
        "devices": "8",
        "unit": "samples",
        "status": "ok",
    }


def test_a_run_that_does_not_count_is_counted_by_its_status(tmp_path):
    made = build(tmp_path, record(case(), 1), record(case(), 2, None))
    assert values(made, "runs", status="ok") == [1.0]
    assert values(made, "runs", status="incomplete") == [1.0]


def test_names_that_need_escapes_come_back_as_they_were(tmp_path):
    made = build(tmp_path, record(case(model='a"b\\n{}'), 1))
    assert {labels["model"] for _, labels, _ in samples(made) if "model" in labels} == {'a"b\\n{}'}


def test_a_start_that_is_not_a_time_has_no_metric(tmp_path):
    made = {**build(tmp_path, record(case(), 1)), "started": "yesterday"}
    assert values(made, "campaign_start_timestamp_seconds") == []


def test_every_quantity_of_the_table_is_a_metric_or_follows_from_one():
    # A query makes them from the joules per sample: 1 / x, and x / 3.6 for kWh per million.
    derived = {"gpu_energy_per_token", "gpu_samples_per_joule", "gpu_energy_per_million"}
    assert {*openmetrics.USAGE, *derived} == {quantity.name for quantity in TABLE}


def test_the_metrics_of_the_dashboard_exist(tmp_path):
    dashboard = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
    named = set(re.findall(r"scalebook_[a-z_]+", json.dumps([dashboard["panels"], dashboard["templating"]])))
    made = build(tmp_path, torch_bert(64), *dlperf_records())
    there = {name for name, _, _ in samples(made)}
    assert named <= there and len(named) >= 15
    labels = {label for _, their, _ in samples(made) for label in their}
    used = json.dumps(dashboard["panels"])
    assert set(re.findall(r"\{\{(\w+)\}\}", used)) | set(re.findall(r'(\w+)(?:=~|!=|=)\\"', used)) <= labels
