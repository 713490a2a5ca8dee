# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's BERT on four hosts over ssh: bare, provisioned, then trained on one, two and four of them."""

import json
import re
import shutil

import pytest
from bare_hosts import NODES, play
from local_nodes import ROOT

NAMES = ["NODE1", "NODE2", "NODE3", "NODE4"]
CAMPAIGN = f"test-cluster-{NODES.net}"
RESULTS = ROOT / "results"

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def bench(campaign, **options):
    shutil.rmtree(RESULTS / campaign, ignore_errors=True)
    return play("bench.yml", campaign=campaign, repeats=1, bsz=8, warmup=5, window=25, **options)


def records(campaign):
    found = (json.loads(path.read_text()) for path in (RESULTS / campaign).glob("runs/*/*/result.json"))
    return {record["case"]["nodes"]: record for record in found}


def logs(nodes):
    """Return {node: text of its log} of the run on so many nodes."""
    (folder,) = (RESULTS / CAMPAIGN).glob(f"runs/*-{nodes}n1g-*/1")
    return {path.stem: path.read_text(errors="replace") for path in folder.glob("NODE*.log")}


@pytest.fixture(scope="module")
def measured(provisioned_hosts):
    yield bench(CAMPAIGN, nodes="1,2,4")
    for name in (CAMPAIGN, f"{CAMPAIGN}-order"):
        shutil.rmtree(RESULTS / name, ignore_errors=True)


def test_bare_hosts_are_provisioned(provisioned_hosts):
    done = provisioned_hosts
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert re.findall(r"^(NODE\d) .*failed=0", done.stdout, re.M) == NAMES


def test_one_two_and_four_hosts_are_measured(measured):
    assert measured.returncode == 0, (measured.stdout + measured.stderr)[-4000:]
    assert {nodes: record["status"] for nodes, record in records(CAMPAIGN).items()} == {
        1: "ok",
        2: "ok",
        4: "ok",
    }


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_each_host_trains_under_its_own_index(measured, nodes):
    said = {}
    for name, text in logs(nodes).items():
        start = json.loads(re.search(r"SCALEBOOK (\{.*\"event\": *\"start\".*\})", text)[1])
        said[name] = (start["host"], start["task_index"])
    assert said == {name: (name, index) for index, name in enumerate(NAMES[:nodes])}


@pytest.mark.parametrize("nodes", [2, 4])
def test_tensorflow_knows_the_right_addresses_and_its_own_place(measured, nodes):
    addresses = [f"{NODES.net}.{index + 2}:11111" for index in range(nodes)]
    pattern = r"cluster_spec = \{'worker': \[(.*?)\]\}.* task_id = (\d+), num_workers = (\d+)"
    for index, name in enumerate(NAMES[:nodes]):
        found = set(re.findall(pattern, logs(nodes)[name]))
        assert found == {(", ".join(map(repr, addresses)), str(index), str(nodes))}


@pytest.mark.parametrize("nodes", [2, 4])
def test_all_hosts_of_a_run_have_the_same_loss(measured, nodes):
    losses = {node["loss"]["last"] for node in records(CAMPAIGN)[nodes]["nodes"]}
    assert len(losses) == 1


@pytest.mark.parametrize("nodes", [2, 4])
def test_a_step_is_traced_once(measured, nodes):
    """The sum over all gradients is logged for each trace; sums of one tensor are of the start."""
    for text in logs(nodes).values():
        sums = re.findall(r"\d\] Collective batch_all_reduce: (\d+) all-reduces", text)
        assert len([tensors for tensors in sums if int(tensors) > 1]) == 1


@pytest.fixture
def mixed_up(measured, tmp_path):
    """An inventory with the addresses of two nodes mixed up: mpirun makes NODE2 the first."""
    text = (NODES.files / "inventory/hosts.yml").read_text()
    for name, other in (("NODE1", 3), ("NODE2", 2)):
        text = re.sub(rf"{name}: {{(.*)}}", rf"{name}: {{\1, node_address: {NODES.net}.{other}}}", text)
    (tmp_path / "hosts.yml").write_text(text)
    return tmp_path / "hosts.yml"


def test_a_wrong_order_of_hosts_is_refused_before_anything_starts(mixed_up):
    done = bench(f"{CAMPAIGN}-order", inventory=mixed_up, nodes=2)
    assert done.returncode == 2, done.stdout[-3000:]
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    for name, address in (("NODE1", 3), ("NODE2", 2)):
        assert re.search(rf"{name}\W.{{0,40}}{NODES.net}.{address} is on none of its interfaces", said)
    assert records(f"{CAMPAIGN}-order") == {}
