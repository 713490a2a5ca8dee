# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tf2_resnet50: what its logs mean, on genuine ones, and the parameters that the trainer is given."""

import shlex
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from cases import cluster, plan
from declared import with_settings
from dlperf_logs import exit_record, stamped
from in_english import log_record, run_record
from node_logs import JOB
from role_files import ROLES, declaration

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/tf2_resnet50"
WORKLOAD = declaration("tf2_resnet50")


def case(nodes=1, warmup=5, window=15, **other):
    values = {"workload": "tf2_resnet50", "model": "resnet50", "bsz": 2, **other}
    return make_case(nodes=nodes, warmup=warmup, window=window, **values)


def imported(name, **of_case):
    return log_record(LOGS / name, case(**of_case), 1, WORKLOAD, name)


# Genuine logs


def test_a_genuine_log_gives_the_rate_of_its_time_stamps():
    """15 steps of 2 images from 02:31:10.403245 to 02:32:30.776400."""
    read = imported("1n_mirrored.log")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(30 / 80.373155)


def test_the_printed_rates_are_those_of_all_workers():
    """The harmonic mean of 0.39, 0.30 and 0.46: each log has the rate of all, so nothing is multiplied."""
    assert measure(imported("1n_mirrored.log"))["second"] == {
        "time_source": "rates",
        "rate": pytest.approx(3 / (1 / 0.39 + 1 / 0.30 + 1 / 0.46)),
    }
    assert imported("1n_mirrored.log")["rate_scope"] == "global"


def campaign(tmp_path, nodes, change=("", ""), release="", window=3):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    names = [f"NODE{index}" for index in range(1, nodes + 1)]
    for name in names:
        text = (LOGS / f"{nodes}n_{name}{release}.log").read_text()
        (tmp_path / f"{name}.log").write_text(text.replace(*change) if name == names[-1] else text)
    return run_record(tmp_path, case(nodes, warmup=1, window=window, bsz=1), 1, WORKLOAD, names, JOB)


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 3.977003), (2, 28.839580)])
def test_a_run_of_a_campaign_counts(tmp_path, nodes, seconds):
    """Three steps, of one image on each node, by the time stamps of the first node's log."""
    read = campaign(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(3 * nodes / seconds)


def test_a_run_with_the_batch_the_dtype_and_equal_weights_of_its_graph_counts(tmp_path):
    read = campaign(tmp_path, 2, release="_shown")
    assert (read["status"], read["reason"]) == ("ok", None)
    shown = [node["shown"] for node in read["nodes"]]
    assert [(each["graph_batch"], each["graph_dtype"]) for each in shown] == [(["2"], ["float32"])] * 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((" global_batch=2 ", " global_batch=1 "), "shows graph_batch 1"),
        ((" dtype=float32 ", " dtype=float16 "), "shows graph_dtype float16"),
        ((" dtype=float32 xla=false", " dtype=float32 xla=true"), "shows graph_xla true"),
        ((" compared=1", " compared=2"), "shows replicas 2"),
        (("TENSORFLOW weights=", "TENSORFLOW weights=f"), "shows weights f"),
        (("TENSORFLOW replicas=", "TENSORFLOW "), "TENSORFLOW replicas="),
        (("TENSORFLOW weights=", "TENSORFLOW "), "TENSORFLOW weights="),
    ],
)
def test_a_run_whose_graph_or_weights_are_others_is_refused(tmp_path, change, reason):
    read = campaign(tmp_path, 2, change, release="_shown")
    assert (read["status"], reason in read["reason"]) == ("refused", True), read["reason"]


def test_a_run_of_tensorflow_2_20_counts(tmp_path):
    """Five steps of two images from 01:04:10.812255 to 01:04:23.039322."""
    read = campaign(tmp_path, 2, release="_tf2.20", window=5)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(10 / 12.227067)


def test_a_node_that_trained_alone_is_refused(tmp_path):
    """The loss is a sum over all workers, the same to the last digit in the logs of all."""
    read = campaign(tmp_path, 2, ("{'loss': 9.869244575500488,", "{'loss': 9.869244575500489,"))
    assert (read["status"], read["reason"]) == (
        "refused",
        "NODE2.log shows loss 9.869244575500489, NODE1.log shows 9.869244575500488",
    )


def test_a_node_that_formed_no_cluster_is_refused(tmp_path):
    read = campaign(tmp_path, 2, ("num_workers = 2", "num_workers = 1"))
    assert (read["status"], "shows workers 1" in read["reason"]) == ("refused", True)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("dtype", ("dtype=fp32", "dtype=fp16")),
        ("xla", (" xla=false ", " xla=true ")),
        ("steps", (" steps=4 ", " steps=5 ")),
        ("data", ("image=224x224x3", "image=224x224xinfer")),
    ],
)
def test_a_run_with_other_parameters_is_refused(tmp_path, name, change):
    read = campaign(tmp_path, 1, change)
    assert (read["status"], name in read["reason"]) == ("refused", True)


def test_a_window_that_begins_between_two_lines_is_refused():
    read = imported("1n_mirrored.log", warmup=4, window=16)
    assert (read["status"], "does not show step 4" in read["reason"]) == ("incomplete", True)


@pytest.mark.parametrize(
    ("name", "wrong"), [("devices", {"gpus": 2}), ("global_batch", {"bsz": 4}), ("devices", {"nodes": 2})]
)
def test_a_log_of_another_case_is_refused(name, wrong):
    read = imported("1n_mirrored.log", **wrong)
    assert (read["status"], f"shows {name}" in read["reason"]) == ("refused", True)


def test_a_log_without_the_parameters_of_the_trainer_is_refused(tmp_path):
    """Only they say whether the data are the trainer's zeros."""
    text = stamped((LOGS / "1n_mirrored.log").read_text(), every=0.5, exit_record=exit_record())
    (tmp_path / "NODE1.log").write_text(text)
    read = run_record(tmp_path, case(), 1, WORKLOAD, ["NODE1"], JOB)
    assert (read["status"], "does not show dtype" in read["reason"]) == ("refused", True)


def test_a_trainer_that_asked_the_internet_for_the_channels_has_no_steps():
    read = imported("edge_num_channels_infer.log")
    assert (read["status"], "shows no step" in read["reason"]) == ("incomplete", True)


def test_dlperfs_table_has_rows_of_this_workload():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    names = WORKLOAD.dlperf
    wanted = f"{names.frameworks[0]},{names.models['resnet50']},"
    assert sum(row.startswith(wanted) for row in rows) == 22


def fp16_on_a_cpu(**parameters):
    given = {"dtype": "fp16", "gpus": 1, **parameters}
    return plan(given, with_settings(WORKLOAD, log_steps=1), cluster(1), "tf2_resnet50", "cpu")


def test_fp16_on_a_cpu_is_skipped_unless_forced():
    assert "fp32 runs" in fp16_on_a_cpu()["skipped"][0]["reason"]
    assert [each["dtype"] for each in fp16_on_a_cpu(force=True)["cases"]] == ["fp16"]


def test_fp16_with_xla_on_a_cpu_is_not_even_forced():
    """XLA of TensorFlow 2.20 computed it in fp32: 2.2 s for a step that takes 72 s without XLA."""
    made = fp16_on_a_cpu(xla=True, force=True)
    assert (made["cases"], "XLA computes fp16 in fp32" in made["skipped"][0]["reason"]) == ([], True)


def test_an_image_has_the_operations_that_are_published():
    """3 x 2 x 4.09 G."""
    assert flops.of_case(WORKLOAD.flops, case()) == pytest.approx(6 * 4.09e9, rel=1e-3)


# The node script

FAKE = """#!/bin/sh
case "$1" in */tensorflow_run.py) shift 2;; *) exec {python} "$@";; esac
for word in "$@"; do case "$word" in --config_file=*) cp "${{word#*=}}" {out}/config.yaml;; esac; done
echo "$*" >{out}/flags
echo "${{TF_USE_LEGACY_KERAS:-}}" >{out}/keras
{python} - "$@" <<'EOF'
import shutil, sys
flags = dict(word.lstrip("-").split("=", 1) for word in sys.argv[3:])
shutil.copy(flags["config_file"], flags["model_dir"] + "/params.yaml")
EOF
"""


@pytest.fixture
def script(tmp_path):
    """Return a function that runs the node script with a trainer that keeps what it is given."""
    for name in ("run_head.sh", "trainer_kit.py"):
        (tmp_path / name).write_text((ROLES / "workload/files/kit" / name).read_text())
    (tmp_path / "show_params.py").write_text((ROLES / "tf2_resnet50/files/show_params.py").read_text())
    (tmp_path / "python").write_text(FAKE.format(python=sys.executable, out=tmp_path))
    (tmp_path / "python").chmod(0o755)

    def run(tfrecords="", log_steps=1, version="2.3.0", **environment):
        installed = {"device": "cpu", "python": str(tmp_path / "python"), "version": version, "cuda": ""}
        values = {
            "tf2_resnet50_install": {**installed, "code": str(tmp_path)},
            "tf2_resnet50_tfrecords": tfrecords,
            "tf2_resnet50_log_steps": log_steps,
            "tf2_resnet50_all_reduce_alg": "",
        }
        engine = jinja2.Environment(keep_trailing_newline=True, trim_blocks=True)
        engine.filters["quote"] = lambda value: shlex.quote(str(value))
        text = (ROLES / "tf2_resnet50/templates/run.sh.j2").read_text()
        (tmp_path / "run.sh").write_text(engine.from_string(text).render(values))
        given = {"DEVICE": "cpu", "NNODES": 1, "GPUS_PER_NODE": 1, "XLA": "false", "MASTER_ADDR": "127.0.0.1"}
        given.update(NODE="NODE1", TASK_INDEX=0, DTYPE="fp32", WARMUP=20, STEPS=120, BSZ=2)
        given.update(WORKER_HOSTS="127.0.0.1:1,127.0.0.1:2", JOB_DIR=tmp_path, PATH="/usr/bin:/bin")
        given.update(environment)
        done = subprocess.run(
            ["sh", tmp_path / "run.sh"],
            env={name: str(value) for name, value in given.items()},
            capture_output=True,
            text=True,
        )
        config = tmp_path / "config.yaml"
        return done, yaml.safe_load(config.read_text()) if config.exists() else None

    return run


def test_the_channels_of_synthetic_data_are_given(script):
    """With the default, infer, tensorflow-datasets goes to the internet and dies."""
    _, config = script()
    assert (config["train_dataset"]["builder"], config["train_dataset"]["num_channels"]) == ("synthetic", 3)


def test_the_log_says_that_synthetic_data_are_all_zero(script):
    done, _ = script()
    assert done.stdout.splitlines()[-1] == (
        "TF2_RESNET50 dtype=fp32 xla=false strategy=mirrored steps=120 "
        "data=synthetic-all-zero image=224x224x3 batch=2"
    )


def test_own_tfrecords_are_read_from_their_directory(script, tmp_path):
    done, config = script(tfrecords="/imagenet")
    assert (config["train_dataset"]["builder"], " data=records " in done.stdout) == ("records", True)
    assert "--data_dir=/imagenet " in (tmp_path / "flags").read_text()


@pytest.mark.parametrize(
    ("version", "module", "schedule", "keras"),
    [
        (
            "2.3.0",
            "official.vision.image_classification.classifier_trainer",
            "piecewise_constant_with_warmup",
            "",
        ),
        ("2.20", "official.legacy.image_classification.classifier_trainer", "stepwise", "1"),
    ],
)
def test_each_version_starts_its_own_trainer(script, tmp_path, version, module, schedule, keras):
    """Where no schedule has the name, the trainer of 2.20 dies: lr is not associated with a value."""
    _, config = script(version=version)
    assert (tmp_path / "flags").read_text().startswith(f"-m {module} ")
    assert config["model"]["learning_rate"]["name"] == schedule
    assert (tmp_path / "keras").read_text().strip() == keras


def test_several_nodes_are_one_cluster(script):
    _, config = script(NNODES=2, TASK_INDEX=1)
    assert config["runtime"] == {
        "distribution_strategy": "multi_worker_mirrored",
        "worker_hosts": "127.0.0.1:1,127.0.0.1:2",
        "task_index": 1,
        "all_reduce_alg": "ring",
        "num_gpus": 0,
        "enable_xla": False,
        "batchnorm_spatial_persistent": False,
    }


def test_no_checkpoint_is_written(script):
    _, config = script()
    assert config["train"]["callbacks"]["enable_checkpoint_and_export"] is False


def test_a_window_without_lines_at_its_ends_is_not_planned():
    workload = with_settings(WORKLOAD, version="2.3.0", tfrecords="", log_steps=50)
    made = plan({"gpus": 1, "warmup": 50, "window": 120}, workload, cluster(1), "tf2_resnet50", "cpu")
    assert [skipped["reason"] for skipped in made["skipped"]] == [
        "warmup=50 and window=120 must be multiples of tf2_resnet50_log_steps=50"
    ]


@pytest.mark.parametrize(("warmup", "steps"), [(20, 10), (2, 2)])
def test_a_run_of_the_search_for_the_largest_batch_logs_its_last_step(script, tmp_path, warmup, steps):
    script(log_steps=10, WARMUP=warmup)
    assert (tmp_path / "flags").read_text().endswith(f"--log_steps={steps}\n")


def test_a_dtype_that_the_trainer_does_not_have_is_refused(script):
    done, config = script(DTYPE="bf16")
    assert (done.returncode, config, "dtype=bf16" in done.stderr) == (2, None, True)
