# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_bert for real: installed from its lock, then four hosts under torchrun, which see the same."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def records(four_hosts, torch_bert, tmp_path_factory):
    """Measure one and four hosts, and two with split weights; return {nodes: record}. Takes four minutes."""
    results = tmp_path_factory.mktemp("torch_bert")
    torch_bert.provision_hosts()
    place = {"campaign_results": str(results), "bsz": 4, "repeats": 1}
    torch_bert.on_hosts("bench.yml", nodes="1,4", gpus=1, campaign="hosts", **place)
    split = {"torch_bert_parallel": "fsdp", "slots": 2, "campaign": "split"}
    torch_bert.on_hosts("bench.yml", nodes=2, gpus=2, **place, **split)
    found = (json.loads(path.read_text()) for path in results.glob("*/runs/*/1/result.json"))
    return {record["case"]["nodes"]: record for record in found}


@pytest.mark.cluster
@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_the_hosts_train_together(records, nodes):
    assert (records[nodes]["status"], records[nodes]["reason"]) == ("ok", None)


@pytest.mark.cluster
def test_four_hosts_see_each_step_of_four_ranks(records):
    assert records[4]["nodes"][0]["steps"] == list(range(1, 121))


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
@pytest.mark.parametrize("accumulation", ["1", "2"])
def test_split_weights_are_trained_as_whole_ones_are(torch_bert, optimizer, accumulation):
    place = torch_bert.home / "torch_bert"
    words = [
        place / "venv/bin/python",
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
sys.path.insert(0, {str(torch_bert.home / "torch_bert/code")!r})
import torch_end
torch_end.dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=0, world_size=1)
threading.Thread(target=time.sleep, args=(600,)).start()
atexit.register(print, "done at the end")
torch_end.leave()
"""
    words = [torch_bert.home / "torch_bert/venv/bin/python", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done at the end\n")
