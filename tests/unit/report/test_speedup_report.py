# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The module: which files it writes from which records, and that none of them bites its reader."""

import base64
import csv
import hashlib
import json
import re
import shutil
import tarfile
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import dlperf_figures
import pytest
import results_verify
import speedup_report
from ansible.module_utils.scalebook.pages import html_page
from declared import DECLARED
from report_records import campaign, case, dlperf_records, record
from run_module import call_module

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "data" / "dlperf-published-results.csv"
NASTY = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> | *a* =1+1"


def run(path, **params):
    return call_module(speedup_report, path=str(path), templates=str(ROOT / "templates"), **params)


def verify(path):
    return call_module(results_verify, path=str(path))


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Return (result, directory of the report) of DLPerf's 30 runs."""
    top = tmp_path_factory.mktemp("reported")
    result = run(campaign(top, dlperf_records(model="bert"), source="bz64"))
    assert "msg" not in result, result
    return result, top / "report"


def test_the_result_file_is_dlperfs_to_the_last_byte(reported):
    # As json.dump of DLPerf's script writes it.
    assert (reported[1] / "bz64_result.json").read_text() == json.dumps({"bert": dlperf_figures.PUBLISHED})


def test_every_file_of_the_report_is_there(reported):
    result, out = reported
    assert sorted(path.name for path in out.iterdir()) == [
        "bz64_result.json",
        "efficiency.svg",
        "environment.csv",
        "losses.svg",
        "metrics.prom",
        "report.html",
        "report.md",
        "results.csv",
        "results.json",
        "results.xlsx",
        "steps.svg",
        "throughput.svg",
    ]
    assert sorted(result["files"]) == sorted(str(path) for path in out.iterdir())


def test_the_terminal_shows_dlperfs_table(reported):
    lines = [re.sub(" +", " ", line).strip() for line in reported[0]["table"].splitlines()]
    start = lines.index(
        next(line for line in lines if line.startswith("node_num | gpu_num | samples/s | speedup"))
    )
    cells = [line.split(" | ")[:4] for line in lines[start + 2 : start + 8]]
    assert cells == [
        ["1", "1", "112.99", "1"],
        ["1", "2", "204.16", "1.81"],
        ["1", "4", "402.02", "3.56"],
        ["1", "8", "805.43", "7.13"],
        ["2", "16", "1239.3", "10.97"],
        ["4", "32", "2244.38", "19.86"],
    ]


@pytest.fixture(scope="module")
def five_logs(tmp_path_factory):
    """Return a function for (result, directory, case) of DLPerf's five logs of 32 GPUs, imported or not."""

    def reported(**source):
        top = tmp_path_factory.mktemp("logs")
        records = [each for each in dlperf_records(model="bert") if each["case"]["nodes"] == 4]
        for each in records:
            each |= dict.fromkeys(source, f"4n8g/bert_b64_fp32_{each['repeat']}.log")
        return run(campaign(top, records, **source)), top, records[0]["case"]["name"]

    return reported


def test_the_path_of_each_imported_log_is_printed_with_its_rate(five_logs):
    result, top, _name = five_logs(source="bz64")
    lines = [line.strip() for line in result["display"].partition("Logs and their rates:\n")[2].splitlines()]
    assert lines[0] == "4n8g/bert_b64_fp32_1.log 2238.39 samples/s (mean of 5: 2244.47)"
    assert lines[4] == "4n8g/bert_b64_fp32_5.log 2244.38 samples/s (mean of 5: 2244.47)"
    rows = [line for line in (top / "report/report.md").read_text().splitlines() if "fp32_3.log" in line]
    assert len(rows) == 1 and "2252.55" in rows[0]


def test_the_log_of_each_run_of_a_campaign_is_in_the_report_only(five_logs):
    result, top, name = five_logs()
    log = f"runs/{name}/1/NODE1.log"
    assert log not in result["display"]
    assert all(log in (top / "report" / file).read_text() for file in ("report.html", "report.md"))


def test_results_json_holds_the_raw_rates_and_the_plan(reported):
    content = json.loads((reported[1] / "results.json").read_text())
    assert content["schema"] == 3
    assert [len(row["runs"]) for row in content["rows"]] == [5] * 6
    assert len(content["plan"]["runs"]) == 30


def test_the_csv_has_numbers_a_spreadsheet_can_add_up(reported):
    with (reported[1] / "results.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert sum(int(row["devices"]) for row in rows) == 63
    assert float(rows[-1]["median"]) == pytest.approx(2244.38, abs=0.01)


def test_a_second_report_of_the_same_records_changes_nothing(reported):
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in reported[1].iterdir()}
    assert run(reported[1].parent)["changed"] is False
    assert {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in reported[1].iterdir()
    } == before


def test_check_mode_writes_nothing_and_says_what_it_would(tmp_path):
    result = run(campaign(tmp_path, dlperf_records()), check=True)
    assert result["changed"] is True
    assert "2244.38" in result["table"]
    assert not (tmp_path / "report").exists()


def test_the_report_goes_where_it_is_told(tmp_path):
    campaign(tmp_path / "in", [record(case())])
    result = run(tmp_path / "in", out=str(tmp_path / "out"))
    assert result["report"] == str(tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").exists()


def test_files_of_groups_that_are_gone_do_not_stay_behind(tmp_path):
    top = campaign(tmp_path, [record(case()), record(case(dtype="fp16"))])
    run(top)
    gone = top / "report" / "tf2_bert_base_bz64_fp16_result.json"
    assert gone.exists()
    (top / "report" / "mine.txt").write_text("a file of the reader's own")
    plan = json.loads((top / "plan.json").read_text())
    plan["cases"] = plan["cases"][:1]
    plan["runs"] = plan["runs"][:1]
    (top / "plan.json").write_text(json.dumps(plan))
    (top / "runs" / case(dtype="fp16")["name"] / "1" / "result.json").unlink()
    assert run(top)["changed"] is True
    assert not gone.exists()
    assert (top / "report" / "mine.txt").exists()


def test_a_directory_without_runs_is_refused_in_one_sentence(tmp_path):
    assert run(tmp_path)["msg"] == (
        f"campaign_dir={tmp_path}: is not a campaign or an import, it contains neither a directory runs "
        "nor runs.tar.xz"
    )


def test_without_a_plan_the_records_alone_make_the_report(tmp_path):
    (campaign(tmp_path, dlperf_records()) / "plan.json").unlink()
    assert "2244.38" in run(tmp_path)["table"]


def test_a_broken_plan_is_named(tmp_path):
    (campaign(tmp_path, [record(case())]) / "plan.json").write_text('{"cases": [')
    assert str(tmp_path / "plan.json") in run(tmp_path)["msg"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 3}', "\x00\xff", "[" * 100000])
def test_a_broken_record_is_named_and_costs_the_others_nothing(tmp_path, content):
    top = campaign(tmp_path, [record(case(), repeat) for repeat in (1, 2, 3)])
    (top / "runs" / case()["name"] / "2" / "result.json").write_bytes(content.encode("latin-1"))
    result = run(top)
    assert result["rows"][0]["good"] == 2
    assert result["uncounted"] == 1
    assert f"runs/{case()['name']}/2/result.json" in result["display"]


@pytest.mark.parametrize(
    "other",
    [
        {"nodes": None},
        {"nodes": [7]},
        {"job": "no"},
        {"notes": 7},
        {"nodes": [{"task_index": 0, "steps": list(range(1, 121)), "times": ["0.1"] * 120}]},
        {
            "nodes": [
                {"task_index": 0, "steps": list(range(1, 121)), "times": [10**400 * i for i in range(120)]}
            ]
        },
        {"nodes": [{"task_index": 0, "steps": list(range(1, 121)), "times": [float("nan")] * 120}]},
    ],
)
def test_a_record_with_anything_in_it_costs_the_others_nothing(tmp_path, other):
    records = [record(case(), repeat) for repeat in (1, 2, 3)]
    result = run(campaign(tmp_path, [*records, {**record(case(), 4), **other}]))
    assert (result["rows"][0]["good"], result["uncounted"]) == (3, 1)


def test_one_run_under_two_names_counts_once(tmp_path):
    top = campaign(tmp_path, [record(case(), 1)])
    copy = top / "runs" / "copy" / "1"
    copy.mkdir(parents=True)
    (copy / "result.json").write_text(json.dumps(record(case(), 1)))
    result = run(top)
    assert result["rows"][0]["good"] == 1
    assert "repeats runs/" in result["display"]


def test_what_an_import_could_not_read_is_listed(tmp_path):
    unread = [{"path": "bz64/notes.txt", "reason": "is not named <N>n<G>g"}]
    result = run(campaign(tmp_path, [record(case())], source="bz64", unread=unread))
    assert "not counted: bz64/notes.txt is not named <N>n<G>g" in result["display"]


def test_an_import_keeps_its_name_when_reported_again(tmp_path):
    run(campaign(tmp_path, [record(case())], source="bz64"))
    assert (tmp_path / "report" / "bz64_result.json").exists()


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def nasty(tmp_path):
    of = case(model=NASTY.replace("/", ""), name="nasty")
    hurt = record(of, 2, None, reason=f"{NASTY} died", last_lines=[NASTY], source=NASTY)
    top = campaign(
        tmp_path / NASTY.replace("/", ""),
        [record(of, 1, notes=[NASTY]), hurt],
        campaign=NASTY,
        skipped=[{"case": of, "reason": NASTY}],
        unread=[{"path": NASTY, "reason": NASTY}],
    )
    (top / "provenance.json").write_text(json.dumps({"nodes": {NASTY: {NASTY: NASTY}}}))
    result = run(
        top, workloads={"tf2_bert": {**DECLARED, "title": NASTY}}, compare="dlperf", published=str(PUBLISHED)
    )
    assert "msg" not in result, result
    return top / "report"


def test_markup_in_any_value_is_inert_in_the_page(nasty):
    page = Page()
    page.feed((nasty / "report.html").read_text())
    assert {"img", "iframe", "object", "link", "base"} & set(page.tags) == set()
    assert page.tags.count("script") == 1
    script = "".join((ROOT / "templates" / name).read_text() for name in html_page.SCRIPTS)
    assert f"<script>{script}</script>" in (nasty / "report.html").read_text()
    assert [
        value
        for name, value in page.attributes
        if name == "href" and re.match(r"(?!data:text/csv|data:application/json)\w+:|//", value)
    ] == []
    assert [name for name, _ in page.attributes if name.startswith("on")] == []
    assert "<script>alert(1)</script>" in "".join(page.text)


def test_markup_in_any_value_is_inert_in_markdown(nasty):
    text = (nasty / "report.md").read_text()
    assert "<script" not in text
    assert "<img" not in text


def test_a_pipe_in_a_value_makes_no_column_in_markdown(nasty):
    rows = [line for line in (nasty / "report.md").read_text().splitlines() if "died" in line]
    assert [len(re.split(r"(?<!\\)\|", row)) for row in rows] == [4]


def test_markup_in_any_value_is_inert_in_the_charts(nasty):
    for path in nasty.glob("*.svg"):
        assert "<script" not in path.read_text()


def test_a_model_name_cannot_leave_the_report_directory(tmp_path):
    top = tmp_path / "in"
    run(campaign(top, [record(case(model="../../../evil", name="evil"))]))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_formula_in_a_text_cell_is_neutralised_and_numbers_stay(tmp_path):
    top = campaign(tmp_path / "@SUM(A1)", [record(case(model="=HYPERLINK(1)", name="formula"))])
    run(top)
    with (top / "report" / "results.csv").open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert (row["model"], row["campaign"]) == ("'=HYPERLINK(1)", "'@SUM(A1)")
    assert float(row["median"]) == pytest.approx(100.0)


def test_the_page_asks_nobody_for_anything(reported):
    text = (reported[1] / "report.html").read_text()
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text) == []
    assert re.findall(r"(?:\ssrc|action|\sdata|poster)\s*=|url\(|@import", text) == []


def test_the_script_of_the_page_is_allowed_by_its_hash_alone(reported):
    text = (reported[1] / "report.html").read_text()
    script = re.search(r"<script>(.*)</script>", text, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in text
    assert len((ROOT / "templates" / "chart.js").read_bytes()) <= 4000


def links_of(path):
    """Return the addresses of the links of a page that lead nowhere once it is in a mail."""
    page = Page()
    page.feed(path.read_text())
    ids = {value for name, value in page.attributes if name == "id"}
    links = {value for name, value in page.attributes if name == "href"}
    anchors = {link for link in links if link[:1] == "#" and link[1:] in ids}
    return links, {link for link in links - anchors if not link.startswith(("data:", "https://"))}


def test_no_link_of_a_mailed_page_is_dead(reported):
    links, dead = links_of(reported[1] / "report.html")
    assert len(links) > 5
    assert dead == set()


def test_the_page_carries_its_results_as_csv_and_json(reported):
    links, _dead = links_of(reported[1] / "report.html")
    json_text, csv_text = (unquote(link.partition(",")[2]) for link in sorted(links) if link[:5] == "data:")
    assert csv_text == (reported[1] / "results.csv").read_text()
    head, *rows = csv.reader(csv_text.splitlines())
    made = json.loads(json_text)
    assert made["columns"] == head
    medians = [row[head.index("median")] for row in made["data"]]
    assert medians == [float(row[head.index("median")]) for row in rows]


def test_the_page_fits_a_phone_and_follows_the_readers_colours(reported):
    text = (reported[1] / "report.html").read_text()
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert "prefers-color-scheme:dark" in text
    assert text.count("<table>") == text.count('<div class="scroll')


def test_every_id_of_the_page_is_there_once_and_every_label_leads_somewhere(reported):
    page = Page()
    page.feed((reported[1] / "report.html").read_text())
    ids = [value for name, value in page.attributes if name == "id"]
    wanted = {each for name, value in page.attributes if name == "aria-labelledby" for each in value.split()}
    assert len(ids) == len(set(ids))
    assert wanted <= set(ids)


def test_the_page_of_dlperfs_own_runs_stands_beside_its_published_table(tmp_path):
    names = {"frameworks": ["TensorFlow 2.3.0"], "models": {"base": "bert-base"}}
    result = run(
        campaign(tmp_path, dlperf_records()),
        compare="dlperf",
        published=str(PUBLISHED),
        workloads={"tf2_bert": {**DECLARED, "dlperf": names}},
    )
    assert "same model, precision and batch" in result["display"]
    (entry,) = json.loads((tmp_path / "report" / "results.json").read_text())["compare"]
    assert [pair["rate"] / pair["published_rate"] for pair in entry["rows"]] == pytest.approx(
        [1.0] * 6, abs=1e-4
    )


def test_a_report_shows_what_was_published_of_its_families_only(tmp_path):
    names = {"frameworks": ["TensorFlow 2.3.0"], "models": {"base": "bert-base"}}
    run(
        campaign(tmp_path, dlperf_records()),
        compare="dlperf",
        published=str(PUBLISHED),
        workloads={"tf2_bert": {**DECLARED, "dlperf": names}},
    )
    page = (tmp_path / "report" / "report.html").read_text()
    markdown = (tmp_path / "report" / "report.md").read_text()
    # 342 rows of bert-base, of which 6 stand beside the runs.
    assert "<summary>bert: 336 published results</summary>" in page
    assert "### bert: 336 published results" in markdown
    assert "NGC PyTorch 1.5.0a0 bert-base fp32 b48 | 121.94 | " in markdown


def test_the_page_has_the_published_rates_of_language_models_and_dlperfs_tables(tmp_path):
    lm = {**DECLARED, "name": "lm", "published": "llama3", "size": 8192}
    made = [
        record(case(workload="lm", model="8B", dtype="bf16", settings={}), repeat) for repeat in (1, 2, 3)
    ]
    result = run(
        campaign(tmp_path, [*made, record(case())]),
        compare="published",
        published=str(PUBLISHED),
        language_models=str(ROOT / "data/llm-published.csv"),
        gpus=str(ROOT / "data/gpus.csv"),
        workloads={"tf2_bert": DECLARED, "lm": lm},
    )
    page = (tmp_path / "report" / "report.html").read_text()
    assert "tf2_bert" in result["display"].partition("Comparison with DLPerf")[2].partition("\n\n")[0]
    assert "Comparison with published rates of language models" in page


def test_a_comparison_needs_the_published_table(tmp_path):
    assert "published" in run(campaign(tmp_path, [record(case())]), compare="dlperf")["msg"]


def test_two_hundred_records_take_a_moment(tmp_path):
    records = [record(case(bsz=bsz), repeat) for bsz in range(1, 41) for repeat in range(1, 6)]
    top = campaign(tmp_path, records)
    start = time.process_time()
    assert len(run(top)["rows"]) == 40
    assert time.process_time() - start < 4


def strong_records(scale=1.0):
    sizes = {(1, 1): 64, (1, 2): 32, (2, 2): 16}
    rates = {(1, 1): 100.0, (1, 2): 180.0, (2, 2): 300.0}
    return [
        record(case(*shape, bsz=bsz), repeat, scale * rates[shape] * (1 + repeat / 1000))
        for shape, bsz in sizes.items()
        for repeat in (1, 2, 3)
    ]


def test_strong_scaling_stands_apart_in_every_form(tmp_path):
    result = run(campaign(tmp_path, strong_records()))
    out = tmp_path / "report"
    assert "Strong scaling: tf2_bert base fp32 global batch 64" in result["display"]
    for name in ("report.md", "report.html"):
        text = (out / name).read_text()
        assert text.index("Strong scaling") > text.index("samples/s")
        assert "global batch 64" in text
    (table,) = json.loads((out / "results.json").read_text())["strong"]
    assert [round(row["speedup"], 2) for row in table["rows"]] == [1.0, 1.8, 3.0]
    assert (out / "strong.svg").exists()
    with (out / "results.csv").open(newline="") as lines:
        rows = {row["label"]: row for row in csv.DictReader(lines)}
    assert (rows["2n2g"]["speedup"], round(float(rows["2n2g"]["strong_speedup"]), 2)) == ("", 3.0)


def test_an_earlier_campaign_stands_beside_in_every_form(tmp_path):
    before = campaign(tmp_path / "last-night", strong_records(), campaign="night")
    now = campaign(tmp_path / "now", [*strong_records(0.9)[:6], record(case(8, 8), 1)])
    result = run(now, baseline=str(before))
    assert result["regressions"] == 2
    for text in (
        result["display"],
        (now / "report" / "report.md").read_text(),
        (now / "report" / "report.html").read_text(),
    ):
        assert "Comparison with last-night" in text.replace("\\", "")
        assert "ther hardware" not in text
        assert "0.900" in text and "slower by more than 3.0 %" in text
        assert "only in this one: 8n8g tf2_bert base fp32 b64" in text
        assert "only in last-night: 2n2g tf2_bert base fp32 b16" in text.replace("\\", "")
    made = json.loads((now / "report" / "results.json").read_text())["baseline"]
    assert [(row["label"], row["verdict"]) for row in made["rows"]] == [
        ("1n2g", "slower"),
        ("1n1g", "slower"),
    ]
    with (now / "report" / "results.csv").open(newline="") as lines:
        assert [row["baseline_verdict"] for row in csv.DictReader(lines)].count("slower") == 2


def test_a_results_json_serves_as_well_as_its_campaign(tmp_path):
    before = campaign(tmp_path / "before", strong_records())
    run(before)
    now = campaign(tmp_path / "now", strong_records(1.2))
    for baseline in (before, before / "report" / "results.json"):
        result = run(now, baseline=str(baseline))
        assert (result["regressions"], result["display"].count("faster")) == (0, 3)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "baseline={path}: does not exist"),
        ("{", "baseline={path}: is not JSON: name a results.json"),
        ('{"schema": 7, "rows": []}', "baseline={path}: has schema 7, this report reads 2"),
        (
            '{"schema": 2, "rows": []}',
            "baseline={path}: has no case in common with this campaign: no cases there",
        ),
        ("[]", "baseline={path}: is not a JSON object"),
    ],
)
def test_a_baseline_that_is_none_is_refused_in_one_sentence(tmp_path, content, said):
    path = tmp_path / "old.json"
    if content is not None:
        path.write_text(content)
    result = run(campaign(tmp_path / "now", strong_records()), baseline=str(path))
    assert result["failed"] is True
    assert said.format(path=path) in result["msg"]
    assert not (tmp_path / "now" / "report").exists()


def test_a_baseline_of_another_workload_is_refused_with_the_fields_that_differ(tmp_path):
    now = campaign(tmp_path / "now", [record(case(dtype="fp16"))])
    before = campaign(tmp_path / "before", [record(case(workload="torch_bert", bsz=32))])
    assert run(now, baseline=str(before))["msg"] == (
        f"baseline={before}: has no case in common with this campaign: workload is tf2_bert here and "
        "torch_bert there; dtype is fp16 here and fp32 there; bsz is 64 here and 32 there"
    )


def test_a_report_from_an_archive_has_no_manifest_of_its_own(tmp_path):
    top = campaign(tmp_path / "in", [record(case(), repeat) for repeat in (1, 2, 3)])
    run(top)
    shutil.rmtree(top / "report")
    with tarfile.open(tmp_path / "runs.tar.xz", "w:xz") as packed:
        packed.add(top, ".")
    result = run(tmp_path / "runs.tar.xz")
    assert result["report"] == str(tmp_path / "report" / "report.html")
    assert not (tmp_path / "manifest.json").exists()
    assert verify(tmp_path)["display"].startswith("All 4 files are what was reported.\nNobody signed it: ")


def test_one_changed_byte_is_found_and_its_row_named(tmp_path):
    top = campaign(tmp_path, [record(case(), i) for i in (1, 2, 3)])
    log = top / "runs" / case()["name"] / "2" / "NODE1.log"
    log.write_text("Train Step: 20/120\n")
    assert run(top)["problems"] == []
    assert verify(top)["display"] == "All 5 files are what was reported."
    log.write_text("Train Step: 21/120\n")
    (problem,) = verify(top)["problems"]
    assert (problem["file"], problem["what"]) == (f"runs/{case()['name']}/2/NODE1.log", "changed")
    assert problem["row"] == f"case {case()['name']}, repeat 2"
    # A report marks the row, as often as it is made.
    for _ in range(2):
        result = run(top)
        (row,) = result["rows"]
        assert [mark["code"] for mark in row["flags"]] == ["changed-file"]
        assert len(result["problems"]) == 1
    for name in ("report.md", "report.html", "results.csv"):
        assert "NODE1.log has been changed since it was reported" in (top / "report" / name).read_text()
    assert verify(top)["problems"] != []


def test_without_a_report_there_is_nothing_to_verify_with(tmp_path):
    assert verify(campaign(tmp_path, [record(case())]))["msg"] == (
        f"The campaign {tmp_path} has no manifest.json to verify with. "
        f"Fix: ansible-playbook report.yml -e campaign_dir={tmp_path}"
    )


@pytest.mark.parametrize(
    ("file", "fix"),
    [
        ("microbench.json", "ansible-playbook microbench.yml -e measured={there}"),
        ("runs.tar.xz", "unpack it, "),
    ],
)
def test_what_no_report_signs_is_said_to_be_signed_otherwise(tmp_path, file, fix):
    with tarfile.open(tmp_path / file, "w:xz"):
        pass
    assert f". Fix: {fix.format(there=tmp_path)}" in verify(tmp_path)["msg"]


def test_a_report_elsewhere_leaves_the_campaign_as_it_is(tmp_path):
    top = campaign(tmp_path / "in", [record(case())])
    run(top, out=str(tmp_path / "out"))
    assert not (top / "manifest.json").exists()


def two_readings(of, repeat, rate, received_rate):
    """Return a record whose receive stamps give another rate than the framework's own."""
    made = record(of, repeat, rate)
    node = made["nodes"][0]
    node["received"] = [stamp * rate / received_rate for stamp in node["times"]]
    return made


def drifting(of, repeat, factor):
    """Return a record whose steps take `factor` times as long in the last quarter of the window."""
    made = record(of, repeat)
    node = made["nodes"][0]
    pace = node["times"][1]
    node["times"] = [
        stamp + max(0, step - 95) * (factor - 1) * pace for step, stamp in enumerate(node["times"], 1)
    ]
    return made


@pytest.mark.parametrize(
    ("records", "code", "said"),
    [
        (
            [two_readings(case(), i, 100.0, 96.0 if i == 2 else 99.0) for i in (1, 2, 3)],
            "time-sources-differ",
            "two time sources differ by up to 4.0 % (repeat 2)",
        ),
        ([drifting(case(), i, 1.1) for i in (1, 2, 3)], "slowing-down", "slowing down (3 of 3 repeats)"),
        (
            [drifting(case(), i, 0.9) for i in (1, 2, 3)],
            "warm-up-not-over",
            "warm-up not over (3 of 3 repeats)",
        ),
        (
            [record(case(), i, rate) for i, rate in enumerate((100.0, 100.1, 70.0, 99.9, 100.05), 1)],
            "outlier",
            "outlier: repeat 3 (kept; the median is robust to it)",
        ),
        ([record(case(), i) for i in (1, 2)], "provisional", "2 of the 3 runs that are needed"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_what_makes_a_number_doubtful_stands_beside_it_in_every_form(tmp_path, records, code, said):
    result = run(campaign(tmp_path, records))
    assert [mark["code"] for mark in result["rows"][0]["flags"]] == [code]
    assert said in result["display"]
    for name in ("report.md", "report.html", "results.csv"):
        assert said in (tmp_path / "report" / name).read_text(), name


def test_the_two_readings_of_every_run_are_shown(tmp_path):
    run(campaign(tmp_path, [two_readings(case(), i, 100.0, 96.0) for i in (1, 2, 3)]))
    line = next(
        line
        for line in (tmp_path / "report" / "report.md").read_text().splitlines()
        if line.startswith("1n1g |") and "| times |" in line
    )
    assert [cell.strip() for cell in line.split("|")][2:7] == ["100.0", "samples/s", "times", "96.0", "4.0 %"]
