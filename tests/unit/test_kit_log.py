# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""`log: {kit: PREFIX}` alone reads, and checks, what a trainer of the kit prints."""

import gc
import re
import sys
import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from ansible.module_utils.scalebook.workload import Workload, WorkloadError
from cases import case
from declared import DECLARED
from in_english import run_record
from node_logs import JOB, node_log
from role_files import load

NINE = ["devices", "nodes", "task", "backend", "accumulation", "global_batch", "dtype", "steps", "weights"]
CASE = case(2, 2, bsz=8, warmup=2, window=4, accumulation=3, workload="trainer")


def kit(log=(), **keys):
    """Return a workload of the kit, without rules unless `keys` has some."""
    declared = {key: value for key, value in DECLARED.items() if key != "sanity"}
    declared |= {"accumulation": 1, "log": {"kit": "MADE", **dict(log)}, **keys}
    return Workload.from_data({key: value for key, value in declared.items() if value is not None})


def names(workload):
    return [rule.name for rule in workload.sanity]


@pytest.fixture
def printed(monkeypatch, capsys):
    """Return what a trainer prints with the kit on the first of two nodes with two devices each."""
    dist = MagicMock()
    dist.get_world_size.return_value, dist.get_rank.return_value, dist.get_backend.return_value = 4, 0, "gloo"
    monkeypatch.setitem(sys.modules, "torch", MagicMock(distributed=dist))
    monkeypatch.setitem(sys.modules, "torch.distributed", dist)
    for name, value in {"GROUP_RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    run, end, trainer_kit = (load("workload", name) for name in ("torch_run", "torch_end", "trainer_kit"))
    monkeypatch.setattr(end, "leave", lambda: None)
    say = trainer_kit.Say("MADE")
    args = SimpleNamespace(batch=8, accumulation=3, compile=False, tf32=False)
    run.announce(say, args, 2, "fp32")
    run.take_steps(say, 6, 2, SimpleNamespace(type="cpu"), step)
    end.finish(say, True, 6)
    gc.enable()
    gc.unfreeze()
    return capsys.readouterr().out


def step(_):
    time.sleep(0.01)
    return SimpleNamespace(item=lambda: 0.5)


def read(folder, first, change=("", "")):
    """Return the record of a run whose first node printed `first`; `change` replaces a text of both nodes."""
    second = re.sub(r"MADE step=.*\n", "", first.replace("node_rank=0", "node_rank=1"))
    for index, text in enumerate((first, second)):
        node = {"text": text.replace(*change), "index": index, "every": 0.01}
        (folder / f"NODE{index + 1}.log").write_text(node_log(**node))
    return run_record(folder, CASE, 1, kit(), ["NODE1", "NODE2"], JOB)


def test_a_trainer_of_the_kit_has_all_witnesses_without_a_rule():
    assert names(kit()) == NINE


def test_what_the_kit_prints_counts(tmp_path, printed):
    record = read(tmp_path, printed)
    assert (record["status"], record["reason"], record["nodes"][0]["steps"][-1]) == ("ok", None, 6)


@pytest.mark.parametrize(
    ("rule", "printed_text", "other"),
    [
        ("devices", "world_size=4", "world_size=1"),
        ("nodes", "nodes=2", "nodes=1"),
        ("task", "node_rank=0", "node_rank=1"),
        ("backend", "backend=gloo", "backend=none"),
        ("accumulation", "accumulation=3", "accumulation=1"),
        ("global_batch", "global_batch=96", "global_batch=8"),
        ("dtype", "dtype=fp32", "dtype=bf16"),
        ("steps", "steps_done=6", "steps_done=5"),
        ("weights", "weights=agree", "weights=differ"),
    ],
)
def test_a_log_of_the_kit_that_shows_something_else_does_not_count(
    tmp_path, printed, rule, printed_text, other
):
    record = read(tmp_path, printed, (printed_text, other))
    assert record["status"] != "ok"
    assert re.search(rf"\b{rule}\b", record["reason"])


def test_a_trainer_that_accumulates_no_gradients_need_not_say_so():
    assert "accumulation" not in names(kit(accumulation=None))


def test_a_rule_of_the_workload_counts_in_place_of_the_one_of_the_kit():
    own = {"name": "backend", "literal": "MADE sums=", "pattern": "MADE sums=ring"}
    backend = next(rule for rule in kit(sanity=[own]).sanity if rule.name == "backend")
    assert backend.line.literal == b"MADE sums="


def test_a_rule_that_a_trainer_has_no_line_for_is_left_out_by_name():
    assert names(kit({"without": ["task"]})) == [name for name in NINE if name != "task"]


def test_lines_that_the_first_node_alone_prints_are_not_asked_of_others():
    assert not any(rule.first_node for rule in kit().sanity)
    assert all(rule.first_node for rule in kit({"witnesses": "first"}).sanity)


def test_a_trainer_of_the_kit_can_have_steps_of_another_form():
    log = kit({"literal": "Batch ", "step": r"Batch (?P<step>\d+)"}).log
    assert (log.step.literal, log.time, log.first_node) == (b"Batch ", None, True)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({"kit": "made "}, "log.kit: 'made '; allowed are capital letters, digits and _"),
        ({"without": ["colour"]}, "log.without: the kit has no rule colour"),
        ({"witnesses": "some"}, "log.witnesses: 'some'; allowed are all, first"),
    ],
)
def test_a_wrong_word_about_the_kit_is_refused_by_the_name_of_its_key(log, message):
    with pytest.raises(WorkloadError, match=message):
        kit(log)


def test_what_is_left_out_of_the_kit_needs_the_kit():
    with pytest.raises(WorkloadError, match="log.kit: witnesses and without are of a trainer of the kit"):
        Workload.from_data({**DECLARED, "log": {**DECLARED["log"], "without": ["task"]}})


def test_a_trainer_without_the_kit_needs_rules_of_its_own():
    with pytest.raises(WorkloadError, match="the key sanity is missing"):
        Workload.from_data({key: value for key, value in DECLARED.items() if key != "sanity"})


def test_a_trainer_of_tensorflow_has_its_rules_beside_its_own():
    log = {**DECLARED["log"], "tensorflow": True}
    rules = [rule.name for rule in Workload.from_data({**DECLARED, "log": log}).sanity]
    graph = ["graph_batch", "graph_dtype", "graph_xla", "replicas", "weights"]
    assert rules == graph + names(Workload.from_data(DECLARED))
