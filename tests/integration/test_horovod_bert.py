# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_bert for real: Horovod's release is built against torch from its lock, and nodes train together.

They share an installation that stays below .scalebook. The build, by far the longest part, is without
optimization and with MPI alone; its wheel is kept, and built anew only where what it is made from changed.
"""

import json
import os
import subprocess
from functools import partial

import local_nodes
import pytest
from container_nodes import Nodes, shown
from local_nodes import ROOT, changed, provision_twice
from nets import free_net

HOME = ROOT / ".scalebook/test-horovod_bert"
NODES = Nodes(free_net("10.11.20", "10.12.20", "10.13.20", "10.14.20"))
BUILD = {"horovod_operations": ["MPI"], "horovod_environment": {"HOROVOD_DEBUG": "1"}}

pytestmark = pytest.mark.slow


play = partial(local_nodes.play, scalebook_home=str(HOME), framework="horovod_bert", device="cpu")
on_nodes = partial(NODES.playbook, home=HOME, framework="horovod_bert", device="cpu")


# -- current -------------------------------------------------------------------------------------------------


def provision():
    return play("provision.yml", horovod_bert_device="cpu", **BUILD)


@pytest.fixture(scope="module")
def installed():
    """Install what is not there yet; what provisioning says that finds all in place."""
    return provision_twice(provision)


def test_provisioning_again_changes_nothing(installed):
    """Takes half a minute, minutes more the first time."""
    assert changed(installed) == []


def test_nodes_and_the_devices_of_a_node_train_together(installed, tmp_path):
    """Takes a minute: one process, two on two nodes, two on one node."""
    place = {"campaign_results": str(tmp_path), "campaign_port": 24760, "bsz": 4, "repeats": 1}
    play("bench.yml", campaign="nodes", nodes="1,2", gpus=1, **place)
    play("bench.yml", campaign="devices", nodes=1, gpus=2, slots=2, dtype="fp16", **place)
    records = [json.loads(path.read_text()) for path in tmp_path.glob("*/runs/*/1/result.json")]
    assert {(record["case"]["label"], record["status"], record["reason"]) for record in records} == {
        ("1n1g", "ok", None),
        ("2n1g", "ok", None),
        ("1n2g", "ok", None),
    }
    steps = [node["steps"] for record in records for node in record["nodes"]]
    assert steps == [list(range(1, 121))] * 4


@pytest.fixture(scope="module")
def hosts(installed):
    """Four hosts that have what is installed here."""
    if os.geteuid():
        pytest.skip("containers with networks of their own need root")
    NODES.up(*shown(HOME / "openmpi", HOME / "torch_bert", HOME / "horovod/pytorch"))
    on_nodes("provision.yml", horovod_bert_device="cpu", **BUILD)
    yield
    NODES.down()


@pytest.mark.cluster
def test_four_hosts_train_together(hosts, tmp_path):
    """Takes two minutes."""
    on_nodes("bench.yml", campaign="hosts", campaign_results=str(tmp_path), nodes=4, gpus=1, bsz=4, repeats=1)
    (record,) = [json.loads(path.read_text()) for path in tmp_path.glob("*/runs/*/1/result.json")]
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
def fork(tmp_path_factory):
    """Have the sources of a repository got; return their directory."""
    top = tmp_path_factory.mktemp("fork")
    git = ["git", "-C", str(top / "origin"), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    (top / "origin").mkdir()
    (top / "origin/run_classifier.py").write_text("raise SystemExit('it must not be run')\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    play(
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
