"""The document and its forms: nothing invented, nothing hidden, nothing that bites."""

import json
from pathlib import Path

import printed
import pytest
from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge import baseline, runs
from ansible.module_utils.scalebook.judge.results import build_results, dlperf_files
from ansible.module_utils.scalebook.pages import sheets
from ansible.module_utils.scalebook.pages.blocks import Column, Table
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import (
    charts,
    csv_sheet,
    environment,
    first_screen,
    method,
    published_tables,
    render,
    scaling,
    terminal,
)
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import Baseline, Campaign
from ansible.module_utils.scalebook.workload import Dlperf, Workload
from in_english import in_english
from report_records import case, dlperf_records, record

ROOT = Path(__file__).resolve().parents[3]


def build(records, plan=None, **other):
    cases = {each["case"]["name"]: each["case"] for each in records}
    digests = [runs.digest(each) for each in records]
    campaign = Campaign("night", plan=plan or {"campaign": "night"}, cases=cases, runs=digests)
    return build_results(campaign, **other)


@pytest.fixture
def document():
    return build(dlperf_records())


@pytest.mark.parametrize(("gpu", "said"), [("NVIDIA H200", False), ("Tesla P40", True)])
def test_a_baseline_on_other_hardware_is_said_to_be(gpu, said):
    of, now, then = case(), *([{"nodes": ["A"], "gpus": [{"name": each}]}] for each in ("NVIDIA H200", gpu))
    digests = [runs.digest(record(of, repeat)) for repeat in (1, 2, 3)]
    campaign = Campaign("now", cases={of["name"]: of}, runs=digests, hardware=now)
    earlier = Baseline("before", "before", build_results(campaign)["rows"], 0.03, then)
    text = terminal.display(build_results(campaign, earlier=earlier), "report")
    assert ("before ran on 1 × Tesla P40, this campaign on 1 × NVIDIA H200" in text) is said


def test_a_baseline_that_saw_another_number_of_gpus_is_no_other_hardware():
    of = case()
    records = [record(of, repeat) for repeat in (1, 2, 3)]
    now, then = ([{"nodes": ["A"], "gpus": [{"name": "NVIDIA H200"}] * count}] for count in (1, 4))
    digests = [runs.digest(each) for each in records]
    campaign = Campaign("now", cases={of["name"]: of}, runs=digests, hardware=now)
    earlier = Baseline("before", "before", build_results(campaign)["rows"], 0.03, then)
    assert build_results(campaign, earlier=earlier)["baseline"]["other_hardware"] is None


@pytest.mark.parametrize(("mode", "marked"), [("numa", True), ("none", False)])
def test_a_baseline_with_another_binding_is_marked(mode, marked):
    of = case()
    bound = [
        {
            **each,
            "nodes": [
                {**node, "exit": {**(node["exit"] or {}), "binding": {"mode": mode}}}
                for node in each["nodes"]
            ],
        }
        for each in (record(of, repeat) for repeat in (1, 2, 3))
    ]
    now, then = (
        Campaign(name, cases={of["name"]: of}, runs=[runs.digest(each) for each in records])
        for name, records in (("now", bound), ("then", [record(of, repeat) for repeat in (1, 2, 3)]))
    )
    earlier = Baseline("then", "then", build_results(then)["rows"], 0.03, [])
    text = terminal.display(build_results(now, earlier=earlier), "report")
    assert ("then was measured with binding=none, this campaign with binding=numa" in text) is marked


def test_the_speedup_of_a_slow_case_is_that_of_its_rates():
    made = build([record(case(1, 1), 1, 0.0143), record(case(1, 2), 1, 0.0260)])
    assert [row["speedup"] for row in printed.rows(scaling.weak(View(made)))] == ["1", "1.82"]


def test_the_text_table_is_dlperfs(document):
    lines = [
        [cell.strip() for cell in line.split("|")]
        for line in terminal.table(document).splitlines()
        if "|" in line
    ]
    assert lines[0][:4] == ["node_num", "gpu_num", "samples/s", "speedup"]
    assert [line[:4] for line in lines[2:]] == [
        ["1", "1", "112.99", "1"],
        ["1", "2", "204.16", "1.81"],
        ["1", "4", "402.02", "3.56"],
        ["1", "8", "805.43", "7.13"],
        ["2", "16", "1239.3", "10.97"],
        ["4", "32", "2244.38", "19.86"],
    ]


def test_the_columns_of_the_text_table_are_aligned(document):
    rows = [line for line in terminal.table(document).splitlines() if "|" in line]
    assert len({tuple(i for i, char in enumerate(line) if char == "|") for line in rows}) == 1


def test_the_document_is_plain_json_and_the_same_every_time(document):
    text = json.dumps(document, allow_nan=False)
    assert text == json.dumps(build(list(reversed(dlperf_records()))))


def test_the_document_keeps_every_rate_unrounded(document):
    rates = [run["rate"] for run in document["rows"][0]["runs"]]
    assert rates == pytest.approx([113.55, 114.95, 112.99, 112.71, 111.67], abs=1e-3)


def test_a_campaign_counts_what_was_planned_and_what_is_good():
    of = case()
    plan = {"campaign": "night", "runs": [{"case": of["name"], "repeat": i} for i in (1, 2, 3, 4)]}
    made = build([record(of, 1), record(of, 2, None)], plan)
    assert made["counts"] == {"cases": 1, "good": 1, "planned": 4}


def test_what_did_not_count_stands_in_the_terminal_with_its_reason():
    of = case()
    text = terminal.display(build([record(of, 1), record(of, 2, None)]), "/r/report.html")
    assert "1n1g repeat 2: incomplete, NODE1.log stops at step 60, step 120 is required" in text


def test_repeats_that_failed_alike_share_a_line():
    of = case()
    text = terminal.display(build([record(of, i, None) for i in (1, 2, 3)]), "/r/report.html")
    assert text.count("stops at step 60") == 1
    assert "repeat 1, 2, 3:" in text


@pytest.mark.parametrize(
    ("source", "field", "fixed"),
    # A campaign chose its cases itself.
    [("logs", "xla", True), ("logs", "devices", False), ("", "xla", False)],
)
def test_every_form_of_an_import_names_the_fix_that_check_mode_names(source, field, fixed):
    values = {"file": "a.log", "name": "compile", "value": "true", "field": field, "wanted": False}
    reason = message("reason.other-value", **values)
    made = build([record(case(), 1, None, reason=reason)], {"campaign": "night", "source": source})
    files = render.files(made, str(ROOT / "templates"))
    forms = (terminal.display(made, "/r/report.html"), files["report.html"], files["report.md"])
    fix = "Fix: give what the names of logs do not say: device, xla, accumulation"
    assert [fix in form for form in forms] == [fixed] * 3


@pytest.mark.parametrize(("every", "said"), [(1, False), (10, True)])
def test_a_report_whose_logs_have_no_line_for_each_step_says_so(every, said):
    made = record(case(), 1)
    [node] = made["nodes"]
    logged = {name: node[name][every - 1 :: every] for name in ("steps", "times")}
    files = render.files(build([{**made, "nodes": [{**node, **logged}]}]), str(ROOT / "templates"))
    sentence = "No log has a line for each step of the window."
    assert [sentence in files[form] for form in ("report.html", "report.md")] == [said] * 2


def test_cases_of_several_groups_are_told_apart_in_what_workloads_report():
    cases = [case(bsz=size, workload="torch_bert") for size in (32, 64)]
    made = build([{**record(of), "self_reported": {"peak_memory_mib": "34409"}} for of in cases])
    text = render.files(made, str(ROOT / "templates"))["report.md"]
    assert [f"\n1n1g {size} | 33.60 | 1\n" in text for size in ("b32", "b64")] == [True, True]


def test_the_report_lists_the_settings_that_headings_leave_out():
    of = case(workload="torch_bert", dtype="bf16", settings={"seq_length": 128, "data": ""})
    text = render.files(build([record(of)]), str(ROOT / "templates"))["report.md"]
    assert "torch_bert · accumulation 1 · warm-up steps 20 · window steps 100 · seq_length 128\n" in text


@pytest.mark.parametrize("form", ["report.html", "report.md"])
def test_the_report_says_which_part_of_a_step_waiting_takes(form):
    made = build([record(case(1, gpus)) for gpus in (1, 2)])
    for row, mean, slowest in zip(made["rows"], (0.2, 0.4), (None, 0.25), strict=True):
        row["steps"] = {**row["steps"], "mean": mean, "slowest": slowest}
    text = render.files(made, str(ROOT / "templates"))[form]
    # Of 0.4 s, 0.05 are waiting and 0.15 the rest.
    assert text.index("12.5 %") < text.index("37.5 %")


def test_the_terminal_says_what_has_to_be_known_of_a_published_table(document):
    warning = message("compare.no-all-reduce", variant="bsz*1024")
    entry = {"title": "tf2_bert", "rows": [], "why": "no such batch", "warning": warning}
    said = terminal.display({**document, "compare": [entry]}, "/r")
    assert "tf2_bert: no such batch\n  warning: published with bsz*1024: on up to 8 GPUs" in said


def test_the_terminal_ends_with_the_path_of_the_page(document):
    assert terminal.display(document, "/r/report.html").splitlines()[-1] == "Report: /r/report.html"


@pytest.mark.parametrize(("machines", "notes"), [({}, 1), ({"NODE1": {"machine": "m1"}}, 0)])
def test_the_terminal_says_once_that_a_campaign_names_no_machines(machines, notes):
    made = build([record(case(), repeat) for repeat in (1, 2)])
    made["plan"] = {**made["plan"], "machines": machines}
    assert terminal.display(made, "/r/report.html").count("its machines are not recorded") == notes


def test_the_terminal_asks_no_import_for_its_machines(document):
    made = {**document, "kind": "import"}
    assert "machines are not recorded" not in terminal.display(made, "/r/report.html")


def test_a_thousand_failures_do_not_fill_the_terminal():
    of = case()
    bad = [record(of, i, None, reason=f"reason {i}") for i in range(1, 1001)]
    text = terminal.display(build(bad), "/r/report.html")
    assert len(text.splitlines()) < 30
    assert "… and 990 more, all in the report" in text


def test_control_characters_of_a_log_do_not_reach_the_terminal():
    of = case()
    text = terminal.display(
        build([record(of, 1, None, reason="\x1b[31mred\x1b]0;title\x07\r\nforged line")]), "/r"
    )
    assert all(char.isprintable() or char == "\n" for char in text)
    assert not any(line.startswith("forged") for line in text.splitlines())


def test_skipped_cases_are_listed_with_their_reason():
    plan = {
        "campaign": "night",
        "skipped": [{"case": case(8, 8), "reason": "needs 8 nodes, the inventory has 4"}],
    }
    assert "8n8g: needs 8 nodes, the inventory has 4" in terminal.display(build([record(case())], plan), "/r")


def test_a_note_of_many_runs_is_printed_once():
    of = case()
    made = build([record(of, i, notes=[message("run.bytes-nul")]) for i in range(1, 6)])
    assert in_english(made["notes"]) == [
        "has NUL bytes (1n1g repeat 1, 1n1g repeat 2, 1n1g repeat 3 and 2 more runs)"
    ]


def test_without_a_baseline_the_notes_say_why_the_json_holds_null():
    made = build([record(case(2, 8), i) for i in (1, 2, 3)])
    (content,) = dlperf_files(made).values()
    assert content["base"]["2n8g"]["speedup"] is None
    assert made["notes"][0]["code"] == "note.no-speedup"


def test_a_report_of_nothing_says_so():
    assert "No case was measured." in terminal.display(build([]), "/r")


def test_the_rule_names_the_steps_of_the_window(document):
    assert method.rule(document["groups"][0]) == (
        "samples/s = devices × 64 × 100 / (time of step 120 − time of step 20)"
    )


def test_the_rule_names_accumulation_where_there_is_some():
    made = build([record(case(accumulation=4))])
    assert "64 × 4 accumulation steps × 100" in method.rule(made["groups"][0])


def names_of(made):
    return [chart["name"] for chart in charts.charts(made)]


def test_nine_groups_make_two_sets_of_charts():
    sizes = [case(*shape, bsz=bsz) for bsz in range(1, 10) for shape in ((1, 1), (1, 2))]
    made = charts.charts(build([record(of) for of in sizes]))
    curves = [chart for chart in made if chart["kind"] in ("efficiency", "throughput")]
    assert [chart["name"] for chart in curves] == [
        "efficiency",
        "efficiency_2",
        "throughput",
        "throughput_2",
    ]
    assert [chart["title"] for chart in curves[:2]] == [
        "Efficiency: groups 1 to 8 of 9",
        "Efficiency: b9",
    ]


def test_without_a_speedup_there_is_no_efficiency():
    made = names_of(build([record(case(2, 8)), record(case(4, 8))]))
    assert "throughput" in made and "efficiency" not in made


def test_groups_on_one_number_of_devices_are_bars():
    made = build([record(case(bsz=bsz), repeat) for bsz in (32, 64) for repeat in (1, 2)])
    chart = charts.charts(made)[0]
    assert chart["name"] == "ranked"
    assert chart["svg"].count('<rect class="fill"') == chart["svg"].count('class="limits"') == 2
    assert ">samples/s per GPU, median and range, on 1 GPU<" in chart["svg"]


def test_a_result_alone_is_not_ranked():
    assert {"ranked", "throughput"} & set(names_of(build([record(case())]))) == set()


def test_groups_of_different_units_are_on_different_charts():
    records = [record(case(*shape, bsz=bsz)) for bsz in (3, 64) for shape in ((1, 1), (1, 2))]
    for each in records[2:]:
        each["unit"] = "tokens"
    made = {chart["name"]: chart["svg"] for chart in charts.charts(build(records))}
    assert "tokens/s" in made["throughput_2"] and "samples/s" not in made["throughput_2"]


def test_the_sheet_has_a_row_per_case_with_numbers_as_numbers(document):
    rows = csv_sheet.sheet(document).rows
    assert len(rows) == 6
    assert rows[-1]["speedup"] == pytest.approx(2244.38 / 112.99, rel=1e-4)
    assert rows[-1]["median_speed"] == 2244.38
    assert isinstance(rows[-1]["devices"], int)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_that_a_spreadsheet_would_run_is_made_text(text):
    assert sheets.harmless(text) == "'" + text


@pytest.mark.parametrize("text", ["", "tf2_bert", "1n1g", "a=b"])
def test_other_cells_stay_as_they_are(text):
    assert sheets.harmless(text) == text


def test_nodes_that_agree_share_a_line_of_provenance():
    nodes = {
        "NODE1": {"driver": "440.33.01", "kernel": "4.4"},
        "NODE2": {"driver": "440.33.01", "kernel": "4.15"},
    }
    assert environment.provenance_rows({"commit": "0123abc", "nodes": nodes}) == [
        {"what": "commit", "where": "", "value": "0123abc"},
        {"what": "driver", "where": "all nodes", "value": "440.33.01"},
        {"what": "kernel", "where": "NODE1", "value": "4.4"},
        {"what": "kernel", "where": "NODE2", "value": "4.15"},
    ]


def test_each_workload_has_rows_of_its_own_where_nodes_that_agree_share_one():
    old, new = {"python": "3.8.18"}, {"python": "3.11.2"}
    workloads = {"tf2_bert": {"NODE1": old, "NODE2": old}, "torch_bert": {"NODE1": new, "NODE2": old}}
    rows = environment.provenance_rows({"nodes": workloads["tf2_bert"], "workloads": workloads})
    assert [tuple(row.values()) for row in rows] == [
        ("tf2_bert.python", "all nodes", "3.8.18"),
        ("torch_bert.python", "NODE1", "3.11.2"),
        ("torch_bert.python", "NODE2", "3.8.18"),
    ]


def test_one_workload_needs_no_name_in_its_rows():
    nodes = {"NODE1": {"python": "3.8.18"}}
    rows = environment.provenance_rows({"nodes": nodes, "workloads": {"tf2_bert": nodes}})
    assert [tuple(row.values()) for row in rows] == [("python", "NODE1", "3.8.18")]


def test_a_fact_of_several_parts_has_a_row_for_each_and_a_list_is_joined():
    nodes = {"NODE1": {"versions": {"tensorflow": "2.3.0"}, "gpus": ["V100", "V100"]}}
    assert environment.provenance_rows({"nodes": nodes}) == [
        {"what": "versions.tensorflow", "where": "NODE1", "value": "2.3.0"},
        {"what": "gpus", "where": "NODE1", "value": "V100, V100"},
    ]


def test_a_comparison_asked_for_and_impossible_is_said_so():
    made = build([record(case())], published_rows=[])
    assert "DLPerf's tables have nothing for tf2_bert" in terminal.display(made, "/r")


def test_no_comparison_is_made_unasked(document):
    assert document["compare"] == []


def test_a_comparison_says_what_stands_beside_what():
    header = "framework,model,dtype,xla,bsz_per_device,nodes,gpus,samples_per_s,speedup,source_file,variant"
    table = published.read(
        [header, "TensorFlow 2.3.0,bert-base,fp32,false,64,1,1,112.99,1,DLPerf@master:x.md:L334,"]
    )
    names = Dlperf(("TensorFlow 2.3.0",), {"base": "bert-base"})
    made = build(
        [record(case(), i, 125.0) for i in (1, 2, 3)],
        published_rows=table,
        workloads={"tf2_bert": Workload(dlperf=names)},
    )
    blocks = published_tables.compared(made["compare"], ENGLISH)
    assert blocks[1].detail == "TensorFlow 2.3.0 bert-base fp32 b64"
    assert blocks[-1].text == "Published: DLPerf@master:x.md, lines 334"
    assert printed.rows(blocks)[0]["quotient"] == "1.11"


def test_a_label_that_is_no_label_writes_nothing_else_to_the_terminal():
    """Found by tests/fuzz: a record that somebody changed may say anything."""
    records = [record(case(label="\x1b[2J"), repeat, rate) for repeat, rate in ((1, 100.0), (2, None))]
    shown = terminal.display(build(records), "/r")
    assert "\x1b" not in shown and "[2J: 1/2 repeats valid" in shown


# What a workload says of several devices that are slower than one


SLOWER = {"tf2_bert": Workload(slower="Horovod without NCCL? horovodrun --check-build must show [X] NCCL")}


def marks_of(document, label):
    [row] = [row for row in document["rows"] if row["label"] == label]
    return [sentence(mark["message"]) for mark in row["flags"] if mark["code"] == "slower-than-one"]


def test_two_devices_slower_than_one_are_told_what_the_workload_knows_of_it():
    """Seen on two GPUs whose gradients went through the host: half an hour on one, an hour on both."""
    made = build([record(case(1, 1), rate=111.0), record(case(1, 2), rate=55.5)], workloads=SLOWER)
    [said] = marks_of(made, "1n2g")
    assert said == f"slower than one device: {SLOWER['tf2_bert'].slower}"
    assert "1n2g: slower than one device: Horovod without NCCL?" in terminal.display(made, "report.html")


@pytest.mark.parametrize(("rate", "workloads"), [(112.0, SLOWER), (55.5, {})])
def test_nothing_is_said_of_devices_that_are_faster_or_of_a_workload_that_knows_nothing(rate, workloads):
    made = build([record(case(1, 1), rate=111.0), record(case(1, 2), rate=rate)], workloads=workloads)
    assert marks_of(made, "1n1g") + marks_of(made, "1n2g") == []


def test_a_cpu_is_not_told_of_nccl():
    """Said of MXNet and TensorFlow 1 on four containers that share two cores."""
    cases = [case(1, 1, device="cpu"), case(2, 1, device="cpu")]
    made = build([record(cases[0], rate=4.0), record(cases[1], rate=3.5)], workloads=SLOWER)
    assert [mark for row in made["rows"] for mark in row["flags"] if mark["code"] == "slower-than-one"] == []


# Nodes that share machines, the name of the campaign


def on_hosts(of, *hosts):
    made = record(of)
    first = made["nodes"][0]
    made["nodes"] = [
        {**first, "node": f"NODE{index + 1}", "task_index": index, "exit": {"host": host}}
        for index, host in enumerate(hosts)
    ]
    return made


def test_four_nodes_on_one_machine_are_called_simulated_in_every_form():
    made = build([on_hosts(case(4, 1), *["vm"] * 4), on_hosts(case(2, 1), *["vm"] * 2)])
    assert made["simulated"] == {"nodes": 4, "machines": 1}
    assert "1 machine, 4 simulated nodes" in first_screen.blocks(View(made))[0].text
    assert terminal.display(made, "/r").startswith("1 machine, 4 simulated nodes\n")


def test_nodes_on_machines_of_their_own_are_not_called_simulated():
    assert build([on_hosts(case(2, 1), "a", "b")])["simulated"] is None


def test_a_campaign_is_called_like_its_directory_and_its_old_name_is_in_the_environment():
    made = build([record(case())], {"campaign": "evening"})
    assert made["campaign"] == "night"
    assert environment.facts(made) == [{"what": "measured as campaign", "where": "", "value": "evening"}]


def test_rows_that_differ_in_accumulation_or_settings_have_different_names_in_a_comparison():
    plain, accumulated, split = (
        case(),
        case(accumulation=4),
        case(settings={"parallel": "fsdp"}),
    )
    rows = [*build([record(case(bsz=32))])["rows"], *build([record(plain)])["rows"]]
    earlier = [
        *build([record(case(bsz=32))])["rows"],
        *build([record(accumulated)])["rows"],
        *build([record(split)])["rows"],
    ]
    compared = baseline.compare(rows, earlier)
    places = {sentence(scaling.place(entry)) for entry in [*compared["only_here"], *compared["only_there"]]}
    assert len(places) == 3


def test_a_sheet_has_the_columns_with_a_name_for_sheets_and_two_of_a_range():
    columns = [Column("label", "case"), Column("rate", "rate", "rates", only="html", sheet="mean_rate")]
    rows = [{"label": "1n1g", "rate": [1.0, 2.0]}, {"label": "1n2g", "rate": None}]
    assert sheets.flat(Table(columns, rows)).rows == [
        {"mean_rate_low": 1.0, "mean_rate_high": 2.0},
        {"mean_rate_low": None, "mean_rate_high": None},
    ]
