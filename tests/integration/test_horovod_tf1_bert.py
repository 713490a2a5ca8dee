# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_tf1_bert: how the fork is checked out, and how a run starts it; a stand-in replaces the trainer.

The fork itself is on a public host that tests do not reach: its logs are in tests/data/horovod_tf1_bert.
"""

import json
import shutil

import pytest
import repositories
from local_nodes import DLPERF, HOME, ROOT, play, provision

pytestmark = pytest.mark.slow

CHECK_OUT = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: workload
        tasks_from: checkout
      vars:
        workload_home: "{{ horovod_tf1_bert_home }}"
        workload_checkout: "{{ lookup('scalebook_declaration', 'horovod_tf1_bert').install.checkout.into }}"
        workload_repo: "{{ horovod_tf1_bert_repo }}"
        workload_commit: "{{ horovod_tf1_bert_commit }}"
"""
# Prints the lines of run_classifier_rank.py, and its command line.
STAND_IN = """\
import os, socket, sys, time
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
size, batch, steps = int(given["--devices"]), int(given["--batch"]), int(given["--steps"])
place = "node_rank=%s host=%s rank=0" % (os.environ["TASK_INDEX"], socket.gethostname())
lines = [
    "horovod=0.19.5 built=MPI+Gloo tensorflow=1.15.5",
    "world_size=%d backend=mpi nodes=1 %s" % (size, place),
    "batch=%d accumulation=1 global_batch=%d length=%s" % (batch, batch * size, given["--length"]),
    "dtype=fp32 compression=fp16",
    "model=%s parameters=1" % given["--model"],
    "given=%s" % "|".join(sys.argv[1:]),
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
    (tmp_path / "play.yml").write_text(CHECK_OUT)
    fork = repositories.trainers(tmp_path / "sources")
    play(str(tmp_path / "play.yml"), horovod_tf1_bert_home=str(tmp_path / "home"), **fork)
    assert (tmp_path / "home/bert/run_classifier.py").read_text().startswith("raise")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the variables of an installation whose trainer is the stand-in."""
    provision("scripted")  # for mpirun
    home = tmp_path_factory.mktemp("home")
    code = home / "code"
    shutil.copytree(ROOT / "roles/workload/files/kit", code)
    shutil.copytree(ROOT / "roles/horovod_tf1_bert/files", code, dirs_exist_ok=True)
    (code / "run_classifier_rank.py").write_text(STAND_IN)
    (home / "data").mkdir()
    (home / "data/train.tsv").write_text("\n")
    (home / "data/made.json").write_text(json.dumps({"samples": 512, "length": 64, "seed": 2020}))
    record = {
        "schema": 3,
        "version": "",
        "libraries": "",
        "trainer": f"{home}/bert",
        "python": str(ROOT / ".venv/bin/python"),
        "operations": ["MPI", "Gloo"],
        "device": "cpu",
        "versions": "TensorFlow 1.15.5; Horovod 0.19.5 with MPI, Gloo",
        "commit": DLPERF["horovod_tf1_bert"]["commit"],
        "lock": "",  # an environment of the user's own
    }
    (home / "install.json").write_text(json.dumps(record))
    return {
        "workload": "horovod_tf1_bert",
        "horovod_tf1_bert_home": str(home),
        "openmpi_home": str(HOME / "openmpi"),
        "horovod_tf1_bert_samples": 512,
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
    given = log.split("HOROVOD_BERT given=")[1].splitlines()[0].split("|")
    home = installed["horovod_tf1_bert_home"]
    assert given[:-1] == [
        *("--fork", f"{home}/bert", "--data", f"{home}/data"),
        *("--data-dir", f"{home}/data", "--task", "mrpc", "--launcher", "mpirun"),
        *("--device", "cpu", "--devices", "1", "--model", "tiny", "--batch", "8", "--steps", "120"),
        *("--length", "64", "--learning-rate", "2e-05", "--checkpoint", "", "--scratch"),
    ]


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"dtype": "fp16"}, "dtype=fp16: allowed is fp32"),
        ({"accumulation": 2}, "horovod_tf1_bert has no gradient accumulation: leave out accumulation"),
        ({"stack_name": "modern"}, "stack_name=modern: it has no versions for horovod_tf1_bert"),
        (
            {"horovod_bert_length": 32},
            "horovod_bert_length=32: a variable of horovod_bert, which is not measured",
        ),
        (
            {"horovod_tf1_bert_length": 32},
            "was made with .*64.*required are .*32.*provision.yml with the same values",
        ),
    ],
)
def test_wrong_values_are_refused_before_anything_runs(installed, tmp_path, given, refusal):
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
