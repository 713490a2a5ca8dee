# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""mxnet_resnet50: what its logs mean, on genuine ones, and the command line of the trainer."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from dlperf_logs import exit_record, stamped
from in_english import log_record, run_record
from node_logs import JOB
from role_files import ROLES, declaration, load

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/mxnet_resnet50"
WORKLOAD = declaration("mxnet_resnet50")

trainer_flags = load("mxnet_resnet50", "trainer_flags")

# What run_trainer.py prints beside the trainer's own lines.
SHOWN = (
    "MXNET_RESNET50 world_size=1 nodes=1 node_rank=0 backend=mpi\n"
    "MXNET_RESNET50 dtype=fp32 device=cpu data=synthetic-random\n"
    "MXNET_RESNET50 steps_done=11\n"
    "MXNET_RESNET50 weights=agree end=true\n"
)


def case(nodes=1, warmup=1, window=10, bsz=2, **other):
    values = {"workload": "mxnet_resnet50", "model": "resnet50", "bsz": bsz, **other}
    return make_case(nodes=nodes, warmup=warmup, window=window, **values)


def imported(name, **of_case):
    return log_record(LOGS / name, case(**of_case), 1, WORKLOAD, name)


def record(tmp_path, name, shown="", change=("", ""), **of_case):
    """Return the record of a run whose log is a genuine one, with a text changed and lines added."""
    text = (LOGS / name).read_text().replace("rc=0 15s\n", "").replace(*change) + shown
    (tmp_path / "NODE1.log").write_text(stamped(text, every=0.5, exit_record=exit_record()))
    return run_record(tmp_path, case(**of_case), 1, WORKLOAD, ["NODE1"], JOB)


# Genuine logs


def test_a_genuine_log_gives_the_rate_of_its_time_stamps():
    """Batches 1 and 11, 03:02:22,136 and 03:02:28,046; ten steps of two images."""
    read = imported("1p_nvidia.log")
    assert measure(read)["rate"] == pytest.approx(20 / 5.910)


def test_the_printed_rate_is_that_of_all_ranks():
    """The harmonic mean of batches 2 to 11."""
    read = imported("1p_nvidia.log")
    printed = (
        (2.8615978074954236, 3.3479104015964083, 4.363820990184715, 4.408984046710399, 4.5569803990165285)
        + (3.9273005791739877, 1.8775100756656922, 3.86238955370257, 3.2266470650910017, 3.786419529069993)
    )  # fmt: skip
    mean = 10 / sum(1 / rate for rate in printed)
    assert (read["rate_scope"], measure(read)["second"]["rate"]) == ("global", pytest.approx(mean))


def test_a_log_of_another_batch_is_refused():
    """--batch-size counts the images of all ranks."""
    read = imported("1p_nvidia.log", bsz=1)
    assert (read["status"], "shows global_batch 2" in read["reason"]) == ("refused", True)


def test_a_log_of_another_precision_is_refused():
    """The trainer says itself what it computes in."""
    read = imported("1p_nvidia.log", dtype="fp16")
    assert (read["status"], "shows dtype float32" in read["reason"]) == ("refused", True)


def test_the_trainers_log_alone_is_refused(tmp_path):
    """It has no world size and does not show that the ranks have the same weights."""
    read = record(tmp_path, "1p_nvidia.log")
    assert (read["status"], "does not show devices" in read["reason"]) == ("refused", True)


def test_a_run_with_the_trainers_warm_up_is_refused(tmp_path):
    """Five epochs: after twelve batches the learning rate is 8.8e-07, and nothing was learned."""
    read = record(tmp_path, "1p_nvidia.log", SHOWN)
    assert (read["status"], "does not show learning_rate" in read["reason"]) == ("refused", True)


def test_a_run_with_a_learning_rate_counts(tmp_path):
    read = record(tmp_path, "1p_nvidia.log", SHOWN, change=("LR: 0.0\t", "LR: 0.01\t"))
    assert (read["status"], read["reason"]) == ("ok", None)


def test_a_run_without_horovod_is_refused(tmp_path):
    """With the key-value store of MXNet each process trains alone."""
    change = ("kv_store='horovod'", "kv_store='device'")
    read = record(tmp_path, "1p_nvidia.log", SHOWN, change=change)
    assert (read["status"], "does not show kv_store" in read["reason"]) == ("refused", True)


def campaign(tmp_path, nodes, change=("", ""), name="", **of_case):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    names = [f"NODE{index}" for index in range(1, nodes + 1)]
    for node in names:
        text = (LOGS / f"{nodes}n_{name}{node}.log").read_text()
        (tmp_path / f"{node}.log").write_text(text.replace(*change) if node == names[-1] else text)
    return run_record(tmp_path, case(nodes, **of_case), 1, WORKLOAD, names, JOB)


def test_a_run_of_a_campaign_counts(tmp_path):
    """Batches 2 and 10, 23:29:13,610 and 23:29:40,261; eight steps of two images."""
    read = campaign(tmp_path, 1, warmup=2, window=8)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(16 / 26.651)


def test_two_nodes_train_the_images_of_both_in_a_step(tmp_path):
    """Batches 1 and 4 of NODE1, 23:34:19,804 and 23:34:22,991; three steps of one image on each node."""
    read = campaign(tmp_path, 2, window=3, bsz=1)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(6 / 3.187)


def test_a_node_that_sees_only_itself_is_refused(tmp_path):
    read = campaign(tmp_path, 2, ("nodes=2", "nodes=1"), window=3, bsz=1)
    assert (read["status"], "shows nodes 1" in read["reason"]) == ("refused", True)


def test_a_node_whose_weights_are_not_the_others_is_refused(tmp_path):
    change = ("MXNET_RESNET50 weights=agree end=true", "")
    read = campaign(tmp_path, 2, change, window=3, bsz=1)
    assert (read["status"], "does not show weights" in read["reason"]) == ("refused", True)


def test_a_run_with_a_file_of_records_counts(tmp_path):
    """Batches 2 and 7 of NODE1, 13:23:36,401 and 13:23:39,043; five steps of two images on each node."""
    read = campaign(tmp_path, 2, name="records_", warmup=2, window=5)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(20 / 2.642)


@pytest.mark.parametrize(
    "change", [("identity=23c486", "identity=23c487"), ("images=64 ", "images=65 "), ("records images", "x")]
)
def test_nodes_with_different_files_of_records_are_refused(tmp_path, change):
    read = campaign(tmp_path, 2, change, name="records_", warmup=2, window=5)
    assert (read["status"], "data" in read["reason"]) == ("refused", True)


def test_dlperfs_table_has_rows_of_this_model():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    names = WORKLOAD.dlperf
    (framework,) = names.frameworks
    assert sum(row.startswith(f"{framework},{names.models['resnet50']},") for row in rows) == 16


# The command line of the trainer


def given(**other):
    values = {"batch": 4, "steps": 120, "dtype": "fp32", "image_size": 224, "learning_rate": 0.01, "data": ""}
    return SimpleNamespace(**{**values, "device": "cpu", **other})


def words(world=2, processes=1, rank=0, cores=8, **other):
    return " ".join(trainer_flags.flags(given(**other), rank, world, processes, cores))


def test_the_batch_is_that_of_all_ranks():
    assert "--batch-size 8 " in words(world=2)


def test_one_batch_more_is_taken_because_the_first_is_number_0():
    assert "--benchmark-iters 121 " in words()


def test_a_warm_up_of_the_learning_rate_is_left_out():
    assert "--warmup-epochs 0 --lr 0.01 " in words()


def test_each_process_of_a_machine_finds_its_device_in_the_list():
    assert "--gpus 0,1,2,3 " in words(world=8, processes=4)


def test_the_dtype_has_the_trainers_name():
    assert "--dtype float16 " in words(dtype="fp16")


def test_each_rank_has_images_of_its_own():
    """With one seed for all the weights agree though the gradients are not summed."""
    assert ("--seed 7 " in words(), "--seed 8 " in words(rank=1)) == (True, True)


def test_data_are_synthetic_unless_a_file_is_named():
    assert "--data-backend synthetic " in words()
    assert "--data-train" not in words()


def test_a_file_of_records_is_read_with_its_index():
    assert (
        "--data-backend mxnet --data-train /data/train.rec --data-train-idx /data/train.idx "
        in words(data="/data/train.rec")
    )  # fmt: skip


@pytest.mark.parametrize(("processes", "threads"), [(1, 8), (4, 2), (16, 1)])
def test_the_processes_of_a_machine_share_its_cores_for_decoding(processes, threads):
    """The trainer's default are 40 threads for each."""
    given_words = words(data="/data/train.rec", processes=processes, world=16)
    assert f"--data-mxnet-threads {threads} " in given_words


@pytest.mark.parametrize(("world", "batch", "images"), [(1, 4, 4), (2, 4, 8), (4, 2, 8), (4, 2, 11)])
def test_as_many_images_as_a_step_takes_are_enough(world, batch, images):
    trainer_flags.check(given(data="/data/train.rec", batch=batch), world, images)


@pytest.mark.parametrize(
    ("world", "batch", "images", "share", "enough"),
    [(1, 4, 3, 3, 4), (2, 4, 7, 4, 8), (4, 2, 9, 3, 12), (4, 2, 2, 1, 8)],
)
def test_fewer_images_than_a_batch_for_the_last_process_are_refused(world, batch, images, share, enough):
    """MXNet 1.6.0 gives four processes 3, 3, 3 and 0 of nine records: the last one ends at once."""
    message = (
        f"/data/train.rec has {images} images: .* have {share} .* batch of {batch}. Fix: {enough} images"
    )
    with pytest.raises(trainer_flags.record_files.ImageError, match=message):
        trainer_flags.check(given(data="/data/train.rec", batch=batch), world, images)


# Installation


def test_openmp_is_installed_before_anything_imports_mxnet():
    """Four nodes without a compiler could not import MXNet; where Horovod is built, g++ brings it."""
    of_mxnet = yaml.safe_load((ROLES / "mxnet/vars/main.yml").read_text())["mxnet_environment"]
    steps = [task["name"] for task in yaml.safe_load((ROLES / "workload/tasks/install.yml").read_text())]
    assert of_mxnet["openmp"]
    assert steps.index("Install the environment") < steps.index("Build Horovod for the framework")
