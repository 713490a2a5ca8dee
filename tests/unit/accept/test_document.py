# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""acceptance.json: what nodes print becomes a verdict on each part, and what to do about the bad ones."""

import json
import re

import jsonschema
import pytest
from acceptance_site import EXPECTED, NODES, Site
from ansible.module_utils.scalebook.accept import document, expected
from ansible.module_utils.scalebook.accept import printed as nodes_printed
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.contracts import as_message, message
from ansible.module_utils.scalebook.report.acceptance_lines import drain
from ansible.module_utils.scalebook.yaml_file import read_yaml
from chinese import HAN, faults, texts_of
from run_module import ROOT
from sentences import sentences_in


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def printed_by(machine):
    """Return the lines that a machine with GPUs printed."""
    return (ROOT / "tests/data/acceptance" / f"{machine}.jsonl").read_text().splitlines()


def judge_printed(folder, machine, **options):
    """Return acceptance.json and the last result of what a machine with GPUs printed."""
    site = Site(folder, NODES[:1], **options)
    site.report(again=False)
    for line in printed_by(machine):
        stdout = json.dumps({"at": 0, **json.loads(line)})
        result = site.report(outputs={"NODE1": {"stdout": stdout}}, steps={"NODE1": [{"at": 0}]})
    return json.loads((folder / "acceptance.json").read_text()), result


def test_a_healthy_cluster_is_accepted_after_one_measurement_of_each_part(site):
    made, result = site.judged()
    assert (made["accepted"], made["good"], made["bad"], result["refusal"]) == (True, NODES, [], "")
    assert site.asked == [(8, 28)]
    assert "8 nodes; parts: 67 good" in result["display"]


def test_of_few_nodes_all_are_measured_again_as_long_as_one_is_open(tmp_path, site):
    few = Site(tmp_path / "few", NODES[:4])
    for each in (few, site):
        each.rates["NODE3", "CPU"] = each.rates["NODE1", "NODE2"] = 0.9
        each.judged()
    nodes, pairs = ({count for count in counts if count} for counts in zip(*few.asked, strict=True))
    assert (nodes, pairs) == ({4}, {6})
    assert min(count for count, _ in site.asked if count) == 1


def test_the_verdicts_on_the_terminal_have_the_language_that_was_asked_for(tmp_path):
    site = Site(tmp_path, report_language="zh")
    site.rates["NODE3", "CPU"] = 0.9
    _, result = site.judged()
    *verdicts, counts, limit, drained = result["display"]
    assert [line for line in verdicts if line.startswith("不合格       NODE3 CPU：")], verdicts
    assert counts == "8 个节点；部件：不合格 1 个、合格 63 个、无参考值 1 个"
    assert limit == "排除不合格的节点：--limit 'all,!NODE3'"
    assert drained.startswith("scontrol update nodename=NODE3 state=drain reason='scalebook: NODE3 CPU copy")
    assert result["refusal"] == "NODE3：不合格；修复这些节点，或将其排除"
    # A verdict is a column of its own.
    behind = [line.split(maxsplit=1)[1] for line in verdicts]
    assert faults([*behind, counts, result["refusal"]]) == []


def test_all_nodes_are_named_in_that_language_too(tmp_path):
    _, result = Site(tmp_path, report_language="zh").judged()
    assert [line for line in result["display"] if line.startswith("合格         所有节点：")]


def test_a_slow_node_is_bad_with_the_command_that_takes_it_out(site):
    site.rates["NODE3", "CPU"] = 0.9
    made, result = site.judged()
    assert (made["accepted"], made["bad"], made["limit"]) == (False, ["NODE3"], "all,!NODE3")
    assert result["display"][-1].startswith(
        "scontrol update nodename=NODE3 state=drain reason='scalebook: NODE3 CPU copy 90"
    )
    assert "NODE3: bad" in result["refusal"]
    assert site.asked[1:] == [(1, 0)] * (len(site.asked) - 1)


def test_the_inventory_of_good_nodes_has_their_variables_and_not_the_bad_ones(tmp_path):
    site = Site(tmp_path, variables={node: {"ansible_host": f"10.0.0.{node[4:]}"} for node in NODES})
    site.rates["NODE3", "CPU"] = 0.9
    site.judged()
    hosts = json.loads((tmp_path / "good.yml").read_text())["nodes"]["hosts"]
    assert sorted(hosts) == [node for node in NODES if node != "NODE3"]
    assert hosts["NODE4"] == {"ansible_host": "10.0.0.4"}


def test_one_slow_direction_of_a_link_is_named(site):
    site.rates["NODE5", "NODE2"] = 0.8
    made, _ = site.judged()
    assert made["faults"] == [{"kind": "direction", "nodes": ["NODE5", "NODE2"]}]
    assert made["bad"] == ["NODE2"]


def test_a_node_with_a_slow_network_is_named_once(site):
    for node in NODES:
        site.rates["NODE7", node] = site.rates[node, "NODE7"] = 0.5
    made, _ = site.judged()
    assert made["faults"] == [{"kind": "node", "nodes": ["NODE7"]}]
    assert made["bad"] == ["NODE7"]


def test_of_four_nodes_a_slow_network_is_named_too_though_half_of_all_links_are_slow(tmp_path):
    site = Site(tmp_path, NODES[:4])
    for node in NODES[:3]:
        site.rates["NODE4", node] = site.rates[node, "NODE4"] = 0.5
    made, _ = site.judged()
    assert made["faults"] == [{"kind": "node", "nodes": ["NODE4"]}]
    assert made["bad"] == ["NODE4"]


def test_a_part_that_trains_other_numbers_is_bad(site):
    site.traces["NODE6"] = "aa cc"
    made, result = site.judged()
    assert made["bad"] == ["NODE6"]
    assert any("NODE6 CPU" in line and "trace differs" in line for line in result["display"])


def test_two_nodes_have_nothing_to_be_compared_with_and_are_not_accepted(tmp_path):
    made, result = Site(tmp_path, NODES[:2]).judged()
    assert (made["accepted"], made["unclear"]) == (False, NODES[:2])
    assert "3 equal parts" in result["refusal"]


def test_one_gpu_is_compared_with_what_was_published(tmp_path):
    site = Site(tmp_path, NODES[:1], "NVIDIA H100 80GB HBM3", ["GPU0"])
    site.rates["NODE1", "GPU0"] = 29.0
    assert site.judged()[0]["accepted"]
    site.rates["NODE1", "GPU0"] = 26.0
    made, _ = site.judged()
    assert made["bad"] == ["NODE1"]
    assert made["findings"][0]["against"].startswith("Azure/AI-benchmarking-guide@")


def test_a_node_without_an_answer_is_bad_and_its_links_are_not_measured(site):
    site.broken["NODE4"] = {"unreachable": True, "msg": "No route to host"}
    made, result = site.judged()
    assert made["bad"] == ["NODE4"]
    assert drain(made) == [
        "scontrol update nodename=NODE4 state=drain reason='scalebook: NODE4: No route to host'"
    ]
    assert "bad          NODE4: No route to host" in result["display"]


def test_a_link_that_cannot_be_measured_is_a_fault_of_the_link(site):
    site.broken["NODE1", "NODE2"] = {"rc": 124, "stdout": "", "stderr": ""}
    made, result = site.judged()
    assert made["faults"] == [{"kind": "link", "nodes": ["NODE1", "NODE2"]}]
    assert "bad          NODE1 → NODE2: it had not ended after 60 s" in result["display"]
    assert len(made["good"]) == 7


def test_parts_that_scatter_too_much_have_no_verdict_and_say_what_to_do(tmp_path):
    site = Site(tmp_path, most=4)
    site.rate = lambda *part: 100 * site.source.uniform(0.3, 1)
    made, result = site.judged()
    assert not made["accepted"]
    assert "measure idle nodes, or find larger faults only, with a lower -e least=" in result["refusal"]


NOT_A_LINE = ["", "text", "[]", '{"at": 0, "rates": 1}', '{"at": 0, "rates": {}, "traces": {}}']


def of_one(**result):
    """Return the measurement of a node alone, from the result of its task."""
    [measurement] = nodes_printed.of_steps({"NODE1": [{"at": 0}]}, {"NODE1": result}, 60)
    return measurement


@pytest.mark.parametrize("stdout", NOT_A_LINE)
def test_a_line_that_is_not_what_the_program_prints_is_a_problem(stdout):
    line = of_one(rc=0, stdout=stdout, stderr="Traceback\nKeyError: 1")
    assert line["problems"] == {"node": as_message("KeyError: 1")}


def test_a_start_forgets_what_was_measured_before(site):
    site.rates["NODE3", "CPU"] = 0.9
    site.judged()
    site.rates.clear()
    assert site.judged()[0]["accepted"]


def test_a_reason_cannot_end_the_quotes_of_the_command(site):
    site.broken["NODE4"] = {"rc": 1, "stdout": "", "stderr": "it's $(broken) `here`"}
    assert drain(site.judged()[0])[0].endswith("reason='scalebook: NODE4: its (broken) here'")


def all_of(nodes):
    """Return the steps in which nodes measure together."""
    return {node: [{"at": 0, "nodes": nodes, "address": "", "port": 1}] for node in nodes}


@pytest.fixture
def files(tmp_path):
    """Return the texts of the files of a cluster in which everything fails that can."""
    site = Site(tmp_path, templates=str(ROOT / "templates"), nodes=NODES)
    site.rates["NODE3", "CPU"] = site.rates["NODE5", "NODE2"] = 0.8
    site.traces["NODE6"] = "aa cc"
    memory = {"code": "acceptance.out-of-memory", "values": {"quantity": "triad"}}
    unfit = {"name": None, "rates": {}, "traces": {}, "problems": {"CPU": memory}}
    site.broken["NODE7"] = {"rc": 0, "stdout": json.dumps({**unfit, "at": 0})}
    site.broken["NODE4"] = {"rc": 1}
    site.broken["NODE1", "NODE2"] = {"rc": 124}
    site.judged()
    ended = message("acceptance.program-ended", program="collectives.py", status=1, line="refused")
    lines = {"NODE1": {"stdout": json.dumps({**unfit, "at": 0, "problems": {"node": ended}})}}
    site.report(outputs=lines, steps=all_of(NODES))
    return {path.name: path.read_text() for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["acceptance.json", "good.yml", "measurements.json"])
def test_no_file_has_a_sentence(files, name):
    assert sentences_in(json.loads(files[name])) == []


def test_each_language_says_everything_without_a_word_of_the_other(files):
    chinese, english = (texts_of(files[f"acceptance.{language}.html"]) for language in ("zh", "en"))
    assert faults(chinese) == []
    assert [text for text in english if re.search(HAN, text)] == []
    assert "NODE7 CPU：triad：内存或显存不足" in chinese
    assert "NODE4: it gave no answer" in english
    assert "所有节点：collectives.py 以状态 1 结束：refused" in chinese


def test_what_was_written_with_sentences_is_read_as_text(files):
    made = json.loads(files["acceptance.json"])
    before = {
        **made,
        "schema": 3,
        "problems": [{**each, "reason": "it failed"} for each in made["problems"]],
        "burnin": {"before": ["NODE1: a warning"]},
        "drain": ["scontrol update"],
    }
    del before["reasons"]
    after = document.upgrade(before)
    assert set(after) == set(made)
    assert after["burnin"]["before"] == [as_message("NODE1: a warning")]
    assert {json.dumps(each["reason"]) for each in after["problems"]} == {json.dumps(as_message("it failed"))}
    assert list(after["reasons"]) == made["bad"]
    assert after["reasons"]["NODE3"] == made["reasons"]["NODE3"]


def test_what_was_written_fits_its_schema(files):
    schema = json.loads((ROOT / "docs/reference/acceptance.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(files["acceptance.json"]))


def test_gpus_of_another_model_are_no_equals():
    lines = [
        {"nodes": [node], "name": name, "rates": {"GPU0": {"copy": rate}}, "traces": {}, "problems": {}}
        for node, name, rate in zip(NODES, ["A"] * 4 + ["B"] * 4, [100.0] * 4 + [50.0] * 4, strict=True)
    ] * 3
    rows = document.findings(lines, [], Criteria())
    assert {row["verdict"] for row in rows} == {"good"}


def test_all_nodes_are_measured_together_once(site):
    made, result = site.judged()
    [row] = [row for row in made["findings"] if row["part"] == "all nodes"]
    assert (row["nodes"], row["rate"], row["verdict"]) == (NODES, 1.5, "good")
    assert (row["against"], row["ratio"]) == ("half", 1.0)
    assert (made["accepted"], result["steps"], row["measurements"]) == (True, {}, 1)


def test_nodes_that_cannot_be_measured_together_are_not_accepted_and_none_is_condemned(site):
    site.broken[tuple(NODES)] = {"rc": 1, "stderr": "Connection closed by peer"}
    made, result = site.judged()
    assert (made["accepted"], made["bad"]) == (False, [])
    assert result["refusal"].startswith("all nodes: Connection closed by peer; each node and each link")


def test_nodes_are_measured_together_without_one_that_cannot_be_measured(site):
    site.broken["NODE4"] = {"rc": 1}
    made, _ = site.judged()
    [row] = [row for row in made["findings"] if row["part"] == "all nodes"]
    assert row["nodes"] == [node for node in NODES if node != "NODE4"]


def test_two_nodes_are_not_measured_together_as_their_link_is_all(tmp_path):
    made, _ = Site(tmp_path, NODES[:2]).judged()
    assert {row["part"] for row in made["findings"]} == {
        "NODE1 CPU",
        "NODE2 CPU",
        "NODE1 → NODE2",
        "NODE2 → NODE1",
    }


def test_two_real_h200_reach_what_was_published_and_have_no_reference_for_the_rest(tmp_path):
    made, result = judge_printed(tmp_path, "h200x2")
    good = {row["quantity"] for row in made["findings"] if row["verdict"] == "good"}
    assert (made["accepted"], good) == (True, {"copy", "to_device", "from_device", "best_fp8"})
    assert {row["verdict"] for row in made["findings"]} == {"good", "no reference"}
    assert result["steps"] == {}


def test_four_real_h200_are_good_but_for_the_launches_of_their_host_which_scatter(tmp_path):
    made, _ = judge_printed(tmp_path, "h200x4")
    verdicts = {}
    for row in made["findings"]:
        verdicts.setdefault(row["verdict"], set()).add(row["quantity"])
    assert verdicts["open"] == {"launch"}
    assert verdicts.keys() == {"good", "open", "no reference"}
    assert verdicts["no reference"] == {
        "pair", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv", "processor", "memory",
    }  # fmt: skip


def test_what_is_measured_next_is_named_with_how_many_parts_wait_for_it(tmp_path):
    site = Site(tmp_path, NODES[:1])
    assert site.report(again=False)["measures"] == (
        "Measuring 1 node, each device and each link; what has no verdict then is measured again."
    )
    _, result = judge_printed(tmp_path, "h200x4")
    assert result["measures"] == "16 of 18 parts have a verdict; measuring again: launch (2 parts)"


def test_what_is_measured_next_has_the_language_that_was_asked_for(tmp_path):
    _, result = judge_printed(tmp_path, "h200x4", report_language="zh")
    assert result["measures"] == "18 个部件中 16 个已有结论；正在再次测量：launch（2 个部件）"
    assert faults([result["measures"]]) == []


def test_nothing_is_measured_next_where_each_part_has_a_verdict(site):
    assert site.judged()[1]["measures"] == ""


def test_the_traces_of_gpus_of_two_machines_are_equal_to_the_bit():
    """The last line is of another machine, a day later."""
    traces = [json.loads(line)["traces"] for line in printed_by("h200x2")]
    assert len(traces) == 3
    assert len({trace for of_machine in traces for trace in of_machine.values()}) == 1


def test_a_product_of_matrices_of_another_shape_than_the_published_one_is_not_bad():
    """GPUs of this model reach 665 TFLOP/s with 8192 x 8192, and 794.5 were published of the best shape."""
    line = {"nodes": NODES[:1], "name": "NVIDIA H100 80GB HBM3", "traces": {}, "problems": {}}
    lines = [{**line, "rates": {"GPU0": {"matmul_bf16": rate}}} for rate in (665.0, 660.0, 670.0)]
    [row] = document.findings(lines, expected.rows(read_yaml(EXPECTED)), Criteria())
    assert row["verdict"] == "good"


def test_pairs_of_gpus_are_compared_with_those_in_the_same_place_of_other_nodes():
    """NVLink between two GPUs of a node and PCIe between two others are not a fault."""
    pairs = [
        {"source": 0, "target": 1, "gb_per_second": 100.0},
        {"source": 0, "target": 2, "gb_per_second": 20.0},
    ]
    line = {"name": "A", "rates": {}, "traces": {}, "problems": {}}
    slow = [{**pairs[0], "gb_per_second": 50.0}, pairs[1]]
    lines = [{**line, "nodes": [node], "pairs": slow if node == "NODE8" else pairs} for node in NODES] * 3
    rows = document.findings(lines, [], Criteria())
    assert [row["part"] for row in rows if row["verdict"] == "bad"] == ["NODE8 GPU0 → GPU1"]


def test_processors_are_compared_with_those_of_the_same_name_whatever_the_gpus_are():
    line = {"name": "A", "traces": {}, "problems": {}}
    lines = [
        {**line, "nodes": [node], "processor": name, "rates": {"host": {"processor": rate}}}
        for node, name, rate in zip(NODES, ["P"] * 4 + ["Q"] * 4, [2.0] * 4 + [1.0] * 4, strict=True)
    ] * 3
    assert {row["verdict"] for row in document.findings(lines, [], Criteria())} == {"good"}


def test_what_was_measured_of_each_size_is_kept():
    sizes = [{"collective": "sendrecv", "bytes": 8, "busbw_gb_per_second": 0.001}]
    content = {"at": 0, "name": "A", "rates": {}, "traces": {}, "problems": {}, "sizes": sizes}
    assert of_one(stdout=json.dumps(content))["sizes"] == sizes


def test_what_a_node_says_of_a_problem_is_a_message_and_a_text_is_kept():
    ended = message("acceptance.program-silent", program="collectives.py", status=1)
    problems = {"node": ended, "GPU0": "lost", "GPU1": {"code": 7}}
    line = of_one(stdout=json.dumps({"at": 0, "rates": {}, "traces": {}, "problems": problems}))
    texts = {"GPU0": as_message("lost"), "GPU1": as_message("{'code': 7}")}
    assert line["problems"] == {"node": ended, **texts}
