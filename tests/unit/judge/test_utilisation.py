# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The utilisation of a case: means over its nodes and devices, nothing where nothing was recorded."""

import printed
import pytest
from ansible.module_utils.scalebook.judge import utilisation
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import csv_sheet, usage
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import load_campaign
from in_english import in_english
from recordings import torch_bert
from report_records import campaign, case, record


def node(name, cpu, gpus=(), **more):
    """Return the telemetry of a node with 4 processors; `gpus` are (utilisation, SM active, watts)."""
    quantities = {
        "cpu::busy": {"mean": cpu},
        "memory::used": {"mean": 25.0},
        "network:eth0:sent": {"mean": 3e6},
        "network:eth0:received": {"mean": 1e6},
        "network:lo:sent": {"mean": 9e9},
        "disk:sda:read": {"mean": 2e6},
        "disk:sda:busy": {"mean": 0.5},
    }
    for index, (busy, active, watts) in enumerate(gpus):
        quantities[f"gpu:{index}:utilization"] = {"mean": busy}
        quantities[f"gpu:{index}:sm_active"] = {"mean": active}
        quantities[f"gpu:{index}:energy"] = {"mean": watts}
        quantities[f"gpu:{index}:power"] = {"mean": 1.0}
    return {"node": name, "quantities": {**quantities, **more}, "about": {"cores": 4, "memory_bytes": 100.0}}


def report(tmp_path, *records):
    return build_results(load_campaign(campaign(tmp_path, records)))


def of(made, quantity):
    return next(line for line in made["utilisation"] if line["quantity"] == quantity)


def test_a_case_has_the_mean_and_the_extremes_of_its_nodes_and_devices(tmp_path):
    nodes = [node("A", 1.0, [(100, 90.0, 600.0)]), node("B", 3.0, [(60, 30.0, 200.0)])]
    made = report(tmp_path, record(case(2, 1), 1, 400.0, telemetry=nodes))
    cpu = of(made, "cpu")
    assert (cpu["mean"], cpu["min"], cpu["max"], cpu["of"]) == (50.0, 25.0, 75.0, 2)
    assert of(made, "sm_active")["mean"] == 60.0
    assert of(made, "memory")["mean"] == 25.0
    assert (of(made, "network")["mean"], of(made, "disk")["mean"]) == (4.0, 2.0)
    assert of(made, "gpu_power")["max"] == 600.0
    assert of(made, "gpu_energy")["mean"] == pytest.approx(800 / 400)
    [line] = csv_sheet.sheet(made).rows
    assert line["gpu_energy_mean"] == pytest.approx(2.0)
    assert printed.rows(usage.section(View(made)))[0]["cpu"] == "50.0"


def test_the_joules_need_the_power_of_every_device(tmp_path):
    made = report(tmp_path, record(case(1, 2), 1, 400.0, telemetry=[node("A", 1.0, [(100, 90.0, 600.0)])]))
    assert [line for line in made["utilisation"] if line["quantity"] == "gpu_energy"] == []


def test_where_an_interface_is_physical_the_others_do_not_count():
    one = node("A", 1.0, **{"network:docker0:sent": {"mean": 7e6}})
    one["about"]["physical_interfaces"] = ["eth0"]
    assert utilisation.of_record({"telemetry": [one]})["network"] == [4.0]


def test_a_gpu_without_facts_leaves_the_telemetry_of_the_others():
    one = node("A", 1.0, [(100, 90.0, 600.0)])
    one["about"]["gpus"] = {"0": None}
    assert utilisation.of_record({"telemetry": [one]})["sm_active"] == [90.0]


def test_what_is_not_recorded_is_neither_zero_nor_in_the_table(tmp_path):
    made = report(
        tmp_path, record(case(), 1), record(case(1, 2), 1, telemetry=[{"node": "A", "reason": "killed"}])
    )
    assert made["utilisation"] == []
    assert {line["cpu_mean"] for line in csv_sheet.sheet(made).rows} == {None}


def test_why_telemetry_is_missing_is_a_note(tmp_path):
    made = report(tmp_path, record(case(), 1, telemetry=[{"node": "A", "reason": "killed"}]))
    assert "telemetry of A: killed (1n1g repeat 1)" in in_english(made["notes"])


@pytest.mark.parametrize(
    ("seconds", "covered", "used"), [(3.0, 0.708, True), (18.0, 0.9, True), (3.0, 0.15, False)]
)
def test_telemetry_of_a_part_of_the_window_is_not_used(tmp_path, seconds, covered, used):
    part = {**node("A", 1.0), "interval": 1.0, "seconds": seconds, "covered": covered}
    made = report(tmp_path, record(case(), 1, telemetry=[part]))
    assert bool(made["utilisation"]) is used
    said = "telemetry of A: not used, as it covers 15 % of the window (1n1g repeat 1)"
    assert (said in in_english(made["notes"])) is not used


def test_a_disk_that_worked_longer_than_there_was_time_has_no_share(tmp_path):
    """Linux 6.18 counted 27.684 s of work of a virtual disk within 2 s, on a host with four H200."""
    jumped = {"disk:sda:busy": {"mean": 1.960505, "max": 13.842048}}
    made = report(tmp_path, record(case(), 1, telemetry=[node("A", 1.0, **jumped)]))
    assert [line for line in made["utilisation"] if line["quantity"] == "disk_busy"] == []
    said = (
        "telemetry of A: how busy disk sda was is not used, as the kernel counted 13.8 s of work in a second"
    )
    assert f"{said} (1n1g repeat 1)" in in_english(made["notes"])


def test_a_run_that_does_not_count_has_no_utilisation(tmp_path):
    made = report(tmp_path, record(case(), 1, None, telemetry=[node("A", 1.0)]))
    assert made["utilisation"] == []


@pytest.mark.parametrize(
    "telemetry",
    [
        7,
        ["A"],
        [{"quantities": 3}],
        [{"quantities": {"cpu": {"mean": 1}}}],
        [node("A", 1e308), node("B", "x")],
    ],
)
def test_telemetry_that_makes_no_sense_leaves_the_rate_and_a_note(tmp_path, telemetry):
    made = report(tmp_path, record(case(), 1, telemetry=telemetry))
    assert made["counts"]["good"] == 1 and made["utilisation"] == []
    assert any("telemetry cannot be used" in note for note in in_english(made["notes"]))


def test_energy_is_shown_per_sample_per_joule_and_per_million_samples(tmp_path):
    """433.29 W at 2105 samples/s, as the energy counter of an H200 gave it."""
    made = report(tmp_path, torch_bert(64))
    joules = of(made, "gpu_energy")["mean"]
    assert joules == pytest.approx(3951.211 / (300 * 64), rel=1e-6)
    assert of(made, "gpu_samples_per_joule")["mean"] == pytest.approx(1 / joules)
    assert of(made, "gpu_energy_per_million")["mean"] == pytest.approx(joules / 3.6)
    [line] = printed.rows(usage.section(View(made)))
    assert line["gpu_energy"] == "0.206"


def test_each_resource_is_judged_by_itself(tmp_path):
    nodes = [node("A", 3.2, [(79.9, 90.0, 600.0)])]
    top = campaign(tmp_path, [record(case(), 1, telemetry=nodes)])
    judged = {
        line["quantity"]: line["met"]
        for line in build_results(load_campaign(top))["utilisation"]
        if line["met"] is not None
    }
    assert judged == {"gpu": False, "cpu": True, "memory": False, "disk_busy": False}
    lower = build_results(load_campaign(top), min_utilisation=79.9)
    assert of(lower, "gpu")["met"] is True
    text = usage.section(View(lower))[-1].text
    assert text.startswith("At 79.9 % or more: CPU in 1 of 1 cases, memory in 0 of 1 cases, ")
    assert "GPU utilisation in 1 of 1 cases" in text
    assert "GPU power" not in text


def test_a_link_is_judged_by_its_capacity():
    one = node("A", 1.0)
    one["about"].update(physical_interfaces=["eth0"], network_megabits={"eth0": 48.0})
    assert utilisation.of_record({"telemetry": [one]})["network_link"] == [50.0]


def test_a_virtual_link_has_no_capacity_to_be_judged_by():
    one = node("A", 1.0)
    one["about"]["network_megabits"] = {"eth0": 48.0}
    assert "network_link" not in utilisation.of_record({"telemetry": [one]})
