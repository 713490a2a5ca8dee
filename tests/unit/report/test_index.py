# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The index of all campaigns: cases over time, regressions by the tests of a baseline, and a strict page."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
import results_index
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import index
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.workload import Workload
from report_records import campaign, case, record
from run_module import call_module

TEMPLATES = str(Path(__file__).resolve().parents[3] / "templates")
H200 = [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H200"}]}]
NEW = ("hardware", "machines")
SPREAD = (0.999, 1.0, 1.001, 1.0005, 0.9995)


def report(top, name, rate, day=1, hardware=H200, **fields):
    """Write the report of a campaign of five runs of one case."""
    records = [
        record(
            case(**fields),
            repeat,
            rate * factor,
            job={"started": f"2026-11-{day:02}T00:00:00Z"} if day else {},
            hardware=hardware,
        )
        for repeat, factor in enumerate(SPREAD, 1)
    ]
    folder = campaign(top / name, records)
    (folder / "report").mkdir()
    content = build_results(load_campaign(folder))
    (folder / "report" / "results.json").write_text(json.dumps(content))


@pytest.fixture
def slower(tmp_path):
    """Return the index of three campaigns, the last of which is 10 % slower."""
    for day, rate in ((1, 100.0), (2, 100.1), (3, 90.0)):
        report(tmp_path, f"night{day}", rate, day)
    return index.build(tmp_path)


def test_a_case_has_one_line_over_all_campaigns_in_order_of_time(slower):
    [series] = slower["series"]
    assert [point["campaign"] for point in series["points"]] == ["night1", "night2", "night3"]


@pytest.mark.parametrize(("day", "hardware"), [(None, H200), (1, [])])
def test_campaigns_without_a_date_or_hardware_are_not_compared(tmp_path, day, hardware):
    report(tmp_path, "before", 100.0, day, hardware)
    report(tmp_path, "now", 50.0, day and day + 1, hardware)
    assert {each["regressions"] for each in index.build(tmp_path)["campaigns"]} == {0}


def test_a_slowdown_is_a_regression_of_its_campaign(slower):
    verdicts = [(point["verdict"], point["regression"]) for point in slower["series"][0]["points"]]
    assert verdicts == [("n/a", False), ("same", False), ("slower", True)]
    assert {each["campaign"]: each["regressions"] for each in slower["campaigns"]} == {
        "night3": 1,
        "night2": 0,
        "night1": 0,
    }


def test_other_hardware_is_another_line(tmp_path):
    report(tmp_path, "one", 100.0)
    report(tmp_path, "two", 50.0, 2, hardware=[{"nodes": ["NODE1"], "gpus": [{"name": "Tesla P40"}]}])
    found = index.build(tmp_path)
    assert {each["hardware"] for each in found["series"]} == {"1 × NVIDIA H200", "1 × Tesla P40"}
    assert sum(each["regressions"] for each in found["campaigns"]) == 0


def seeing(count):
    """Return an H200 host of which `count` GPUs were visible."""
    return [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H200"}] * count}]


def test_a_case_stays_on_its_line_when_another_number_of_gpus_was_visible(tmp_path):
    report(tmp_path, "one", 100.0, hardware=seeing(1))
    report(tmp_path, "two", 90.0, 2, hardware=seeing(4))
    [series] = index.build(tmp_path)["series"]
    assert series["hardware"] == "1 × NVIDIA H200"
    assert series["points"][1]["regression"]


def test_a_case_stays_on_its_line_when_the_last_report_is_of_an_earlier_version(tmp_path):
    report(tmp_path, "one", 100.0, hardware=[*seeing(1), *seeing(2)])
    path = tmp_path / "one/report/results.json"
    content = json.loads(path.read_text())
    content["rows"][0] = {key: value for key, value in content["rows"][0].items() if key not in NEW}
    path.write_text(json.dumps(content))
    report(tmp_path, "two", 90.0, 2, hardware=seeing(4))
    assert len(index.build(tmp_path)["series"]) == 1


def test_a_case_stays_on_its_line_when_its_workload_gets_a_setting(tmp_path):
    report(tmp_path, "before", 100.0)
    report(tmp_path, "after", 90.0, 2, settings={"loader": "auto"})
    declared = {"tf2_bert": Workload(settings_before={"loader": "auto"})}
    [series] = index.build(tmp_path, declared=declared)["series"]
    assert [point["verdict"] for point in series["points"]] == ["n/a", "slower"]


def test_a_report_that_cannot_be_read_is_named_and_costs_the_others_nothing(tmp_path):
    report(tmp_path, "good", 100.0)
    (tmp_path / "bad" / "report").mkdir(parents=True)
    (tmp_path / "bad" / "report" / "results.json").write_text("{")
    found = index.build(tmp_path)
    assert [each["campaign"] for each in found["campaigns"]] == ["good"]
    assert found["unread"][0].startswith("bad: ")


def test_the_page_links_every_report_and_marks_the_regression(slower):
    html = index.files(slower, TEMPLATES)["index.html"]
    assert all(f'href="night{day}/report/report.html"' in html for day in (1, 2, 3))
    assert html.count('<circle class="mark"') == 1


def test_the_policy_allows_this_script_only(slower):
    html = index.files(slower, TEMPLATES)["index.html"]
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in html or f"script-src 'sha256-{digest}'" in html


def test_the_filter_takes_a_campaign_and_its_cases_by_the_model_of_their_gpus(tmp_path):
    report(tmp_path, "one", 100.0, hardware=seeing(4))
    html = index.files(index.build(tmp_path), TEMPLATES)["index.html"]
    assert html.count('data-hardware="NVIDIA H200"') == 2
    assert "<option>NVIDIA H200</option>" in html or 'value="NVIDIA H200"' in html


@pytest.mark.parametrize(
    ("kind", "models"),
    [
        ("2 × NVIDIA H200, NV18; 2 nodes, 1 machine", ["NVIDIA H200"]),
        ("AMD EPYC, 2 cores and 1 × Tesla P40", ["AMD EPYC", "Tesla P40"]),
        ("not recorded", ["not recorded"]),
    ],
)
def test_a_kind_of_hardware_has_the_models_that_the_filter_names(kind, models):
    assert index.models(kind) == models


def test_its_scripts_are_small():
    assert len((Path(TEMPLATES) / "report.js").read_bytes()) <= 1400
    assert len((Path(TEMPLATES) / "index.js").read_bytes()) <= 400


def test_each_case_has_the_title_of_its_own_campaign(tmp_path):
    report(tmp_path, "one", 100.0, workload="tf2_bert")
    report(tmp_path, "two", 50.0, 2, workload="torch_bert")
    titles = [each["title"].split()[0] for each in index.build(tmp_path)["series"]]
    assert titles == ["tf2_bert", "torch_bert"]


def test_a_regression_stands_first(tmp_path):
    for day, rate in ((1, 100.0), (2, 90.0)):
        report(tmp_path, f"a{day}", 100.0, day, workload="tf2_bert")
        report(tmp_path, f"b{day}", rate, day, workload="torch_bert")
    found = index.build(tmp_path)
    assert [each["workload"] for each in found["series"]] == ["torch_bert", "tf2_bert"]
    assert "1 case slower than before" in index.files(found, TEMPLATES)["index.html"]


def test_no_line_is_hidden_without_the_script(slower):
    html = index.files(slower, TEMPLATES)["index.html"]
    assert re.findall(r"<(\w+)[^>]* hidden[ >]", html) == ["form"]


def test_names_with_markup_stay_text(tmp_path):
    report(tmp_path, "<b>x", 100.0, model="<img src=x>")
    html = index.files(index.build(tmp_path), TEMPLATES)["index.html"]
    assert "<b>x" not in html
    assert "<img" not in html


def test_the_page_can_be_chinese_and_its_json_is_the_same(slower):
    english, chinese = (index.files(slower, TEMPLATES, language) for language in ("en", "zh"))
    assert chinese["index.json"] == english["index.json"]
    assert '<html lang="zh">' in chinese["index.html"]
    assert "1 个用例慢于之前" in chinese["index.html"]
    assert "over time" not in chinese["index.html"]


def test_small_scatter_does_not_look_big(slower):
    drawn = index.sparkline(slower["series"][0]["points"], ENGLISH)
    first, second, third = map(float, re.findall(r"[\d.]+,([\d.]+)", drawn))
    assert abs(first - second) < 1
    assert third - second > 3


def run(path, **params):
    return call_module(results_index, path=str(path), templates=TEMPLATES, **params)


def test_the_module_writes_both_files_and_a_second_run_changes_nothing(tmp_path):
    report(tmp_path, "one", 100.0)
    assert run(tmp_path)["changed"] is True
    assert {path.name for path in tmp_path.glob("index.*")} == {"index.html", "index.json"}
    assert run(tmp_path)["changed"] is False


def test_without_a_report_the_error_names_the_fix(tmp_path):
    assert run(tmp_path)["msg"] == (
        f"No campaign in {tmp_path} has a report. Fix: ansible-playbook report.yml -e campaign=NAME makes one"
    )
