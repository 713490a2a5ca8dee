# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""oneflow_wide_deep: what its logs and their latency mean, on genuine ones, and its command line."""

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from cases import cluster, plan
from declared import with_settings
from dlperf_logs import exit_record, stamped
from in_english import log_record, run_record
from node_logs import JOB, kept_run
from role_files import ROLES, declaration, load

LOGS = ROLES.parent / "tests/data/oneflow_wide_deep"
WORKLOAD = declaration("oneflow_wide_deep")
# The seconds from the line of step 10 to that of step 30, by number of nodes.
SECONDS = [(1, 8.789), (2, 8.069)]
LATENCIES = (310.410988, 424.470631, 305.937230, 158.423441, 206.821378)
LATENCIES += (178.969425, 252.950398, 150.542920, 145.893582, 138.277925)

wide_deep_flags = load("oneflow_wide_deep", "wide_deep_flags")


def case(nodes=1, warmup=20, window=100, bsz=64, mode="eager", **other):
    values = {"workload": "oneflow_wide_deep", "model": "tiny", "settings": {"mode": mode}, **other}
    return make_case(nodes=nodes, warmup=warmup, window=window, bsz=bsz, **values)


def imported(name, **of_case):
    return log_record(LOGS / name, case(**of_case), 1, WORKLOAD, name)


# Genuine logs of the trainer alone, a line every ten steps


def test_a_genuine_log_gives_the_rate_of_its_time_stamps():
    """The lines of steps 20 and 120, 02:42:02.870 and 02:42:25.597; 100 steps of 64 samples."""
    read = imported("1p_eager.log")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(6400 / 22.727)


def test_the_latency_is_the_mean_of_the_steps_since_the_line_before():
    """The ten latencies of the window, of ten steps each; as single steps they sum up to 2.3 s of 22.7 s."""
    read = imported("1p_eager.log")
    mean = sum(LATENCIES) / len(LATENCIES)
    second = measure(read)["second"]
    assert (second["time_source"], second["rate"]) == ("rates", pytest.approx(64 * 1000 / mean))
    assert measure(read)["differs"] < 0.0001


def test_a_window_that_ends_between_two_lines_is_refused():
    read = imported("1p_eager.log", warmup=20, window=95)
    assert (read["status"], "does not show step 115" in read["reason"]) == ("incomplete", True)


def test_the_trainers_batch_is_that_of_all_ranks():
    read = imported("1p_eager.log", gpus=2)
    assert (read["status"], "shows global_batch 64" in read["reason"]) == ("refused", True)


def record(tmp_path, name, code=0, **of_case):
    text = stamped((LOGS / name).read_text(), every=0.5, exit_record=exit_record(code))
    (tmp_path / "NODE1.log").write_text(text)
    return run_record(tmp_path, case(**of_case), 1, WORKLOAD, ["NODE1"], JOB)


def test_the_trainers_log_alone_is_refused(tmp_path):
    """It has no world size and does not show that the ranks have the same weights."""
    read = record(tmp_path, "1p_eager.log")
    assert (read["status"], "does not show devices" in read["reason"]) == ("refused", True)


def test_a_graph_on_cpus_ends_before_its_first_step(tmp_path):
    """OneFlow 0.9: register.cpp:75 Check failed. The node script refuses it before that."""
    name = "edge_2p_graph_fails.log"
    read = record(tmp_path, name, code=1, gpus=2, bsz=32, warmup=10, window=50, mode="graph")
    assert (read["status"], "shows no step" in read["reason"]) == ("incomplete", True)


# Genuine runs of campaigns, on one and two simulated nodes


def campaign(tmp_path, nodes, change=("", "")):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    return kept_run(tmp_path, LOGS, case(nodes, warmup=10, window=20, bsz=4), WORKLOAD, change)


@pytest.mark.parametrize(("nodes", "seconds"), SECONDS)
def test_a_run_of_a_campaign_counts(tmp_path, nodes, seconds):
    """Twenty steps of four samples on each node."""
    read = campaign(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(80 * nodes / seconds, rel=1e-4)
    assert measure(read)["differs"] < 0.01


@pytest.mark.parametrize(
    ("shown", "other", "name"),
    [
        ("weights=agree end=true", "", "weights"),
        ("weights_on=cpu", "weights_on=gpu", "device"),
        ("world_size=2", "world_size=1", "devices"),
        ("nodes=2", "nodes=1", "nodes"),
    ],
)
def test_a_node_that_did_not_take_part_is_refused(tmp_path, shown, other, name):
    read = campaign(tmp_path, 2, (shown, other))
    assert (read["status"], name in read["reason"]) == ("refused", True)


# The node script


@pytest.fixture
def started(tmp_path):
    """Return a function that runs the node script, with a Python that prints what it is given."""
    for name in ("workload/files/kit/run_head.sh", "oneflow/files/oneflow_head.sh"):
        (tmp_path / Path(name).name).write_text((ROLES / name).read_text())
    (tmp_path / "python").write_text('#!/bin/sh\necho "$LOCAL_RANK $LD_LIBRARY_PATH" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    install = {"device": "cpu", "python": tmp_path / "python", "libraries": "/cuda/lib", "trainer": "/models"}
    install["code"] = tmp_path
    values = {"install": install, "mode": "eager", "print_every": 10, "threads": 1}
    values.update(learning_rate=0.001, dropout=0.5)
    engine = jinja2.Environment(keep_trailing_newline=True, trim_blocks=True)
    engine.filters["quote"] = lambda value: shlex.quote(str(value))
    template = engine.from_string((ROLES / "oneflow_wide_deep/templates/run.sh.j2").read_text())

    def run(dtype="fp32", library_path="/driver", warmup=20, **changed):
        named = {f"oneflow_wide_deep_{name}": value for name, value in {**values, **changed}.items()}
        (tmp_path / "run.sh").write_text(template.render(named))
        env = {"DEVICE": "cpu", "NNODES": "2", "GPUS_PER_NODE": "1", "WORLD_SIZE": "2", "NODE": "NODE2"}
        env.update(OMPI_COMM_WORLD_RANK="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="5000", BSZ="4")
        env.update(MODEL="tiny", DTYPE=dtype, WARMUP=str(warmup), STEPS="120", JOB_DIR=str(tmp_path))
        env.update(PATH="/usr/bin:/bin", LD_LIBRARY_PATH=library_path)
        return subprocess.run(
            ["sh", tmp_path / "run.sh"], env=env, capture_output=True, text=True, check=False
        )

    return run


def test_the_trainer_is_copied_and_started(started, tmp_path):
    done = started()
    copy, train = done.stdout.splitlines()
    assert done.returncode == 0
    assert f"oneflow_copy.py /models {tmp_path}/scratch.1/wide_and_deep cpu train.py graph.py" in copy
    assert train.startswith(
        f"1 /cuda/lib:/driver {tmp_path}/run_trainer.py --device cpu --trainer {tmp_path}/scratch.1"
    )
    assert not (tmp_path / "scratch.1").exists()


def test_an_empty_library_path_of_the_node_adds_no_folder(started):
    """An empty entry would be the working directory."""
    assert started(library_path="").stdout.splitlines()[1].startswith("1 /cuda/lib ")


def test_fp16_on_a_cpu_is_refused_by_the_head_of_all_trainers_of_oneflow(started):
    done = started(dtype="fp16")
    assert (done.returncode, done.stdout) == (2, "")
    assert "scalebook: refused: OneFlow's automatic mixed precision is for GPUs" in done.stderr


@pytest.mark.parametrize(("warmup", "steps"), [(20, 10), (2, 2)])
def test_a_run_of_the_search_for_the_largest_batch_prints_its_last_step(started, warmup, steps):
    assert f"--print-every {steps}\n" in started(warmup=warmup).stdout


# The cases that are not planned


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"mode": "graph"}, "OneFlow 0.9 does not run this graph on CPUs: use oneflow_wide_deep_mode=eager"),
        (
            {"print_every": 50},
            "warmup=20 and window=100 must be multiples of oneflow_wide_deep_print_every=50",
        ),
    ],
)
def test_a_case_that_cannot_be_measured_is_not_planned(settings, reason):
    workload = with_settings(WORKLOAD, **{"mode": "eager", "print_every": 10, **settings})
    made = plan({"gpus": 1}, workload, cluster(1), "oneflow_wide_deep", "cpu")
    assert [skipped["reason"] for skipped in made["skipped"]] == [reason]


# The command line of the trainer


def words(world=2, **other):
    values = {"batch": 64, "steps": 120, "mode": "eager", "model": "tiny", "learning_rate": 0.001}
    return wide_deep_flags.flags(SimpleNamespace(dropout=0.5, print_every=10, **{**values, **other}), world)


def test_the_trainer_gets_the_batch_of_all_ranks():
    assert "--batch_size 128 " in " ".join(words())


def test_several_ranks_train_with_ddp():
    assert "--ddp" in words()
    assert "--ddp" not in words(world=1)
    assert "--ddp" not in words(mode="graph")


def test_the_vocabulary_holds_all_values_of_the_synthetic_fields():
    assert all(model["vocabulary"] >= 256 for model in wide_deep_flags.MODELS.values())


def test_no_model_is_saved_and_none_evaluated():
    given = words()
    assert given[given.index("--model_save_dir") + 1] == ""
    assert given[given.index("--eval_interval") + 1] == "0"


def test_every_model_of_the_declaration_has_its_sizes():
    assert sorted(WORKLOAD.model_names) == sorted(wide_deep_flags.MODELS)
