# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""bing_bert: its logs, with genuine ones, the trainer's command line and data, and its launcher."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from in_english import log_record, run_record
from role_files import declaration, load, run

ROOT = Path(__file__).resolve().parents[3]
FRAMEWORK = ROOT / "roles/deepspeed2020/files"
KIT = ROOT / "roles/workload/files/kit"
LOGS = ROOT / "tests/data/bing_bert"
WORKLOAD = declaration("bing_bert")
STAND_IN = ROOT / "tests/stand_ins/bing_bert"

flags = load("bing_bert", "trainer_flags")
sizes = load("workload", "bert_sizes")
BASE = sizes.MODELS["base"]


def args(**other):
    values = {
        "local_rank": 0,
        "data": "/data",
        "vocabulary": "/words",
        "devices": 8,
        "model": "base",
        "dtype": "fp16",
        "batch": 64,
        "steps": 120,
        "summed": "each",
        "length": 128,
        "predictions": 20,
        "workers": 4,
        "learning_rate": 1e-4,
        "dropout": 0.1,
        "clip": 1.0,
        "seed": 42,
    }
    return SimpleNamespace(**{**values, **other})


# -- genuine logs --------------------------------------------------------------------------------------------


def case(**other):
    values = {
        "workload": "bing_bert",
        "model": "tiny",
        "dtype": "fp32",
        "xla": False,
        "bsz": 4,
        "nodes": 2,
        "gpus": 1,
        "devices": 2,
        "global_batch": 8,
        "accumulation": 1,
        "device": "cpu",
        "warmup": 20,
        "window": 100,
        "label": "2n1g",
        "name": "case",
    }
    return {**values, **other}


H200 = {"model": "base", "dtype": "fp16", "device": "gpu", "bsz": 64}
H200 |= {"nodes": 1, "gpus": 2, "devices": 2, "global_batch": 128}


def record(name, **other):
    return log_record(LOGS / name, case(**other), 1, WORKLOAD, name)


@pytest.mark.parametrize(
    ("name", "changes", "rate"), [("2n_pdsh.log", {}, 231.15), ("1n2g_h200_fp16.log", H200, 1889.02)]
)
def test_a_genuine_log_gives_the_rate_of_its_timestamps(name, changes, rate):
    read = record(name, **changes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize(
    ("name", "changes", "window", "dlperf"),
    [
        ("2n_pdsh.log", {}, 236.47427415158177, 225.24),
        ("1n2g_h200_fp16.log", H200, 1905.377131438964, 1997.40),
    ],
)
def test_running_means_give_the_rate_of_the_window_and_dlperf_averages_them(name, changes, window, dlperf):
    found = re.findall(r" 0/(\d+), SamplesPerSec=([\d.]+)", (LOGS / name).read_text())
    means = {int(step): float(mean) for step, mean in found}
    # extract_deepspeed_logs.py: numpy.mean(list[18:120]); the first line is that of step 3.
    assert list(means) == list(range(3, 121))
    assert round(sum(list(means.values())[18:120]) / 100, 2) == dlperf
    taken = {step: (step - 2) / mean for step, mean in means.items()}
    assert 100 / (taken[120] - taken[20]) == window
    read = record(name, **changes)
    assert measure(read, "printed")["rate"] == pytest.approx(window, rel=1e-12)
    assert measure(read, "printed")["second"]["time_source"] == "times"
    # DLPerf's number from what each step took: steps 3 to 20 count in all hundred values, step 120 in one.
    each = {step: taken[step] - taken.get(step - 1, 0.0) for step in taken}
    again = [(step - 2) / sum(each[n] for n in range(3, step + 1)) for step in range(21, 121)]
    assert round(sum(again) / 100, 2) == dlperf


def test_the_share_of_the_peak_is_read(tmp_path):
    shutil.copy(LOGS / "1n2g_h200_fp16.log", tmp_path / "NODE1.log")
    reported = run_record(tmp_path, case(**H200), 1, WORKLOAD, ["NODE1"], {"rc": 0})["self_reported"]
    assert (reported["peak_of"], reported["gflop_per_sample"]) == ("dense-fp16-NVIDIA-H200", "69.93")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("devices", {"devices": 4}),
        ("nodes", {"nodes": 2}),
        ("dtype", {"dtype": "fp32"}),
        ("global_batch", {"global_batch": 64}),
    ],
)
def test_a_log_that_contradicts_its_case_is_refused(name, wrong):
    read = record("1n2g_h200_fp16.log", **{**H200, **wrong})
    assert (read["status"], name in read["reason"]) == ("refused", True)


def test_a_dtype_that_deepspeed_of_2020_does_not_know_is_refused():
    with pytest.raises(ValueError, match="dtype=bf16: allowed are fp32, fp16"):
        plan({"dtype": "bf16"}, WORKLOAD, cluster(4), "bing_bert", "gpu")


def test_dlperfs_table_has_rows_of_this_workload():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    assert any(row.startswith(f"{WORKLOAD.dlperf.frameworks[0]},bert-base,") for row in rows)


# -- the trainer's command line ------------------------------------------------------------------------------


def test_gradients_are_summed_after_every_batch():
    config = flags.deepspeed(args())
    assert (config["train_batch_size"], config["gradient_accumulation_steps"]) == (512, 1)


@pytest.mark.parametrize(("devices", "every"), [(1, 1024), (8, 128), (16, 64), (32, 32), (2048, 1)])
def test_dlperf_summed_after_1024_batches_of_all_devices(devices, every):
    """Its train_batch_size is 1024 micro-batches: scripts/multi_node_train.sh."""
    config = flags.deepspeed(args(summed="dlperf", devices=devices))
    assert config["gradient_accumulation_steps"] == every


@pytest.mark.parametrize("devices", [1, 8, 32])
def test_the_batch_is_what_its_parts_make(devices):
    """DeepSpeed refuses any other."""
    config = flags.deepspeed(args(summed="dlperf", devices=devices))
    micro, every = config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]
    assert config["train_batch_size"] == micro * every * devices


def test_every_step_prints_its_line():
    assert flags.deepspeed(args())["steps_per_print"] == 1


@pytest.mark.parametrize(("dtype", "enabled"), [("fp32", False), ("fp16", True)])
def test_fp16_scales_its_loss_by_itself(dtype, enabled):
    assert flags.deepspeed(args(dtype=dtype))["fp16"] == {"enabled": enabled, "loss_scale": 0}


def test_the_flags_are_those_of_dlperf():
    words = flags.flags(args(), "/run")
    dlperf = "--cf=/run/config.json --max_seq_length=128 --print_steps=1 --lr_schedule=EP --lr_offset=10e-4"
    assert {*dlperf.split(), "--max_steps_per_epoch=120", "--use_nvidia_dataset"} <= set(words)


def test_a_run_ends_after_one_epoch_and_keeps_no_checkpoint():
    training = flags.model(args(), BASE)["mixed_seq_training"]
    assert (training["128"]["num_epochs"], "--ckpt_to_save=0" in flags.flags(args(), "/run")) == (1, True)


def test_bert_base_has_its_own_vocabulary_by_name():
    assert flags.model(args(), BASE)["bert_token_file"] == "bert-base-uncased"


def test_the_small_model_names_its_vocabulary_by_path():
    config = flags.model(args(model="tiny"), sizes.MODELS["tiny"])
    assert config["bert_token_file"] == "/words/bert-tiny-vocab.txt"


# -- data ----------------------------------------------------------------------------------------------------


def request(folder, samples=40, **other):
    values = {"files": 2, "samples": samples, "length": 32, "predictions": 5, "seed": 7}
    places = {"data": str(folder / "data"), "vocabulary": str(folder / "words"), "own": ""}
    return json.dumps({**places, "values": values, "make": True, "check": False, **other})


def make(folder, **other):
    done = run("bing_bert", "make_data.py", request(folder, **other))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    assert make(folder)["changed"]
    return folder


@pytest.fixture
def arrays(made):
    with h5py.File(made / "data/30522/training_001.hdf5") as file:
        return {name: file[name][:] for name in file}


def test_a_file_has_the_six_arrays_of_nvidias_layout(arrays):
    assert {name: array.shape for name, array in arrays.items()} == {
        "input_ids": (40, 32),
        "input_mask": (40, 32),
        "segment_ids": (40, 32),
        "masked_lm_positions": (40, 5),
        "masked_lm_ids": (40, 5),
        "next_sentence_labels": (40,),
    }


def test_no_masked_place_is_0_which_ends_the_list(arrays):
    assert arrays["masked_lm_positions"].min() > 0


def test_masked_places_are_distinct_and_hold_the_mask(arrays):
    rows = np.arange(40)[:, None]
    assert (arrays["input_ids"][rows, arrays["masked_lm_positions"]] == 4).all()
    assert {len(set(row)) for row in arrays["masked_lm_positions"].tolist()} == {5}


def test_words_are_in_the_vocabulary(made, arrays):
    lines = (made / "words/bert-base-uncased-vocab.txt").read_text().splitlines()
    assert (len(lines), len(set(lines))) == (30522, 30522)
    assert arrays["masked_lm_ids"].min() >= 5 and arrays["masked_lm_ids"].max() < 30522


def test_files_differ_from_one_another(made, arrays):
    with h5py.File(made / "data/30522/training_000.hdf5") as file:
        assert (file["input_ids"][:] != arrays["input_ids"]).any()


def test_the_same_arguments_give_the_same_bytes(made, tmp_path):
    make(tmp_path)
    name = "data/1024/training_000.hdf5"
    assert (tmp_path / name).read_bytes() == (made / name).read_bytes()


def test_existing_data_is_not_made_again(made):
    assert not make(made)["changed"]


def test_other_samples_replace_the_existing_ones(tmp_path):
    make(tmp_path)
    (tmp_path / "data/1024/training_009.hdf5").touch()
    assert make(tmp_path, samples=41)["changed"]
    names = sorted(path.name for path in (tmp_path / "data/1024").iterdir())
    assert names == ["training_000.hdf5", "training_001.hdf5"]


def test_a_vocabulary_of_the_users_stays(tmp_path):
    (tmp_path / "words").mkdir()
    own = tmp_path / "words/bert-base-uncased-vocab.txt"
    own.write_text("[PAD]\n")
    make(tmp_path)
    assert own.read_text() == "[PAD]\n"


def test_a_campaign_refuses_data_of_other_values_and_says_both(made):
    done = run("bing_bert", "make_data.py", request(made, samples=41, make=False))
    assert done.returncode == 3
    assert '"samples": 40' in done.stderr and '"samples": 41' in done.stderr
    assert "run ansible-playbook provision.yml with the same values first" in done.stderr


def test_a_campaign_accepts_the_data_that_were_made(made):
    printed = make(made, make=False)
    assert (printed["changed"], printed["samples"]) == (False, 40)


def test_check_mode_tells_of_other_data_and_writes_nothing(tmp_path):
    assert make(tmp_path, check=True)["changed"]
    assert list(tmp_path.iterdir()) == []


# -- the launcher ------------------------------------------------------------------------------------


def launched(folder, text, nodes=1, gpus=2, first=0, node_rank=0):
    """Run the stand-in's launcher, whose ranks are this program; return it when it has ended."""
    launcher = folder / "deepspeed/launcher"
    launcher.mkdir(parents=True)
    (folder / "deepspeed/__init__.py").touch()
    (launcher / "__init__.py").touch()
    (launcher / "launch.py").write_text((STAND_IN / "deepspeed/launcher/launch.py").read_text())
    (folder / "rank.py").write_text(text.format(folder=folder))
    place = [nodes, gpus, first, node_rank, "10.0.0.1", 2020]
    argv = [sys.executable, FRAMEWORK / "launch_node.py", *map(str, place), folder / "rank.py", "--more"]
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60)


# Each rank writes a file of its own: the lines of two processes can mix on one standard output.
WRITE = """
import json, os, sys
with open("{folder}/rank-" + os.environ["RANK"], "w") as file:
    json.dump({{**os.environ, "argv": sys.argv[1:]}}, file)
"""


def ranks(folder, *names):
    """Return {rank: values of these variables} of the ranks that WRITE was."""
    files = {path.name.removeprefix("rank-"): json.loads(path.read_text()) for path in folder.glob("rank-*")}
    return {rank: [values[name] for name in names] for rank, values in files.items()}


def test_ranks_are_started_with_their_place(tmp_path):
    launched(tmp_path, WRITE, nodes=3, node_rank=1)
    assert ranks(tmp_path, "argv", "WORLD_SIZE", "MASTER_ADDR") == {
        "2": [["--local_rank=0", "--more"], "6", "10.0.0.1"],
        "3": [["--local_rank=1", "--more"], "6", "10.0.0.1"],
    }


def test_ranks_that_succeed_end_the_launcher_with_success(tmp_path):
    assert launched(tmp_path, WRITE).returncode == 0


def test_simulated_nodes_of_one_machine_have_different_gpus(tmp_path):
    launched(tmp_path, WRITE, first=2)
    assert ranks(tmp_path, "CUDA_VISIBLE_DEVICES") == {"0": ["2,3"], "1": ["2,3"]}


WAIT = "import sys, time; {}; time.sleep(50)"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("'--local_rank=1' in sys.argv and sys.exit(3)", "rank 1 of this node was ended by exit code 3"),
        (
            "'--local_rank=0' in sys.argv and __import__('os').kill(__import__('os').getpid(), 9)",
            "rank 0 of this node was ended by signal 9",
        ),
    ],
)
def test_a_rank_that_fails_ends_the_others_at_once(tmp_path, ends, said):
    began = time.monotonic()
    done = launched(tmp_path, WAIT.format(ends))
    assert (done.returncode, time.monotonic() - began < 20) == (1, True)
    assert said in done.stderr
