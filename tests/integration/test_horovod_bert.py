# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_bert for real: Horovod's release is built against torch from its lock, and nodes train together."""

import json
import os
import subprocess

import pytest
from frameworks import record_of
from local_nodes import changed

pytestmark = pytest.mark.slow

# -- current -------------------------------------------------------------------------------------------------


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


# -- upstream: a repository of this test's, and a horovodrun that says what it is given ----------------------

STAND_IN = """\
#!/bin/sh
case "$1" in
  --check-build) printf 'Available Tensor Operations:\\n    [%s] NCCL\\n' "$NCCL" ;;
  *) pwd; printf '%s\\n' "$@" ;;
esac
"""


@pytest.fixture(scope="module")
def fork(horovod_bert, tmp_path_factory):
    """Have the sources of a repository got; return their directory."""
    top = tmp_path_factory.mktemp("fork")
    git = ["git", "-C", str(top / "origin"), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    (top / "origin").mkdir()
    (top / "origin/run_classifier.py").write_text("raise SystemExit('it must not be run')\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    horovod_bert.play(
        "provision.yml",
        horovod_bert_source="upstream",
        horovod_bert_home=str(top / "home"),
        horovod_bert_upstream_repo=f"file://{top}/origin",
        horovod_bert_upstream_commit=commit.strip(),
    )
    return top / "home/upstream"


def start(fork, nccl):
    """Run the command with a stand-in for horovodrun that has NCCL ("X") or not (" ")."""
    (fork / "horovodrun").write_text(STAND_IN)
    (fork / "horovodrun").chmod(0o755)
    place = {"BERT_BASE_DIR": "/bert", "DATA_DIR": "/data", "OUTPUT_DIR": "/out"}
    env = {**os.environ, **place, "PATH": f"{fork}:{os.environ['PATH']}", "NCCL": nccl}
    return subprocess.run([fork / "run_classifier.sh"], env=env, capture_output=True, text=True)


def test_the_fork_is_started_with_the_flags_of_its_users(fork):
    """Takes half a minute with the next one."""
    done = start(fork, "X")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        str(fork / "bert"),
        *("-np", "2", "-H", "localhost:2", "python3", "run_classifier.py"),
        *("--data_dir=/data", "--task_name=mrpc", "--vocab_file=/bert/vocab.txt"),
        *("--bert_config_file=/bert/bert_config.json", "--output_dir=/out", "--do_train=true"),
        *("--do_eval=true", "--init_checkpoint=/bert/bert_model.ckpt", "--max_seq_length=64"),
        *("--train_batch_size=64", "--learning_rate=2e-5", "--num_train_epochs=1.0", "--use_multi_gpu=true"),
    ]


def test_the_fork_is_not_started_by_a_horovod_without_nccl(fork):
    done = start(fork, " ")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Horovod without NCCL: horovodrun --check-build does not show [X] NCCL")
