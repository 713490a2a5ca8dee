# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which driver a host gets: by recordings of lspci, in the files that /sys has for them."""

import re
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.provision import driver

DATA = Path(__file__).resolve().parents[2] / "data"
MACHINES = dict(
    part.split("\n", 1)
    for part in re.split(r"^# ", (DATA / "nvidia_driver/lspci.txt").read_text(), flags=re.M)[1:]
)
SMI = "#!/bin/sh\nprintf '%s\\n' {}\n"
MISMATCH = (DATA / "preflight/reported/nvidia-smi-mismatch").read_text()


@pytest.fixture
def ask(tmp_path):
    """Return what a host with this recording of lspci says; `files` are others of its files, by path."""

    def answer(machine, smi=(), kernel="6.1.0-18-amd64", **files):
        commands, root = tmp_path / "bin", tmp_path / "root"
        commands.mkdir(), root.mkdir()
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        lines = re.findall(r"\[(\w{4})\]: .*\[(\w{4}):(\w{4})\]", MACHINES.get(machine, ""))
        for number, (kind, vendor, device) in enumerate(lines):
            place = root / f"sys/bus/pci/devices/{number}"
            place.mkdir()
            (place / "class").write_text(f"0x{kind}00\n")
            (place / "vendor").write_text(f"0x{vendor}\n")
            (place / "device").write_text(f"0x{device}\n")
        programs = {"uname": f"#!/bin/sh\necho {kernel}\n", **({"nvidia-smi": smi} if smi else {})}
        for path, content in files.items():
            if path == "mokutil":
                programs[path] = content
                continue
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        for name, text in programs.items():
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        done = subprocess.run(
            ["/bin/sh", "-c", driver.script(str(root))],
            capture_output=True, text=True, env={"PATH": f"{commands}:/usr/bin:/bin"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.replace("\n", "\r\n")

    return answer


@pytest.fixture
def host(ask):
    return lambda *machine, **files: driver.state(ask(*machine, **files))


SECURE = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
NOT_PROPRIETARY = (
    "NODE1 has GPUs of Blackwell, for which there are no proprietary modules. Fix: nvidia_driver_modules=open"
)


@pytest.mark.parametrize(
    ("machine", "generation", "modules", "switches"),
    [
        ("M60", "Maxwell", "proprietary", False),
        ("K80", "Kepler", "proprietary", False),
        ("P40", "Pascal", "proprietary", False),
        ("V100", "Volta", "proprietary", False),
        ("T4", "Turing", "open", False),
        ("A100", "Ampere", "open", True),
        ("L40S", "Ada Lovelace", "open", False),
        ("H100", "Hopper", "open", True),
        ("H200", "Hopper", "open", False),
        ("B200", "Blackwell", "open", True),
        ("B300", "Blackwell", "open", True),
        ("RTX PRO 6000", "Blackwell", "open", False),
    ],
)
def test_the_generation_decides_on_the_modules_and_switches_on_the_fabric_manager(
    host, machine, generation, modules, switches
):
    seen = host(machine)
    assert {driver.generation(number).name for number in seen["gpus"]} == {generation}
    assert (driver.kernel_modules(seen), driver.needs_fabric(seen)) == (modules, switches)


def test_a_recorded_number_of_nvidia_smi_has_the_generation_of_lspci():
    recorded = re.search(r"<pci_device_id>(\w{4})10DE<", (DATA / "preflight/h100-idle.xml").read_text())
    assert driver.generation(int(recorded[1], 16)).name == "Hopper"


def test_generations_share_no_number():
    ranges = sorted(pair for each in driver.GENERATIONS for pair in each.devices)
    assert all(before[1] < after[0] for before, after in zip(ranges, ranges[1:], strict=False))


@pytest.mark.parametrize("modules", ["auto", "open"])
@pytest.mark.parametrize("machine", ["T4", "A100", "H100", "B200", "RTX PRO 6000"])
def test_newer_gpus_get_open_modules_of_the_default_branch(host, machine, modules):
    assert driver.refusal("NODE1", host(machine), "580", modules) == ""


@pytest.mark.parametrize(
    ("machine", "branch", "modules", "said"),
    [
        (
            "V100",
            "590",
            "auto",
            "NODE1 has GPUs of Volta, and branch 590 .* Fix: nvidia_driver_branch of 515 to 580",
        ),
        ("B200", "550", "auto", "NODE1 has GPUs of Blackwell, and branch 550 .* Fix: .* of 570 or newer"),
        ("T4", "470", "auto", "branch 470 .* Fix: nvidia_driver_branch of 515 or newer"),
        ("K80", "580", "auto", "GPUs of Kepler; 470 is the last branch .* Fix: leave the host out"),
        ("P40", "580", "open", "GPUs of Pascal, .* no open modules. Fix: nvidia_driver_modules=proprietary"),
        ("B200", "580", "proprietary", NOT_PROPRIETARY),
        ("", "580", "auto", "NODE1 has no GPU of NVIDIA on its bus. Fix: "),
        ("T4", "580.126", "auto", "nvidia_driver_branch is 580.126. Fix: "),
    ],
)
def test_what_has_no_driver_is_refused_with_the_fix(host, machine, branch, modules, said):
    assert re.search(said, driver.refusal("NODE1", host(machine), branch, modules))


def test_a_number_that_the_table_does_not_know_is_refused(host):
    unknown = {**host("T4"), "gpus": [0x3FFF]}
    assert "the number 10de:3fff, whose generation is not known" in driver.refusal("NODE1", unknown, "580")


def test_gpus_without_modules_in_common_are_refused(host):
    mixed = {**host("V100"), "gpus": [0x1DB1, 0x2901]}
    assert "has GPUs of Blackwell, for which there are no proprietary modules" in driver.refusal(
        "NODE1", mixed, "580"
    )


SIGNED = '#!/bin/sh\ncase $2 in */dkms/mok.pub) echo "$2 is already enrolled" ;; *) echo no ;; esac\n'


def test_secure_boot_is_found_out_beforehand_and_refused_with_the_steps(host):
    said = driver.refusal("NODE1", host("H100", **{SECURE: b"\x06\0\0\0\x01"}), "580")
    assert re.search("started with Secure Boot.*dkms generate_mok.*mokutil --import.*Enroll MOK", said)


@pytest.mark.parametrize(
    "files",
    [{}, {SECURE: b"\x06\0\0\0\0"}, {SECURE: b"\x06\0\0\0\x01", "mokutil": SIGNED}],
    ids=["no UEFI", "off", "key"],
)
def test_without_secure_boot_or_with_an_enrolled_key_modules_are_built(host, files):
    assert driver.refusal("NODE1", host("H100", **files), "580") == ""


@pytest.mark.parametrize(
    ("machine", "branch", "tool", "names", "others"),
    [
        ("V100", "580", "apt", ["cuda-drivers"], []),
        ("T4", "595", "dnf", ["nvidia-open"], []),
        ("H100", "580", "apt", ["nvidia-open", "nvidia-fabricmanager-580", "libnvidia-nscq-580"], []),
        ("H100", "595", "apt", ["nvidia-open", "nvidia-fabricmanager", "libnvidia-nscq"], []),
        ("H100", "570", "dnf", ["nvidia-open", "nvidia-fabric-manager", "libnvidia-nscq"], []),
        ("B200", "580", "dnf", ["nvidia-open", "nvidia-fabricmanager", "libnvidia-nscq"], ["nvlsm"]),
    ],
)
def test_packages_are_called_as_their_branch_and_tool_call_them(ask, machine, branch, tool, names, others):
    plan = driver.plan(ask(machine), "NODE1", branch, "auto", tool)
    assert (plan["names"], plan["others"]) == (names, others)


def test_headers_are_those_of_the_running_kernel(ask):
    assert driver.plan(ask("T4"), "NODE1", "580", "auto", "apt")["headers"] == "linux-headers-6.1.0-18-amd64"
    assert driver.headers("5.14.0-427.el9.x86_64", "dnf") == "kernel-devel-5.14.0-427.el9"


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ('ID=ubuntu\nVERSION_ID="22.04"', "ubuntu2204"),
        ('ID=debian\nVERSION_ID="12"', "debian12"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"', "rhel9"),
    ],
)
def test_nvidias_repository_is_that_of_the_hosts_system(system, name):
    answer = "".join(f"scalebook-system {line}\r\n" for line in system.splitlines())
    assert driver.repository_of(answer) == name


VERSIONS = ["590.48.01-1ubuntu1", "580.95.05-1ubuntu1", "580.126.09-1ubuntu1", "570.211.01-0ubuntu1"]


def test_the_newest_version_of_the_branch_is_taken_or_the_one_that_is_asked_for():
    assert driver.newest(VERSIONS, "580") == "580.126.09-1ubuntu1"
    assert driver.newest(VERSIONS, "580", "580.95.05") == "580.95.05-1ubuntu1"
    assert driver.newest(VERSIONS, "595") == driver.newest(VERSIONS, "580", "580.1") == ""
    assert driver.upstream("3:580.126.09-1.el9") == "580.126.09"


NAMES = ["nvidia-open", "nvidia-fabricmanager-580"]
BOTH = {"nvidia-open": "580.95.05-1ubuntu1", "nvidia-fabricmanager-580": "580.95.05-1"}


@pytest.mark.parametrize(
    ("installed", "wanted", "lacks"),
    [
        (BOTH, "", False),
        (BOTH, "580.95.05", False),
        (BOTH, "580.126.09", True),
        ({**BOTH, "nvidia-fabricmanager-580": "580.126.09-1"}, "", True),
        ({"nvidia-open": "580.95.05-1ubuntu1"}, "", True),
        (dict.fromkeys(BOTH, "590.48.01-1"), "", True),
        ({}, "", True),
    ],
)
def test_nothing_lacks_where_all_packages_are_one_version_of_the_branch(installed, wanted, lacks):
    assert driver.lacking(NAMES, [], installed, "580", wanted) is lacks
    assert driver.lacking(NAMES, ["nvlsm"], installed, "580", wanted)


def test_what_has_the_drivers_version_is_held():
    installed = {**BOTH, "nvlsm": "2025.06.11-1", "libnvidia-compute-580": "580.95.05-1ubuntu1"}
    assert driver.of_version(installed, "580.95.05") == [
        "libnvidia-compute-580", "nvidia-fabricmanager-580", "nvidia-open",
    ]  # fmt: skip


LOADED = "sys/module/nvidia/version"


@pytest.mark.parametrize(
    ("smi", "files", "said", "reboot"),
    [
        ("580.95.05 580.95.05", {LOADED: b"580.95.05\n"}, "^$", False),
        ("580.95.05", {LOADED: b"580.95.05\n"}, "nvidia-smi shows 1 of the 2 GPUs on its bus", False),
        ("", {"sys/module/nouveau/x": b""}, "still has the module of nouveau. Fix: reboot", True),
        ("", {}, "its module is not loaded. Fix: reboot", True),
        ("570.1 570.1", {LOADED: b"570.1\n"}, "still has the module of 570.1. Fix: reboot", True),
    ],
)
def test_the_running_driver_is_the_installed_one_or_a_reboot_is_asked_for(ask, smi, files, said, reboot):
    trouble = driver.trouble(ask("T4", smi=SMI.format(smi), **files), "NODE1", "580.95.05")
    assert re.search(said, trouble["text"]) and trouble["reboot"] is reboot


def test_a_mismatch_of_module_and_library_says_reboot_and_not_install(ask):
    said = driver.trouble(ask("T4", smi=MISMATCH, **{LOADED: b"580.65.06\n"}), "NODE1", "580.95.05")["text"]
    assert "still has the module of 580.65.06. Fix: reboot" in said and "install one" not in said
