# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sick GPUs are found and healthy ones are let be.

Every fixture is a recording of a real GPU (tests/data/README.md) with the fields changed that the line here
names, as NVIDIA documents them; the few that are a recording as it is say so.
"""

import copy
import re

import pytest
from ansible.module_utils.scalebook.preflight import nvidia_smi
from preflight_site import DATA, ROOT, Cluster

H100 = nvidia_smi.read_gpus((DATA / "h100-idle.xml").read_text(), {})
BUSY = nvidia_smi.read_gpus((DATA / "h100-busy.xml").read_text(), {})
DMESG = (DATA / "h100-dmesg.txt").read_text().splitlines()
EIGHT = 8


def machine(recording=H100, count=EIGHT):
    """Return what nvidia-smi says of `count` GPUs like the recorded one, each on a bus of its own."""
    smi = copy.deepcopy(recording)
    smi["gpus"] = [
        dict(copy.deepcopy(smi["gpus"][0]), bus=f"00000000:{bus:02X}:00.0") for bus in range(count)
    ]
    return smi


def links(down=(), count=18, gpus=EIGHT):
    """Return the text of `nvidia-smi nvlink --status` of H100s; `down` are (gpu, link)."""
    lines = []
    for gpu in range(gpus):
        lines.append(f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-UUID)")
        for link in range(count):
            lines.append(f"\t Link {link}: {'<inactive>' if (gpu, link) in down else '26.562 GB/s'}")
    return "\n".join(lines)


def cluster(recording=H100, gpus=EIGHT, nodes=4, **limits):
    """Return a cluster of such machines in good health."""
    made = Cluster(nodes, slots=gpus, **limits)
    for name in made.probed:
        made[name].update(
            bus=gpus, smi=machine(recording, gpus), nvlink=nvidia_smi.read_nvlink(links(gpus=gpus))
        )
    return made


def change(made, fields, node="NODE3", index=5):
    """Change fields of one GPU; None takes one away."""
    gpu = made[node]["smi"]["gpus"][index]["values"]
    for path, text in fields.items():
        assert path in gpu or text is not None, f"{path} is not a field of the recording"
        gpu[path] = text
        if text is None:
            del gpu[path]


def change_all(made, fields):
    for node in made.probed:
        for index in range(len(made[node]["smi"]["gpus"])):
            change(made, fields, node, index)


SICK = {
    # what: (fields of NODE3's GPU 5, check, level, words)
    "bad memory": (
        {"ecc_errors/volatile/dram_uncorrectable": "2"},
        ("ecc", "refuse", "volatile/dram_uncorrectable: 2"),
    ),
    "bad cache": ({"ecc_errors/volatile/sram_uncorrectable_parity": "1"}, ("ecc", "refuse", "parity: 1")),
    "cache worn out": (
        {"ecc_errors/aggregate/sram_threshold_exceeded": "Yes"},
        ("ecc", "refuse", "sram_threshold_exceeded: Yes"),
    ),
    "unrepairable memory": ({"ecc_errors/unrepairable_memory": "Yes"}, ("ecc", "refuse", "unrepairable")),
    "no error correction": (
        {"ecc_mode/current_ecc": "Disabled", "ecc_mode/pending_ecc": "Disabled"},
        ("ecc", "warn", "on most GPUs Enabled"),
    ),
    "row to be remapped": (
        {"remapped_rows/remapped_row_pending": "Yes"},
        ("rows", "refuse", "to be remapped"),
    ),
    "row not remapped": ({"remapped_rows/remapped_row_failure": "Yes"}, ("rows", "refuse", "failed")),
    "page to be retired": ({"retired_pages/pending_retirement": "Yes"}, ("rows", "refuse", "to be retired")),
    "too hot": (
        {
            "clocks_event_reasons/clocks_event_reason_hw_slowdown": "Active",
            "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown": "Active",
        },
        ("throttle", "refuse", "too hot"),
    ),
    "power brake": (
        {"clocks_event_reasons/clocks_event_reason_hw_power_brake_slowdown": "Active"},
        ("throttle", "refuse", "the power supply requests it"),
    ),
    "warm when idle": ({"temperature/gpu_temp_tlimit": "3 C"}, ("throttle", "warn", "5 °C below")),
    "power cap": (
        {"gpu_power_readings/current_power_limit": "350.00 W"},
        ("power", "warn", "capped at 350 W"),
    ),
    "half the lanes": (
        {"pci/pci_gpu_link_info/link_widths/current_link_width": "8x"},
        ("pcie", "refuse", "8 of 16 PCIe lanes"),
    ),
    "a slot of an earlier generation": (
        {"pci/pci_gpu_link_info/pcie_gen/max_link_gen": "4"},
        ("pcie", "refuse", "its slot gives it PCIe generation 4, it could have 5"),
    ),
    "slow while it computes": (
        {
            "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "3",
            "clocks_event_reasons/clocks_event_reason_gpu_idle": "Not Active",
        },
        ("pcie", "refuse", "PCIe generation 3 of 5 while it computes"),
    ),
    "in a narrow slot": (
        {
            "pci/pci_gpu_link_info/link_widths/max_link_width": "8x",
            "pci/pci_gpu_link_info/link_widths/current_link_width": "8x",
        },
        ("pcie", "refuse", "8 of 16 PCIe lanes"),
    ),
    "no persistence": ({"persistence_mode": "Disabled"}, ("persistence", "warn", "nvidia-persistenced")),
    "fabric not ready": (
        {"fabric/state": "In Progress", "fabric/status": "N/A"},
        ("nvlink", "refuse", "fabric is In Progress"),
    ),
    "no answer": (
        {"fb_memory_usage/total": "[Unknown Error]"},
        ("gpu", "refuse", "it answers [Unknown Error]"),
    ),
    "cut up": ({"mig_mode/current_mig": "Enabled"}, ("mode", "refuse", "MIG")),
    "prohibited": ({"compute_mode": "Prohibited"}, ("mode", "refuse", "prohibited")),
    "to be reset": ({"gpu_recovery_action": "GPU Reset"}, ("mode", "refuse", "GPU Reset")),
    "memory in use": (
        {"fb_memory_usage/used": "2163 MiB", "fb_memory_usage/free": "78417 MiB"},
        ("memory", "refuse", "cannot be seen from here"),
    ),
    "another model": (
        {"product_name": "NVIDIA A100-SXM4-80GB"},
        ("gpu", "warn", "most are NVIDIA H100 80GB HBM3"),
    ),
}


@pytest.mark.parametrize("what", SICK)
def test_a_sick_gpu_is_found_by_its_one_check_and_named(what):
    fields, (check, level, words) = SICK[what]
    made = cluster()
    change(made, fields)
    assert made.bad() == [(check, level, ["NODE3"])]
    assert words in made.said()
    assert "GPU 5 (00000000:05:00.0)" in made.said()


def test_a_gpu_that_is_gone_is_counted():
    made = cluster()
    del made["NODE2"]["smi"]["gpus"][7]
    assert made.bad() == [("gpu", "refuse", ["NODE2"])]
    assert "7 of 8 GPUs answer" in made.said()


def test_a_driver_that_does_not_answer_is_refused():
    made = cluster()
    made.fail(
        "NODE4", "smi", "RuntimeError: nvidia-smi: Failed to initialize NVML: Driver/library version mismatch"
    )
    assert made.bad() == [("gpu", "refuse", ["NODE4"])]
    assert "version mismatch" in made.said()


def test_a_node_without_a_driver_among_others_is_refused():
    made = cluster()
    made["NODE4"].update(smi=None)
    assert made.bad() == [("gpu", "refuse", ["NODE4"])]
    assert "8 NVIDIA devices on the bus, but no nvidia-smi" in made.said()


def test_a_process_of_others_is_named_with_its_user():
    """The busy recording as it is; who its user was, node_probe reads from /proc."""
    made = cluster()
    made["NODE3"]["smi"]["gpus"][5] = copy.deepcopy(BUSY["gpus"][0])
    made["NODE3"]["smi"]["gpus"][5]["processes"][0]["user"] = "eve"
    assert made.bad() == [("process", "refuse", ["NODE3"])]
    assert "python3 (pid 446, user eve) uses 2154 MiB" in made.said()


def test_a_link_that_is_down_is_named():
    made = cluster()
    made["NODE3"]["nvlink"] = nvidia_smi.read_nvlink(links(down=[(5, 11)]))
    assert made.bad() == [("nvlink", "refuse", ["NODE3"])]
    assert "GPU 5 (00000000:05:00.0): 17 NVLinks are up, down: 11" in made.said()


def test_a_driver_that_differs_is_refused():
    made = cluster()
    made["NODE2"]["smi"]["driver"] = "570.86.15"
    assert made.bad() == [("driver", "refuse", ["NODE2"])]
    assert "570.86.15: NODE2; 580.159.04: NODE1, NODE3, NODE4" in made.said()


@pytest.mark.parametrize(
    ("cuda", "driver", "fits"),
    [
        ("10.2", "440.33.01", True),
        ("10.2", "418.87.01", False),
        ("12.6", "525.60.13", True),
        ("13.0", "575.51.03", False),
        ("13.0", "580.159.04", True),
        ("", "390.10", True),
        ("99.0", "390.10", True),
    ],
)
def test_a_driver_too_old_for_cuda_is_refused(cuda, driver, fits):
    made = cluster(cuda=cuda)
    for node in made.probed:
        made[node]["smi"]["driver"] = driver
    assert made.bad() == ([] if fits else [("driver", "refuse", ["NODE1", "NODE2", "NODE3", "NODE4"])])


# The form of these lines is that of https://docs.nvidia.com/deploy/xid-errors
@pytest.mark.parametrize(
    ("line", "level"),
    [
        (
            "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "refuse",
        ),
        (
            "NVRM: Xid (PCI:0000:05:00): 48, pid=1896, An uncorrectable double bit error (DBE)",
            "refuse",
        ),
        ("NVRM: Xid (PCI:0000:05:00): 74, pid=0, NVLink: fatal error detected on link 3", "refuse"),
        (
            "NVRM: Xid (PCI:0000:05:00): 119, pid=77, name=python3, Timeout waiting for RPC from GSP!",
            "refuse",
        ),
        ("NVRM: Xid (PCI:0000:05:00): 94, pid=77, Contained: SM (0x1). RST: No, D-RST: No", "warn"),
        ("NVRM: Xid (PCI:0000:05:00): 63, pid=1896, Row Remapper: New row marked for remapping", "warn"),
        ("NVRM: Xid (PCI:0000:05:00): 4711, pid=1, something new", "warn"),
    ],
)
def test_an_error_in_the_kernels_log_is_found(line, level):
    made = cluster()
    made["NODE3"]["xids"] = nvidia_smi.read_xids([*DMESG, f"[  123.456789] {line}"])
    assert made.bad() == [("xid", level, ["NODE3"])]
    assert "of 0000:05:00, 1 times" in made.said()


def test_a_log_that_may_not_be_read_is_told():
    made = cluster()
    made.fail("NODE1", "xids", "RuntimeError: dmesg: read kernel buffer failed: Operation not permitted")
    assert made.bad() == [("xid", "warn", ["NODE1"])]


def test_a_machine_whose_only_gpu_fell_off_the_bus_is_found_by_its_log():
    made = Cluster(1)
    made.fail("NODE1", "smi", "RuntimeError: nvidia-smi: No devices were found")
    made["NODE1"]["xids"] = nvidia_smi.read_xids(
        ["[1.0] NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus."]
    )
    assert ("xid", "refuse", ["NODE1"]) in made.bad()


# In good health


def from_text(report):
    """Return the fields that tests need of `nvidia-smi -q`, the text, under the names of `-q -x`."""
    place, lines, values = [], report.splitlines(), {}
    for line in lines:
        name, separator, text = line.partition(" : ")
        depth = (len(name) - len(name.lstrip())) // 4
        place = [*place[:depth], name.strip()]
        if separator:
            values["/".join(place[1:]) or name.strip()] = text.strip()
    return {
        "driver": values["Driver Version"],
        "cuda": values["CUDA Version"],
        "gpus": [
            {
                "bus": re.search(r"^GPU (\S+)", report, re.MULTILINE).group(1),
                "values": {path: values[label] for label, path in TEXT.items()},
                "processes": [],
            }
        ],
    }


_EVENTS, _EVENT = "Clocks Event Reasons", "clocks_event_reasons/clocks_event_reason"
TEXT = {
    "Product Name": "product_name",
    "MIG Mode/Current": "mig_mode/current_mig",
    "GPU Recovery Action": "gpu_recovery_action",
    "Compute Mode": "compute_mode",
    "PCI/GPU Link Info/Link Width/Max": "pci/pci_gpu_link_info/link_widths/max_link_width",
    "PCI/GPU Link Info/Link Width/Current": "pci/pci_gpu_link_info/link_widths/current_link_width",
    f"{_EVENTS}/HW Slowdown": f"{_EVENT}_hw_slowdown",
    f"{_EVENTS}/HW Slowdown/HW Thermal Slowdown": f"{_EVENT}_hw_thermal_slowdown",
    f"{_EVENTS}/SW Thermal Slowdown": f"{_EVENT}_sw_thermal_slowdown",
    f"{_EVENTS}/SW Power Cap": f"{_EVENT}_sw_power_cap",
    "FB Memory Usage/Total": "fb_memory_usage/total",
    "FB Memory Usage/Reserved": "fb_memory_usage/reserved",
    "FB Memory Usage/Free": "fb_memory_usage/free",
    "ECC Mode/Current": "ecc_mode/current_ecc",
    "ECC Mode/Pending": "ecc_mode/pending_ecc",
    "ECC Errors/Volatile/SRAM Uncorrectable Parity": "ecc_errors/volatile/sram_uncorrectable_parity",
    "ECC Errors/Volatile/DRAM Uncorrectable": "ecc_errors/volatile/dram_uncorrectable",
    "ECC Errors/Aggregate/SRAM Threshold Exceeded": "ecc_errors/aggregate/sram_threshold_exceeded",
    "ECC Errors/Unrepairable Memory": "ecc_errors/unrepairable_memory",
    "Retired Pages/Pending Page Blacklist": "retired_pages/pending_retirement",
    "Remapped Rows/Pending": "remapped_rows/remapped_row_pending",
    "Remapped Rows/Remapping Failure Occurred": "remapped_rows/remapped_row_failure",
    "Temperature/GPU T.Limit Temp": "temperature/gpu_temp_tlimit",
    "Temperature/GPU Slowdown T.Limit Temp": "temperature/gpu_temp_slow_tlimit_threshold",
    "GPU Power Readings/Current Power Limit": "gpu_power_readings/current_power_limit",
    "GPU Power Readings/Default Power Limit": "gpu_power_readings/default_power_limit",
    "Fabric/State": "fabric/state",
    "Fabric/Status": "fabric/status",
}
H200 = from_text((ROOT / "tests/data/torch_bert/nvidia-smi-q-h200.txt").read_text())


def test_the_text_of_a_report_says_what_its_xml_says():
    text = from_text((DATA / "h100-idle.txt").read_text())
    xml = H100["gpus"][0]["values"]
    assert (text["driver"], text["cuda"]) == (H100["driver"], H100["cuda"])
    assert text["gpus"][0]["values"] == {path: xml[path] for path in TEXT.values()}


def with_fields(fields):
    made = cluster()
    change_all(made, fields)
    return made


def with_log(*lines):
    made = cluster()
    made["NODE3"]["xids"] = nvidia_smi.read_xids(
        [*DMESG, *(f"[9.9] NVRM: Xid (PCI:0000:05:00): {line}" for line in lines)]
    )
    return made


def with_links(text):
    made = cluster()
    for node in made.probed:
        made[node]["nvlink"] = nvidia_smi.read_nvlink(text)
    return made


def with_processes(*kinds, used=0):
    made = cluster()
    gpu = made["NODE1"]["smi"]["gpus"][0]
    gpu["processes"] = [
        {"pid": 900 + i, "type": kind, "command": "/usr/lib/xorg/Xorg", "memory": "88 MiB", "user": "root"}
        for i, kind in enumerate(kinds)
    ]
    gpu["values"]["fb_memory_usage/free"] = f"{81079 - used} MiB"
    return made


def older_driver():
    """A V100 with driver 440 as its documentation describes the report: other names for what slows it down,
    for power and for memory errors, and retired pages instead of remapped rows."""
    made = cluster()
    for node in made.probed:
        made[node]["smi"]["driver"] = "440.33.01"
        for gpu in made[node]["smi"]["gpus"]:
            kept = {
                path: text
                for path, text in gpu["values"].items()
                if not path.startswith(
                    ("clocks_", "gpu_power", "ecc_errors", "remapped", "fabric", "gpu_recovery", "temp")
                )
            }
            gpu["values"] = kept | {
                "product_name": "Tesla V100-SXM2-16GB",
                "clocks_throttle_reasons/clocks_throttle_reason_hw_slowdown": "Not Active",
                "clocks_throttle_reasons/clocks_throttle_reason_hw_thermal_slowdown": "Not Active",
                "power_readings/power_limit": "300.00 W",
                "power_readings/enforced_power_limit": "300.00 W",
                "power_readings/default_power_limit": "300.00 W",
                "ecc_errors/volatile/single_bit/total": "3",
                "ecc_errors/volatile/double_bit/total": "0",
                "ecc_errors/aggregate/double_bit/total": "1",
                "retired_pages/double_bit_retirement/retired_count": "1",
                "retired_pages/pending_retirement": "No",
                "temperature/gpu_temp": "38 C",
                "temperature/gpu_temp_slow_threshold": "87 C",
            }
    return made


CLEAN = {
    "H100, the recording as it is": lambda: cluster(gpus=1, nodes=1),
    "H200, the recording as it is": lambda: cluster(H200, gpus=1, nodes=1),
    "four nodes with eight H100": cluster,
    "two nodes with eight H200": lambda: cluster(H200, nodes=2),
    "rows remapped long ago": lambda: with_fields(
        {"remapped_rows/remapped_row_unc": "2", "remapped_rows/remapped_row_corr": "1"}
    ),
    "errors that were corrected": lambda: with_fields(
        {"ecc_errors/volatile/sram_correctable": "17", "ecc_errors/volatile/dram_correctable": "4"}
    ),
    "errors of earlier days": lambda: with_fields({"ecc_errors/aggregate/dram_uncorrectable": "1"}),
    "PCIe asleep": lambda: with_fields({"pci/pci_gpu_link_info/pcie_gen/current_link_gen": "1"}),
    "no error correction anywhere": lambda: with_fields(
        {"ecc_mode/current_ecc": "Disabled", "ecc_mode/pending_ecc": "Disabled"}
    ),
    "a card without error correction": lambda: with_fields(
        dict.fromkeys(
            ("ecc_mode/current_ecc", "ecc_mode/pending_ecc", "ecc_errors/volatile/dram_uncorrectable"), "N/A"
        )
    ),
    "a card that tells no power": lambda: with_fields({"gpu_power_readings/current_power_limit": "[N/A]"}),
    "power raised": lambda: with_fields(
        {
            "gpu_power_readings/default_power_limit": "350.00 W",
            "gpu_power_readings/current_power_limit": "400.00 W",
        }
    ),
    "power managed": lambda: with_fields({"clocks_event_reasons/clocks_event_reason_sw_power_cap": "Active"}),
    "clocks that somebody set": lambda: with_fields(
        {"clocks_event_reasons/clocks_event_reason_applications_clocks_setting": "Active"}
    ),
    "one process at a time": lambda: with_fields({"compute_mode": "Exclusive_Process"}),
    "the fabric is ready": lambda: with_fields({"fabric/state": "Completed", "fabric/status": "Success"}),
    "fields of tomorrow": lambda: with_fields({"gpu_recovery_action": None, "fabric/state": None}),
    "no links in use": lambda: with_links(
        links(down={(gpu, link) for gpu in range(8) for link in range(18)})
    ),
    "no links at all": lambda: with_links(""),
    "an older driver": older_driver,
    "a screen": lambda: with_processes("G", used=88),
    "some memory of the driver": lambda: with_processes(used=450),
    "the kernel's log as recorded": with_log,
    "programs that failed": lambda: with_log(
        "13, pid=77, name=python3, Graphics SM Warp Exception",
        "31, pid=77, MMU Fault",
        "43, pid=77, Ch 00000008",
        "45, pid=77, Ch 00000008",
    ),
}


@pytest.mark.parametrize("what", CLEAN)
def test_healthy_gpus_raise_no_alarm(what):
    assert CLEAN[what]().bad() == []


def test_there_are_as_many_fixtures_as_promised():
    assert len(SICK) >= 12
    assert len(CLEAN) >= 20


def test_fewer_lanes_everywhere_are_a_warning():
    """Some servers wire eight lanes to every card."""
    made = with_fields({"pci/pci_gpu_link_info/link_widths/current_link_width": "8x"})
    assert {(check, level) for check, level, _ in made.bad()} == {("pcie", "warn")}


def test_slots_of_an_earlier_generation_everywhere_are_a_warning():
    made = with_fields({"pci/pci_gpu_link_info/pcie_gen/max_link_gen": "4"})
    assert {(check, level) for check, level, _ in made.bad()} == {("pcie", "warn")}


def test_a_screen_that_takes_much_memory_is_a_warning():
    assert with_processes("G", used=4000).bad() == [("memory", "warn", ["NODE1"])]


@pytest.mark.parametrize(
    ("fields", "check"),
    [
        ({"clocks_throttle_reasons/clocks_throttle_reason_hw_thermal_slowdown": "Active"}, "throttle"),
        ({"power_readings/enforced_power_limit": "150.00 W"}, "power"),
        ({"ecc_errors/volatile/double_bit/total": "1"}, "ecc"),
        ({"retired_pages/pending_retirement": "Yes"}, "rows"),
        ({"temperature/gpu_temp": "80 C"}, "throttle"),
    ],
)
def test_a_sick_gpu_with_an_older_driver_is_found_too(fields, check):
    made = older_driver()
    change(made, fields)
    assert [found for found, _, _ in made.bad()] == [check]


# What people reported

REPORTED = DATA / "reported"


def reported(name, links=""):
    """Return a node with the GPUs of a report in tests/data/preflight/reported."""
    smi = nvidia_smi.read_gpus((REPORTED / name).read_text(), {})
    made = Cluster(1, slots=len(smi["gpus"]))
    made["NODE1"].update(bus=len(smi["gpus"]), smi=smi, nvlink=nvidia_smi.read_nvlink(links))
    return made


def test_a_healthy_fabric_is_no_fault():
    assert reported("healthy.xml").bad() == []


def test_a_gpu_whose_route_is_unhealthy_is_refused_by_name():
    made = reported("route.xml")
    assert made.bad() == [("nvlink", "refuse", ["NODE1"])]
    assert "GPU 1 (00000000:0B:00.0): its NVLink fabric is unhealthy" in made.said()
    assert "route unhealthy: True" in made.said()


def test_a_fabric_without_resources_is_refused():
    made = reported("insufficient.xml")
    assert made.bad() == [("nvlink", "refuse", ["NODE1"])]
    assert "its NVLink fabric is Completed, Insufficient Resources" in made.said()


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("bandwidth", "Degraded", "bandwidth: Degraded"),
        ("summary", "Limited Capacity", "summary: Limited Capacity"),
        ("route_recovery_in_progress", "True", "route recovery in progress: True"),
        ("access_timeout_recovery", "True", "access timeout recovery: True"),
        ("incorrect_configuration", "Incorrect Chassis SN", "incorrect configuration: Incorrect Chassis SN"),
    ],
)
def test_what_ails_a_fabric_is_named(field, text, words):
    made = reported("healthy.xml")
    made["NODE1"]["smi"]["gpus"][0]["values"][f"fabric/health/{field}"] = text
    assert made.bad() == [("nvlink", "refuse", ["NODE1"])]
    assert words in made.said()


# The form of the line is that of the Fabric Manager User Guide.
@pytest.mark.parametrize(
    ("version", "found"),
    [("580.65.06", []), ("580.82.07", [("nvlink", "warn", ["NODE1"])])],
)
def test_a_fabric_manager_of_another_version_than_the_driver_is_named(version, found):
    made = reported("healthy.xml")
    made["NODE1"]["fabric_manager"] = f"Fabric Manager version is : {version}\n"
    assert made.bad() == found


def test_a_fabric_manager_that_could_not_start_is_refused_with_the_version_to_install():
    made = reported("healthy.xml")
    made["NODE1"]["fabric_manager"] = "Fabric Manager version is : 580.82.07\n"
    change(made, {"fabric/state": "In Progress"}, "NODE1", 0)
    assert made.bad() == [("nvlink", "refuse", ["NODE1"])] * 2
    assert "install nvidia-fabricmanager 580.65.06" in made.said()


NVL = (REPORTED / "nvlink-h100-nvl" / "nvlink.txt").read_text()


def test_links_that_a_model_leaves_out_are_no_fault():
    assert reported("nvlink-h100-nvl/smi.xml", NVL).bad() == []


def test_a_gpu_with_fewer_links_than_its_equal_is_refused():
    before, mark, after = NVL.partition("GPU 1:")
    one_down = before + mark + after.replace("Link 12: 26.562 GB/s", "Link 12: <inactive>")
    made = reported("nvlink-h100-nvl/smi.xml", one_down)
    assert made.bad() == [("nvlink", "refuse", ["NODE1"])]
    assert "GPU 1 (00000002:00:00.0): 11 NVLinks are up, down: 4, 5, 10, 11, 12, 16, 17" in made.said()


def test_cards_with_a_bridge_on_one_node_only_are_a_warning():
    made = with_fields(
        {"product_name": "NVIDIA A100 80GB PCIe", "fabric/state": "N/A", "fabric/status": "N/A"}
    )
    every = {(gpu, link) for gpu in range(8) for link in range(18)}
    made["NODE2"]["nvlink"] = nvidia_smi.read_nvlink(links(down=every))
    assert made.bad() == [("nvlink", "warn", ["NODE2"])] * 8


def test_a_link_that_is_down_on_all_gpus_of_a_switched_board_is_a_warning():
    made = cluster(gpus=2, nodes=1)
    change_all(made, {"product_name": "NVIDIA A100-SXM4-80GB"})
    made["NODE1"]["nvlink"] = nvidia_smi.read_nvlink(links(down={(0, 3), (1, 3)}, count=12, gpus=2))
    assert made.bad() == [("nvlink", "warn", ["NODE1"])] * 2


def test_links_that_are_all_down_on_a_switched_board_are_a_warning():
    made = cluster(gpus=2, nodes=1)
    change_all(made, {"product_name": "NVIDIA A100-SXM4-80GB"})
    every = {(gpu, link) for gpu in range(2) for link in range(12)}
    made["NODE1"]["nvlink"] = nvidia_smi.read_nvlink(links(down=every, count=12, gpus=2))
    assert made.bad() == [("nvlink", "warn", ["NODE1"])] * 2


def test_a_board_gpu_that_a_virtual_machine_has_for_itself_needs_no_links():
    made = cluster(gpus=1, nodes=1)
    every = {(0, link) for link in range(18)}
    made["NODE1"]["nvlink"] = nvidia_smi.read_nvlink(links(down=every, gpus=1))
    assert made.bad() == []


@pytest.mark.parametrize("text", ["[GPU requires reset]", "GPU requires restart", "ERR!", "[GPU is lost]"])
def test_a_gpu_that_answers_with_its_fault_is_refused(text):
    made = cluster(gpus=2, nodes=1)
    change(made, {"temperature/gpu_temp": text}, "NODE1", 1)
    assert made.bad() == [("gpu", "refuse", ["NODE1"])]


@pytest.mark.parametrize(
    "why", ["GPU is lost", "Unable to determine the device handle for GPU0000:4B:00.0: Unknown Error"]
)
def test_a_lost_gpu_is_to_be_reset_and_its_driver_is_not_blamed(why):
    made = cluster(gpus=2, nodes=1)
    made.fail("NODE1", "smi", f"nvidia-smi: {why}")
    assert "nvidia-smi --gpu-reset" in made.said() and "installation of the driver" not in made.said()


def test_an_error_is_told_with_its_worst_text():
    line = "NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT  %s   XC0 i0 Link 07 (0x004505c6)"
    (error,) = nvidia_smi.read_xids([line % "Nonfatal", line % "Fatal", line % "Nonfatal"])
    assert (error["fatal"], error["count"]) == (True, 3) and error["text"].startswith("NETIR_LINK_EVT  Fatal")


def in_log(*lines):
    """Return the levels of the errors that a node's log has, by number."""
    made = Cluster(1)
    made["NODE1"]["xids"] = nvidia_smi.read_xids(lines)
    found = [one for one in made.findings() if one["check"] == "xid" and one["level"] != "ok"]
    return {int(re.search(r"Xid (\d+)", one["found"])[1]): one["level"] for one in found}, made


def test_a_fatal_error_of_a_link_and_a_reset_that_is_required_are_refused():
    levels, made = in_log(*(REPORTED / "blackwell.txt").read_text().splitlines())
    assert levels == {145: "warn", 149: "refuse", 154: "refuse"}
    assert "the driver recommends: GPU Reset Required" in made.said()


def test_the_errors_of_an_older_gpu_are_what_they_were():
    levels, _ = in_log(*(REPORTED / "ampere.txt").read_text().splitlines())
    assert levels == {63: "warn", 94: "warn", 79: "refuse", 119: "refuse"}


ACTION = (
    "[1.0] NVRM: Xid (PCI:0000:dc:00): 154, GPU recovery action changed from 0x1 (A) to 0x2 (Node Reboot)"
)


@pytest.mark.parametrize(
    ("lines", "levels"),
    [
        ([ACTION], {154: "refuse"}),
        ([ACTION, ACTION.replace("0x2 (Node Reboot)", "0x0 (None)")], {}),
        (
            ["[1.0] NVRM: Xid (PCI:0000:05:00 GPU-I:04): 79, pid=1, GPU has fallen off the bus."],
            {79: "refuse"},
        ),
        (
            ["[1.0] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"],
            {20034: "refuse"},
        ),
        (
            ["[1.0] nvidia-nvswitch3: SXid (PCI:0000:8b:00.0): 22013, Non-fatal, Link 08 DLREQ"],
            {22013: "warn"},
        ),
    ],
)
def test_an_error_counts_by_what_the_driver_says_of_it(lines, levels):
    assert in_log(*lines)[0] == levels


def test_the_lines_about_an_error_of_a_switch_are_not_errors_of_their_own():
    head = "[1.0] nvidia-nvswitch3: SXid (PCI:0000:8b:00.0): 22013, "
    lines = [f"{head}Fatal, Link 08", f"{head}Severity 0 Engine instance 08", f"{head}Data {{0x00000000}}"]
    (error,) = nvidia_smi.read_xids(lines)
    assert (error["count"], error["text"], error["fatal"]) == (1, "Fatal, Link 08", True)


MISMATCH = (
    "RuntimeError: nvidia-smi: Failed to initialize NVML: Driver/library version mismatch\n"
    "NVML library version: 550.107"
)


@pytest.mark.parametrize(
    ("module", "age"),
    [("", "older"), ("; loaded module: 550.90.07", "older"), ("; loaded module: 560.35.03", "newer")],
)
def test_a_module_and_libraries_that_differ_ask_for_a_reboot(module, age):
    made = cluster()
    made.fail("NODE4", "smi", MISMATCH + module)
    assert f"reboot: the loaded module is {age} than its libraries" in made.said()


def test_a_warning_behind_the_report_is_one_and_the_gpus_are_read():
    report = (DATA / "h100-idle.xml").read_text() + "\nWARNING: infoROM is corrupted at gpu 0000:05:00.0\n"
    made = cluster(nvidia_smi.read_gpus(report, {}), gpus=1, nodes=1)
    assert made.bad() == [("gpu", "warn", ["NODE1"])]
    assert "nvidia-smi warns: WARNING: infoROM is corrupted at gpu 0000:05:00.0" in made.said()


# How many


def test_more_gpus_than_the_inventory_says_are_told():
    made = cluster()
    for one in made.machines:
        one["slots"] = 4
    assert {(check, level) for check, level, _ in made.bad()} == {("gpu", "warn")}


def test_processors_are_measured_whatever_the_gpus_are():
    made = cluster()
    made.device = "cpu"
    change(made, SICK["bad memory"][0])
    assert "gpu" not in {one["check"] for one in made.findings()}


def test_a_screens_card_without_a_driver_does_not_stop_a_measurement_of_processors():
    made = Cluster()
    made["NODE1"]["bus"] = 1
    assert made.bad() == [("gpu", "warn", ["NODE1"])]


def test_gpus_that_were_asked_for_must_be_there():
    made = Cluster(2, device="gpu")
    assert made.bad() == [("gpu", "refuse", ["NODE1", "NODE2"])]
