# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""bsz=max: which batch is tried next, when a search has its answer, and what is then measured."""

import pytest
from ansible.module_utils.scalebook.plan.largest_batch import STEPS, Outcome, bounds, next_batch, search
from ansible.module_utils.scalebook.plan.parameters import LARGEST_BATCH
from ansible.module_utils.scalebook.report.plan_lines import describe, why_nothing_runs
from cases import case, cluster, machine, plan, planned
from declared import with_epoch, workload
from in_english import in_english

WORKLOAD = workload()
TUNER = with_epoch(WORKLOAD, 2, 960)


def tries(memory, first, grows=True):
    """Return the batches that are tried where those up to `memory` fit, and the largest that ran."""
    fits = {}
    while (batch := next_batch(fits, first, grows)) is not None:
        fits[batch] = batch <= memory
    return list(fits), bounds(fits)[0]


@pytest.mark.parametrize(
    ("memory", "first", "batches", "largest"),
    [
        (100, 32, [32, 64, 128, 96, 112, 104], 96),
        (1016, 64, [64, 128, 256, 512, 1024, 768, 896, 960, 992, 1008, 1016], 1016),
        (64, 32, [32, 64, 128, 96, 80, 72], 64),
        (40, 64, [64, 32, 48, 40], 40),
        (7, 64, [64, 32, 16, 8], 0),
        (5, 4, [4, 8], 4),
        (10, 1, [1, 2, 4, 8, 16], 8),
        (3, 4, [4], 0),
    ],
)
def test_the_batch_is_doubled_and_then_the_distance_is_halved_in_steps_of_8(memory, first, batches, largest):
    assert tries(memory, first) == (batches, largest)


@pytest.mark.parametrize(("memory", "batches", "largest"), [(500, [96], 96), (80, [96, 48, 72, 80, 88], 80)])
def test_at_a_further_topology_the_batch_is_only_lowered(memory, batches, largest):
    assert tries(memory, 96, grows=False) == (batches, largest)


def test_a_batch_is_not_doubled_beyond_the_largest_that_may_be_given():
    batches, largest = tries(10**9, 600_000)
    assert (batches, largest) == ([600_000], 600_000)
    assert largest <= LARGEST_BATCH


def test_of_outcomes_that_contradict_each_other_the_failure_counts():
    assert bounds({16: True, 32: False, 64: True}) == (16, 32)


class Runs:
    """The search runs of a machine with so much memory at each topology, made one after the other."""

    def __init__(self, **memory):
        self.memory, self.made = memory, {}

    def outcome(self, *names):
        return self.made.get(names[-1])

    def make(self, case, status=None):
        fits = case["bsz"] <= self.memory[f"on_{case['label']}"]
        self.made[case["name"]] = Outcome(status or ("ok" if fits else "oom"), "said so")

    def all(self, cases, limit=16):
        while (found := search(cases, limit, self.outcome))["next"]:
            self.make(found["next"])
        return found


POINTS = [case(nodes=nodes, bsz=32, settings={}, accumulation=1) for nodes in (1, 2)]


def test_the_answer_fits_at_every_topology():
    found = Runs(on_1n1g=100, on_2n1g=80).all(POINTS)
    assert (found["largest"], found["failed"], found["failed_at"]) == (80, 88, "2n1g")
    assert [(trial["label"], trial["bsz"]) for trial in found["trials"][6:]] == [
        ("2n1g", batch) for batch in (96, 48, 72, 80, 88)
    ]


def test_a_topology_with_more_memory_takes_one_run():
    found = Runs(on_1n1g=100, on_2n1g=10**6).all(POINTS)
    assert (found["largest"], found["failed"], found["failed_at"]) == (96, 104, "1n1g")
    assert [trial["label"] for trial in found["trials"]].count("2n1g") == 1


def test_a_search_run_is_short_and_has_a_case_of_its_own():
    following = search(POINTS, 16, Runs().outcome)["next"]
    assert {key: following[key] for key in STEPS} == STEPS
    assert following["name"] not in {each["name"] for each in POINTS}


def test_a_search_that_was_stopped_goes_on_with_the_run_that_is_missing():
    runs = Runs(on_1n1g=100, on_2n1g=100)
    runs.make(search(POINTS, 16, runs.outcome)["next"])
    assert search(POINTS, 16, runs.outcome)["next"]["bsz"] == 64


def test_the_limit_of_runs_is_kept_and_the_answer_says_so():
    found = Runs(on_1n1g=10**6, on_2n1g=10**6).all(POINTS, limit=3)
    assert [trial["bsz"] for trial in found["trials"]] == [32, 64, 128, 128]
    assert (found["largest"], found["failed"]) == (128, None)
    assert in_english(found["reason"]) == "the limit of bsz_max_runs=3 was reached before batch 256"


def test_where_nothing_fits_there_is_no_answer():
    found = Runs(on_1n1g=4).all(POINTS)
    assert found["largest"] is None
    assert in_english(found["reason"]) == "batch 8 ran out of memory at 1n1g"


def test_a_run_that_fails_otherwise_ends_the_search_with_its_reason():
    runs = Runs(on_1n1g=100)
    runs.make(search(POINTS, 16, runs.outcome)["next"], "failed")
    found = search(POINTS, 16, runs.outcome)
    assert (found["next"], found["largest"]) == (None, None)
    assert (
        in_english(found["reason"]) == "the search run with batch 32 at 1n1g ended otherwise: failed, said so"
    )


# In a plan


def searched(given, memory, device="cpu", workload=WORKLOAD):
    """Return the plan before its searches, and the one after them."""
    runs = Runs(**{f"on_{label}": batch for label, batch in memory.items()})
    first = made = planned(given, machine(2, 1), device, runs.outcome, trainer=workload)
    while following := [each["next"] for each in made["searches"] if each["next"]]:
        for each in following:
            runs.make(each)
        made = planned(given, machine(2, 1), device, runs.outcome, trainer=workload)
    return first, made


def test_before_the_search_the_plan_says_what_will_be_searched_and_how_long():
    before, _ = searched({"bsz": "max", "bsz_max_runs": 5}, {"1n1g": 24, "2n1g": 24})
    assert before["cases"] == []
    assert "2 cases x 5 repeats = 10 runs" in describe(before)
    assert (
        "  search 1n1g,2n1g  bmax  fp32  the largest batch: from 16 on doubled, then in steps of 8, "
        "at most 5 short runs at each of them (bsz_max_runs); 0 short runs made"
    ) in describe(before)


def test_the_batch_that_was_found_is_measured_at_all_topologies():
    before, after = searched({"bsz": "max"}, {"1n1g": 24, "2n1g": 16})
    assert [(each["label"], each["bsz"], each["window"]) for each in after["cases"]] == [
        ("1n1g", 16, 100),
        ("2n1g", 16, 100),
    ]
    assert before["campaign"] == after["campaign"]
    assert "the largest batch is 16, 24 ran out of memory at 2n1g; 6 short runs made" in describe(after)


@pytest.mark.parametrize(("memory", "batches"), [(40, [40, 64]), (64, [64]), (200, [200, 64])])
def test_max_stands_in_a_list_beside_numbers(memory, batches):
    _, after = searched({"bsz": "max,64", "nodes": 1}, {"1n1g": memory})
    assert [each["bsz"] for each in after["cases"]] == batches


def test_numbers_beside_max_are_planned_before_the_search_has_ended():
    before, _ = searched({"bsz": "max,64", "nodes": 1}, {"1n1g": 16})
    assert [each["bsz"] for each in before["cases"]] == [64]
    assert "2 cases x 5 repeats = 10 runs" in describe(before)


def test_each_precision_has_a_search_of_its_own():
    made = plan({"bsz": "max", "dtype": "fp32,fp16", "xla": "false,true"}, WORKLOAD, cluster(1), "f", "gpu")
    assert [(each["dtype"], each["xla"]) for each in made["searches"]] == [
        ("fp32", False),
        ("fp32", True),
        ("fp16", False),
        ("fp16", True),
    ]


def test_what_cannot_run_is_not_searched():
    made = plan({"bsz": "max", "dtype": "fp16"}, WORKLOAD, machine(1, 1), "f", "cpu")
    assert (made["searches"], made["cases"]) == ([], [])
    assert "fp16 does not run on a cpu" in why_nothing_runs(made)


def test_a_search_without_an_answer_skips_its_cases_with_the_reason():
    _, after = searched({"bsz": "max", "nodes": 1}, {"1n1g": 4})
    assert [entry["reason"] for entry in after["skipped"]] == [
        "bsz=max has no answer: batch 8 ran out of memory at 1n1g"
    ]


def test_a_workload_whose_window_is_an_epoch_is_skipped_beside_another():
    made = planned({"bsz": "max"}, cluster(1, 1), "gpu", f=WORKLOAD, tuner=TUNER)
    assert [each["workload"] for each in made["searches"]] == ["f"]
    (entry,) = made["skipped"]
    assert entry["reason"] == ("the window of tuner is an epoch, so bsz=max has no short runs to search with")


def test_max_and_a_number_are_different_campaigns():
    names = {plan({"bsz": bsz}, WORKLOAD, cluster(1), "f", "gpu")["campaign"] for bsz in ("max", 32)}
    assert len(names) == 2
