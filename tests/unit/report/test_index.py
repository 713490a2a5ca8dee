# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The index of all campaigns: cases over time, regressions by the tests of a baseline, and a strict page."""

import base64
import hashlib
import json
import re
from pathlib import Path

import measured
import pytest
import results_index
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import comparison, index, index_page
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
    (folder / "report" / "report.html").touch()


def build(top, **declared):
    return index.build(index.read(top, declared))


def files(top, language="en"):
    reports = index.read(top)
    return index_page.files(index.build(reports), reports, TEMPLATES, language)


def page(top):
    return files(top)["index.html"]


@pytest.fixture
def slower(tmp_path):
    """Return the directory of three campaigns, the last of which is 10 % slower."""
    for day, rate in ((1, 100.0), (2, 100.1), (3, 90.0)):
        report(tmp_path, f"night{day}", rate, day)
    return tmp_path


def test_a_case_has_one_line_over_all_campaigns_in_order_of_time(slower):
    [series] = build(slower)["series"]
    assert [point["campaign"] for point in series["points"]] == ["night1", "night2", "night3"]


@pytest.mark.parametrize(("day", "hardware"), [(None, H200), (1, [])])
def test_campaigns_without_a_date_or_hardware_are_not_compared(tmp_path, day, hardware):
    report(tmp_path, "before", 100.0, day, hardware)
    report(tmp_path, "now", 50.0, day and day + 1, hardware)
    assert {each["regressions"] for each in build(tmp_path)["campaigns"]} == {0}


def test_a_slowdown_is_a_regression_of_its_campaign(slower):
    verdicts = [(point["verdict"], point["regression"]) for point in build(slower)["series"][0]["points"]]
    assert verdicts == [("n/a", False), ("same", False), ("slower", True)]
    assert {each["campaign"]: each["regressions"] for each in build(slower)["campaigns"]} == {
        "night3": 1,
        "night2": 0,
        "night1": 0,
    }


def test_other_hardware_is_another_line(tmp_path):
    report(tmp_path, "one", 100.0)
    report(tmp_path, "two", 50.0, 2, hardware=[{"nodes": ["NODE1"], "gpus": [{"name": "Tesla P40"}]}])
    found = build(tmp_path)
    kinds = [each["hardware"] for each in found["series"]]
    assert sorted(kinds, key=str) == [
        [{"gpus": {name: 1}, "links": []}] for name in ("NVIDIA H200", "Tesla P40")
    ]
    assert sum(each["regressions"] for each in found["campaigns"]) == 0


def seeing(count):
    """Return an H200 host of which `count` GPUs were visible."""
    return [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H200"}] * count}]


def test_a_case_stays_on_its_line_when_another_number_of_gpus_was_visible(tmp_path):
    report(tmp_path, "one", 100.0, hardware=seeing(1))
    report(tmp_path, "two", 90.0, 2, hardware=seeing(4))
    [series] = build(tmp_path)["series"]
    assert series["hardware"] == [{"gpus": {"NVIDIA H200": 1}, "links": []}]
    assert series["points"][1]["regression"]


def test_a_case_stays_on_its_line_when_the_last_report_is_of_an_earlier_version(tmp_path):
    report(tmp_path, "one", 100.0, hardware=[*seeing(1), *seeing(2)])
    path = tmp_path / "one/report/results.json"
    content = json.loads(path.read_text())
    content["rows"][0] = {key: value for key, value in content["rows"][0].items() if key not in NEW}
    path.write_text(json.dumps(content))
    report(tmp_path, "two", 90.0, 2, hardware=seeing(4))
    assert len(build(tmp_path)["series"]) == 1


def test_a_case_stays_on_its_line_when_its_workload_gets_a_setting(tmp_path):
    report(tmp_path, "before", 100.0)
    report(tmp_path, "after", 90.0, 2, settings={"loader": "auto"})
    [series] = build(tmp_path, tf2_bert=Workload(settings_before={"loader": "auto"}))["series"]
    assert [point["verdict"] for point in series["points"]] == ["n/a", "slower"]


def test_a_report_that_cannot_be_read_is_named_and_costs_the_others_nothing(tmp_path):
    report(tmp_path, "good", 100.0)
    (tmp_path / "bad" / "report").mkdir(parents=True)
    (tmp_path / "bad" / "report" / "results.json").write_text("{")
    found = build(tmp_path)
    assert [each["campaign"] for each in found["campaigns"]] == ["good"]
    assert sentence(found["unread"][0]).startswith("bad: ")


def test_the_page_links_every_report_and_marks_the_regression(slower):
    html = page(slower)
    assert all(f'href="night{day}/report/report.html"' in html for day in (1, 2, 3))
    assert html.count('<circle class="mark"') == 2  # among the regressions and among all cases


def test_a_case_that_was_measured_once_stands_apart_without_a_history(slower):
    report(slower, "once", 50.0, 4, workload="torch_bert")
    again, once = re.findall(r"<table>.*?</table>", page(slower), re.DOTALL)[-2:]
    assert "sparkline" in again and "tf2_bert" in again and "torch_bert" not in again
    assert "Measured once" in once and "torch_bert" in once and "<td>–</td>" not in once


def test_the_policy_allows_this_script_only(slower):
    html = page(slower)
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in html or f"script-src 'sha256-{digest}'" in html


def test_the_filter_takes_a_campaign_and_its_cases_by_the_model_of_their_gpus(tmp_path):
    report(tmp_path, "one", 100.0, hardware=seeing(4))
    html = page(tmp_path)
    assert html.count('data-hardware="NVIDIA H200"') == 2
    assert "<option>NVIDIA H200</option>" in html or 'value="NVIDIA H200"' in html


def test_its_scripts_are_small():
    assert len((Path(TEMPLATES) / "report.js").read_bytes()) <= 3000
    assert len((Path(TEMPLATES) / "index.js").read_bytes()) <= 2500
    assert len((Path(TEMPLATES) / "chart.js").read_bytes()) <= 4096
    assert len((Path(TEMPLATES) / "phone.js").read_bytes()) <= 800


def test_each_case_has_the_title_of_its_own_campaign(tmp_path):
    report(tmp_path, "one", 100.0, workload="tf2_bert")
    report(tmp_path, "two", 50.0, 2, workload="torch_bert")
    titles = [sentence(each["title"]).split()[0] for each in build(tmp_path)["series"]]
    assert titles == ["tf2_bert", "torch_bert"]


def test_a_regression_stands_first(tmp_path):
    for day, rate in ((1, 100.0), (2, 90.0)):
        report(tmp_path, f"a{day}", 100.0, day, workload="tf2_bert")
        report(tmp_path, f"b{day}", rate, day, workload="torch_bert")
    [regressions] = re.findall(r'id="regressions".*?</table>', page(tmp_path), re.DOTALL)
    assert "torch_bert" in regressions
    assert "tf2_bert" not in regressions


def test_only_what_needs_the_script_is_hidden_without_it(slower):
    html = page(slower)
    assert re.findall(r"<(\w+)[^>]* hidden[ >]", html) == ["form"]


def test_names_with_markup_stay_text(tmp_path):
    report(tmp_path, "<b>x", 100.0, model="<img src=x>")
    html = page(tmp_path)
    assert "<b>x" not in html
    assert "<img" not in html


def test_the_page_can_be_chinese_and_its_json_is_the_same(slower):
    english, chinese = (files(slower, language) for language in ("en", "zh"))
    assert chinese["index.json"] == english["index.json"]
    assert '<html lang="zh">' in chinese["index.html"]
    assert "1 个用例慢于之前" in chinese["index.html"]
    assert "over time" not in chinese["index.html"]


@pytest.mark.parametrize(("ratio", "word"), [(1.4, "not clear"), (0.6, "not clear"), (1.01, "same")])
def test_a_large_difference_that_is_not_proven_is_not_the_same(ratio, word):
    assert comparison.verdict({"verdict": "same", "ratio": ratio}, ENGLISH) == word


def test_nodes_that_share_a_machine_are_said_to_in_every_language(tmp_path):
    report(tmp_path, "one", 100.0, nodes=2)
    path = tmp_path / "one/report/results.json"
    content = json.loads(path.read_text())
    content["rows"][0]["machines"] = 1
    path.write_text(json.dumps(content))
    assert "2 nodes, 1 machine" in page(tmp_path)
    assert "2 nodes" not in files(tmp_path, "zh")["index.html"]


def test_small_scatter_does_not_look_big(slower):
    drawn = index_page.over_time(build(slower)["series"][0]["points"], ENGLISH)
    first, second, third = map(float, re.findall(r"[\d.]+,([\d.]+)", drawn))
    assert abs(first - second) < 1
    assert third - second > 3


H100 = [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H100"}]}]


def test_the_chart_has_the_largest_batch_that_two_types_measured(tmp_path):
    for day, (hardware, rate) in enumerate(((H100, 100.0), (H200, 120.0)), 1):
        report(tmp_path, f"small{day}", rate, day, hardware, bsz=32)
        report(tmp_path, f"large{day}", 2 * rate, day, hardware, bsz=64)
    report(tmp_path, "one", 500.0, 3, bsz=128)
    [case_rates] = build(tmp_path)["rates"]
    assert [(each["model"], each["rate"]) for each in case_rates["of"]] == [
        ("NVIDIA H100", pytest.approx(200.0)),
        ("NVIDIA H200", pytest.approx(240.0)),
    ]


def test_a_sentence_says_how_much_faster_a_type_is(tmp_path):
    report(tmp_path, "one", 100.0, hardware=H100)
    report(tmp_path, "two", 120.0, 2)
    assert "NVIDIA H200 measured 1.20 times the rate of NVIDIA H100 in 1 case." in page(tmp_path)


def test_a_campaign_names_what_it_measured_and_on_what(tmp_path):
    report(tmp_path, "one", 100.0, bsz=32, dtype="bf16")
    assert "tf2_bert base, bf16, batch 32" in page(tmp_path)
    assert "1 × NVIDIA H200" in page(tmp_path)


def test_a_campaign_without_a_page_has_no_link(tmp_path):
    report(tmp_path, "one", 100.0)
    (tmp_path / "one/report/report.html").unlink()
    assert "report.html" not in page(tmp_path)


def test_campaigns_in_folders_have_their_path_as_their_name(tmp_path):
    report(tmp_path / "host", "one", 100.0)
    assert [each["campaign"] for each in build(tmp_path)["campaigns"]] == ["host/one"]


def test_the_page_can_show_any_two_campaigns_with_a_common_case(tmp_path):
    report(tmp_path, "one", 100.0, hardware=H100)
    report(tmp_path, "two", 120.0, 2)
    report(tmp_path, "three", 120.0, 3, bsz=32)
    [data] = re.findall(r'<script type="application/json" id="pairs">(.*?)</script>', page(tmp_path))
    [(places, (text, row))] = json.loads(data)["pairs"].items()
    assert places == "1-2"
    assert text == "Differs in all cases: hardware NVIDIA H100 → NVIDIA H200."
    assert row[1:3] == ["1.200", "1.198 – 1.202"]


def test_campaigns_before_the_newest_ones_cannot_be_ticked(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "MOST_COMPARED", 1)
    monkeypatch.setattr(index_page, "MOST_COMPARED", 1)
    for day in (1, 2):
        report(tmp_path, f"night{day}", 100.0, day)
    html = page(tmp_path)
    assert re.findall(r'<tr[^>]* data-place="(\d*)"', html) == ["0", ""]
    assert '"pairs":{}' in html


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a directory with the report of every recorded campaign."""
    top = tmp_path_factory.mktemp("recorded")
    for name in measured.campaigns():
        (top / name / "report").mkdir(parents=True)
        (top / name / "report" / "results.json").write_text(json.dumps(measured.results(name)))
    return top


def test_every_recorded_campaign_is_in_the_index(recorded):
    made = build(recorded)
    assert made["unread"] == []
    assert {each["campaign"] for each in made["campaigns"]} == set(measured.campaigns())


def test_the_recorded_campaigns_compare_h100_with_h200(recorded):
    models = {each["model"] for case in build(recorded)["rates"] for each in case["of"]}
    assert models == {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}


def test_the_page_of_the_recorded_campaigns_is_small(recorded):
    assert len(page(recorded).encode()) < 200_000


def run(path, **params):
    return call_module(results_index, path=str(path), templates=TEMPLATES, **params)


def test_the_hardware_of_a_slower_case_has_the_language_that_was_asked_for(tmp_path):
    xeon = [{"nodes": ["NODE1"], "processor": "Xeon", "cores": 64}]
    report(tmp_path, "one", 100.0, hardware=xeon, device="cpu")
    report(tmp_path, "two", 50.0, 2, hardware=xeon, device="cpu")
    assert build(tmp_path)["series"][0]["hardware"] == [{"processor": "Xeon", "cores": 64}]
    assert "(Xeon, 64 cores): regression" in run(tmp_path)["display"]
    assert "（Xeon，64 核）：退化" in run(tmp_path, report_language="zh")["display"]


def test_the_module_writes_both_files_and_a_second_run_changes_nothing(tmp_path):
    report(tmp_path, "one", 100.0)
    assert run(tmp_path)["changed"] is True
    assert {path.name for path in tmp_path.glob("index.*")} == {"index.html", "index.json"}
    assert run(tmp_path)["changed"] is False


def test_without_a_report_the_error_names_the_fix(tmp_path):
    assert run(tmp_path)["msg"] == (
        f"No campaign in {tmp_path} has a report. Fix: ansible-playbook report.yml -e campaign=NAME makes one"
    )


def test_named_campaigns_are_written_side_by_side(tmp_path):
    report(tmp_path, "one", 100.0)
    report(tmp_path, "two", 90.0, 2)
    shown = run(tmp_path, campaigns=["one", "two"])["display"]
    assert "two compared with one" in shown
    assert "0.900 | 0.898 – 0.902 |  slower" in shown
    assert "0.900" in (tmp_path / "compare.md").read_text()
    assert (tmp_path / "compare.html").exists()


def test_an_unknown_campaign_is_answered_with_the_nearest(tmp_path):
    report(tmp_path, "one", 100.0)
    assert run(tmp_path, campaigns=["one", "onn"])["msg"] == "campaigns: onn has no report here; there is one"


def test_one_campaign_cannot_be_compared(tmp_path):
    report(tmp_path, "one", 100.0)
    assert run(tmp_path, campaigns=["one"])["msg"].startswith("campaigns: name two or more")
