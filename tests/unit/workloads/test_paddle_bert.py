# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""paddle_bert: its logs, with genuine ones; how ranks compare weights is in test_paddle_resnet50.py."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from cases import cluster, plan
from model_operations import flops_of_bert
from node_logs import kept_run
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/paddle_bert"
WORKLOAD = declaration("paddle_bert")

bert_sizes = load("workload", "bert_sizes")


def case(nodes=1, **other):
    values = {"workload": "paddle_bert", "settings": {"seq_length": 128, "predictions": 20}, **other}
    return make_case(nodes=nodes, warmup=2, window=10, **{"bsz": 4, **values})


def campaign(tmp_path, nodes, change=("", ""), made=None):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    return kept_run(tmp_path, LOGS, made or case(nodes), WORKLOAD, change)


# Genuine logs


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 8.492662), (2, 9.654721)])
def test_a_run_of_a_campaign_counts(tmp_path, nodes, seconds):
    """Ten steps of four samples on each node, by the times that rank 0 prints."""
    read = campaign(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(40 * nodes / seconds)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("devices", {"gpus": 2}),
        ("global_batch", {"bsz": 2}),
        ("dtype", {"dtype": "fp16"}),
        ("model", {"model": "base"}),
        ("seq_length", {"settings": {"seq_length": 64, "predictions": 20}}),
        ("predictions", {"settings": {"seq_length": 128, "predictions": 10}}),
    ],
)
def test_a_log_of_another_case_is_refused(tmp_path, name, wrong):
    read = campaign(tmp_path, 1, made=case(**wrong))
    assert (read["status"], f"shows {name}" in read["reason"]) == ("refused", True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("world_size=2 backend=gloo", "world_size=1 backend=none"), "shows devices 1"),
        (("world_size=2 backend=gloo", "world_size=2 backend=none"), "does not show backend"),
        ((" nodes=2 ", " nodes=1 "), "shows nodes 1"),
        (("PADDLE_BERT weights=agree end=true", ""), "does not show weights"),
    ],
)
def test_ranks_that_did_not_train_one_model_are_refused(tmp_path, change, reason):
    read = campaign(tmp_path, 2, change)
    assert (read["status"], reason in read["reason"]) == ("refused", True)


def test_the_model_has_the_weights_of_torch_berts():
    """The trainer counts them; bert_sizes.py computes them, and has 110,106,428 for base."""
    line = next(line for line in (LOGS / "1n_NODE1.log").read_text().splitlines() if "parameters=" in line)
    assert f" parameters={bert_sizes.parameters(bert_sizes.MODELS['tiny'])} " in line


# The declaration


def test_a_sample_has_the_operations_of_torch_berts():
    made = {"model": "base", "settings": {"seq_length": 128, "predictions": 20}}
    expected = flops_of_bert(bert_sizes.MODELS["base"], 128, 20)
    assert flops.of_case(WORKLOAD.flops, made) == expected


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_half_precision_on_cpus_is_skipped_with_the_reason(dtype):
    made = plan({"dtype": dtype}, WORKLOAD, cluster(1), "paddle_bert", "cpu")
    assert (made["cases"], "fp32 runs" in made["skipped"][0]["reason"]) == ([], True)


def test_dlperfs_table_has_rows_of_this_model():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    names = WORKLOAD.dlperf
    wanted = f"{names.frameworks[0]},{names.models['base']},"
    assert sum(row.startswith(wanted) for row in rows) == 38


TEXT = "/datasets/corpus/text/**"


@pytest.mark.parametrize(
    ("text", "status"), [(TEXT, "ok"), ("", "refused"), ("/datasets/wiki/**", "refused")]
)
def test_a_genuine_log_of_texts_is_one_of_a_case_with_these_texts(tmp_path, text, status):
    """Losses of both workloads on the corpus fall from 7.63 to 7.53 in 24 steps."""
    settings = {"seq_length": 128, "predictions": 20, "text": text}
    of_texts = {**case(2, settings=settings), "warmup": 4, "window": 20}
    read = kept_run(tmp_path, LOGS, of_texts, WORKLOAD, named="texts_2n_")
    assert (read["status"], "shows text" in str(read["reason"])) == (status, status != "ok")
