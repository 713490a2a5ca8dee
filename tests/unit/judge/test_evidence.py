# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A record counts only if it is one of its plan, if its stamps can be those of a log, and with its logs."""

import copy
import hashlib
import json

import pytest
from ansible.module_utils.scalebook.contracts import make_case
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store.load import load_campaign
from in_english import in_english
from report_records import campaign, case, record

OF = case()
ONE = f"runs/{OF['name']}/1"


@pytest.fixture
def top(tmp_path):
    """Return a campaign of three runs, each with its log."""
    made = campaign(tmp_path / "night", [record(OF, repeat) for repeat in (1, 2, 3)])
    for repeat in (1, 2, 3):
        log = f"log of repeat {repeat}\n".encode()
        (made / "runs" / OF["name"] / str(repeat) / "NODE1.log").write_bytes(log)
        change(made, "nodes.0.sha256", hashlib.sha256(log).hexdigest(), repeat)
        change(made, "nodes.0.bytes", len(log), repeat)
    return made


def change(top, path, value, repeat=1):
    """Change one value of a record; the value may be made from the one that is there."""
    file = top / "runs" / OF["name"] / str(repeat) / "result.json"
    content = json.loads(file.read_text())
    *way, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    place = content
    for word in way:
        place = place[word]
    place[last] = value(copy.deepcopy(place[last])) if callable(value) else value
    file.write_text(json.dumps(content))


def report(top):
    return build_results(load_campaign(top))


def reason(top):
    """Return why the only run that does not count does not."""
    made = report(top)
    assert made["counts"]["good"] == 2
    return " ".join(in_english([each["reason"] for each in made["uncounted"]] + made["notes"]))


OTHER = {"NODE1": {"machine": "m2", "addresses": ["a2"]}}
FOREIGN = "NODE1 was not the machine of this name that the campaign has (other network devices)"


@pytest.fixture
def of_one_machine(top):
    """Return the campaign with the machine of its node in its plan and records."""
    own = {"NODE1": {"machine": "m1", "addresses": ["a1"], "boot": "b1"}}
    plan = json.loads((top / "plan.json").read_text())
    (top / "plan.json").write_text(json.dumps({**plan, "machines": own}))
    for repeat in (1, 2, 3):
        change(top, "machines", own, repeat)
    return top


def test_a_run_that_another_machine_made_does_not_count(of_one_machine):
    change(of_one_machine, "machines", OTHER, 2)
    assert FOREIGN in reason(of_one_machine)


def test_runs_of_two_machines_do_not_count_together_without_a_plan(of_one_machine):
    (of_one_machine / "plan.json").unlink()
    change(of_one_machine, "machines", OTHER, 3)
    assert FOREIGN in reason(of_one_machine)


def test_a_run_after_a_restart_counts(of_one_machine):
    change(of_one_machine, "machines.NODE1.boot", "b2", 2)
    assert report(of_one_machine)["counts"]["good"] == 3


def test_a_run_that_names_no_machine_counts(of_one_machine):
    change(of_one_machine, "machines", {}, 2)
    assert report(of_one_machine)["counts"]["good"] == 3


def test_runs_with_their_logs_count_without_a_note(top):
    made = report(top)
    assert (made["counts"]["good"], made["notes"], made["uncounted"]) == (3, [], [])


@pytest.mark.parametrize(
    ("field", "value", "was"),
    [("bsz", 128, 64), ("accumulation", 8, 1), ("window", 50, 100), ("warmup", 19, 20)],
)
def test_a_case_that_is_not_that_of_the_plan_is_refused(top, field, value, was):
    change(top, f"case.{field}", value)
    assert f"{ONE}/result.json: case.{field} is {value}, in plan.json {was}" in reason(top)


def test_a_case_with_other_nodes_is_refused(top):
    change(top, "case", lambda case: {**case, "nodes": 2, "devices": 2, "label": "2n1g"})
    assert f"{ONE}/result.json: case.nodes is 2, in plan.json 1" in reason(top)


def test_a_case_that_the_plan_has_not_must_give_its_own_name(top):
    (top / "plan.json").unlink()
    change(top, "case.bsz", 128)
    assert f"{ONE}/result.json: case.name is {OF['name']}, which is not the name of a case" in reason(top)


def test_a_case_of_an_earlier_plan_counts(top):
    other = make_case({**OF, "nodes": 2})
    run = top / "runs" / other["name"] / "1"
    run.mkdir(parents=True)
    (run / "result.json").write_text(json.dumps(record(other)))
    assert report(top)["counts"]["good"] == 4


def test_a_record_in_the_place_of_another_repeat_does_not_count(top):
    change(top, "repeat", 7)
    assert f"repeats runs/{OF['name']}/7/result.json, or was moved from there" in reason(top)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("nodes.0.times", lambda times: [*times[:60], -9.0, *times[61:]], "NODE1: the times of step 61"),
        ("nodes.0.times", lambda times: times[::-1], "the times of step 2 is before that of the step before"),
        ("nodes.0.times", lambda times: times[1:], "NODE1: it has 119 times of 120 steps"),
        ("nodes.0.received", [1.0], "NODE1: it has 1 received of 120 steps"),
        ("nodes.0.rates", [-1.0] * 120, "NODE1: one of its rates is below 0"),
        ("nodes.0.steps", lambda steps: [step + 1 for step in steps], "its last step is 121, of the case it"),
        ("nodes.0.steps", lambda steps: [*steps[:-2], 120, 119], "NODE1: its steps do not increase"),
        ("nodes.0.times", lambda times: [str(each) for each in times], "nodes[0].times[0] is '0.0', it must"),
    ],
)  # fmt: skip
def test_stamps_that_no_log_can_have_are_refused(top, path, value, said):
    change(top, path, value)
    assert said in reason(top)


@pytest.mark.parametrize("number", ["1e999", "1" * 400])
def test_a_stamp_beyond_all_numbers_is_refused(top, number):
    file = top / ONE / "result.json"
    file.write_text(file.read_text().replace('"times": [0.0', f'"times": [{number}'))
    assert f"{ONE}/result.json: holds the number {number[:30]}, which is too large" in reason(top)


def test_a_key_that_is_there_twice_is_refused(top):
    file = top / ONE / "result.json"
    file.write_text(file.read_text().replace('"repeat": 1', '"repeat": 1, "repeat": 1'))
    assert f"{ONE}/result.json: names 'repeat' twice in one object" in reason(top)


def test_an_unknown_key_is_none_of_our_business(top):
    change(top, "case", lambda case: {**case, "colour": "red"})
    change(top, "nodes.0", lambda node: {**node, "identity": {"a": 1}})
    assert report(top)["counts"]["good"] == 3


def notes(top):
    made = report(top)
    assert made["counts"]["good"] == 3
    return in_english(made["notes"])


@pytest.mark.parametrize("content", [b"", b"log", b"log of repeat X\n"], ids=["empty", "cut", "changed"])
def test_a_log_that_is_not_that_of_the_record_is_named(top, content):
    (top / ONE / "NODE1.log").write_bytes(content)
    said = "NODE1.log is not the log that its record was made from: it has another sha256 (1n1g repeat 1)"
    assert notes(top) == [said]


def test_a_wrong_checksum_in_a_record_is_named(top):
    change(top, "nodes.0.sha256", "0" * 64)
    assert "NODE1.log is not the log that its record was made from" in notes(top)[0]


def test_a_missing_log_is_named(top):
    (top / ONE / "NODE1.log").unlink()
    assert notes(top) == ["NODE1.log is missing: its record alone says what was measured (1n1g repeat 1)"]


def test_many_missing_logs_are_one_sentence(top):
    change(
        top,
        "nodes",
        lambda nodes: [{**nodes[0], "log": f"NODE{at + 2}.log", "task_index": at} for at in range(9)],
    )
    assert notes(top)[0].startswith("NODE2.log (and 8 more) is missing: its record alone says")


def test_a_record_of_a_campaign_cannot_be_one_of_an_import(top):
    """The logs of an import are elsewhere, so they would not be asked for."""
    (top / ONE / "NODE1.log").unlink()
    file = top / ONE / "result.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "source": "logs/1n1g/bert_b64_fp32_1.log"}))
    assert f"{ONE}/result.json: its log was imported, by plan.json it was not" in reason(top)
