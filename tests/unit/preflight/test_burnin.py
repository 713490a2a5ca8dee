# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The burn-in: drift is found in simulated series and seldom where there is none; new errors are named."""

import copy
import json
import random

import acceptance_report
import pytest
from ansible.module_utils.scalebook.accept.criteria import Wanted
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.preflight import burnin, nvidia_smi
from chinese import faults
from fleets import CRITERIA, Fleet
from preflight_site import DATA, ROOT
from run_module import call_module
from sentences import sentences_in

WANTED = Wanted(Criteria())
MACHINES = [{"name": "NODE1", "nodes": ["NODE1"], "local": True}]
COUNTER = "clocks_event_reasons_counters/clocks_event_reasons_counters_hw_therm_slowdown"


def fails_in(source, parts, slow, rounds=100, at=50):
    """Return the round of a simulated burn-in in which a part fails, 0 for none; one may become `slow`."""
    fleet = Fleet.of(source, parts)
    rates = {part: [] for part in fleet.true}
    for number in range(1, rounds + 1):
        for part, values in rates.items():
            values.append(fleet.measured(part) * (slow if part == 0 and number > at else 1))
            first, last = values[: burnin.FIRST], values[burnin.FIRST :][-burnin.LAST :]
            if burnin.drifts(first, last, CRITERIA, parts * number * (number + 1)):
                return number
    return 0


def test_healthy_parts_do_not_fail_a_burn_in():
    source = random.Random(48)
    assert [fails_in(source, parts, 1.0) for parts in (1, 4, 16) for _ in range(30)] == [0] * 90


def test_95_percent_of_parts_that_become_5_percent_slower_are_found():
    source = random.Random(45)
    rounds = [fails_in(source, parts, 0.95) for parts in (1, 4, 16) for _ in range(30)]
    assert sum(number > 50 for number in rounds) >= 0.95 * len(rounds)


@pytest.fixture
def state():
    return burnin.new(3, 24.0, ["NODE1"])


@pytest.fixture
def probed():
    """A GPU as its driver describes it in a recording."""
    smi = nvidia_smi.read_gpus((DATA / "h100-idle.xml").read_text(), {})
    return {"NODE1": {"facts": {"smi": smi, "xids": [], "nvlink": {}}, "failed": {}}}


def watched(state, *probes):
    """Return the reasons for which the burn-in fails after a probe before it, and one after each round."""
    for rounds, probed in enumerate(probes):
        state["rounds"] = rounds
        burnin.watch(state, MACHINES, probed, "gpu")
    return [sentence(each["reason"]) for each in state["wrong"].values()]


def xid_48(probed):
    """Return a probe that has an error of the kernel's log too."""
    lines = ["NVRM: Xid (PCI:0000:19:00): 48, pid=1, a double bit error"]
    failed = copy.deepcopy(probed)
    failed["NODE1"]["facts"]["xids"] = nvidia_smi.read_xids(lines)
    return failed


def test_a_new_xid_fails_with_its_round_and_a_fix(state, probed):
    [reason] = watched(state, probed, probed, xid_48(probed), xid_48(probed))
    assert reason.startswith(
        "burn-in, round 2: Xid 48 of 0000:19:00, 1 times: an uncorrectable memory error;"
    )
    assert "replace the GPU" in reason


def test_an_xid_from_before_the_burn_in_does_not_fail_it_and_is_named(state, probed):
    assert watched(state, xid_48(probed), xid_48(probed)) == []
    [before] = burnin.summary(state, WANTED)["before"]
    assert sentence(before).startswith("NODE1: Xid 48 of 0000:19:00")


@pytest.mark.parametrize(
    ("path", "now", "figure"),
    [
        ("remapped_rows/remapped_row_corr", "1", "remapped_row_corr 0 → 1"),
        (COUNTER, "7000 us", "hw_therm_slowdown 0 → 7000"),
        ("ecc_errors/volatile/dram_uncorrectable", "1", "dram_uncorrectable: 1"),
        ("clocks_event_reasons/clocks_event_reason_hw_slowdown", "Active", "the hardware slows it down"),
    ],
)
def test_a_new_error_of_a_gpu_fails_with_its_figure(state, probed, path, now, figure):
    later = copy.deepcopy(probed)
    assert path in later["NODE1"]["facts"]["smi"]["gpus"][0]["values"]
    later["NODE1"]["facts"]["smi"]["gpus"][0]["values"][path] = now
    [reason] = watched(state, probed, later)
    assert figure in reason


def test_corrected_memory_errors_are_counted_and_do_not_fail(state, probed):
    later = copy.deepcopy(probed)
    later["NODE1"]["facts"]["smi"]["gpus"][0]["values"]["ecc_errors/volatile/dram_correctable"] = "3"
    assert watched(state, probed, later) == []
    assert state["watched"]["NODE1 GPU0"]["corrected"] == 3


class Rounds:
    """A burn-in of one node with a processor, of which the module gets what it prints."""

    def __init__(self, folder, hours=24.0):
        self.folder, self.source = folder, random.Random(48)
        self.options = {
            "path": str(folder),
            "nodes": ["NODE1"],
            "expected": str(ROOT / "data/expected.yml"),
            "hours": hours,
        }

    def report(self, **options):
        result = call_module(acceptance_report, **{**self.options, **options})
        assert "failed" not in result, result
        return result

    def begin(self):
        self.report(again=False)
        self.report(**self.printed())
        return self.report(burnin=True)

    def printed(self, rate=1.0, trace="aa"):
        rates = {"CPU": {"copy": rate * (1 + 0.002 * self.source.gauss(0, 1))}}
        line = {"at": 0, "name": "AMD EPYC", "rates": rates, "problems": {}}
        line["traces"] = {"CPU": f"{trace} torch 2.13"}
        return {"outputs": {"NODE1": {"stdout": json.dumps(line)}}, "steps": {"NODE1": [{"at": 0}]}}

    def rounds(self, count, **options):
        for _ in range(count):
            result = self.report(burnin=True, **self.printed(**options))
        return result, json.loads((self.folder / "acceptance.json").read_text())


def test_a_part_that_drifts_is_bad_with_its_figure(tmp_path):
    burn_in = Rounds(tmp_path)
    burn_in.begin()
    burn_in.rounds(10)
    result, made = burn_in.rounds(10, rate=0.9)
    assert (made["accepted"], made["bad"], made["burnin"]["rounds"]) == (False, ["NODE1"], 20)
    assert made["burnin"]["worst"]["ratio"] == pytest.approx(0.9, abs=0.01)
    assert "in the first rounds (90." in sentence(made["reasons"]["NODE1"])
    assert "round 20" in result["progress"]


def test_what_failed_in_a_burn_in_is_said_in_chinese_and_is_no_sentence_in_a_file(tmp_path, state, probed):
    burn_in = Rounds(tmp_path)
    burn_in.begin()
    burn_in.rounds(10)
    burn_in.rounds(10, rate=0.9, trace="bb")
    watched(state, probed, xid_48(probed))
    written = [json.loads((tmp_path / name).read_text()) for name in ("acceptance.json", "burnin.json")]
    assert sentences_in([*written, state]) == []
    reasons = [each["reason"] for each in (*written[0]["problems"], *state["wrong"].values())]
    assert len(reasons) == 3
    assert faults(sentence(each, "zh") for each in reasons) == []


def test_a_part_that_trains_other_numbers_than_before_is_bad(tmp_path):
    burn_in = Rounds(tmp_path)
    burn_in.begin()
    burn_in.rounds(1)
    _, made = burn_in.rounds(1, trace="bb")
    assert sentence(made["problems"][0]["reason"]).startswith("burn-in, round 2: it trains other numbers")


def test_the_same_hours_go_on_after_an_interruption(tmp_path):
    burn_in = Rounds(tmp_path)
    burn_in.begin()
    burn_in.rounds(3)
    displayed = burn_in.report(again=False)
    assert displayed["progress"].startswith("Burn-in: round 3,")
    assert displayed["begins"].endswith(f" are repeated for 24 h. {displayed['progress']}")


@pytest.mark.parametrize("hours", [12.0, 0.0])
def test_other_hours_begin_from_scratch(tmp_path, hours):
    burn_in = Rounds(tmp_path)
    burn_in.begin()
    burn_in.rounds(3)
    Rounds(tmp_path, hours).report(again=False)
    assert not (tmp_path / "burnin.json").exists()


def test_a_burn_in_that_has_not_ended_is_not_accepted(tmp_path):
    result = Rounds(tmp_path).begin()
    assert "the burn-in has not ended; start acceptance.yml again with the same hours" in result["refusal"]


def test_a_state_that_cannot_be_read_is_named_with_the_fix(tmp_path):
    (tmp_path / "burnin.json").write_text("{")
    result = call_module(acceptance_report, again=False, **Rounds(tmp_path).options)
    assert "burnin.json" in result["msg"]
    assert "remove it" in result["msg"]
