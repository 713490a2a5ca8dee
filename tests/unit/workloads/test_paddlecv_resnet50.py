# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""paddlecv_resnet50: its logs, with genuine ones, and what it refuses."""

from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from in_english import log_record, run_record
from node_logs import JOB
from role_files import declaration

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/paddlecv_resnet50"
WORKLOAD = declaration("paddlecv_resnet50")


def case(nodes=1, **other):
    values = {"workload": "paddlecv_resnet50", "model": "resnet50", "bsz": 2, **other}
    return make_case(nodes=nodes, warmup=2, window=10, settings={"version": "1.8.5"}, **values)


def test_the_log_of_paddlecv_which_does_not_synchronise_on_cpus_is_refused():
    """Paddle 1.8.5: two processes share the data, train apart and end with status 0."""
    name = "2p_not_synchronised.log"
    read = log_record(LOGS / name, case(2), 1, WORKLOAD, name)
    assert (read["status"], "shows no step" in read["reason"]) == ("incomplete", True)


def campaign(tmp_path, nodes=1, change=("", "")):
    """Return the record of a run with two images on each node, with a text of the last log changed."""
    names = [f"NODE{index}" for index in range(1, nodes + 1)]
    for name in names:
        text = (LOGS / f"{nodes}n_{name}.log").read_text()
        (tmp_path / f"{name}.log").write_text(text.replace(*change) if name == names[-1] else text)
    return run_record(tmp_path, case(nodes), 1, WORKLOAD, names, JOB)


def test_a_run_of_paddlecv_counts(tmp_path):
    """Steps 2 and 12, by the times that are printed beside the trainer's own lines."""
    read = campaign(tmp_path)
    assert (read["status"], read["reason"], read["notes"]) == ("ok", None, [])
    assert measure(read)["rate"] == pytest.approx(20 / 2.599314)


def test_processes_of_paddlecv_on_cpus_that_train_apart_are_refused(tmp_path):
    """Both end with status 0."""
    read = campaign(tmp_path, 2)
    assert (read["status"], "NODE1.log shows devices 1, the case has devices 2" in read["reason"]) == (
        "refused",
        True,
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("paddle=1.8.5", "paddle=2.6.2"), "shows version 2.6.2"),
        (("global_batch=2", "global_batch=4"), "shows global_batch 4"),
        (("dtype=fp32", "dtype=fp16"), "shows dtype fp16"),
        (("steps_done=12", "steps_done=11"), "shows steps 11"),
        (("weights_sum_of_squares=8.006502550e+04", "weights_sum_of_squares=0.0e+00"), "show weights_sum"),
        (("weights=of_each_rank end=true", ""), "does not show weights"),
    ],
)
def test_what_a_log_of_paddlecv_must_show(tmp_path, change, reason):
    read = campaign(tmp_path, 1, change)
    assert (read["status"], reason in read["reason"]) == ("refused", True)


JOINED = "INFO:utils.dist_utils:PADDLE_TRAINERS_NUM 2\n"


@pytest.fixture
def on_gpus(tmp_path):
    """Return a function that reads logs of two nodes that did not join, as if they had on GPUs.

    On GPUs nothing was recorded. The line is that of the trainer's dist_utils.py.
    """

    def read(joined=JOINED, weights="8.006035337e+04"):
        for name in ("NODE1", "NODE2"):
            text = (LOGS / f"2n_{name}.log").read_text()
            text = text.replace("world_size=1 backend=none nodes=1", "world_size=2 backend=nccl nodes=2")
            text = text.replace("global_batch=2", "global_batch=4").replace("8.006531688e+04", weights)
            at = text.index("PADDLECV_RESNET50 images=")
            (tmp_path / f"{name}.log").write_text(text[:at] + joined + stamp(text) + text[at:])
        made = case(2, device="gpu")
        return run_record(tmp_path, made, 1, WORKLOAD, ["NODE1", "NODE2"], JOB)

    def stamp(text):
        return " ".join(text.splitlines()[1].split()[:2]) + " "

    return read


def test_processes_of_paddlecv_that_joined_and_have_the_same_weights_count(on_gpus):
    read = on_gpus()
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(40 / 4.109204)


def test_paddlecv_must_say_on_gpus_that_it_joins_its_processes(on_gpus):
    read = on_gpus(joined="")
    assert (read["status"], "does not show trainers" in read["reason"]) == ("refused", True)


def test_paddlecv_must_join_all_processes(on_gpus):
    read = on_gpus(joined=JOINED.replace("2\n", "1\n"))
    assert (read["status"], "shows trainers 1" in read["reason"]) == ("refused", True)


def test_ranks_of_paddlecv_with_different_weights_are_refused(on_gpus):
    read = on_gpus(weights="8.006531688e+04")
    assert (read["status"], "shows weights_sum 8.006531688e+04" in read["reason"]) == ("refused", True)


@pytest.mark.parametrize(
    ("device", "nodes", "gpus", "refused"),
    [("cpu", 1, 1, False), ("cpu", 2, 1, True), ("cpu", 1, 2, True), ("gpu", 2, 8, False)],
)
def test_several_processes_of_paddlecv_on_cpus_are_refused_beforehand(device, nodes, gpus, refused):
    made = case(nodes, gpus=gpus, device=device)
    reason = WORKLOAD.refusal(made)
    assert (reason is not None) is refused
    if reason:
        text = f"on CPUs {nodes} x {gpus} of them would train apart. Fix: workload=paddle_resnet50"
        assert text in sentence(reason)


def test_the_stacks_have_the_version_of_each_trainer():
    found = {}
    for name in ("paddle_resnet50", "paddlecv_resnet50"):
        stack = ROOT / f"playbooks/vars/stack_{declaration(name).stack}.yml"
        found[name] = yaml.safe_load(stack.read_text())["stack"][name]["version"]
    assert found == {"paddle_resnet50": "2.6.2", "paddlecv_resnet50": "1.8.5"}
    assert (declaration("paddle_resnet50").stack, WORKLOAD.stack) == ("modern", "dlperf2020")
