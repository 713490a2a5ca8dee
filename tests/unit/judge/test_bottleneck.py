# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The bottleneck of a case: the cause of known situations, exact sentences, no claim without evidence."""

from dataclasses import replace
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.judge import bottleneck, rules, thresholds
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.pages.blocks import Items
from ansible.module_utils.scalebook.report import usage
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.workload import Workload
from ansible.module_utils.scalebook.workloads import load_workloads
from recordings import containers, limited_link, made_on_processors, recorded, torch_bert
from report_records import campaign, case, record

ROOT = Path(__file__).parents[3]
TORCH = Workload(name="known", xla=(False, True), dtypes={"gpu": ("fp32", "bf16"), "cpu": ("fp32",)})
QUIET = {"gpu": 100, "sm_active": 70, "dram_active": 30, "memory": 20, "power": 400, "capped": 0}


def node(job=0.5, cpu=1.0, disk=0.0, name="A", gpus=1, sent=0.0, absent=(), waits=None, only=None, **gpu):
    """Return the telemetry of a node of 8 processors with a link of 10 Gbit/s; GPUs are busy, not full."""
    values = {**QUIET, **gpu}
    quantities = {
        "cpu::busy": {"mean": cpu},
        "memory::used": {"mean": 25.0},
        "job::busy": {"mean": job},
        "disk:sda:busy": {"mean": disk},
        "network:eth0:sent": {"mean": sent},
    }
    quantities.update({name: {"mean": value} for name, value in (waits or {}).items()})
    for index in range(gpus):
        for column, key in (
            ("utilization", "gpu"),
            ("sm_active", "sm_active"),
            ("dram_active", "dram_active"),
            ("memory", "memory"),
            ("power", "power"),
            ("throttle_power_cap", "capped"),
        ):
            if column not in absent:
                quantities[f"gpu:{index}:{column}"] = {"mean": values[key], "max": values[key]}
    about = {
        "cores": 8,
        "memory_bytes": 100.0,
        "gpus": {str(index): {"memory_bytes": 100.0, "power_limit": 700.0} for index in range(gpus)},
        "physical_interfaces": ["eth0"],
        "network_megabits": {"eth0": 10000.0},
    }
    cores = {}
    if only:  # the job may use these processors alone: {number: how busy it is}
        about["job_cores"] = list(only)
        cores = {"cores": [only.get(index, 0.0) for index in range(8)]}
    return {"node": name, "quantities": quantities, "about": about, **cores}


def said(judgement):
    return catalogue.sentence(judgement["message"])


def judged(tmp_path, *records):
    one_process = replace(TORCH, drives_all_devices=True, reserves_gpu_memory=True)
    workloads = {"tf2_bert": TORCH, "torch_bert": TORCH, "tf2_resnet50": one_process}
    return build_results(load_campaign(campaign(tmp_path, records)), workloads)["bottlenecks"]


def threads(busiest, following, queued=0.1):
    """Return how busy the two busiest threads of a job are, and how long all were queued."""
    return {"job::busiest_thread": busiest, "job::next_thread": following, "job::queued": queued}


def cause_of(tmp_path, of=None, rate=100.0, **values):
    [made] = judged(tmp_path, record(of or case(), 1, rate, telemetry=[node(**values)]))
    return made["causes"]


# Recordings


def test_a_recorded_run_with_small_batches_is_launch_bound(tmp_path):
    """At batch 512 the same GPU trained 2.8 times as many samples per second."""
    [made] = judged(tmp_path, torch_bert(64))
    assert said(made) == (
        "Launch-bound, likely: small kernels follow each other, and the thread that starts them never waits "
        "(GPU utilisation 61.6 %, SM active 43.8 %, processors that the job kept busy per device 1.01). "
        "Try a larger batch (bsz=128; GPU memory 4.82 %); fused operations (xla=true)."
    )
    assert made["missing"] == []


def test_a_recorded_run_at_the_power_limit_is_power_limited(tmp_path):
    [made] = judged(tmp_path, torch_bert(512))
    assert made["causes"] == ["power-limited", "gpu-bound"]
    assert said(made) == (
        "Power-limited: the power limit held the clocks of the GPUs down "
        "(time at the power limit 100 %, GPU power relative to its limit 99 %, SM active 94.5 %). "
        "Also gpu-bound (SM active 94.5 %). Try a higher power limit where the site allows one, "
        "judged by samples per joule."
    )


def test_what_bounds_a_case_is_data_beside_its_sentence(tmp_path):
    [made] = judged(tmp_path, torch_bert(512))
    assert made["bound"]["what"] == {"code": "bottleneck.power_limited", "values": {}}
    assert [each["values"]["value"] for each in made["bound"]["evidence"]][0] == 100


def test_a_case_without_a_known_cause_has_no_bound(tmp_path):
    [made] = judged(tmp_path, record(case(), 1, 100.0, telemetry=[node()]))
    assert (made["causes"], made["bound"]) == ([], None)


def test_a_recorded_run_on_shared_processors_says_that_others_use_them(tmp_path):
    """Two containers on two processors, while other programs ran there."""
    [made] = judged(tmp_path, containers())
    assert said(made) == (
        "Short of processors: they are busy, mostly with other programs or other simulated nodes "
        "(CPU 97.9 %, the job's part of the busy processors 30.7 %). Try machines that run nothing else. "
        "Not measured: efficiency, busiest network link."
    )


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        ("compute", ["power-limited", "gpu-bound"]),
        ("copy", ["memory-bound", "gpu-bound"]),
        ("loader_workers", ["input-bound"]),
        ("loader_main", ["host-bound"]),
        ("loader_sleep", ["waiting"]),
    ],
)
def test_a_made_situation_recorded_on_a_gpu_has_its_cause(tmp_path, name, causes):
    """The driver reported the power limit in all of the loaders' windows too, at 250 to 270 of 700 W."""
    [made] = judged(tmp_path, record(case(dtype="bf16"), 1, telemetry=recorded(f"h200_made_{name}")))
    assert made["causes"] == causes


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        ("compute", ["processor-bound"]),
        ("shared", ["shared-processors"]),
        ("disk", ["input-bound"]),
        ("slow_disk", ["input-bound"]),
        ("loader", ["input-bound"]),
        ("loader_thread", ["thread-bound"]),
    ],
)
def test_a_made_situation_recorded_on_processors_has_its_cause(tmp_path, name, causes):
    """Other programs kept both processors busy all the time."""
    [made] = judged(tmp_path, made_on_processors(name))
    assert made["evidence"]["cpu"] > 95
    assert made["causes"] == causes


def test_a_recorded_disk_that_is_busy_all_the_time_is_the_evidence_and_more_loaders_are_no_advice(tmp_path):
    """A process read ahead from a disk of 20 MiB/s, while the trainer waited for it."""
    [made] = judged(tmp_path, made_on_processors("slow_disk"))
    assert said(made) == (
        "Input-bound, likely: a disk is busy, or processors wait for one, most of the time (busiest disk "
        "100 %, processors that waited for storage 0.000833, CPU 99.8 %). Try faster storage; input data "
        "prepared beforehand or kept in memory."
    )


def test_a_recorded_exchange_over_a_limited_link_is_communication(tmp_path):
    _, made = judged(tmp_path, made_on_processors("link"), made_on_processors("link", nodes=2))
    assert said(made).startswith(
        "Communication-bound, likely: efficiency is lost, and the processes wait more than on one "
        "device (efficiency 22.5 %, processors that the job kept busy per device 0.096, processors "
        "that the job waited for per device 0.292, processors of 1n1g that the job kept busy 0.339, "
        "processors of 1n1g that the job waited for 0.651)."
    )
    assert made["causes"] == ["communication-bound"]


def test_torch_bert_over_a_limited_link_is_communication_on_busy_processors_too(tmp_path):
    """Other programs took both processors all the time; the job waited for them on one node only."""
    alone, both = judged(tmp_path, limited_link(1), limited_link(2))
    assert (alone["causes"], both["causes"]) == (["shared-processors"], ["communication-bound"])
    assert both["evidence"]["efficiency"] == pytest.approx(0.073, abs=0.003)
    assert min(alone["evidence"]["cpu"], both["evidence"]["cpu"]) > 98


# Made situations: GPUs


@pytest.mark.parametrize(
    ("values", "causes"),
    [
        ({"sm_active": 90}, ["gpu-bound"]),
        ({"sm_active": 89.9}, []),
        ({"dram_active": 60, "sm_active": 80}, ["memory-bound"]),
        ({"dram_active": 85, "sm_active": 95}, ["memory-bound", "gpu-bound"]),
        ({"capped": 0.5, "power": 630, "sm_active": 80}, ["power-limited"]),
        ({"capped": 0.49, "power": 630, "sm_active": 80}, []),
        ({"capped": 1.0, "power": 629, "sm_active": 80}, []),
        ({"gpu": 100, "sm_active": 3, "job": 1.0}, ["launch-bound"]),
        ({"gpu": 100, "sm_active": 3, "job": 0.5}, []),
        ({"gpu": 20, "sm_active": 19, "job": 4.2, "cpu": 4.3}, ["input-bound"]),
        ({"gpu": 20, "sm_active": 19, "job": 0.2, "cpu": 0.3, "disk": 0.95}, ["input-bound"]),
        ({"gpu": 20, "sm_active": 19, "job": 0.2, "cpu": 7.9}, ["shared-processors"]),
        ({"gpu": 20, "sm_active": 19, "job": 7.0, "cpu": 7.9}, ["input-bound"]),
        ({"gpu": 20, "sm_active": 19, "job": 1.0}, ["host-bound"]),
        ({"gpu": 20, "sm_active": 19, "job": 0.2}, ["waiting"]),
        ({"gpu": 20, "sm_active": 19, "job": 0.2, "waits": {"cpu::iowait": 0.5}}, ["input-bound"]),
        ({"gpu": 20, "sm_active": 19, "job": 0.2, "cpu": 7.9, "waits": {"job::queued": 0.1}}, ["waiting"]),
        # A thread that never waits, beside one that starts kernels now and then.
        ({"gpu": 60, "sm_active": 57, "job": 1.3, "waits": threads(0.9, 0.3)}, ["host-bound"]),
        # Two threads that take turns, forward and backward: hf_mlm on an H100.
        ({"gpu": 60, "sm_active": 55, "job": 1.0, "waits": threads(0.55, 0.44)}, ["host-bound"]),
        ({"gpu": 60, "sm_active": 55, "job": 0.89, "waits": threads(0.55, 0.34)}, ["waiting"]),
        ({"gpu": 80, "sm_active": 77, "job": 1.3, "waits": threads(0.99, 0.3)}, []),
        ({"gpu": 60, "sm_active": 43, "job": 1.0, "waits": threads(0.99, 0.1)}, ["launch-bound"]),
        ({"gpu": 60, "sm_active": 57, "job": 1.6, "waits": threads(0.99, 0.6)}, ["input-bound"]),
    ],
)
def test_a_known_situation_has_its_cause(tmp_path, values, causes):
    assert cause_of(tmp_path, **values) == causes


def scaled(tmp_path, rate, **values):
    """Return the judgement of 2n1g at `rate`; 1n1g has 100 samples/s and SM active 92."""
    alone = record(case(), 1, 100.0, telemetry=[node(sm_active=92)])
    nodes = [node(name=name, **values) for name in "AB"]
    return judged(tmp_path, alone, record(case(2, 1), 1, rate, telemetry=nodes))[1]


def test_a_link_near_its_capacity_with_lost_efficiency_is_communication(tmp_path):
    made = scaled(tmp_path, 150.0, sent=0.9e9, sm_active=60)
    assert said(made) == (
        "Communication-bound: efficiency is lost while a network link is near its capacity (efficiency 75 %, "
        "busiest network link 72 %). Try gradient accumulation (accumulation=2), which exchanges less often; "
        "a larger batch (bsz=128; GPU memory 20 %); 16 bits (dtype=bf16)."
    )


def test_a_full_link_without_lost_efficiency_is_no_bottleneck(tmp_path):
    assert scaled(tmp_path, 195.0, sent=0.9e9, sm_active=80)["causes"] == []


def test_kernels_that_use_less_of_the_gpu_than_alone_are_likely_communication(tmp_path):
    made = scaled(tmp_path, 150.0, sm_active=60)
    assert made["causes"] == ["communication-bound"]
    assert "(efficiency 75 %, GPU utilisation 100 %, SM active 60 %, SM active of 1n1g 92 %)" in said(made)


def test_gpus_that_are_as_full_as_alone_are_not_held_back_by_communication(tmp_path):
    assert scaled(tmp_path, 150.0, sm_active=85)["causes"] == []


def test_a_batch_that_ran_out_of_memory_is_evidence_of_full_memory(tmp_path):
    failed = record(case(bsz=128), 1, None, status="oom")
    made = judged(tmp_path, record(case(), 1, telemetry=[node(memory=80)]), failed)
    assert made[0]["causes"] == ["memory-capacity-bound"]
    assert said(made[0]).endswith("Try 16 bits (dtype=bf16); half the batch with accumulation=2.")


@pytest.mark.parametrize(("on", "advised"), [(False, True), (True, False)])
def test_checkpointing_is_advised_by_the_variable_of_the_workload_where_it_is_off(tmp_path, on, advised):
    settings = {"settings": {"checkpointing": on}}
    full = record(case(workload="torch_bert", **settings), 1, telemetry=[node(memory=80)])
    failed = record(case(workload="torch_bert", bsz=128, **settings), 1, None, status="oom")
    declared = {"torch_bert": replace(TORCH, settings=("torch_bert_checkpointing",))}
    made = build_results(load_campaign(campaign(tmp_path, [full, failed])), declared)["bottlenecks"]
    sentence = said(made[0])
    assert ("gradient checkpointing (torch_bert_checkpointing=true)" in sentence) is advised


@pytest.mark.parametrize(
    ("settings", "advised"), [({"steps_per_loop": 1}, True), ({}, True), ({"steps_per_loop": 10}, False)]
)
def test_several_steps_in_one_call_are_advised_where_each_step_is_one(tmp_path, settings, advised):
    telemetry = recorded("h200_made_loader_main")
    slow = record(case(workload="tf2_bert", settings=settings), 1, telemetry=telemetry)
    names = ("tf2_bert_steps_per_loop",)
    declared = {"tf2_bert": replace(TORCH, settings=names, settings_before={"steps_per_loop": 1})}
    [made] = build_results(load_campaign(campaign(tmp_path, [slow])), declared)["bottlenecks"]
    advice = "several steps in one call of the framework (tf2_bert_steps_per_loop=10)"
    assert (made["causes"], advice in said(made)) == (["host-bound"], advised)


EXCHANGE = "Part of each step is exchange between devices, likely"


def of_two(tmp_path, rate, workload=TORCH, one=None, two=None, **other):
    """Return the judgement of two GPUs that train `rate` samples/s, where one trains 100.

    `one` and `two` are readings of the two runs that differ from `node`'s; `other` is of both cases.
    """
    alone = record(case(**other), 1, 100.0, telemetry=[node(**(one or {}))])
    both = record(case(gpus=2, **other), 1, rate, telemetry=[node(gpus=2, **(two or {}))])
    made = build_results(load_campaign(campaign(tmp_path, [alone, both])), {"tf2_bert": workload})
    return next(entry for entry in made["bottlenecks"] if entry["label"] == "1n2g")


def test_what_the_campaign_measured_stands_in_place_of_advice():
    """Summed in one piece, after the backward pass, a step is 5.6 ms shorter: 97.3 % of twice one GPU."""
    source = load_campaign(ROOT / "docs/results/h200x2-2026-11-26/torch")
    made = build_results(source, load_workloads([str(ROOT / "roles")]))
    case_of = {row["case"]: row for row in made["rows"] if row["workload"] == "torch_gpt2"}
    [entry] = [
        entry
        for entry in made["bottlenecks"]
        if entry["case"] in case_of and entry["label"] == "1n2g" and "beyond_slowest" in entry["evidence"]
    ]
    assert case_of[entry["case"]]["settings"]["bucket_mb"] == 25
    assert entry["causes"] == ["power-limited", "gpu-bound"]
    assert (
        f"{EXCHANGE} (step beyond that of the slowest device 4.77 %). "
        "Try bucket_mb=2000 (measured here: +3.2 %); "
        "gradient accumulation (accumulation=2), which exchanges less often."
    ) in said(entry)


@pytest.mark.parametrize(("rate", "named"), [(194.2, False), (193.8, True)])
def test_an_exchange_is_named_from_3_percent_of_a_step_on(tmp_path, rate, named):
    assert (EXCHANGE in said(of_two(tmp_path, rate))) is named


def test_an_exchange_is_not_named_where_the_gpus_wait_for_the_host(tmp_path):
    assert EXCHANGE not in said(of_two(tmp_path, 150.0, two={"gpu": 79}))


def test_an_exchange_is_not_named_twice(tmp_path):
    made = of_two(tmp_path, 150.0, two={"sm_active": 55})
    assert (made["causes"], EXCHANGE in said(made)) == (["communication-bound"], False)


@pytest.mark.parametrize(
    ("xla", "mb", "advised"), [(False, 25, True), (False, 100, False), (True, 25, False)]
)
def test_larger_pieces_are_advised_where_they_have_the_default_size_and_count(tmp_path, xla, mb, advised):
    idle = {"false": {"bucket_mb": 25}}
    declared = replace(TORCH, settings=("tf2_bert_bucket_mb",), xla_settings=idle)
    made = of_two(tmp_path, 190.0, declared, xla=xla, settings={"bucket_mb": mb})
    assert EXCHANGE in said(made)
    assert ("(tf2_bert_bucket_mb=200)" in said(made)) is advised


def test_a_framework_that_reserves_all_memory_is_no_evidence_of_full_memory(tmp_path):
    assert cause_of(tmp_path, memory=97) == []


# Made situations: CPUs


@pytest.mark.parametrize(
    ("values", "causes"),
    [
        ({"cpu": 7.9, "job": 7.5}, ["processor-bound"]),
        ({"cpu": 7.9, "job": 2.0}, ["shared-processors"]),
        ({"cpu": 1.0, "job": 0.9, "disk": 0.9}, ["input-bound"]),
        ({"cpu": 1.0, "job": 1.0}, []),
        ({"cpu": 0.5, "job": 0.4}, ["input-bound"]),
        ({"cpu": 7.0, "job": 0.4}, []),
        # Others take the processors, and the job wants them, or does not.
        ({"cpu": 7.9, "job": 0.4, "waits": {"job::queued": 0.31}}, ["shared-processors"]),
        ({"cpu": 7.9, "job": 0.4, "waits": {"job::queued": 0.29}}, ["input-bound"]),
        ({"cpu": 7.9, "job": 0.7, "waits": {"job::queued": 0.19}}, ["input-bound"]),
        ({"cpu": 7.9, "job": 0.7, "waits": {"job::queued": 0.2}}, ["shared-processors"]),
        ({"cpu": 1.0, "job": 0.9, "waits": {"cpu::iowait": 0.5}}, ["input-bound"]),
        ({"cpu": 1.0, "job": 0.9, "waits": {"cpu::iowait": 0.49}}, []),
        # Of eight processors the job may use two.
        ({"cpu": 2.0, "job": 1.9, "only": {2: 1.0, 3: 0.9}}, ["processor-bound"]),
        ({"cpu": 2.0, "job": 0.5, "only": {2: 1.0, 3: 0.9}}, ["shared-processors"]),
        ({"cpu": 6.9, "job": 1.0, "only": {2: 0.6, 3: 0.5}}, []),
        # One thread never waits, and the others do: for a fifth of the time or more.
        ({"cpu": 2.0, "job": 1.9, "waits": threads(0.9, 0.79)}, ["thread-bound"]),
        ({"cpu": 2.0, "job": 1.9, "waits": threads(0.89, 0.79)}, []),
        ({"cpu": 2.0, "job": 1.9, "waits": threads(0.95, 0.8)}, []),
        # Its only processor has nothing left; others take what it does not want; it wants what they take.
        ({"cpu": 1.0, "job": 0.9, "only": {2: 0.95}, "waits": threads(0.99, 0.1)}, ["processor-bound"]),
        ({"cpu": 7.9, "job": 1.2, "waits": threads(0.99, 0.2)}, ["thread-bound"]),
        ({"cpu": 7.9, "job": 4.0, "waits": threads(0.99, 0.7)}, ["thread-bound"]),
        ({"cpu": 7.9, "job": 0.7, "waits": threads(0.99, 0.2, 0.5)}, ["shared-processors"]),
    ],
)
def test_a_known_situation_on_processors_has_its_cause(tmp_path, values, causes):
    assert cause_of(tmp_path, case(device="cpu"), gpus=0, **values) == causes


def scaled_on_cpus(tmp_path, rate, **values):
    """Return the causes of 2n1g at `rate`; 1n1g has 100 samples/s and keeps one processor busy."""
    alone = record(case(device="cpu"), 1, 100.0, telemetry=[node(gpus=0, job=1.0)])
    nodes = [node(name=name, gpus=0, **values) for name in "AB"]
    return judged(tmp_path, alone, record(case(2, 1, device="cpu"), 1, rate, telemetry=nodes))[1]["causes"]


@pytest.mark.parametrize(
    ("rate", "values", "causes"),
    [
        (100.0, {"job": 0.5}, ["communication-bound"]),
        (100.0, {"job": 0.5, "sent": 0.9e9}, ["communication-bound"]),
        (100.0, {"job": 0.95}, []),
        (195.0, {"job": 0.5}, ["waiting"]),
        (100.0, {"job": 0.5, "cpu": 7.0}, []),
    ],
)
def test_processes_that_wait_more_than_alone_likely_wait_for_each_other(tmp_path, rate, values, causes):
    assert scaled_on_cpus(tmp_path, rate, **values) == causes


def test_one_busy_thread_of_several_devices_may_poll_and_is_no_cause(tmp_path):
    values = {"gpus": 0, "cpu": 2.0, "job": 2.0, "waits": threads(1.0, 0.5)}
    nodes = [node(name=name, **values) for name in "AB"]
    [made] = judged(tmp_path, record(case(2, 1, device="cpu"), 1, telemetry=nodes))
    assert made["causes"] == []


# Evidence


def test_what_was_not_measured_is_named(tmp_path):
    """A GPU before Hopper has no SM active and no DRAM active."""
    of_old = node(absent=("sm_active", "dram_active", "throttle_power_cap"))
    [made] = judged(tmp_path, record(case(), 1, telemetry=[of_old]))
    assert made["causes"] == []
    assert said(made) == (
        "No bottleneck is evident (GPU utilisation 100 %, GPU memory 20 %, processors that the job kept busy "
        "per device 0.5, CPU 12.5 %, busiest disk 0 %). Not measured: SM active, DRAM active, "
        "time at the power limit."
    )


def test_a_run_without_telemetry_has_no_judgement(tmp_path):
    assert judged(tmp_path, record(case(), 1)) == []


def test_a_node_without_telemetry_is_taken_to_be_as_busy_as_the_others(tmp_path):
    values = {"gpus": 0, "cpu": 1.8, "job": 0.88}
    measured, unmeasured = node(**values), {"node": "B", "quantities": {}}
    [made] = judged(tmp_path, record(case(2, 1, device="cpu"), 1, telemetry=[measured, unmeasured]))
    assert made["evidence"]["job_processors"] == pytest.approx(0.88)


def test_the_processors_of_a_job_are_shared_out_over_its_devices(tmp_path):
    """Four trainers that each wait for nothing are four processors, one per GPU."""
    nodes = [node(job=4.0, cpu=4.1, gpus=4, gpu=60, sm_active=30, waits=threads(1.0, 1.0, queued=0.4))]
    [made] = judged(tmp_path, record(case(1, 4), 1, telemetry=nodes))
    assert made["causes"] == ["launch-bound"]
    assert made["evidence"]["job_processors"] == pytest.approx(1.0)
    assert made["evidence"]["job_queued"] == pytest.approx(0.1)


def test_one_thread_of_a_process_that_drives_all_devices_can_delay_each_of_them(tmp_path):
    """It never waits, and is half a processor per device."""
    nodes = [node(job=1.0, cpu=1.1, gpus=2, gpu=40, sm_active=20)]
    several = record(case(1, 2), 1, telemetry=nodes)
    assert judged(tmp_path / "a", several)[0]["causes"] == ["waiting"]
    [made] = judged(tmp_path / "b", record(case(1, 2, workload="tf2_resnet50"), 1, telemetry=nodes))
    assert made["causes"] == ["host-bound"]
    assert "per device 0.5, per process 1" in said(made)


def test_a_process_that_drives_all_devices_and_waits_is_not_host_bound(tmp_path):
    nodes = [node(job=0.8, cpu=0.9, gpus=2, gpu=40, sm_active=20)]
    [made] = judged(tmp_path, record(case(1, 2, workload="tf2_resnet50"), 1, telemetry=nodes))
    assert made["causes"] == ["waiting"]


def test_memory_that_a_framework_reserves_does_not_speak_against_a_larger_batch(tmp_path):
    nodes = [node(job=1.0, cpu=1.1, gpu=40, sm_active=20, memory=98)]
    [made] = judged(tmp_path / "a", record(case(workload="tf2_resnet50"), 1, telemetry=nodes))
    assert "a larger batch (bsz=128; bsz=max finds the largest that fits)" in said(made)
    [made] = judged(tmp_path / "b", record(case(workload="torch_bert"), 1, telemetry=nodes))
    assert "a larger batch" not in said(made)


def test_a_processor_has_no_memory_that_a_framework_reserves():
    [waiting] = [rule for rule in rules.CPU_RULES if rule.cause == "waiting"]
    row = {**case(device="cpu"), "accumulation": 1}
    advice = bottleneck.advised(waiting, row, {}, Workload(name="known", reserves_gpu_memory=True))
    assert [each["code"] for each in advice] == ["bottleneck.look"]


def test_advice_names_only_what_the_case_does_not_have_yet(tmp_path):
    of = case(workload="torch_bert", dtype="bf16", xla=True)
    [made] = judged(tmp_path, record(of, 1, telemetry=[node(sm_active=95)]))
    assert said(made).endswith("Try more devices.")


def test_the_sentence_is_in_the_report(tmp_path):
    made = build_results(load_campaign(campaign(tmp_path, [torch_bert(64)])))
    [items] = [each for each in usage.bottlenecks(View(made)) if isinstance(each, Items)]
    assert items.texts[0].text.startswith("Launch-bound, likely")


RULES = [*rules.GPU_RULES, *rules.CPU_RULES]


def test_every_rule_has_advice():
    row = {**case(), "accumulation": 1}
    assert all(bottleneck.advised(rule, row, {}, Workload()) for rule in RULES)


@pytest.mark.parametrize("language", catalogue.LANGUAGES)
def test_every_rule_and_piece_of_advice_can_be_said(language):
    """Whatever a case has, so that no sentence of a report is left in another language."""
    for words in (rule.says for rule in RULES), (name for rule in RULES for name in rule.advice):
        codes = {f"bottleneck.{word}" for word in words if word not in bottleneck.ADVICE}
        assert codes <= set(catalogue.CATALOGUES[language])
    causes = {code for code in catalogue.CATALOGUES[language] if code.startswith("cause.")}
    assert causes == {f"cause.{rule.cause}" for rule in RULES}


def test_every_evidence_has_a_name_and_a_unit():
    shown = {name for rule in RULES for name in rule.shows}
    assert {bottleneck.UNITS[name] for name in shown} == set(bottleneck.KINDS)
    assert {f"quantity.{name}" for name in shown} < set(catalogue.CATALOGUES["en"])


def test_the_sentence_is_said_in_chinese(tmp_path):
    [made] = judged(tmp_path, torch_bert(64))
    assert catalogue.sentence(made["message"], "zh") == (
        "可能受 kernel 启动限制：小 kernel 接连启动，启动它们的线程从不等待（GPU 利用率 61.6%、"
        "SM 活跃率 43.8%、任务每设备占用的处理器数 1.01）。可尝试：更大的 batch"
        "（bsz=128；GPU 显存 4.82%）；算子融合（xla=true）。"
    )


def limits(part):
    """Yield the thresholds of a condition."""
    if isinstance(part, rules.Limit):
        yield part
    for each in getattr(part, "of", ()):
        yield from limits(each)


def test_rules_compare_with_thresholds_that_exist():
    found = {limit.threshold for rule in RULES for limit in limits(rule.when)}
    assert found < set(thresholds.THRESHOLDS) and len(found) > 20
