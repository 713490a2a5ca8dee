# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A report in Chinese has no English but names, one in English no Chinese; the numbers are the same."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import measured
import pytest
import yaml
from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.contracts import as_message, because, message
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import messages_zh
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import index, index_page, microbench_files, render, terminal
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.workload import Workload
from ansible.module_utils.scalebook.workloads import load_workloads
from chinese import chinese, faults, prose, texts_of
from report_records import campaign, case, record

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = ROOT / "templates"
CHINESE = Wording("zh")
MICRO_DATA = {"published": "microbench-published.csv", "gpus": "gpus.csv", "prices": "prices.yml"}
WORKLOADS = load_workloads([str(ROOT / "roles")])
TF2_BERT = yaml.safe_load((ROOT / "roles/tf2_bert/meta/workload.yml").read_text())


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Return the files of a report with runs that failed in several ways, flags and skipped cases."""
    records = [
        record(case(*shape), repeat, 100.0 * devices)
        for shape, devices in (((1, 1), 1), ((1, 2), 2.5))
        for repeat in (1, 2)
    ]
    records += [record(case(2, 2), repeat, 300 + 100 * (repeat == 6)) for repeat in range(1, 7)]
    reasons = [
        message("reason.ended", who="NODE2", end=message("reason.signal", number=9, name="SIGKILL")),
        message("reason.out-of-memory", who="NODE1", line="CUDA out of memory", then="60 s"),
        message("reason.rendezvous", why=message("reason.never-began", nodes=["NODE4"])),
        because(message("reason.lost", node="NODE3"), "No route to host"),
    ]
    failed = [
        record(case(2, 1, dtype="fp16"), index, None, reason=text) for index, text in enumerate(reasons, 1)
    ]
    skipped = [
        {"case": case(8, 8), "reason": message("skipped.nodes", needed=8, count=4)},
        {
            "case": case(dtype="fp16"),
            "reason": message("skipped.dtype", dtype="fp16", device="cpu"),
        },
    ]
    top = campaign(tmp_path_factory.mktemp("zh"), [*records, *failed], campaign="night", skipped=skipped)
    workloads = {"tf2_bert": Workload(title="TensorFlow 2 official BERT pretraining")}
    document = build_results(load_campaign(top), workloads, [])
    return render.files(document, str(TEMPLATES), language="zh")


def unsaid(texts):
    """Return the faults of texts but what systems said."""
    return [fault for fault in faults(texts) if not fault.startswith(("No route to", "CUDA out of"))]


def test_no_english_sentence_is_left_in_the_page(everything):
    assert unsaid(texts_of(everything["report.html"])) == []
    assert '<html lang="zh">' in everything["report.html"]


def test_no_english_sentence_is_left_in_the_markdown(everything):
    assert unsaid(prose(everything["report.md"])) == []


def test_no_english_sentence_is_left_in_the_charts(everything):
    charts = {name: text for name, text in everything.items() if name.endswith(".svg")}
    assert charts
    for text in charts.values():
        assert faults(texts_of(text)) == []


@pytest.fixture(scope="module")
def micro(tmp_path_factory):
    """Return micro-benchmarks in Chinese: with every remark, a failure and a changed file."""
    folder = tmp_path_factory.mktemp("micro")
    result = measured.source(measured.MICROBENCH).decode("compute.json")
    bert = [row for row in result["measurements"] if row["benchmark"] == "bert"]
    for row in bert[:2]:
        row |= {"seconds": None, "tflops": None, "reason": message("microbench.oom")}
    bert[1]["reason"] = message("microbench.oom-larger")
    result["size"] = "tiny"
    (folder / "compute.json").write_text(json.dumps(result))
    job = {"nodes": ["NODE1"], "seconds": 1.0, "started": None, "ended": None}
    values = {"rc": 124, "limit": 5, "file": "collectives.log", "why": "RuntimeError"}
    end = message("program.ended-late", **values)
    jobs = {"compute": {**job, "rc": 0}, "collectives": {**job, "rc": 124, "reason": end}}
    (folder / "about.json").write_text(json.dumps({"jobs": jobs, "command": "ansible-playbook"}))
    microbench_files.report(given(folder, "en"), True)
    (folder / "report.html").rename(folder / "english.html")
    (folder / "compute.json").write_text(json.dumps({**result, "host": "other"}))
    microbench_files.report(given(folder, "zh"), True)
    return folder


def given(folder, language):
    """Return the arguments of module microbench_report."""
    data = {name: str(ROOT / "data" / file) for name, file in MICRO_DATA.items()}
    return {
        **data,
        "path": str(folder),
        "templates": str(TEMPLATES),
        "report_language": language,
        "expect": {},
    }


def test_no_english_sentence_is_left_in_the_page_of_the_micro_benchmarks(micro):
    assert faults(texts_of((micro / "report.html").read_text())) == []
    assert '<html lang="zh">' in (micro / "report.html").read_text()
    assert faults(prose((micro / "report.md").read_text())) == []
    assert faults(texts_of((micro / "theory.svg").read_text())) == []


def test_no_chinese_is_in_the_english_page_of_the_micro_benchmarks(micro):
    assert chinese((micro / "english.html").read_text()) == []


def test_the_page_of_the_micro_benchmarks_says_in_chinese_what_failed_and_why(micro):
    page = (micro / "report.html").read_text()
    assert "达到 5 秒的上限，以状态 124 结束" in page
    assert "compute.json 在生成报告之后被更改" in page
    assert "内存或显存不足，更大的形状也是如此" in page


def test_numbers_are_those_of_the_english_report(everything, tmp_path):
    assert json.loads(everything["results.json"])["counts"]["good"] == 10
    assert "2.5" in everything["report.md"]


def test_why_a_record_does_not_count_is_chinese():
    why = message("run.other-machine", node="NODE1", why=message("machine.gpus"))
    said = CHINESE.tell(because("runs/a/1/result.json", why))
    assert said == "runs/a/1/result.json：NODE1 不是本次评测中该名称所指的机器（GPU 不同）"


def of_published():
    """Return what is said of a case of each workload beside DLPerf's results, for every batch and device."""
    table = published.read((ROOT / "data/dlperf-published-results.csv").read_text().splitlines())
    for workload, declared in WORKLOADS.items():
        kinds = product(
            ["base", "resnet50", "other"], ["fp32", "fp16", "bf16"], [False, True], ["cpu", "gpu"]
        )
        for model, dtype, xla, device in kinds:
            about = {"model": model, "dtype": dtype, "xla": xla, "device": device, "workload": workload}
            group = {**about, "id": "g", "title": "", "compiler": declared.compiler, "accumulation": 2}
            for bsz, steps, size in product((7, 64, 160), (1, 2), (None, 99)):
                group |= {"bsz": bsz, "accumulation": steps}
                for entry in published.compare(group, [], table, declared.dlperf, size):
                    yield from (each for each in (entry["why"], entry.get("warning")) if each)


def test_what_is_said_of_published_results_is_chinese():
    said = list(of_published())
    assert {"compare.same", "compare.shape-only", "compare.no-all-reduce"} <= {each["code"] for each in said}
    assert faults(map(CHINESE.tell, said)) == []


RANK = message("reason.rank", node="NODE1", rank=0)
ENDED = message("reason.ended", who=RANK, end=message("reason.exit", rc=1))
SILENT = because(message("reason.hung", who=RANK), 'no output for 60 s after "x = nccl"')
KNOWN = message(
    "reason.known-steps",
    **{"count": 153, "line": "Epoch: [0]", "program": as_message("main.py of pytorch/examples")},
    why=as_message("without time stamps"),
)


@pytest.mark.parametrize(
    ("given", "chinese"),
    [
        (
            because(
                ENDED, because(message("reason.log-says", line="Error 804"), message("failure.driver-old"))
            ),
            "NODE1（rank 0）以退出码 1 结束：日志中有“Error 804”：NVIDIA 驱动对此软件来说太旧。"
            "解决办法：安装较新的驱动，或另选 stack_name",
        ),
        (
            message(
                "reason.out-of-memory", who=RANK, line="bad_alloc", then=message("reason.hung", who=RANK)
            ),
            "NODE1（rank 0）内存或显存不足：日志中有“bad_alloc”；NODE1（rank 0）卡死",
        ),
        (
            because("a.log", KNOWN),
            "a.log：153 行（如“Epoch: [0]”）是 pytorch/examples 的 main.py 的步，没有时间戳",
        ),
        (
            message(
                "run.unmeasured",
                why=message("run.stamps-back", node="N", key=message("source.times"), step=7),
            ),
            "无法得出结果：N：第 7 步的日志时间戳早于前一步",
        ),
    ],
)
def test_why_a_run_does_not_count_is_said_in_chinese(given, chinese):
    assert CHINESE.tell(given) == chinese


def test_a_failure_that_a_workload_declares_is_translated_with_its_reason():
    (why,) = {rule["why"] for rule in TF2_BERT["failures"]}
    said = f'NODE1（rank 0）卡死：no output for 60 s after "x = nccl"：{messages_zh.DECLARED[why]}'
    assert CHINESE.tell(because(SILENT, why)) == said


@pytest.mark.parametrize("name", measured.campaigns())
def test_the_chinese_report_of_a_measured_campaign_is_chinese(name):
    made = measured.results(name)
    files = render.files(made, str(TEMPLATES), language="zh")
    assert faults(prose(files["report.md"])) == []
    assert faults(texts_of(files["report.html"])) == []
    assert faults(terminal.display(made, "/report.html", CHINESE).splitlines()) == []


@pytest.mark.parametrize("name", measured.campaigns())
def test_the_english_report_of_a_measured_campaign_has_no_chinese(name):
    made = measured.results(name)
    files = {**render.files(made, str(TEMPLATES)), "terminal": terminal.display(made, "/report.html")}
    texts = {file: text for file, text in files.items() if isinstance(text, str)}
    assert {"report.html", "report.md", "results.csv", "results.json"} <= set(texts)
    assert {file: chinese(text) for file, text in texts.items() if chinese(text)} == {}


@pytest.fixture(scope="module")
def index_of_all(tmp_path_factory):
    """Return the index of all measured campaigns, and what compares two of them, by language."""
    top = tmp_path_factory.mktemp("index")
    for name in measured.campaigns():
        path = top / name.replace("/", "_") / "report/results.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(measured.results(name)))
    reports = index.read(top, WORKLOADS)
    built = index.build(reports, 0.03)
    compared = [pair for _now, _before, pair in index.comparisons(reports) if pair["rows"]]
    return {
        language: {
            **index_page.files(built, reports, str(TEMPLATES), language),
            **index_page.side_by_side(compared, WORKLOADS, str(TEMPLATES), language),
            "terminal": "\n".join(
                index_page.on_terminal(each, WORKLOADS, Wording(language)) for each in compared
            ),
        }
        for language in ("en", "zh")
    }


def test_the_index_of_all_measured_campaigns_is_in_one_language(index_of_all):
    assert [name for name, text in index_of_all["en"].items() if chinese(text)] == []
    pages = index_of_all["zh"]
    assert faults(texts_of(pages["index.html"])) == []
    assert faults(texts_of(pages["compare.html"])) == []
    assert faults(prose(pages["compare.md"])) == []
    assert faults(pages["terminal"].splitlines()) == []
