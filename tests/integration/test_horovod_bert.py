# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_bert for real: Horovod's release is built against torch from its lock, and nodes train together.

Of upstream, how the fork is got, and how a run starts it; what it starts is a stand-in. The fork itself is on
a public host that tests do not reach: what it printed is in tests/data/horovod_bert.
"""

import json
import subprocess

import pytest
from frameworks import record_of
from local_nodes import ROOT, changed, play

pytestmark = pytest.mark.slow


def test_provisioning_again_changes_nothing(horovod_bert):
    """Takes half a minute, minutes more the first time."""
    assert changed(horovod_bert.said) == []


def test_nodes_and_the_devices_of_a_node_train_together(horovod_bert, tmp_path):
    """Takes a minute: one process, two on two nodes, two on one node."""
    place = {"campaign_results": str(tmp_path), "campaign_port": 24760, "bsz": 4, "repeats": 1}
    horovod_bert.play("bench.yml", campaign="nodes", nodes="1,2", gpus=1, **place)
    horovod_bert.play("bench.yml", campaign="devices", nodes=1, gpus=2, slots=2, dtype="fp16", **place)
    records = [json.loads(path.read_text()) for path in tmp_path.glob("*/runs/*/1/result.json")]
    assert {(record["case"]["label"], record["status"], record["reason"]) for record in records} == {
        ("1n1g", "ok", None),
        ("2n1g", "ok", None),
        ("1n2g", "ok", None),
    }
    steps = [node["steps"] for record in records for node in record["nodes"]]
    assert steps == [list(range(1, 121))] * 4


@pytest.mark.cluster
def test_four_hosts_train_together(four_hosts, horovod_bert, tmp_path):
    """Takes two minutes."""
    horovod_bert.provision_hosts()
    place = {"campaign": "hosts", "campaign_results": str(tmp_path)}
    horovod_bert.on_hosts("bench.yml", nodes=4, gpus=1, bsz=4, repeats=1, **place)
    record, _ = record_of(tmp_path)
    assert (record["status"], record["reason"]) == ("ok", None)


# -- upstream ----------------------------------------------------------------------------------------------

CHECK_OUT = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: horovod_bert
        tasks_from: fork
"""
# The same lines as upstream.py prints, and its command line.
STAND_IN = """\
import os, socket, sys, time
told = dict(zip(sys.argv[1::2], sys.argv[2::2]))
size, batch, steps = int(told["--devices"]), int(told["--batch"]), int(told["--steps"])
place = "node_rank=%s host=%s rank=0" % (os.environ["TASK_INDEX"], socket.gethostname())
lines = [
    "world_size=%d backend=mpi nodes=1 %s" % (size, place),
    "batch=%d accumulation=1 global_batch=%d length=%s" % (batch, batch * size, told["--length"]),
    "dtype=fp32 compression=fp16",
    "model=%s parameters=1" % told["--model"],
    "told=%s" % "|".join(sys.argv[1:]),
]
for line in lines:
    print("HOROVOD_BERT " + line)
for step in range(1, steps + 1):
    time.sleep(0.01)
    print("HOROVOD_BERT step=%d/%d loss=0.6931 time=%.6f" % (step, steps, time.time()), flush=True)
print("HOROVOD_BERT steps_done=%d loss=finite" % steps)
print("HOROVOD_BERT weights=agree end=true")
"""


def test_the_fork_is_checked_out_at_its_commit(tmp_path):
    origin = tmp_path / "origin"
    git = ["git", "-C", str(origin), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    origin.mkdir()
    (origin / "run_classifier.py").write_text("raise SystemExit('it must not be run')\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    (tmp_path / "play.yml").write_text(CHECK_OUT)
    play(
        str(tmp_path / "play.yml"),
        horovod_bert_home=str(tmp_path / "home"),
        horovod_bert_upstream_repo=f"file://{origin}",
        horovod_bert_upstream_commit=commit.strip(),
    )
    assert (tmp_path / "home/upstream/bert/run_classifier.py").read_text().startswith("raise")


@pytest.fixture(scope="module")
def installed(horovod_bert, tmp_path_factory):
    """Return the home of an installation whose trainer is the stand-in, and what plays are told."""
    home = tmp_path_factory.mktemp("home")
    code = home / "upstream/code"
    code.mkdir(parents=True)
    (code / "upstream.py").write_text(STAND_IN)
    (home / "upstream/data").mkdir()
    (home / "upstream/data/train.tsv").write_text("\n")
    record = {
        "schema": 1,
        "python": str(ROOT / ".venv/bin/python"),
        "operations": ["MPI", "Gloo"],
        "device": "cpu",
        "versions": "Horovod 0.19.5 with MPI, Gloo; TensorFlow 1.15.5; the fork at 98cde8bd6f95",
        "data": {"samples": 512, "length": 64, "seed": 2020},
    }
    (home / "upstream/install.json").write_text(json.dumps(record))
    return {
        "framework": "horovod_bert",
        "horovod_bert_source": "upstream",
        "horovod_bert_home": str(home),
        "scalebook_home": str(horovod_bert.home),
        "horovod_bert_samples": 512,
        "campaign_port": 24790,
        "repeats": 1,
    }


def test_a_run_starts_the_fork_with_its_case(installed, tmp_path):
    """Takes half a minute."""
    given = {"campaign": "fork", "campaign_results": str(tmp_path), "nodes": 1, "gpus": 1, "bsz": 8}
    play("bench.yml", **given, **installed)
    (path,) = tmp_path.glob("fork/runs/*/1/result.json")
    record = json.loads(path.read_text())
    assert (record["status"], record["reason"]) == ("ok", None)
    log = (path.parent / "NODE1.log").read_text()
    told = log.split("HOROVOD_BERT told=")[1].splitlines()[0].split("|")
    home = installed["horovod_bert_home"]
    assert told[:-1] == [
        *("--fork", f"{home}/upstream/bert", "--data", f"{home}/upstream/data"),
        *("--device", "cpu", "--devices", "1", "--model", "tiny", "--batch", "8", "--steps", "120"),
        *("--samples", "512", "--length", "64", "--learning-rate", "2e-05", "--checkpoint", "", "--scratch"),
    ]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"dtype": "fp16"}, "dtype=fp16: allowed are fp32, in which the fork of 2019 computes"),
        ({"horovod_bert_dropout": 0}, "horovod_bert_dropout=0: allowed are 0.1, that of the fork"),
        ({"horovod_bert_clip": 2}, "horovod_bert_clip=2: allowed are 1, that of the fork"),
        (
            {"horovod_bert_length": 32},
            "was made with .*64.*wanted is .*32.*provision.yml with the same values",
        ),
    ],
)
def test_what_the_fork_does_not_do_is_refused_before_anything_runs(installed, tmp_path, given, refusal):
    words = {
        "campaign": "fork",
        "campaign_results": str(tmp_path),
        "nodes": 1,
        "gpus": 1,
        **installed,
        **given,
    }
    with pytest.raises(AssertionError, match=refusal):
        play("bench.yml", **words)
    assert not list(tmp_path.glob("fork/runs"))
