# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_bert for real: installed from its lock, then two hosts under torchrun with split weights."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import frameworks
import pytest
from cases import case
from in_english import run_record
from local_nodes import ROOT
from node_logs import JOB
from role_files import declaration

pytestmark = pytest.mark.slow


@pytest.mark.cluster
def test_two_hosts_train_together_with_split_weights(two_hosts, torch_bert, tmp_path):
    """Takes half a minute."""
    split = {"nodes": 2, "gpus": 2, "slots": 2, "bsz": 4, "torch_bert_parallel": "fsdp"}
    frameworks.bench(tmp_path, workload="torch_bert", **split)
    record, _ = frameworks.record_of(tmp_path)
    assert (record["status"], record["reason"]) == ("ok", None)


def test_a_rank_that_stays_away_is_named_with_what_the_others_wait_in(torch_bert, tmp_path):
    """Takes a quarter of a minute: four ranks with gloo."""
    words = [torch_bert / "pytorch/venv/bin/python", "-m", "torch.distributed.run", "--standalone"]
    words += ["--nproc-per-node", "4", Path(__file__).with_name("train_hanging.py")]
    script = "export PYTHONFAULTHANDLER=1 OMP_NUM_THREADS=1\nexec " + shlex.join(map(str, words)) + "\n"
    env = {"NODE": "NODE1", "TASK_INDEX": 0, "PORT": 0, "SCALEBOOK_RUN": "hang"}
    limits = {"stall": 6, "literal": "step ", "pattern": r"step (?P<step>\d+)", "warmup": 1, "last": 9}
    for name, text in {
        "run.sh": script,
        "job.env": "".join(f"{key}={value}\n" for key, value in env.items()),
        "watch.json": json.dumps(limits),
    }.items():
        (tmp_path / name).write_text(text)
    run_node = ROOT / "roles/campaign/files/run_node.py"
    environment = {**os.environ, "OMPI_COMM_WORLD_RANK": "0"}
    subprocess.run([sys.executable, run_node, f"NODE1={tmp_path}"], env=environment, timeout=300)
    record = run_record(tmp_path, case(1, 4), 1, declaration("torch_bert"), ["NODE1"], {**JOB, "rc": 1})
    assert record["status"] == "hung"
    assert "; rank 2 is in stay_away (train_hanging.py:" in record["reason"]
    assert "; rank 0, 1, 3 is in barrier (train_hanging.py:" in record["reason"]


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
@pytest.mark.parametrize("accumulation", ["1", "2"])
def test_split_weights_are_trained_as_whole_ones_are(torch_bert, optimizer, accumulation):
    place = torch_bert / "torch_bert"
    words = [
        torch_bert / "pytorch/venv/bin/python",
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
    ]
    words += [
        Path(__file__).with_name("train_twice.py"),
        place / "code",
        place / "data",
        optimizer,
        accumulation,
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-5


def test_a_trainer_leaves_though_a_thread_of_a_library_is_still_there(torch_bert, tmp_path):
    """Gloo's threads made the interpreter's own end an abort, once in thirty runs on a loaded machine."""
    program = f"""
import atexit, sys, threading, time
sys.path.insert(0, {str(torch_bert / "torch_bert/code")!r})
import torch_end
torch_end.dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=0, world_size=1)
threading.Thread(target=time.sleep, args=(600,)).start()
atexit.register(print, "done at the end")
torch_end.leave()
"""
    words = [torch_bert / "pytorch/venv/bin/python", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done at the end\n")


def test_steps_are_profiled_in_an_environment_of_ones_own(torch_bert, tmp_path):
    """One that sees the system's packages, whose .pth files Python reads twice."""
    installed, own = torch_bert / "pytorch/venv", tmp_path / "venv"
    words = [installed / "bin/python", "-m", "venv", "--system-site-packages", "--without-pip", own]
    subprocess.run(words, check=True)
    [framework], [packages] = ([*place.glob("lib/python3*/site-packages")] for place in (installed, own))
    (packages / "framework.pth").write_text(f"{framework}\n")
    trainer = tmp_path / "train.py"
    trainer.write_text("""
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
print("trained")
""")
    python, out = own / "bin/python", tmp_path / "out"
    words = [ROOT / "tests/bench/torch_profile", "--python", python, "--out", out, "--after", "5"]
    done = subprocess.run([*words, python, trainer], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "trained\n" in done.stdout
    assert re.search(r"^\| matrix products \| [\d.]+ \| [1-9]", done.stdout, re.MULTILINE)
    assert [path.name for path in packages.glob("*.pth")] == ["framework.pth"]


@pytest.mark.parametrize("workload", ["torch_bert", "hf_mlm"])
def test_gradient_checkpointing_computes_layers_twice_and_the_same_losses(torch_bert, hf_mlm, workload):
    python, home = frameworks.HOME / frameworks.PARTS[workload][0] / "bin/python", frameworks.HOME / workload
    program = Path(__file__).with_name("train_checkpointed.py")
    words = [python, program, workload, home / "code"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (plain, once), (checkpointed, twice) = json.loads(done.stdout)
    assert checkpointed == plain
    assert (once, twice) == (6, 12)


def test_hf_mlm_shows_the_precision_that_its_trainer_computes_in(hf_mlm, tmp_path):
    """Accelerate computes in fp32 where a device lacks bf16, whatever Trainer was asked for."""
    program = tmp_path / "show.py"
    program.write_text(f"""
import sys
sys.path.insert(0, {str(hf_mlm / "hf_mlm/code")!r})
import hf_trainer, train
trainer = train.trainer_of(train.arguments(), train.Watch(train.say))
asked = hf_trainer.precision(trainer)
trainer.accelerator.native_amp = False
print(asked, hf_trainer.precision(trainer))
""")
    given = {"device": "cpu", "model": "tiny", "dtype": "bf16", "compile": "false", "tf32": "false"}
    given.update({"batch": 2, "accumulation": 1, "steps": 4, "epochs": 1, "length": 16, "seed": 1})
    given.update({"train-samples": 8, "eval-samples": 4, "learning-rate": 0.001, "output": tmp_path})
    words = [hf_mlm / "transformers/venv/bin/python", "-m", "torch.distributed.run", "--standalone", program]
    words += [word for name, value in given.items() for word in (f"--{name}", str(value))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("bf16 fp32\n", 0), done.stderr
