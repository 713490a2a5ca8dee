# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_examples_resnet50: genuine logs, which cases it runs, how main.py is started and what it gets."""

import re
from types import SimpleNamespace

import jinja2
import pytest
import yaml
from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.plan.parameters import ParameterError
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from dlperf_logs import exit_record, stamped
from in_english import run_record
from role_files import ROLES, declaration, load

ROOT = ROLES.parent
LOGS = ROOT / "tests/data/torch_examples_resnet50"
WORKLOAD = declaration("torch_examples_resnet50")

examples_flags = load("torch_examples_resnet50", "examples_flags")


def planned(device="cpu", **other):
    given = {"nodes": 1, "gpus": 1, "bsz": 2, "dtype": "fp32", "model": "resnet50", "warmup": 2, "window": 6}
    return plan({**given, **other}, WORKLOAD, cluster(4, slots=2), "torch_examples_resnet50", device)


def record(tmp_path, nodes, kind, change=("", ""), **other):
    """Return the record of a run, with a text of the last node's log changed."""
    names = [f"NODE{index}" for index in range(1, nodes + 1)]
    for name in names:
        text = (LOGS / f"{nodes}n1g{kind}-{name}.log").read_text()
        assert change[0] in text
        (tmp_path / f"{name}.log").write_text(text.replace(*change) if name == names[-1] else text)
    (case,) = planned(nodes=nodes, **other)["cases"]
    return run_record(tmp_path, case, 1, WORKLOAD, names, {"rc": 0})


# Logs


RUNS = [
    (2, "", 24 / 3.631057),
    (1, "_2020", 12 / 3.120407),
    (2, "_2020", 24 / 3.929832),
]


@pytest.mark.parametrize(("nodes", "kind", "rate"), RUNS)
def test_a_genuine_log_gives_the_rate_of_the_window(tmp_path, nodes, kind, rate):
    """Steps 2 and 8 of rank 0: six steps of two images on each node."""
    read = record(tmp_path, nodes, kind)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.005)


@pytest.mark.parametrize(("nodes", "kind", "rate"), RUNS)
def test_the_rate_is_that_of_the_times_that_main_py_prints(tmp_path, nodes, kind, rate):
    """They are seconds of a step without its line, and have three decimals."""
    log = (LOGS / f"{nodes}n1g{kind}-NODE1.log").read_text()
    times = [float(time) for time in re.findall(r"Epoch: \[0\]\[.*?\]\tTime *([\d.]+) ", log)]
    assert len(times) == 8
    assert 6 * 2 * nodes / sum(times[2:]) == pytest.approx(rate, rel=2e-3)


def test_the_trainer_counts_from_0_in_2020_and_from_1_today_and_its_line_is_not_the_step(tmp_path):
    for kind, first in (("", "[0][ 1/16]"), ("_2020", "[0][ 0/16]")):
        assert f"Epoch: {first}" in (LOGS / f"2n1g{kind}-NODE1.log").read_text()
        assert record(tmp_path, 2, kind)["nodes"][0]["steps"] == list(range(1, 9))


def test_main_py_as_published_does_not_count(tmp_path):
    """On CPUs it trains a model in each process, and ends with status 0."""
    names = ["NODE1", "NODE2"]
    for name in names:
        text = (LOGS / f"2n1g_unpatched-{name}.log").read_text()
        (tmp_path / f"{name}.log").write_text(stamped(text, every=0.5, exit_record=exit_record()))
    read = run_record(tmp_path, planned(nodes=2)["cases"][0], 1, WORKLOAD, names, {"rc": 0})
    assert (read["status"], "shows no step" in read["reason"]) == ("incomplete", True)


def test_processes_that_each_train_a_model_fail(tmp_path):
    """main.py as published, started by examples_trainer.py."""
    read = record(tmp_path, 2, "_alone")
    assert read["status"] == "failed"
    assert read["reason"].endswith(
        'its log says "the ranks hold different weights": each process trained a model of its own'
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("world_size=2", "world_size=1"), "shows devices 1"),
        (("nodes=2", "nodes=1"), "shows nodes 1"),
        (("TORCH_EXAMPLES_RESNET50 model", "TORCH_RESNET50 model"), "does not show model"),
        (("global_batch=4", "global_batch=2"), "shows global_batch 2"),
        (("data=files", "data=dummy"), "shows data dummy"),
        (("weights=agree", "weights="), "does not show weights"),
        (("steps_done=8", "steps_done=7"), "shows steps 7"),
    ],
)
def test_what_a_log_must_show(tmp_path, change, reason):
    read = record(tmp_path, 2, "", change)
    assert (read["status"], reason in read["reason"]) == ("refused", True)


# Cases


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"model": "tiny"}, "model=tiny: allowed is resnet50"),
        ({"dtype": "bf16"}, r"dtype=bf16: allowed is fp32 \(torch_examples_resnet50 has fp32\)"),
        ({"dtype": "fp16", "device": "gpu"}, "dtype=fp16: allowed is fp32"),
        ({"xla": "true"}, "xla=true: not a value of PyTorch ResNet-50 with pytorch/examples"),
    ],
)
def test_what_main_py_cannot_do_is_refused_with_the_reason(asked, reason):
    with pytest.raises(ParameterError, match=reason):
        planned(**asked)


def test_accumulation_is_skipped_as_main_py_has_none():
    (skip,) = planned(accumulation=2)["skipped"]
    assert "has no gradient accumulation" in skip["reason"]


def test_a_case_stands_beside_what_dlperf_published_of_main_py():
    """Four tables at 4n8g, by what reads the images; of NVIDIA's container there is none."""
    table = published.read((ROOT / "data/dlperf-published-results.csv").read_text().splitlines())
    group = {
        "id": "g1",
        "title": "ours",
        "workload": "torch_examples_resnet50",
        "model": "resnet50",
        "device": "gpu",
    }
    group |= {
        "dtype": "fp32",
        "xla": False,
        "bsz": 128,
        "accumulation": 1,
        "settings": WORKLOAD.setting_values,
    }
    row = {
        "label": "4n8g",
        "nodes": 4,
        "gpus": 8,
        "devices": 32,
        "median": 1.0,
        "speedup": 1.0,
        "efficiency": 1.0,
    }
    entries = published.compare(group, [row], table, WORKLOAD.dlperf)
    assert {entry["framework"] for entry in entries} == {"PyTorch 1.6.0"}
    assert [entry["rows"][0]["published_rate"] for entry in entries] == [4119.84, 10021.29, 8816.7, 10032.72]


# The command line


def given(**other):
    values = {
        "batch": 4,
        "steps": 120,
        "model": "resnet50",
        "learning_rate": 0.1,
        "data": "/data",
        "device": "cpu",
    }
    return SimpleNamespace(**{**values, **other})


def words(rank=1, world=2, workers=3, **other):
    return " ".join(examples_flags.flags(given(**other), rank, world, workers))


def test_main_py_is_told_its_rank_and_the_ranks_of_the_run():
    assert (
        "--workers 3 --print-freq 1 --world-size 2 --rank 1 --dist-url env:// --dist-backend gloo" in words()
    )


def test_the_batch_is_that_of_a_process_and_the_learning_rate_that_of_all():
    assert "--batch-size 4 " in words()
    assert "--lr 0.4 " in words(batch=128, world=8)


def test_gpus_communicate_through_nccl():
    assert words(device="gpu").endswith("--dist-backend nccl")


@pytest.mark.parametrize(("data", "first"), [("/data", "/data"), ("", "--dummy")])
def test_without_images_main_py_makes_its_own(data, first):
    assert words(data=data).split()[0] == first


def test_main_py_gets_no_seed_which_would_slow_it_down():
    assert "--seed" not in words()


@pytest.mark.parametrize(("images", "world"), [(960, 2), (961, 2), (8, 2), (7, 2), (488, 1)])
def test_images_for_whole_batches_are_taken(images, world):
    """Of 961 images a process has 481, of which the run takes 480; of seven it has four."""
    examples_flags.check(given(), images, world)


@pytest.mark.parametrize(("images", "world", "share"), [(957, 2, 479), (6, 2, 3), (10, 1, 10)])
def test_images_whose_last_batch_of_an_epoch_is_smaller_are_refused(images, world, share):
    with pytest.raises(
        examples_flags.FlagsError, match=f"{images} images, {share} for .* a multiple of {4 * world} "
    ):
        examples_flags.check(given(), images, world)


def test_the_report_knows_this_refusal():
    with pytest.raises(examples_flags.FlagsError) as refused:
        examples_flags.check(given(), 10, 1)
    assert any(failure.text in str(refused.value) for failure in WORKLOAD.failures)


def test_every_torch_is_started_by_the_launcher_that_it_has():
    """torch.distributed.run is there from 1.9 on; the one before it sets RANK and so on with an option."""
    text = (ROLES / "torch_examples_resnet50/templates/run.sh.j2").read_text()
    engine = jinja2.Environment(trim_blocks=True)
    engine.filters["quote"] = str
    engine.tests["version"] = lambda found, wanted, _: [*map(int, found.split(".")[:2])] < [1, 10]
    command = engine.from_string(text[text.index("{% set __launcher") : text.index(" \\\n  --nnodes")])

    def started(torch):
        return command.render(torch_examples_resnet50_install={"python": "python", "torch": torch})

    assert started("2.13.0+cpu") == "exec python -m torch.distributed.run"
    assert started("1.6.0") == "exec python -m torch.distributed.launch --use_env"


# Installation


@pytest.mark.parametrize("stack", ["modern", "dlperf2020"])
def test_every_stack_has_a_commit_and_a_lock_of_its_torch(stack):
    versions = yaml.safe_load((ROOT / f"playbooks/vars/stack_{stack}.yml").read_text())["stack"]
    own = versions["torch_examples_resnet50"]
    assert re.fullmatch("[0-9a-f]{40}", own["commit"])
    assert (ROLES / f"torch_examples_resnet50/files/torch_examples_resnet50-{own['version']}.txt").exists()
    assert own["version"] == versions.get("pytorch", {}).get("version", "1.6.0")


# The line for CPUs

TRAINER = (ROOT / "tests/stand_ins/pytorch_examples/main.py").read_text()
PLACE = "        print('using CPU, this will be slow')\n    elif args.distributed:\n"
LINE = "        model = torch.nn.parallel.DistributedDataParallel(model)\n"


def test_the_text_for_cpus_has_one_more_line():
    before, after = TRAINER.split("    elif args.distributed:\n")
    assert examples_flags.for_cpus(TRAINER, "main.py") == f"{before}{LINE}    elif args.distributed:\n{after}"


@pytest.mark.parametrize(
    "text",
    [
        TRAINER.replace("using CPU", "on a CPU"),
        TRAINER.replace(PLACE, PLACE.replace("\n", f"\n{LINE}", 1)),
        2 * TRAINER,
    ],
)
def test_another_main_py_is_refused(text):
    with pytest.raises(
        examples_flags.FlagsError,
        match="^/x/main.py is not the one that this workload is for: .*torch_examples_resnet50_commit",
    ):
        examples_flags.for_cpus(text, "/x/main.py")
