# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The latency of workloads that declare it stands beside the throughput, in every form of the report."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import csv_sheet, render, terminal
from ansible.module_utils.scalebook.report.charts import charts
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.workload import Workload
from report_records import campaign, case, record

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"
RATES = {(1, 1): 1000.0, (2, 1): 1600.0}


def built(tmp_path, **declared):
    records = [record(case(*shape), 1, rate) for shape, rate in RATES.items()]
    return build_results(load_campaign(campaign(tmp_path, records)), {"tf2_bert": Workload(**declared)})


@pytest.fixture
def shown(tmp_path):
    return built(tmp_path, latency=True)


def test_the_latency_is_the_time_of_a_step_of_all_devices(shown):
    """64 samples in 64 ms, 128 samples in 80 ms."""
    assert [row["latency_ms"] for row in shown["rows"]] == pytest.approx([64.0, 80.0])


def test_a_workload_that_declares_no_latency_has_none(tmp_path):
    made = built(tmp_path)
    assert [row["latency_ms"] for row in made["rows"]] == [None, None]
    assert "latency" not in terminal.table(made)
    assert "latency" not in [chart["name"] for chart in charts(made)]


def test_the_terminal_shows_it_beside_the_rate(shown):
    head, _, one, two = terminal.table(shown).splitlines()[1:5]
    assert [line.split("|")[3].strip() for line in (head, one, two)] == ["latency, ms", "64.0", "80.0"]


def test_the_tables_of_the_report_have_it_after_the_rate(shown):
    made = render.files(shown, str(TEMPLATES))
    assert "per GPU | latency, ms | speedup" in made["report.md"]
    assert "2n1g | 2 | 1600.0 | 800.0 | 80.0 | 1.6 |" in made["report.md"]
    page = made["report.html"]
    assert '<th scope="col">per GPU</th><th scope="col">latency, ms</th>' in page
    assert '<td class="main">800.0</td><td>80.0</td>' in page


def test_the_sheet_has_it_in_a_column(shown):
    assert [row["latency_ms"] for row in csv_sheet.sheet(shown).rows] == pytest.approx([64.0, 80.0])


def test_it_has_a_chart(shown):
    (chart,) = [chart for chart in charts(shown) if chart["name"] == "latency"]
    assert "Latency" in chart["svg"] and "1n1g: 64.0" in chart["svg"]
