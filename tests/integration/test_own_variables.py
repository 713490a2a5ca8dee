# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads that share an environment: what -e says for one of them, the others do not see.

The interpreters are stand-ins: they answer as one with the framework would, and keep what they are asked.
"""

import json
import os
import subprocess
import sys

import pytest
from local_nodes import ROOT

pytestmark = pytest.mark.slow

# Answers the probe of versions, and the request for a data set, which is its second argument.
INTERPRETER = """#!/bin/sh
case $1 in
*/probe.py) echo '{"versions": "torch 2", "gpus": 0, "deepspeed": "1"}' ;;
*/make_bert_data.py) echo "$2" >"$0.asked"; echo '{"changed": false, "manifest": {}}' ;;
esac
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: workload, tasks_from: "{{ part }}", public: true}
      loop: "{{ workloads }}"
      loop_control: {loop_var: one}
      vars: {workload_name: "{{ one }}", stack: "{{ lookup('scalebook_stack', one, name='') }}"}
"""


def play(folder, part, workloads, fails=False, **variables):
    """Run a part of the roles of these workloads on this machine, below `folder`; return what it printed."""
    (folder / "play.yml").write_text(PLAY)
    given = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "scalebook_home": str(folder),
        "part": part,
        "workloads": workloads,
        **variables,
    }
    done = subprocess.run(
        ["ansible-playbook", "-i", "NODE1,", folder / "play.yml", "-e", json.dumps(given)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, timeout=300,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
    )  # fmt: skip
    assert (done.returncode != 0) == fails, done.stdout[-4000:] + done.stderr
    return " ".join(done.stdout.split())


TORCH = ["torch_bert", "deepspeed_bert", "torch_resnet50", "torch_gpt2"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install four workloads with torch, each with an interpreter of its own, torch_bert elsewhere."""
    folder = tmp_path_factory.mktemp("installed")
    pythons = {name: folder / f"python-{name}" for name in TORCH}
    for python in pythons.values():
        python.write_text(INTERPRETER)
        python.chmod(0o755)
    own = {"home": str(folder / "elsewhere"), "data": str(folder / "data"), "seq_length": 512, "samples": 64}
    given = {f"torch_bert_{name}": value for name, value in own.items()}
    given |= {f"{name}_python": str(python) for name, python in pythons.items()}
    play(folder, "install", TORCH, **given)
    return folder


@pytest.mark.parametrize("workload", TORCH)
def test_each_workload_records_its_own_interpreter_in_its_own_directory(installed, workload):
    home = installed / ("elsewhere" if workload == "torch_bert" else workload)
    record = json.loads((home / "install.json").read_text())
    assert record["python"] == str(installed / f"python-{workload}")


@pytest.mark.parametrize(
    ("workload", "data", "length", "samples"),
    [("torch_bert", "data", 512, 64), ("deepspeed_bert", "deepspeed_bert/data", 128, 32768)],
)
def test_each_workload_asks_for_its_own_data_set(installed, workload, data, length, samples):
    asked = json.loads((installed / f"python-{workload}.asked").read_text())
    assert asked["data"] == str(installed / data)
    assert (asked["seq_length"], asked["samples"]) == (length, samples)


def test_the_versions_of_deepspeed_are_those_of_its_own_interpreter(installed):
    assert json.loads((installed / "deepspeed_bert/install.json").read_text())["deepspeed"] == "1"


# A workload with the same framework, and the version that the record must have.
OTHERS = {
    "oneflow_bert": ("oneflow_resnet50", "0.9.0"),
    "oneflow_wide_deep": ("oneflow_resnet50", "0.9.0"),
    "paddle_bert": ("paddle_resnet50", "2.6.2"),
    "horovod_bert": ("torch_bert", ""),
}


def test_each_workload_reads_its_own_record(tmp_path):
    """-e gives another directory and commit to a workload with the same framework."""
    # An empty lock is that of an environment of the user's own.
    record = {"schema": 3, "device": "cpu", "lock": "", "commit": "1" * 40}
    record |= dict.fromkeys(("python", "libraries", "trainer", "versions"), "")
    given = {}
    for workload, (other, version) in OTHERS.items():
        (tmp_path / workload).mkdir()
        (tmp_path / workload / "install.json").write_text(json.dumps({**record, "version": version}))
        given |= {
            f"{workload}_commit": record["commit"],
            f"{other}_commit": "2" * 40,
            f"{other}_home": "/nowhere",
        }
    play(tmp_path, "prepare", list(OTHERS), **given)


# Answers the probes of versions, and runs everything else.
PYTHON = f"""#!/bin/sh
case $1 in
*/probe.py) echo '{{"versions": "torch 2", "gpus": 0}}' ;;
*) exec {sys.executable} "$@" ;;
esac
"""
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Install two workloads that train on a corpus; return the directory and the variables."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "python").write_text(PYTHON)
    (folder / "python").chmod(0o755)
    (folder / "text").mkdir()
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, "a", "b", "."]) + "\n")
    (folder / "text/one.txt").write_text(("a b a b .\n" * 40 + "\n") * 32)
    given = {f"{name}_python": str(folder / "python") for name in TEXTS}
    given |= {f"{name}_samples": 64 for name in TEXTS}
    given["corpus"] = str(folder)
    play(folder, "install", TEXTS, **given)
    return folder, given


TEXTS = ["deepspeed_bert", "torch_bert"]


def test_workloads_train_on_the_same_files_of_a_corpus_and_a_second_run_changes_nothing(corpus):
    folder, given = corpus
    paths = [folder / name / "data/manifest.json" for name in TEXTS]
    first, other = (json.loads(path.read_text()) for path in paths)
    assert {name.split("/")[0] for name in first["files"]} == {"1024", "30522"}
    assert first["identity"] == other["identity"]
    assert first["parameters"]["own"] == other["parameters"]["own"]
    assert len(list(folder.glob("texts/*/hdf5/training_*.hdf5"))) == 8
    before = [path.stat().st_mtime_ns for path in paths]
    play(folder, "prepare", TEXTS, **given)
    assert [path.stat().st_mtime_ns for path in paths] == before


def test_a_campaign_with_another_seed_makes_nothing_and_says_what_to_run(corpus):
    folder, given = corpus
    said = play(folder, "prepare", ["torch_bert"], fails=True, **given, torch_bert_seed=1)
    assert "no complete samples of the texts" in said
    assert "run ansible-playbook provision.yml with the same values first" in said
    assert len(list(folder.glob("texts/*"))) == 1
