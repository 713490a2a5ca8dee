# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The evaluation document: its figures are those of the campaigns, in both languages."""

import json
import os
import re
import shutil
import statistics
from pathlib import Path

import evaluation
import jsonschema
import measured
import pytest
import yaml
from ansible.module_utils.scalebook.evaluate import (
    costs,
    criteria,
    fields,
    frameworks,
    options,
    ranking,
    sentences,
)
from ansible.module_utils.scalebook.evaluate.read import EvaluationError, campaign_files
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import open_source
from ansible.module_utils.scalebook.workloads import load_workloads
from run_module import call_module

ROOT = Path(__file__).resolve().parents[3]
WORKLOADS = load_workloads([str(ROOT / "roles")])
PRICE_OF_H100 = {
    "gpu": "H100", "per": "gpu hour", "amount": 20, "currency": "CNY", "source": "made", "date": "-",
}  # fmt: skip
EXAMPLE = yaml.safe_load((ROOT / "playbooks/vars/evaluation.yml").read_text())["evaluation"]


def evaluate(folder, **changes):
    return call_module(
        evaluation,
        evaluation={**EXAMPLE, "out": str(folder), **changes},
        here=str(ROOT),
        templates=str(ROOT / "templates"),
        data=str(ROOT / "data"),
        workloads={name: each.as_data() for name, each in WORKLOADS.items()},
    )


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    """The example's document and its data."""
    folder = tmp_path_factory.mktemp("evaluation")
    done = evaluate(folder)
    assert done["changed"], done
    return (folder / "evaluation.md").read_text(), json.loads((folder / "evaluation.json").read_text())


def check_schema(data):
    schema = json.loads((ROOT / "docs/reference/evaluation.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(data)


def test_the_data_of_the_example_fit_the_published_schema(english):
    check_schema(english[1])


@pytest.mark.parametrize("path", sorted((ROOT / "docs/results").glob("evaluation-*/en.yml")), ids=str)
def test_the_data_of_the_measured_evaluations_fit_the_published_schema(tmp_path, path):
    evaluate(tmp_path, **{**yaml.safe_load(path.read_text())["evaluation"], "out": str(tmp_path)})
    check_schema(json.loads((tmp_path / "evaluation.json").read_text()))


def test_the_rates_of_the_document_are_those_of_the_campaigns(english):
    text, _ = english
    (campaign,) = EXAMPLE["campaigns"]
    for row in measured.results(campaign.removeprefix("docs/results/"))["rows"]:
        assert f"| {row['median']:,.{0 if row['median'] >= 1000 else 1}f} |" in text


def test_the_cost_of_the_published_runs_is_computed_from_their_rates(english):
    _, data = english
    (cost,) = [each for each in data["costs"] if catalogue.sentence(each["name"]).startswith("hf_mlm")]
    (best,) = cost["cheapest"]
    assert (best["name"], cost["currency"]) == ("V100_1gpu_8 fp16", "CNY")
    assert best["cost"] == pytest.approx(2 * 1994187 / 23.419 / 3600 * 5.3)


@pytest.mark.parametrize(
    ("language", "said"), [("en", ", of the options with a price: "), ("zh", "仅比较有价格的方案")]
)
def test_the_shortest_time_is_said_of_the_options_with_a_price(tmp_path, language, said):
    """An option without a price was faster, in the table below the sentence."""
    campaigns = [
        "docs/results/h100x2-2026-11-25/torch_bert_max",
        "docs/results/h200x2-2026-11-25/torch_bert",
    ]
    listed = tmp_path / "prices.yml"
    listed.write_text(yaml.safe_dump({"prices": [PRICE_OF_H100]}))
    task = {**EXAMPLE["task"], "epochs": 200}
    evaluate(tmp_path, campaigns=campaigns, published=[], prices=str(listed), task=task, language=language)
    (cost,) = json.loads((tmp_path / "evaluation.json").read_text())["costs"]
    (fastest,) = {offer["hours"] for offer in cost["fastest"]}
    assert min(row["hours"] for row in cost["rows"]) < fastest
    assert cost["fastest"][0]["hourly"] is not None
    text = (tmp_path / "evaluation.md").read_text()
    (time,) = re.findall(rf"{said}.*?(\d+) (?:h|小时) (\d+)", text)
    assert 60 * int(time[0]) + int(time[1]) == round(60 * fastest)


def test_workloads_that_train_different_models_are_not_compared_by_cost(english):
    _, data = english
    assert [catalogue.sentence(cost["name"]) for cost in data["costs"]] == [
        "tf2_bert base",
        "hf_mlm deberta-v3-base",
    ]


def test_every_price_is_shown_with_its_source_and_date(english):
    text, _ = english
    source = (
        "Beijing Super Cloud Computing Center, on demand, V100 SXM2 32 GB; tests of its GPUs with HF Trainer"
    )
    assert f"V100 | 5.3 CNY | by the GPU hour | {source} | date not stated" in text


def test_a_bought_card_is_shown_with_its_years_and_use(tmp_path):
    evaluate(tmp_path, prices="data/purchase-prices.yml")
    text = (tmp_path / "evaluation.md").read_text()
    assert "V100 | 3,500 USD | GPU bought | 3 | 50.0 % |" in text
    assert " USD | " in text


def test_a_criterion_that_nothing_was_measured_for_says_so(english):
    _, data = english
    verdicts = {each["criterion"]: each["verdict"] for each in data["criteria"]}
    assert verdicts == {"scaling": "not-measured", "utilisation": "not-met", "ahead": "not-measured"}


def test_every_excluded_run_is_named(english):
    text, _ = english
    assert text.count("planned, but there is no readable result.json") == 2


def test_the_chinese_document_has_the_same_figures(english, tmp_path):
    evaluate(tmp_path, language="zh", title="评测报告", platform="一台 H200")
    text = (tmp_path / "evaluation.md").read_text()
    tables = [re.findall(r"^.*\|.*\d.*$", each, re.M) for each in (english[0], text)]
    # A sentence may have its numbers in another order; times are of another zone.
    numbers = [
        sorted(re.findall(r"\d(?:[\d,.]*\d)?", re.sub(r"\d\d:\d\d[^|]*", "", line)))
        for table in tables
        for line in table
    ]
    assert numbers[: len(numbers) // 2] == numbers[len(numbers) // 2 :]
    assert "## 1 简介" in text


def test_the_chinese_document_says_hardware_and_software_in_chinese(tmp_path):
    evaluate(tmp_path, language="zh", title="评测报告", platform="一台 H200")
    text = (tmp_path / "evaluation.md").read_text()
    assert "，1 路，64 核，64 线程；内存 504 GiB；" in text
    assert "系统 9.14.0.64-1，框架自带 9.3.0.75" in text
    assert [word for word in ("socket", "GiB memory", "framework's own") if word in text] == []


def test_the_table_of_cases_has_the_steps_of_the_window(english):
    text, data = english
    assert [campaign["matrix"]["window"] for campaign in data["campaigns"]] == [["20 + 100"]]
    assert "| 1, 3 | 20 + 100" in text


def test_a_trainer_with_one_size_declares_it():
    """The documents of both said: not recorded."""
    for workload in ("tf2_resnet50", "oneflow_resnet50"):
        assert options.size_of({}, WORKLOADS[workload]) == "224"
    assert options.size_of({"image_size": 64}, WORKLOADS["torch_resnet50"]) == "64"


def test_the_chinese_document_has_no_english_sentence(tmp_path):
    evaluate(tmp_path, language="zh", title="评测报告", platform="一台 H200", task={})
    lines = (tmp_path / "evaluation.md").read_text().splitlines()
    # Tables and names of runs are as they were recorded.
    prose = [line for line in lines if "|" not in line and "`" not in line]
    assert [line for line in prose if re.search(r"\b(the|is|are|of)\b", line)] == []


THREE_WORDS = re.compile(r"(?<![\w.=/-])(?:[A-Za-z]+[,;:]? ){2,}[A-Za-z]+(?![\w=/])")
"""English of three words in a row: a sentence or a phrase, not a name such as `torch_bert base bf16`."""
PROPER = re.compile(r"Accelerated Linear Algebra|Automatic Mixed Precision|Hugging Face|global batch size")


@pytest.mark.parametrize("campaign", ["h200x4-2026-11-26/tf2_bert", "h200x4-2026-11-26/torch_gpt2"])
def test_the_chinese_document_has_no_english_phrase(tmp_path, campaign):
    results = build_results(load_campaign(ROOT / "docs/results" / campaign), WORKLOADS)
    (tmp_path / "results.json").write_text(json.dumps(results))
    evaluate(
        tmp_path,
        language="zh",
        title="评测报告",
        platform="H200",
        task={},
        campaigns=[str(tmp_path)],
    )
    text = re.sub(r"```.*?```|`[^`]*`", "", (tmp_path / "evaluation.md").read_text(), flags=re.DOTALL)
    assert THREE_WORDS.findall(PROPER.sub("", text)) == []
    assert re.search(r"[\u4e00-\u9fff]\(", text) is None


def test_a_second_evaluation_changes_nothing(tmp_path):
    assert evaluate(tmp_path)["changed"]
    assert not evaluate(tmp_path)["changed"]


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        (
            {"campaigns": ["docs/none"]},
            "docs/none: has no report/results.json. Fix: ansible-playbook report.yml",
        ),
        ({"prices": "data/README.md"}, "data/README.md: is not YAML: while scanning"),
        ({"prices": "roles/mirror/defaults/main.yml"}, "it must have a list `prices`"),
        ({"langauge": "zh"}, "Unsupported parameters"),
        ({"criteria": {"efficiency": "much"}}, "efficiency"),
        (
            {"criteria": {"efficiency": 0.8}},
            "evaluation.criteria.efficiency=0.8: allowed are per cent from 1 to 100",
        ),
        ({"criteria": {"efficiency": 150}}, "evaluation.criteria.efficiency=150: allowed are per cent"),
        ({"criteria": {"utilisation": 0}}, "evaluation.criteria.utilisation=0: allowed are per cent"),
        ({"criteria": {"machines": 0}}, "evaluation.criteria.machines=0: allowed are whole numbers from 1"),
        ({"deadline_hours": -3}, "evaluation.deadline_hours=-3: allowed are numbers above 0"),
        ({"budget": -5}, "evaluation.budget=-5: allowed are numbers above 0"),
        ({"electricity": -1}, "evaluation.electricity=-1: allowed are numbers from 0 on"),
        ({"task": {"samples": -1}}, "evaluation.task.samples=-1: allowed are whole numbers from 1"),
        ({"task": {"samples": 0}}, "evaluation.task.samples=0: allowed are whole numbers from 1"),
        ({"task": {"epochs": 0}}, "evaluation.task.epochs=0: allowed are numbers above 0"),
        (
            {"criteria": {"ahead": "tf3_bert"}},
            "evaluation.criteria.ahead=tf3_bert: allowed are bing_bert, ",
        ),
        ({"criteria": {"ahead": "tf3_bert"}}, "(did you mean tf2_bert?)"),
        (
            {"texts": {"platfrom": "x"}},
            "evaluation.texts=platfrom: allowed are introduction, platform, frameworks, models, environment, "
            "configuration, rules, metrics, problems, bert (did you mean platform?)",
        ),
        ({"texts": {"gpt2": "x"}}, "evaluation.texts=gpt2: allowed are introduction"),
        ({"texts": {"rules": ["x"]}}, "evaluation.texts.rules=['x']: allowed are texts"),
        ({"published": ["dlperf", "dlperf"]}, "evaluation.published=dlperf: allowed are entries that differ"),
        (
            {"prices": "data/nope.yml"},
            "evaluation.prices=data/nope.yml: allowed are files such as data/prices.yml (No such file",
        ),
        (
            {"out": "/etc/passwd"},
            "evaluation.out=/etc/passwd: allowed are directories that can be written to",
        ),
        ({"out": ""}, "evaluation.out=: allowed are directories"),
        (
            {"budget": -5, "deadline_hours": 0},
            "deadline_hours=0: allowed are numbers above 0; evaluation.budget=-5",
        ),
    ],
)
def test_wrong_input_is_refused_by_name(tmp_path, changes, refusal):
    assert refusal in evaluate(tmp_path, **changes)["msg"]
    assert not list(tmp_path.iterdir())


def test_a_campaign_counts_once_whatever_path_names_it(tmp_path):
    plain = "docs/results/h200-2026-11-23/tf2_plain"
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy/tf2_plain"
    shutil.copy((ROOT / plain).with_name("runs.tar.xz"), tmp_path / "copy")
    for other, reason in ((plain, "is listed twice"), (str(copy), f"is the same as {plain}")):
        refused = evaluate(tmp_path / "out", campaigns=[plain, other])["msg"]
        assert (
            refused
            == f"evaluation.campaigns={other[:60]}: allowed are entries that differ; this one {reason}"
        )
    assert not (tmp_path / "out").exists()


def test_an_archive_counts_before_a_report_that_was_left_beside_it(tmp_path):
    top = tmp_path / "tf2_plain"
    (top / "report").mkdir(parents=True)
    shutil.copy(ROOT / "docs/results/h200-2026-11-23/runs.tar.xz", tmp_path)
    (top / "report/results.json").write_text("{}")
    (file,) = campaign_files([str(top)], tmp_path)
    assert file == (tmp_path / "runs.tar.xz", "tf2_plain")


def test_a_report_before_the_last_of_its_runs_is_refused(tmp_path):
    report, record = tmp_path / "report/results.json", tmp_path / "runs/a/1/result.json"
    for file in (report, record):
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    source = open_source(tmp_path)
    made = manifest.extend(None, manifest.files_of(source), {"runs/a/1": "oom"}).manifest
    (tmp_path / "manifest.json").write_text(json.dumps(made))
    os.utime(record)  # as `cp -r` leaves it: later than the report
    assert campaign_files([str(tmp_path)], tmp_path) == [(report, "")]
    record.write_text('{"status": "ok"}')
    with pytest.raises(EvaluationError, match=r"runs were measured after its report. Fix: .*campaign_dir="):
        campaign_files([str(tmp_path)], tmp_path)


def test_a_wrong_price_is_named_with_its_file(tmp_path):
    file = tmp_path / "prices.yml"
    file.write_text("prices: [{per: hour}]")
    refused = evaluate(tmp_path / "out", prices=str(file))["msg"]
    assert refused.startswith(f"{file}: price 1: per=hour: allowed are gpu hour")


def test_a_section_of_every_name_has_the_paragraphs_of_the_user(tmp_path):
    own = {name: f"My own words on {name}." for name in (*fields.SECTIONS, "bert")}
    evaluate(tmp_path, texts=own)
    text = (tmp_path / "evaluation.md").read_text()
    assert [words for words in own.values() if words not in text] == []


def test_the_document_of_the_module_names_every_section():
    documented = yaml.safe_load(evaluation.DOCUMENTATION)["options"]["evaluation"]["suboptions"]["texts"]
    how_to = (ROOT / "docs/how-to/evaluate.md").read_text()
    for name in fields.SECTIONS:
        assert f"C({name})" in documented["description"][0]
        assert f"`{name}`" in how_to


def test_the_sizes_that_are_allowed_can_be_drawn_and_written(tmp_path):
    for task in (
        {"samples": 1, "epochs": 1e-6},
        {"samples": fields.MOST_SAMPLES, "epochs": fields.MOST_EPOCHS},
    ):
        assert evaluate(tmp_path, task=task).get("changed"), task


def test_what_a_node_used_beside_its_framework_is_a_feature():
    declared = WORKLOADS["torch_resnet50"]
    assert frameworks.features(declared, {"features": ""}) == "DDP+torch.compile+AMP"
    assert frameworks.features(declared, {"features": "DALI 2.4.0"}) == "DDP+DALI 2.4.0+torch.compile+AMP"


def features_of(name, **settings):
    """What a workload can do, as one that a campaign measured."""
    group = {
        "workload": name, "model": "tiny", "device": "gpu", "dtype": "fp32", "xla": False, "accumulation": 1,
        "warmup": 20, "window": 100, "settings": settings,
    }  # fmt: skip
    [line] = frameworks.matrix([{"groups": [group]}], WORKLOADS)
    return {name for name, value in line.items() if value is True}, line["others"]


@pytest.mark.parametrize(
    ("workload", "lacking", "others"),
    [
        ("torch_bert", set(), "DDP+FSDP"),
        ("tf2_bert", {"accumulation", "checkpointing"}, "–"),
        ("bing_bert", {"compiled", "accumulation", "checkpointing"}, "DeepSpeed"),
        ("torch_wide_deep", {"accumulation", "checkpointing", "own-data"}, "split tables"),
        ("horovod_tf1_bert", {"mixed-precision", "compiled", "accumulation", "checkpointing"}, "Horovod"),
    ],
)
def test_the_features_of_a_workload_follow_from_its_declaration(workload, lacking, others):
    assert features_of(workload) == (ALL_FEATURES - lacking, others)


ALL_FEATURES = {
    "several-nodes", "nccl", "mixed-precision", "compiled", "accumulation", "checkpointing", "own-data"
}  # fmt: skip


def test_a_workload_that_refuses_two_nodes_does_not_take_several():
    assert "several-nodes" in features_of("horovod_tf1_bert", launcher="mpirun")[0]
    assert "several-nodes" not in features_of("horovod_tf1_bert", launcher="horovodrun")[0]


def test_the_document_says_yes_or_no_for_each_feature(english):
    lines = english[0].splitlines()
    head = next(place for place, line in enumerate(lines) if " | several nodes | NCCL | " in line)
    assert lines[head + 2] == "tf2_bert | yes | yes | yes | yes | no | no | yes"


# -- criteria and ranking ---------------------------------------------------------------------------------


def option(workload="a", rate=100.0, spread=0.01, nodes=1, efficiency=None, runs=5):
    rates = [rate * (1 + spread * (2 * place / (runs - 1) - 1)) for place in range(runs)] if runs > 1 else []
    return {
        "name": f"{workload} {nodes}n8g", "source": "made", "group": workload, "family": "bert",
        "workload": workload, "model": "base", "task": "pretraining", "size": "128", "gpu": "NVIDIA H200",
        "nodes": nodes, "machines": nodes, "gpus": 8, "bsz": 64, "dtype": "fp16", "xla": False,
        "compiler": "", "link": "",
        "variant": "", "differing": "",
        "unit": "samples", "rate": rate, "slowest": min(rates, default=rate),
        "fastest": max(rates, default=rate), "rates": rates, "runs": runs,
        "speedup": efficiency and efficiency * 8 * nodes, "efficiency": efficiency, "joules": None,
        "step_p50": 0.1234, "step_p95": 0.1357, "usage": {}, "mfu": None, "bottleneck": None,
    }  # fmt: skip


def said(verdict):
    """Return the evidence of a verdict, its names in English."""
    return [(catalogue.sentence(what), *judged) for what, *judged in verdict["evidence"]]


@pytest.mark.parametrize(("least", "verdict"), [(0.81, "met"), (0.79, "not-met")])
def test_scaling_is_judged_by_the_worst_of_the_large_runs(least, verdict):
    found = [option(nodes=nodes, efficiency=share) for nodes, share in ((10, 0.5), (20, 0.95), (125, least))]
    assert criteria.scaling(found, 80, 20)["verdict"] == verdict


def test_containers_of_one_machine_are_not_called_simulated_nodes(tmp_path):
    results = measured.results("containers-2026-11-25/resnet50")
    results["simulated"] = {"nodes": 4, "machines": 1, "containers": 1}
    (tmp_path / "own/report").mkdir(parents=True)
    (tmp_path / "own/report/results.json").write_text(json.dumps(results))
    evaluate(tmp_path, campaigns=[str(tmp_path / "own")], published=[])
    text = (tmp_path / "evaluation.md").read_text()
    assert "4 nodes in containers, machines: 1" in text
    assert "machine, 4 simulated nodes" not in text


def test_nodes_that_share_machines_do_not_say_how_many_machines_scale():
    found = [{**option(nodes=20, efficiency=0.99), "machines": 1}]
    assert criteria.scaling(found, 80, 20)["verdict"] == "not-measured"


def test_ahead_is_met_only_beyond_the_ranges():
    ours, close, far = option("a", 100), option("b", 99), option("b", 90)
    assert criteria.ahead([ours, close], "a")["verdict"] == "not-met"
    assert criteria.ahead([ours, far], "a")["verdict"] == "met"


@pytest.mark.parametrize(("ours", "theirs"), [(1, 5), (5, 1), (1, 1)])
def test_ahead_of_or_by_a_single_run_is_not_measured(ours, theirs):
    verdict = criteria.ahead([option("a", 100, runs=ours), option("b", 90, runs=theirs)], "a")
    assert verdict["verdict"] == "not-measured"
    assert said(verdict) == [("a 1n8g / b 1n8g", None, "not-measured")]


def test_behind_one_workload_is_not_ahead_whatever_a_single_run_of_another_shows():
    others = [option("b", 105), option("c", 110, runs=1)]
    verdict = criteria.ahead([option("a", 100), *others], "a")
    assert verdict["verdict"] == "not-met"
    assert said(verdict) == [("a 1n8g / b 1n8g", pytest.approx(100 / 105), "not-met")]


# -- a case without a valid run ---------------------------------------------------------------------------


def failed(workload="a", nodes=1):
    """An option of a case that was planned and has no valid run."""
    return {**option(workload, 0.0, nodes=nodes, runs=0), "slowest": 0.0, "fastest": 0.0}


@pytest.mark.parametrize(("share", "verdict"), [(0.95, "not-measured"), (0.5, "not-met")])
def test_scaling_is_not_met_where_a_larger_case_has_no_valid_run(share, verdict):
    found = criteria.scaling([option(nodes=32, efficiency=share), failed(nodes=125)], 80, 20)
    assert found["verdict"] == verdict
    assert ("a 125n8g", None, "not-measured") in said(found)


def test_utilisation_is_not_met_where_a_case_has_no_valid_run():
    found = criteria.utilisation([{**option(), "usage": {"gpu": 95.0}}, failed(nodes=2)], 80)
    assert found["verdict"] == "not-measured"
    assert ("a 2n8g, gpu", None, "not-measured") in said(found)


@pytest.mark.parametrize("missing", ["a", "b"])
def test_a_workload_is_not_ahead_where_it_or_the_other_has_no_valid_run(missing):
    small = [option("a", 100), option("b", 90)]
    large = [failed(name, 2) if name == missing else option(name, nodes=2) for name in "ab"]
    found = criteria.ahead([*small, *large], "a")
    assert found["verdict"] == "not-measured"
    assert ("a 2n8g / b 2n8g", None, "not-measured") in said(found)


def test_a_case_without_a_valid_run_is_in_the_criteria_alone(tmp_path):
    """The containers of this campaign were on one machine."""
    campaign = "docs/results/containers-2026-11-25/others"
    evaluate(
        tmp_path,
        campaigns=[campaign],
        published=[],
        criteria={"efficiency": 1, "machines": 1, "utilisation": 1},
    )
    data = json.loads((tmp_path / "evaluation.json").read_text())
    verdicts = {each["criterion"]: each for each in data["criteria"]}
    names = [f"oneflow_wide_deep {nodes}n1g b4 fp32" for nodes in (1, 2)]
    assert [verdicts[name]["verdict"] for name in ("scaling", "utilisation")] == ["not-measured"] * 2
    assert (names[1], None, "not-measured") in said(verdicts["scaling"])
    assert (f"{names[0]}, cpu", None, "not-measured") in said(verdicts["utilisation"])
    assert "oneflow_wide_deep" not in json.dumps([data["families"], data["costs"], data["extrapolations"]])


def test_a_case_without_a_record_has_the_unit_that_its_workload_declares():
    """Its row says samples, so its images/s would stand beside nothing."""
    results = measured.results("containers-2026-11-25/resnet50")
    rows = [{**row, "median": None, "unit": "samples"} for row in results["rows"]]
    assert {each["unit"] for each in options.without_run({**results, "rows": rows}, WORKLOADS)} == {"images"}


@pytest.mark.parametrize(("share", "verdict"), [(0.85, "not-measured"), (0.75, "not-met")])
def test_a_large_case_without_efficiency_is_not_measured(share, verdict):
    found = criteria.scaling([option("a", nodes=20, efficiency=share), option("b", nodes=20)], 80, 20)
    assert found["verdict"] == verdict
    assert ("b 20n8g", None, "not-measured") in said(found)


@pytest.mark.parametrize(("mean", "verdict"), [(95.0, "not-measured"), (75.0, "not-met")])
def test_a_case_without_utilisation_is_not_measured(mean, verdict):
    found = criteria.utilisation([{**option("a"), "usage": {"gpu": mean}}, option("b")], 80)
    assert found["verdict"] == verdict
    assert ("b 1n8g, gpu", None, "not-measured") in said(found)


def test_the_evidence_begins_with_what_fails_and_names_what_is_not_measured():
    found = [{**option(name), "usage": {"gpu": mean}} for name, mean in (("a", 95.0), ("c", 75.0))]
    messages = sentences.evidence(criteria.utilisation([option("b"), *found], 80))
    assert (
        catalogue.sentence(messages)
        == "c 1n8g, gpu: 75.00 %; b 1n8g, gpu: not measured; a 1n8g, gpu: 95.00 %"
    )


def test_the_fastest_is_of_samples_of_one_size():
    family = {"name": "bert", "options": [option("a", 400), {**option("b", 100), "size": "512"}]}
    said = catalogue.in_words(sentences.of_family(family))
    assert [text.partition(":")[0] for text in said] == [
        "BERT, base, pretraining, sequence length = 128",
        "BERT, base, pretraining, sequence length = 512",
    ]


def test_the_ranking_has_the_range_of_the_lead():
    (line,) = ranking.of_family([option("b", 90), option("a", 100)])
    assert (line["first"], line["other"]) == ("a 1n8g", "b 1n8g")
    assert line["times"] == pytest.approx(100 / 90)
    assert line["least"] == pytest.approx(99 / 90.9)
    assert line["most"] == pytest.approx(101 / 89.1)


def of_rates(workload, rates):
    made = {**option(workload, statistics.median(rates), runs=len(rates)), "rates": rates}
    return {**made, "slowest": min(rates), "fastest": max(rates)}


# The median of the first is above that of the second, its mean is below.
SKEWED = [101, 101.2, 100.9, 101.1, 101, 101.3, 70, 69, 71, 70.5, 70.2]
STEADY = [100, 100.1, 99.9, 100.2, 100.05, 99.95, 100, 100.1, 99.9, 100, 100]


def test_a_lead_whose_runs_point_the_other_way_is_a_tie():
    (line,) = ranking.of_family([of_rates("a", SKEWED), of_rates("b", STEADY)])
    assert (line["first"], line["verdict"]) == ("a 1n8g", ranking.TIE)


@pytest.mark.parametrize("runs", [SKEWED, [99.9, *STEADY[1:]], [110 + each / 10 for each in range(6)]])
def test_a_lead_is_between_its_bounds(runs):
    (line,) = ranking.of_family([of_rates("a", runs), of_rates("b", STEADY)])
    assert line["least"] <= line["times"] <= line["most"]


def test_six_runs_of_each_have_an_interval():
    (line,) = ranking.of_family([option("a", 100, runs=6), option("b", 90, runs=6)])
    assert (line["interval"], line["verdict"]) == (True, ranking.FASTER)


def test_hardware_that_no_record_names_is_the_same_within_a_campaign_alone():
    unknown = {"gpu": options.NOT_RECORDED}
    ours, other = {**option("a", 100), **unknown}, {**option("b", 90), **unknown}
    assert len(ranking.of_family([ours, other])) == 1
    assert ranking.of_family([ours, {**other, "source": "another"}]) == []


def test_other_gradient_accumulation_is_not_ranked():
    ours, other = option("a", 100), {**option("b", 90), "variant": options.variant_of(8)}
    assert ranking.of_family([ours, other]) == []
    assert len(ranking.of_family([{**ours, "variant": options.variant_of(8)}, other])) == 1


def test_what_a_framework_reads_with_does_not_keep_it_from_the_ranking():
    assert len(ranking.of_family([option("a", 100), {**option("b", 90), "variant": "DALI; worker=8"}])) == 1


@pytest.mark.parametrize(
    ("accumulation", "name"), [(1, "w 1n8g b64 fp16"), (8, "w 1n8g b64 fp16 accumulation 8")]
)
def test_gradient_accumulation_is_in_the_name_of_an_option(accumulation, name):
    row = {"workload": "w", "nodes": 1, "gpus": 8, "bsz": 64, "dtype": "fp16", "accumulation": accumulation}
    assert catalogue.sentence(options.name_of(row, "", None)) == name


def test_settings_in_which_the_groups_of_a_workload_differ_are_in_the_name_of_an_option():
    results = measured.results("h200x4-2026-11-26/torch_gpt2")
    names = [catalogue.sentence(each["name"]) for each in options.of_campaign(results)]
    assert "torch_gpt2 1n4g b64 bf16 torch.compile bucket_mb=2000" in names
    assert len(set(names)) == len(names)


def test_gradient_accumulation_is_in_the_name_of_a_setting():
    plain = "base, sequence length = 128, fp16, batch size = 64, NVIDIA H200"
    assert catalogue.sentence(options.setting_name(option())) == plain
    accumulated = plain.replace("64,", "64, accumulation 8,")
    name = options.setting_name({**option(), "variant": options.variant_of(8)})
    assert catalogue.sentence(name) == accumulated


def test_workloads_that_train_different_models_are_not_ranked():
    assert ranking.of_family([option("a", 100), {**option("b", 90), "model": "large"}]) == []


def test_a_gpu_that_no_record_names_is_no_cpu():
    found = options.of_campaign(measured.results("h200x4-2026-11-21/scaling"))
    assert {each["gpu"] for each in found} == {options.NOT_RECORDED}


# -- imported logs: no record says what they were measured on ---------------------------------------------


@pytest.fixture(scope="module")
def imported():
    """Results of a campaign on CPUs, as they are read from logs alone: without device and hardware."""
    results = measured.results("containers-2026-11-25/hf_mlm")
    rows = [{**row, "device": None} for row in results["rows"]]
    return {**results, "campaign": "logs", "rows": rows, "hardware": [], "utilisation": []}


def test_a_device_that_no_record_names_is_no_cpu(imported):
    assert {each["gpu"] for each in options.of_campaign(imported)} == {options.NOT_RECORDED}


def test_imported_logs_are_not_ranked_beside_runs_on_cpus(imported):
    (first, *_) = options.of_campaign(imported)
    assert ranking.of_family([first, {**first, "workload": "b", "source": "measured", "gpu": None}]) == []


def test_imported_logs_with_the_processors_alone_are_judged_by_no_utilisation(imported):
    usage = [{"case": row["case"], "quantity": "cpu", "mean": 95.0} for row in imported["rows"]]
    found = criteria.utilisation(options.of_campaign({**imported, "utilisation": usage}), 80)
    assert {each.verdict for each in found["evidence"]} == {criteria.NOT_MEASURED}


def test_imported_logs_have_no_price(imported):
    price = {"gpu": "H200", "per": "gpu hour", "amount": 1.0, "currency": "USD"}
    assert costs.offers(options.of_campaign(imported), [price], 1e6) == []


def test_what_others_measured_on_stands_with_the_hardware(english):
    text, data = english
    by = " | published: HF Trainer, Beijing Super Cloud Computing Center"
    v100 = "8 × Tesla V100-SXM2-32GB, linked by NVLink 300 GB/s; Gold 61 series v5 @ 2.5GHz, 72 threads"
    a100 = "8 × A100-PCIE-40GB; Intel 6248R @ 3.0GHz, 48 cores; 384 GiB memory; RDMA (RoCE, 100 Gb/s)"
    assert {f"{v100}; 320 GiB memory; CentOS 7.8{by}", f"{a100}; CentOS{by}"} <= set(text.splitlines())
    assert "data/published-nodes.yml" in data["checksums"]
