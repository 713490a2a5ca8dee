# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""bing_bert: how its sources are checked out and patched, and how bench.yml runs them.

The runs use a stand-in for DeepSpeed 1afca8f, on today's torch: the sources of 2020 are on GitHub only.
Genuine logs are read in tests/unit/workloads/test_bing_bert.py.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import repositories
from local_nodes import DLPERF, ROOT, changed, play
from repositories import STAND_IN, repository

pytestmark = pytest.mark.slow

FILES = [ROOT / "roles" / name / "files" for name in ("bing_bert", "deepspeed", "deepspeed2020")]
KIT = ROOT / "roles/workload/files/kit"

# -- sources: repositories of this test, with the lines that are patched -------------------------------------

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {stack: {}, workload_name: bing_bert}
  tasks:
    - ansible.builtin.include_role: {name: workload, tasks_from: variables}
    - ansible.builtin.include_role: {name: workload, tasks_from: checkout}
      vars:
        workload_repo: "{{ bing_bert_repo }}"
        workload_commit: "{{ bing_bert_commit }}"
        workload_checkout: DeepSpeed
        workload_source: "{{ bing_bert_commit }} {{ bing_bert_examples_commit }}"
        workload_submodules: [[bing_bert_examples_, DeepSpeedExamples]]
    - ansible.builtin.include_role: {name: deepspeed2020, tasks_from: install}
"""


@pytest.fixture
def sources(tmp_path):
    """Return a function that checks out the sources, and the directory that they go to."""
    variables = {"bing_bert_home": str(tmp_path / "home"), **repositories.bing_bert(tmp_path / "sources")}
    (tmp_path / "play.yml").write_text(PLAY)

    def get():
        return changed(play(str(tmp_path / "play.yml"), "-v", **variables))

    return get, tmp_path / "home"


def test_sources_that_are_there_are_left_as_they_are(sources):
    get, _ = sources
    assert get() != []
    assert get() == []


def test_a_vocabulary_stays_when_the_sources_are_checked_out_again(sources):
    get, home = sources
    own = home / "vocabulary/bert-base-uncased-vocab.txt"
    own.parent.mkdir(parents=True)
    own.write_text("[PAD]\n")
    get()
    assert own.read_text() == "[PAD]\n"


# -- apex: a stand-in's setup.py, which makes its wheel without a compiler ------------------------------

SETUP = """\
import os, sys, zipfile
assert sys.argv[1:] == ["--cpp_ext", "--cuda_ext", "bdist_wheel"], sys.argv
if not os.path.isdir(os.environ["CUDA_HOME"]):
    sys.exit("nvcc: not found below " + os.environ["CUDA_HOME"])
os.mkdir("dist")
with zipfile.ZipFile("dist/apex-0.1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("apex/__init__.py", "word = 'built'\\n")
    wheel.writestr("apex-0.1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: apex\\nVersion: 0.1\\n")
    about = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    wheel.writestr("apex-0.1.dist-info/WHEEL", about)
    wheel.writestr("apex-0.1.dist-info/RECORD", "")
"""


@pytest.fixture
def apex(tmp_path):
    """Return a function that builds apex for an environment, and the environment's Python."""
    url, commit = repository(tmp_path / "apex", {"setup.py": SETUP})
    venv = tmp_path / "home/venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    variables = {"bing_bert_home": str(tmp_path / "home"), **repositories.bing_bert(tmp_path / "sources")}
    variables |= {"bing_bert_apex_repo": url, "bing_bert_apex_commit": commit}
    variables |= {"workload_build": "gpu", "workload_python": str(venv / "bin/python")}
    (tmp_path / "play.yml").write_text(PLAY)
    return lambda cuda: play(
        str(tmp_path / "play.yml"), "-v", cuda_home=str(cuda), **variables
    ), venv / "bin/python"


def test_apex_is_built_with_its_extensions_and_installed_once(apex, tmp_path):
    build, python = apex
    assert changed(build(tmp_path)) != []
    found = subprocess.run([python, "-c", "import apex; print(apex.word)"], capture_output=True, text=True)
    assert found.stdout == "built\n"
    assert changed(build(tmp_path)) == []


def test_an_apex_that_cannot_be_built_is_refused_with_a_fix(apex, tmp_path):
    build, _ = apex
    with pytest.raises(AssertionError, match="could not build apex.*nvcc: not found.*bing_bert_apex=false"):
        build(tmp_path / "none")


# -- runs --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(deepspeed_bert, tmp_path_factory):
    """Return the home of an installation of the stand-in, and the variables of its plays."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(STAND_IN, home / "DeepSpeed")
    for folder in [*FILES, KIT]:
        shutil.copytree(folder, home / "code", dirs_exist_ok=True)
    for name in ("data/1024/training_000.hdf5", "vocabulary/bert-base-uncased-vocab.txt"):
        (home / name).parent.mkdir(parents=True)
        (home / name).touch()
    values = {"files": 8, "samples": 4096, "length": 128, "predictions": 20, "seed": 2020}
    stamp = {"values": values, "source": [1], "samples": 4096, "identity": "stand-in"}
    (home / "data/made.json").write_text(json.dumps(stamp))
    python, commits = str(deepspeed_bert / "deepspeed_bert/venv/bin/python"), DLPERF["bing_bert"]
    record = {"schema": 3, "python": python, "device": "cpu", "versions": "DeepSpeed 0.3.0+stand-in"}
    record |= {"version": "", "lock": "", "commit": commits["commit"]}  # an environment of the user's own
    record |= {"examples_commit": commits["examples_commit"], "pythonpath": f"{home}/code:{home}/DeepSpeed"}
    record |= {"trainer": f"{home}/DeepSpeed/DeepSpeedExamples/bing_bert"}
    (home / "install.json").write_text(json.dumps(record))
    return home, {
        "workload": "bing_bert",
        "bing_bert_home": str(home),
        "bing_bert_samples": 4096,
        "scalebook_home": str(deepspeed_bert),
        "device": "cpu",
        "campaign": "ds2020",
        "campaign_port": 24590,
        "slots": 2,
        "repeats": 1,
    }


# Enough steps for what a run is refused for at its end.
FEW = {"warmup": 5, "window": 25}


def measured(results, variables, ok=True, **case):
    """Run bench.yml; return the one run's record and the first node's log."""
    if ok:
        play("bench.yml", campaign_results=str(results), **variables, **case)
    else:
        with pytest.raises(AssertionError):
            play("bench.yml", campaign_results=str(results), **variables, **case)
    (path,) = results.glob("ds2020/runs/*/1/result.json")
    return json.loads(path.read_text()), (path.parent / "NODE1.log").read_text()


def test_two_ranks_on_each_of_two_nodes_train_one_model(installed, tmp_path):
    """Takes half a minute."""
    _, variables = installed
    record, log = measured(tmp_path, variables, nodes=2, gpus=2, bsz=4)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["steps"] == list(range(3, 121))
    assert "DEEPSPEED_BERT world_size=4 nodes=2 backend=gloo" in log


@pytest.fixture
def changing(installed):
    """Return a function that changes a file of the stand-in for one test."""
    home, _ = installed
    kept = {}

    def change(name, before, after):
        path = home / "DeepSpeed" / name
        kept[path] = text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))

    yield change
    for path, text in kept.items():
        path.write_text(text)


def test_a_run_whose_gradients_were_not_summed_is_refused(installed, changing, tmp_path):
    """Takes half a minute."""
    changing("deepspeed/runtime/engine.py", "dist.all_reduce(tensor)", "pass")
    record, log = measured(tmp_path, installed[1], ok=False, nodes=2, gpus=1, bsz=4, **FEW)
    assert record["status"] != "ok"
    assert "the ranks have different weights: the gradients were not summed" in log


def test_a_loss_that_is_not_finite_is_refused(installed, changing, tmp_path):
    """Takes half a minute."""
    trainer = "DeepSpeedExamples/bing_bert/deepspeed_train.py"
    changing(trainer, "torch.rand(batch, 4)", "torch.rand(batch, 4) / 0")
    record, log = measured(tmp_path, installed[1], ok=False, nodes=1, gpus=1, bsz=4, **FEW)
    assert record["status"] != "ok"
    assert "rank 0 had losses that are not finite" in log


def test_a_run_that_needs_more_samples_than_a_file_has_is_refused(installed, tmp_path):
    """Takes half a minute."""
    record, log = measured(tmp_path, installed[1], ok=False, nodes=1, gpus=1, bsz=64)
    assert record["status"] != "ok"
    assert "with bing_bert_samples=7680 or more" in log


@pytest.mark.parametrize(
    ("given", "refusals"),
    [
        (
            {
                "dtype": "bf16",
                "stack_name": "modern",
                "bing_bert_workers": "four",
                "deepspeed_bert_seed": 1,
            },
            [
                "dtype=bf16: allowed are fp32, fp16",
                "stack_name=modern: it has no versions for bing_bert",
                "bing_bert_workers=four: allowed are whole numbers",
                "deepspeed_bert_seed=1: a variable of deepspeed_bert, which is not measured",
            ],
        ),
        (
            {"bing_bert_launcher": "openmpi", "bing_bert_summed": "never"},
            [
                "bing_bert_launcher=openmpi: allowed are job, pdsh",
                "bing_bert_summed=never: allowed are each, dlperf",
            ],
        ),
        ({"accumulation": 4}, ["bing_bert has no gradient accumulation: leave out accumulation"]),
        (
            {"bing_bert_seq_length": 64},
            ["was made with .*128.*required is .*64.*provision.yml with the\\s+same values"],
        ),
    ],
    ids=["parameters", "variables", "accumulation", "data"],
)
def test_wrong_values_are_refused_before_anything_runs(installed, tmp_path, given, refusals):
    words = {"campaign_results": str(tmp_path), "nodes": 1, "gpus": 1, **installed[1], **given}
    with pytest.raises(AssertionError) as error:
        play("bench.yml", **words)
    assert [refusal for refusal in refusals if not re.search(refusal, str(error.value))] == []
    assert not list(tmp_path.glob("ds2020/runs"))


# -- replacements in an environment of today -----------------------------------------------------------


def supplied(deepspeed_bert, code, *before):
    env = {**os.environ, "PYTHONPATH": ":".join([*map(str, before), *map(str, FILES)])}
    argv = [deepspeed_bert / "deepspeed_bert/venv/bin/python", "-c", code]
    return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout.strip()


def test_the_module_that_torch_removed_is_replaced(deepspeed_bert):
    assert supplied(deepspeed_bert, "from torch._six import inf; print(inf)") == "inf"


def test_adamw_replaces_apex(deepspeed_bert):
    code = (
        "import apex, torch; p = torch.nn.Parameter(torch.ones(1)); p.grad = torch.ones(1);"
        "o = apex.optimizers.FusedAdam([{'params': [p]}], lr=0.5, bias_correction=False, weight_decay=0);"
        "o.step(); print(isinstance(o, torch.optim.AdamW), round(p.item(), 6))"
    )
    assert supplied(deepspeed_bert, code) == "True 0.5"


def test_an_installed_apex_is_not_replaced(deepspeed_bert, tmp_path):
    (tmp_path / "apex").mkdir()
    (tmp_path / "apex/__init__.py").write_text("word = 'its own'\n")
    assert supplied(deepspeed_bert, "import apex; print(apex.word)", tmp_path) == "its own"
