# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaigns in docs/results give the numbers that are committed there, with the code of today."""

from __future__ import annotations

import csv
import re
import sys

import measured
import pytest

sys.path.insert(0, str(measured.ROOT / "scripts"))

from generated import best, results, site, times  # noqa: E402

FOLDERS = sorted({name.split("/")[0] for name in measured.campaigns()})


@pytest.fixture(scope="module")
def made():
    return results.files()


def committed(path):
    return (measured.ROOT / path).read_text()


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_run_has_the_numbers_that_are_committed(made, folder):
    path = f"docs/results/{folder}/numbers.csv"
    assert committed(path) == made[path], "if this is meant, run: .venv/bin/python scripts/pages"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_case_has_the_judgement_that_is_committed(made, folder):
    path = f"docs/results/{folder}/README.md"
    assert committed(path) == made[path], "if this is meant, run: .venv/bin/python scripts/pages"


@pytest.mark.parametrize("path", [results.PICTURE, best.PAGE, times.PAGE])
def test_the_picture_and_the_tables_of_the_documents_are_those_of_the_campaigns(made, path):
    assert committed(path) == made[path], "if this is meant, run: .venv/bin/python scripts/pages"


def test_the_page_of_the_best_rates_is_short():
    assert len(committed(best.PAGE).splitlines()) <= 150


@pytest.mark.parametrize(
    ("change", "is_sound"),
    [
        ({}, True),
        ({"good": 2}, False),
        ({"flags": [{"code": "superlinear"}]}, False),
        ({"flags": [{"code": "power-limited"}]}, True),
        ({"device": "cpu"}, False),
    ],
)
def test_a_rate_is_quoted_if_three_runs_on_gpus_and_no_flag_speak_for_it(change, is_sound):
    row = measured.results("h200x4-2026-11-26/torch_resnet50")["rows"][0]
    assert best.is_sound({**row, **change}) is is_sound


def test_of_every_workload_and_gpu_the_fastest_row_of_one_and_of_the_most_gpus_is_quoted():
    name = "h200x4-2026-11-26/torch_gpt2"
    sound = list(best.sound([(name, measured.results(name))]))
    lines = best.chosen(sound, results._tables()[0])
    assert [(each.row["devices"], each.gpu) for each in lines] == [(1, "H200"), (4, "H200")]
    assert lines[1].row["median"] == max(each.row["median"] for each in sound)


def test_all_runs_are_covered(made):
    lines = [
        line for path in made if path.endswith(".csv") for line in csv.DictReader(made[path].splitlines())
    ]
    assert len(lines) >= 578
    assert {name for name in results.RUN if all(line[name] == "" for line in lines)} == set()


def test_the_site_shows_at_least_three_whole_reports():
    assert len(set(site.REPORTS) & set(measured.campaigns())) >= 3


def test_the_site_links_to_the_reports_that_it_has():
    text = site.with_reports("### torch_gpt2\n\n### tf2_bert\n", "docs/results/h200x4-2026-11-26/README.md")
    assert text == '### torch_gpt2\n\n<a href="torch_gpt2/report/report.html">Report</a>\n\n### tf2_bert\n'
    table = site.with_reports("[torch_gpt2](results/h200x4-2026-11-26/README.md#torch_gpt2)", best.PAGE)
    assert table.endswith('<a href="results/h200x4-2026-11-26/torch_gpt2/report/report.html">Report</a>')


def test_the_gallery_shows_every_report_of_the_site_with_a_chart_that_is_there():
    text = site.gallery()
    for name in site.REPORTS:
        (chart,) = re.findall(rf'src="results/{name}/report/([^"]+)"', text)
        assert chart in results.report(name) and f'href="results/{name}/report/report.html"' in text
