# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The node script of tf2_bert on GPUs: what it refuses, and what it tells TensorFlow and XLA."""

import os
import shlex
import subprocess

import jinja2
import pytest
import yaml
from role_files import ROLES

FAKE_TRAINER = """#!/bin/sh
echo "legacy=$TF_USE_LEGACY_KERAS xla=$XLA_FLAGS cache=$CUDA_CACHE_PATH $CUDA_CACHE_MAXSIZE"
echo "flags $*"
"""
STACKS = yaml.safe_load((ROLES / "tensorflow/vars/main.yml").read_text())["tensorflow_versions"]


@pytest.fixture
def script(tmp_path):
    """Return a function that runs the script of a version on a GPU of a compute capability."""

    def run(version, capability, train="", steps_per_loop=1, **environment):
        (tmp_path / "code").mkdir(exist_ok=True)
        (tmp_path / "code/run_head.sh").write_text((ROLES / "workload/files/kit/run_head.sh").read_text())
        for name, text in (
            ("python", FAKE_TRAINER + train + "\n"),
            ("nvidia-smi", f"#!/bin/sh\necho {capability}\n"),
        ):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        stack = STACKS[version]
        values = {
            "tf2_bert_install": {
                "version": version,
                "device": "gpu",
                "python": str(tmp_path / "python"),
                "code": str(tmp_path / "code"),
                "models": str(tmp_path),
                "script": "run_pretraining.py",
                "environment": stack["environment"],
                "gpus": stack["gpus"][-1],
                "nccl": stack.get("nccl", ""),
                "tfrecords": ["*.tfrecord"],
                "xla_flags": ["--xla_gpu_cuda_data_dir=/cuda", *stack["xla_flags"]],
            },
            "tf2_bert_home": str(tmp_path),
            "campaign_work": str(tmp_path / "work"),
            "tf2_bert_data": str(tmp_path),
            "tf2_bert_seq_length": 128,
            "tf2_bert_predictions": 20,
            "tf2_bert_steps_per_loop": steps_per_loop,
            "tf2_bert_all_reduce_alg": "",
        }
        engine = jinja2.Environment(keep_trailing_newline=True, trim_blocks=True)
        engine.filters["quote"] = lambda value: shlex.quote(str(value))
        text = (ROLES / "tf2_bert/templates/run.sh.j2").read_text()
        (tmp_path / "run.sh").write_text(engine.from_string(text).render(values))
        case = {"DEVICE": "gpu", "NNODES": 1, "GPUS_PER_NODE": 1, "XLA": "false", "MASTER_ADDR": "10.0.0.1"}
        case.update(
            NODE="NODE1", TASK_INDEX=0, DTYPE="fp16", WARMUP=20, STEPS=120, GLOBAL_BATCH=64, MODEL="base"
        )
        case.update(WORKER_HOSTS="", JOB_DIR=tmp_path, PATH=f"{tmp_path}:/usr/bin:/bin")
        case.update(environment)
        return subprocess.run(
            ["sh", tmp_path / "run.sh"],
            env={name: str(value) for name, value in case.items()},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("place", [{"GPUS_PER_NODE": 2}, {"NNODES": 2, "WORKER_HOSTS": "a:1,b:1"}])
def test_several_hopper_gpus_are_refused_where_nccl_has_no_code_for_them(script, place):
    done = script("2.15", "9.0", **place)
    assert done.returncode == 2
    refused = (
        "scalebook: refused: the NCCL of TensorFlow 2.15 does not work on GPUs of compute capability 9.0"
    )
    assert done.stderr.splitlines()[-1].startswith(refused)


@pytest.mark.parametrize(
    ("version", "capability", "place"),
    [
        ("2.15", "9.0", {}),
        ("2.15", "8.0", {"GPUS_PER_NODE": 2}),
        ("2.20", "9.0", {"GPUS_PER_NODE": 2}),
        ("2.3.0", "7.0", {"NNODES": 2, "WORKER_HOSTS": "a:1,b:1"}),
    ],
)
def test_what_nccl_has_code_for_runs(script, version, capability, place):
    done = script(version, capability, **place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--dtype=fp16" in done.stdout


def test_xla_on_gpus_finds_cuda_and_leaves_triton_out(script):
    done = script("2.20", "9.0", XLA="true")
    flags = "--xla_gpu_cuda_data_dir=/cuda --xla_gpu_enable_triton_gemm=false"
    assert f"XLA_FLAGS={flags}\n" in done.stdout
    assert f"legacy=1 xla={flags} " in done.stdout


def test_flags_of_xla_in_the_environment_do_not_reach_a_run_without_it(script):
    assert "xla= " in script("2.20", "9.0", XLA_FLAGS="--xla_dump_to=/tmp").stdout


def test_compiled_kernels_have_a_cache_of_four_gib(script, tmp_path):
    (tmp_path / "cuda_cache").mkdir()
    assert f"cache={tmp_path}/cuda_cache 4294967296\n" in script("2.20", "9.0").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_kernels_that_root_has_compiled_are_copied_for_the_user_of_the_runs(script, tmp_path):
    """Seen with driver 580.159 on an H100: it compiles again what it finds in a cache of another user."""
    (tmp_path / "cuda_cache/3").mkdir(parents=True)
    (tmp_path / "cuda_cache/2.20-580.159").touch()
    (tmp_path / "cuda_cache/3/kernel").touch()
    os.chown(tmp_path / "cuda_cache", 12345, 12345)
    own = tmp_path / "work/compiled/tf2_bert"
    assert f"cache={own} 4294967296\n" in script("2.20", "9.0").stdout
    assert (own / "3/kernel").exists()


def test_the_driver_that_compiles_kernels_is_not_silent(script, tmp_path):
    (tmp_path / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.2\n")
    (tmp_path / "sleep").chmod(0o755)
    grow = "mkdir -p $CUDA_CACHE_PATH; touch $CUDA_CACHE_PATH/{}; /bin/sleep 0.6"
    train = "; ".join(["/bin/sleep 0.3", grow.format(1), grow.format(2)])
    said = "the driver compiles kernels for compute capability 10.0: {} files\n"
    done = script("2.20", "10.0", train=train)
    assert [said.format(1) in done.stdout, said.format(2) in done.stdout] == [True, True]
    assert done.stdout.count("the driver compiles") == 2
    assert "the driver compiles" not in script("2.20", "9.0", train=train).stdout


@pytest.mark.parametrize(("warmup", "steps"), [(20, 10), (2, 2)])
def test_a_run_of_the_search_for_the_largest_batch_calls_no_more_steps_than_it_has(script, warmup, steps):
    done = script("2.20", "9.0", steps_per_loop=10, WARMUP=warmup)
    assert f"--steps_per_loop={steps} " in done.stdout
