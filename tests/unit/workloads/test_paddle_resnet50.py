# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""paddle_resnet50: its logs, with genuine ones, how ranks compare weights, and what Paddle is given."""

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
import yaml
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from in_english import run_record
from node_logs import JOB, node_log
from role_files import ROLES, declaration, load

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/paddle_resnet50"
WORKLOAD = declaration("paddle_resnet50")

trainer_kit = load("workload", "trainer_kit")
weights = load("paddle", "paddle_weights")


def case(nodes=1, warmup=2, window=10, **other):
    values = {"workload": "paddle_resnet50", "model": "resnet50", "bsz": 1, **other}
    return make_case(nodes=nodes, warmup=warmup, window=window, **values)


def campaign(tmp_path, nodes, change=("", ""), made=None, kind=""):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    names = [f"NODE{index}" for index in range(1, nodes + 1)]
    for name in names:
        text = (LOGS / f"{nodes}n{kind}_{name}.log").read_text()
        (tmp_path / f"{name}.log").write_text(text.replace(*change) if name == names[-1] else text)
    return run_record(tmp_path, made or case(nodes), 1, WORKLOAD, names, JOB)


# Genuine logs


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 25.532901), (2, 41.358872)])
def test_a_run_of_a_campaign_counts(tmp_path, nodes, seconds):
    """Ten steps of one image on each node, by the times that rank 0 prints."""
    read = campaign(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(10 * nodes / seconds)


def test_a_run_on_files_counts_and_says_so(tmp_path):
    read = campaign(tmp_path, 2, kind="_files")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(20 / 2.644217)
    assert [node["shown"]["data"] for node in read["nodes"]] == [["files"], ["files"]]


@pytest.mark.parametrize(
    ("name", "wrong"), [("devices", {"gpus": 2}), ("global_batch", {"bsz": 2}), ("dtype", {"dtype": "fp16"})]
)
def test_a_log_of_another_case_is_refused(tmp_path, name, wrong):
    read = campaign(tmp_path, 1, made=case(**wrong))
    assert (read["status"], f"shows {name}" in read["reason"]) == ("refused", True)


def test_ranks_that_formed_no_group_are_refused(tmp_path):
    read = campaign(tmp_path, 2, ("world_size=2 backend=gloo", "world_size=1 backend=none"))
    assert (read["status"], "shows devices 1" in read["reason"]) == ("refused", True)


def test_several_ranks_without_a_backend_are_refused(tmp_path):
    read = campaign(tmp_path, 2, ("world_size=2 backend=gloo", "world_size=2 backend=none"))
    assert (read["status"], "does not show backend" in read["reason"]) == ("refused", True)


def test_a_node_whose_weights_are_not_the_others_is_refused(tmp_path):
    read = campaign(tmp_path, 2, ("PADDLE_RESNET50 weights=agree end=true", ""))
    assert (read["status"], "does not show weights" in read["reason"]) == ("refused", True)


def test_a_case_of_this_projects_trainer_keeps_its_name():
    """That of the recorded campaign: one that is continued must find its runs."""
    values = ("2.6.2", 64, 1000, "", 24, 0)
    names = (name.removeprefix("paddle_resnet50_") for name in WORKLOAD.settings)
    made = case(2, settings=dict(zip(names, values, strict=True)))
    assert f"/{made['name']}/1" in (LOGS / "2n_files_NODE1.log").read_text()


def test_a_run_on_a_gpu_that_paddle_has_no_code_for_is_refused(tmp_path):
    """Paddle 2.6.2 on an H100: its kernels do not run, the weights are zeros, and it ends with status 0."""
    log = node_log(text=(LOGS / "h100_without_code.log").read_text())
    (tmp_path / "NODE1.log").write_text(log)
    read = run_record(tmp_path, case(warmup=1, window=9, bsz=32), 1, WORKLOAD, ["NODE1"], JOB)
    assert (read["status"], "does not show weights_sum" in read["reason"]) == ("refused", True)


def test_dlperfs_table_has_rows_of_this_model():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    names = WORKLOAD.dlperf
    wanted = f"{names.frameworks[0]},{names.models['resnet50']},"
    assert sum(row.startswith(wanted) for row in rows) == 21


@pytest.mark.parametrize(("size", "billions"), [(224, 24.535), (112, 6.143)])
def test_an_image_has_the_operations_of_its_size(size, billions):
    made = {"model": "resnet50", "settings": {"image_size": size, "classes": 1000}}
    assert flops.of_case(WORKLOAD.flops, made) == pytest.approx(billions * 1e9, rel=1e-4)


# Weights


class Weight(list):
    """Numbers with what a tensor of Paddle has: stop_gradient, astype and sum."""

    def __init__(self, *numbers, stop_gradient=False):
        super().__init__(numbers)
        self.stop_gradient = stop_gradient

    def astype(self, _):
        return self

    def sum(self):
        return sum(self)

    def __mul__(self, other):
        return Weight(*(a * b for a, b in zip(self, other, strict=True)))


def test_the_statistics_of_batchnorm_are_not_compared():
    """Layer.parameters() of Paddle has them, with stop_gradient; each rank has those of its own images."""
    kept = [SimpleNamespace(stop_gradient=False)]
    assert weights.trained([*kept, SimpleNamespace(stop_gradient=True)]) == kept


def test_ranks_with_the_same_weights_and_other_statistics_agree():
    ranks = [weights.sums([Weight(1.0, 2.0), Weight(value, stop_gradient=True)]) for value in (0.1, 0.2)]
    assert ranks == [[3.0, 5.0], [3.0, 5.0]]


@pytest.mark.parametrize("other", [Weight(1.0, 2.5), Weight(0.0, 3.0)])
def test_ranks_with_other_weights_do_not_agree(other):
    with pytest.raises(SystemExit, match="the ranks hold different weights"):
        trainer_kit.finish(print, True, [weights.sums([Weight(1.0, 2.0)]), weights.sums([other])], 12)


# The libraries of CUDA


@pytest.fixture
def wheels(tmp_path):
    """Return the folders of two of NVIDIA's wheels, which have libraries under versioned names only."""
    files = {"cudnn": ["libcudnn.so.8", "libcudnn_ops_infer.so.8"], "cuda_nvrtc": ["libnvrtc.so.11.2"]}
    for folder, names in files.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(name)
    return [tmp_path / folder for folder in files]


def link(*folders):
    return subprocess.run(
        ["sh", ROLES / "workload/files/link_libraries.sh", *folders], capture_output=True, text=True
    )


def test_each_library_has_the_name_that_paddle_opens(wheels):
    """libcudnn.so, which the wheel lacks: the error is that cuDNN is not configured correctly."""
    assert link(*wheels).returncode == 0
    assert [(wheels[0] / name).read_text() for name in ("libcudnn.so", "libcudnn_ops_infer.so")] == [
        "libcudnn.so.8",
        "libcudnn_ops_infer.so.8",
    ]
    assert (wheels[1] / "libnvrtc.so").read_text() == "libnvrtc.so.11.2"


def test_links_that_are_there_are_no_change(wheels):
    assert len(link(*wheels).stdout.splitlines()) == 3
    assert link(*wheels).stdout == ""


def test_a_link_to_another_version_is_replaced(wheels):
    (wheels[0] / "libcudnn.so").symlink_to("libcudnn.so.7")
    link(*wheels)
    assert (wheels[0] / "libcudnn.so").read_text() == "libcudnn.so.8"


def test_a_folder_without_a_library_is_an_error(wheels, tmp_path):
    (tmp_path / "empty").mkdir()
    assert (link(tmp_path / "empty").returncode, link(tmp_path / "none").returncode != 0) == (1, True)


def names_of(tasks):
    return [task["name"] for task in yaml.safe_load((ROLES / "workload/tasks" / tasks).read_text())]


def test_the_links_are_made_before_paddle_is_verified():
    """So is what it is linked with, which a node without a compiler lacks."""
    wanted = ["Install the locked packages", "Install the OpenMP library"]
    wanted += ["Link the libraries of CUDA under the names that the framework opens"]
    assert [name for name in names_of("environment.yml") if name in wanted] == wanted
    wanted = ["Install the environment", "Generate the data, verify and record the installation"]
    assert [name for name in names_of("install.yml") if name in wanted] == wanted


# The node script


@pytest.fixture
def environment(tmp_path):
    """Return a function that runs the node script and returns the environment of its trainer."""
    for name in ("workload/files/kit/run_head.sh", "paddle/files/paddle_group.sh"):
        (tmp_path / Path(name).name).write_text((ROLES / name).read_text())
    (tmp_path / "python").write_text('#!/bin/sh\nenv\necho "WORDS=$*"\n')
    (tmp_path / "python").chmod(0o755)
    values = {
        "paddle_resnet50_install": {
            "device": "gpu",
            "python": str(tmp_path / "python"),
            "libraries": "/cuda/lib",
            "code": str(tmp_path),
            "data": "",
        },
        "paddle_resnet50_workers": 0,
        "paddle_resnet50_threads": 1,
        "paddle_resnet50_image_size": 224,
        "paddle_resnet50_classes": 1000,
        "paddle_resnet50_learning_rate": 0.001,
        "paddle_resnet50_seed": 1,
    }
    engine = jinja2.Environment(keep_trailing_newline=True, trim_blocks=True)
    engine.filters["quote"] = lambda value: shlex.quote(str(value))
    text = (ROLES / "paddle_resnet50/templates/run.sh.j2").read_text()

    def run(rank, **given):
        (tmp_path / "run.sh").write_text(engine.from_string(text).render(values))
        env = {"DEVICE": "gpu", "NNODES": 2, "GPUS_PER_NODE": 2, "WORLD_SIZE": 4, "NODE": "NODE1"}
        env.update(OMPI_COMM_WORLD_RANK=rank, MASTER_ADDR="10.0.0.1", MASTER_PORT=5000)
        env.update(HOSTS="10.0.0.1,10.0.0.2", MODEL="resnet50", DTYPE="fp32", BSZ=1, STEPS=12)
        env.update(PATH="/usr/bin:/bin", **given)
        done = subprocess.run(
            ["sh", tmp_path / "run.sh"],
            env={name: str(value) for name, value in env.items()},
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    return run


def test_the_trainer_is_started_for_the_case(environment):
    words = environment(0, DEVICE="cpu")["WORDS"]
    assert words.partition("/train.py ")[2].startswith("--device cpu --devices-per-node 2 --model resnet50")


def test_each_rank_has_an_endpoint_of_its_own(environment):
    found = environment(3)
    assert found["PADDLE_TRAINER_ENDPOINTS"] == "10.0.0.1:5001,10.0.0.1:5002,10.0.0.2:5003,10.0.0.2:5004"
    assert (found["PADDLE_CURRENT_ENDPOINT"], found["PADDLE_MASTER"]) == ("10.0.0.2:5004", "10.0.0.1:5000")


def test_a_rank_takes_the_gpu_of_its_place_on_the_node(environment):
    found = environment(3)
    assert (found["FLAGS_selected_gpus"], found["PADDLE_DISTRI_BACKEND"]) == ("1", "nccl")
    assert found["LD_LIBRARY_PATH"] == "/cuda/lib"


def test_the_nodes_own_library_path_is_kept(environment):
    """In some containers the driver is found only there."""
    assert environment(0, LD_LIBRARY_PATH="/driver")["LD_LIBRARY_PATH"] == "/cuda/lib:/driver"
    assert environment(0, LD_LIBRARY_PATH="")["LD_LIBRARY_PATH"] == "/cuda/lib"


def test_cpus_train_with_gloo_and_without_the_libraries_of_cuda(environment):
    found = environment(0, DEVICE="cpu")
    assert found["PADDLE_DISTRI_BACKEND"] == "gloo"
    assert "LD_LIBRARY_PATH" not in found


def test_variables_of_paddles_own_launcher_are_dropped(environment):
    assert "PADDLE_NNODES" not in environment(0, PADDLE_NNODES="7")
