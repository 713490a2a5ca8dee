# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Five workloads with two stacks in one campaign on two hosts over ssh, and five on simulated nodes."""

import json
import subprocess
from pathlib import Path

import frameworks
import local_nodes
import pytest
import repositories
from local_nodes import changed
from model_operations import parameters_of_resnet

WORKLOADS = ["tf2_bert", "torch_bert", "hf_mlm", "deepspeed_bert", "horovod_bert"]
PYTHON = "transformers/venv/bin/python"
UNITS = {"torch_resnet50": "images", "torch_gpt2": "sequences", "hf_llama": "sequences"}
UNITS.update({"torch_wide_deep": "samples", "torch_insightface": "images"})
pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def campaign(two_hosts, tf2_bert, torch_bert, hf_mlm, deepspeed_bert, horovod_bert, tmp_path_factory):
    """Return the directory of the campaign on two hosts. Takes two minutes."""
    results = tmp_path_factory.mktemp("several")
    few = {"hf_mlm_train_samples": 256, "hf_mlm_eval_samples": 64, "bsz": 4}
    frameworks.bench(results, workload=",".join(WORKLOADS), nodes=2, **few)
    return results / "test"


@pytest.fixture(scope="module")
def campaign_here(torch_resnet50, torch_gpt2, hf_llama, torch_wide_deep, torch_insightface, tmp_path_factory):
    """Return the directory of a campaign on two simulated nodes, with images in files. Takes a minute."""
    results = tmp_path_factory.mktemp("here")
    code = frameworks.HOME / "torch_resnet50/code"
    make = [frameworks.HOME / PYTHON, code / "make_image_folder.py", results / "images", "24", "10"]
    subprocess.run(make, check=True)
    few = {"torch_resnet50_image_size": 32, "torch_gpt2_seq_length": 64, "bsz": 4, "campaign_port": 24860}
    few.update({"hf_llama_seq_length": 32, "hf_llama_lora_rank": 8})
    few.update({"torch_insightface_image_size": 32, "torch_insightface_classes": 4000})
    few["torch_resnet50_data"] = str(results / "images")
    frameworks.bench(results, on_hosts=False, workload=",".join(UNITS), nodes=2, **few)
    return results / "test"


def records_of(campaign):
    """Return {workload: record}."""
    found = [json.loads(path.read_text()) for path in campaign.glob("runs/*/1/result.json")]
    return {record["case"]["workload"]: record for record in found}


@pytest.fixture(scope="module")
def records(campaign):
    return records_of(campaign)


def test_provisioning_this_machine_again_changes_nothing(frameworks_here):
    assert changed(frameworks_here) == []


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_workload_is_measured_on_two_hosts(records, workload):
    assert (records[workload]["status"], records[workload]["reason"]) == ("ok", None)


@pytest.mark.parametrize(
    ("workload", "first"),
    [("torch_bert", 1), ("deepspeed_bert", 3), ("horovod_bert", 1)],
)
def test_every_step_of_two_hosts_is_read(records, workload, first):
    assert records[workload]["nodes"][0]["steps"] == list(range(first, 121))


def test_pdsh_starts_the_ranks_of_deepspeed(campaign):
    """Its launcher, which frameworks.VARIABLES name, puts the address of a host before its lines."""
    (folder,) = campaign.glob("runs/deepspeed_bert-*/1")
    world = f"{frameworks.NODES.net}.2: DEEPSPEED_BERT world_size=2 nodes=2 backend=gloo"
    assert world in (folder / "NODE1.log").read_text()


def test_one_report_has_the_rows_of_all(campaign):
    results = json.loads((campaign / "report/results.json").read_text())
    assert {row["workload"] for row in results["rows"]} == set(WORKLOADS)


@pytest.mark.parametrize("workload", UNITS)
def test_images_sequences_and_samples_are_measured_on_two_simulated_nodes(campaign_here, workload):
    record = records_of(campaign_here)[workload]
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["steps"] == list(range(1, 121))


def test_images_in_files_are_seen_in_the_record_and_the_provenance(campaign_here):
    record = records_of(campaign_here)["torch_resnet50"]
    assert [node["shown"]["data"] for node in record["nodes"]] == [["files loader=pillow"]] * 2
    provenance = json.loads((campaign_here / "provenance.json").read_text())
    nodes = provenance["workloads"]["torch_resnet50"]
    assert nodes["NODE1"]["data"].startswith("24 images in 10 classes, sha256 ")
    assert (nodes["NODE1"]["loader"].split()[0], nodes["NODE1"]["features"]) == ("pillow", "")


@pytest.mark.parametrize("model", ["tiny", "resnet50"])
def test_without_files_torch_resnet50_trains_its_models_on_invented_images(torch_resnet50, model):
    words = f"--device cpu --model {model} --dtype fp32 --batch 2 --steps 3 --image-size 32".split()
    launcher = [frameworks.HOME / PYTHON, "-m", "torch.distributed.run", "--standalone"]
    trainer = [*launcher, frameworks.HOME / "torch_resnet50/code/train.py", *words]
    done = subprocess.run(trainer, capture_output=True, text=True, timeout=120)
    assert " data=synthetic" in done.stdout
    assert f" model={model} parameters={parameters_of_resnet(model, 1000)} " in done.stdout
    assert done.stdout.endswith("TORCH_RESNET50 weights=agree end=true\n")


def test_main_py_of_pytorch_examples_trains_one_model_on_two_nodes(torch_gpt2, tmp_path):
    """A stand-in of it, with real torch and torchvision, for more steps than an epoch has."""
    given = {
        "workload": "torch_examples_resnet50",
        "torch_examples_resnet50_images": 8,
        **repositories.pytorch_examples(tmp_path),
    }
    with local_nodes.turn(frameworks.HOME):
        local_nodes.play("provision.yml", **frameworks.VARIABLES, **given)
    few = {"bsz": 1, "warmup": 2, "window": 4, "nodes": 2, "campaign_port": 24880}
    frameworks.bench(tmp_path, on_hosts=False, **given, **few)
    record, _ = frameworks.record_of(tmp_path)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert [node["shown"]["data"] for node in record["nodes"]] == [["files"]] * 2


def test_each_workload_is_reported_in_its_unit(campaign_here):
    results = json.loads((campaign_here / "report/results.json").read_text())
    assert {row["workload"]: row["unit"] for row in results["rows"]} == UNITS


def test_a_step_that_overflows_in_one_part_of_a_split_model_is_left_out_by_all(torch_gpt2):
    place = torch_gpt2 / "torch_gpt2/code"
    program = Path(__file__).with_name("train_overflowing.py")
    words = [torch_gpt2 / "pytorch/venv/bin/python", "-m", "torch.distributed.run", "--standalone"]
    words += ["--nproc_per_node", "2", program, place, "--tensor-parallel", "2", "--dtype", "fp16"]
    words += ["--device", "cpu", "--model", "tiny", "--batch", "4", "--seq-length", "64", "--steps", "4"]
    done = subprocess.run([*words, "--warmup", "1"], capture_output=True, text=True, timeout=120)
    assert "weights=agree" in done.stdout, done.stderr


def test_torchtitan_trains_in_fp8_on_two_simulated_nodes(torchtitan_llama, tmp_path):
    """Emulated, as the hosts have no GPU; the weights are gathered in FP8."""
    few = {"warmup": 2, "window": 4, "bsz": 1, "torchtitan_llama_seq_length": 64, "campaign_port": 24900}
    given = {"workload": "torchtitan_llama", "dtype": "fp8", "force": True, "nodes": 2}
    frameworks.bench(tmp_path, on_hosts=False, **given, **few)
    record, _ = frameworks.record_of(tmp_path)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["steps"] == list(range(1, 7))


def test_the_report_has_the_row_of_the_table_that_hf_mlm_publishes(campaign):
    text = (campaign / "report/report.md").read_text().replace("\\", "")
    assert "Metrics reported by hf_mlm" in text
    assert "CPU_2x1cpu_4" in text
