# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""deepspeed_bert_source=upstream: what the trainer of 2020 is told and reads; how its launcher is watched."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from role_files import load

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "roles/deepspeed_bert/files"
STAND_IN = ROOT / "tests/stand_ins/deepspeed_2020"

flags = load("deepspeed_bert", "upstream_flags")
sizes = load("torch_bert", "sizes")
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


# -- what the trainer is told ------------------------------------------------------------------------------


def test_gradients_are_summed_after_every_batch():
    told = flags.deepspeed(args())
    assert (told["train_batch_size"], told["gradient_accumulation_steps"]) == (512, 1)


@pytest.mark.parametrize(("devices", "every"), [(1, 1024), (8, 128), (16, 64), (32, 32), (2048, 1)])
def test_dlperf_summed_after_1024_batches_of_all_devices(devices, every):
    """Its train_batch_size is 1024 micro-batches: scripts/multi_node_train.sh."""
    told = flags.deepspeed(args(summed="dlperf", devices=devices))
    assert told["gradient_accumulation_steps"] == every


@pytest.mark.parametrize("devices", [1, 8, 32])
def test_the_batch_is_what_its_parts_make(devices):
    """DeepSpeed refuses any other."""
    told = flags.deepspeed(args(summed="dlperf", devices=devices))
    micro, every = told["train_micro_batch_size_per_gpu"], told["gradient_accumulation_steps"]
    assert told["train_batch_size"] == micro * every * devices


def test_every_step_prints_its_line():
    assert flags.deepspeed(args())["steps_per_print"] == 1


@pytest.mark.parametrize(("dtype", "enabled"), [("fp32", False), ("fp16", True)])
def test_fp16_scales_its_loss_by_itself(dtype, enabled):
    assert flags.deepspeed(args(dtype=dtype))["fp16"] == {"enabled": enabled, "loss_scale": 0}


def test_the_flags_are_those_of_dlperf():
    told = flags.flags(args(), "/run")
    dlperf = "--cf=/run/config.json --max_seq_length=128 --print_steps=1 --lr_schedule=EP --lr_offset=10e-4"
    assert {*dlperf.split(), "--max_steps_per_epoch=120", "--use_nvidia_dataset"} <= set(told)


def test_a_run_ends_after_one_epoch_and_keeps_no_checkpoint():
    training = flags.model(args(), BASE)["mixed_seq_training"]
    assert (training["128"]["num_epochs"], "--ckpt_to_save=0" in flags.flags(args(), "/run")) == (1, True)


def test_bert_base_has_its_own_vocabulary_by_name():
    assert flags.model(args(), BASE)["bert_token_file"] == "bert-base-uncased"


def test_the_small_model_names_its_vocabulary_by_path():
    told = flags.model(args(model="tiny"), sizes.MODELS["tiny"])
    assert told["bert_token_file"] == "/words/bert-tiny-vocab.txt"


# -- data ----------------------------------------------------------------------------------------------------


def make(folder, samples=40):
    words = [folder / "data", folder / "words", 2, samples, 32, 5, 7]
    argv = [sys.executable, FILES / "upstream_data.py", *map(str, words)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    assert make(folder) == "made"
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


def test_what_is_there_is_left_alone(made):
    assert make(made) == "there"


def test_other_samples_replace_those_that_are_there(tmp_path):
    make(tmp_path)
    (tmp_path / "data/1024/training_009.hdf5").touch()
    assert make(tmp_path, samples=41) == "made"
    names = sorted(path.name for path in (tmp_path / "data/1024").iterdir())
    assert names == ["training_000.hdf5", "training_001.hdf5"]


def test_a_vocabulary_of_the_users_stays(tmp_path):
    (tmp_path / "words").mkdir()
    own = tmp_path / "words/bert-base-uncased-vocab.txt"
    own.write_text("[PAD]\n")
    make(tmp_path)
    assert own.read_text() == "[PAD]\n"


# -- the launcher ------------------------------------------------------------------------------------


def launched(folder, text, nodes=1, gpus=2, first=0, node_rank=0):
    """Run a stand-in's launcher, whose ranks are this text; return it when it has ended."""
    launcher = folder / "deepspeed/launcher"
    launcher.mkdir(parents=True)
    (folder / "deepspeed/__init__.py").touch()
    (launcher / "__init__.py").touch()
    (launcher / "launch.py").write_text((STAND_IN / "deepspeed/launcher/launch.py").read_text())
    (folder / "rank.py").write_text(text)
    place = [nodes, gpus, first, node_rank, "10.0.0.1", 2020]
    argv = [sys.executable, FILES / "upstream_launch.py", *map(str, place), folder / "rank.py", "--more"]
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=60)


TELL = "import os, sys; print(*sys.argv[1:], *(os.environ[n] for n in 'RANK WORLD_SIZE MASTER_ADDR'.split()))"


def test_ranks_are_started_with_their_place(tmp_path):
    done = launched(tmp_path, TELL, nodes=3, node_rank=1)
    told = sorted(done.stdout.splitlines())
    assert told == ["--local_rank=0 --more 2 6 10.0.0.1", "--local_rank=1 --more 3 6 10.0.0.1"]


def test_ranks_that_end_well_end_the_launcher_well(tmp_path):
    assert launched(tmp_path, TELL).returncode == 0


def test_logical_nodes_of_one_machine_have_gpus_of_their_own(tmp_path):
    done = launched(tmp_path, "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])", first=2)
    assert done.stdout.split() == ["2,3", "2,3"]


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
