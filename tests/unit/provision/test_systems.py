# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which hosts are refused for their processor, GPUs or system, by name and with what is missing."""

import subprocess

import pytest
from ansible.module_utils.scalebook.provision import systems

NVIDIA, AMD, INTEL = "0x10de", "0x1002", "0x8086"
ACCELERATOR, DISPLAY, VGA = "0x120000", "0x038000", "0x030000"
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n'
UBUNTU = 'NAME="Ubuntu"\nVERSION_ID="{}"\nID=ubuntu\nID_LIKE=debian\nPRETTY_NAME="Ubuntu {} LTS"\n'
# As the documentation of Rocky Linux 9 and of CentOS 7 prints them.
ROCKY = (
    'NAME="Rocky Linux"\nVERSION="9.4 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\n'
    'VERSION_ID="9.4"\nPLATFORM_ID="platform:el9"\nPRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"\n'
)
CENTOS = 'ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="7"\nPRETTY_NAME="CentOS Linux 7 (Core)"\n'


@pytest.fixture
def ask(tmp_path):
    """Return what a host with this processor, system and devices answers, between the lines of a login."""

    def answer(processor="x86_64", system=DEBIAN, devices=(), libc="glibc 2.36"):
        commands, root = tmp_path / "bin", tmp_path / "root"
        commands.mkdir(), (root / "etc").mkdir(parents=True)
        (commands / "uname").write_text(f"#!/bin/sh\necho {processor}\n")
        (commands / "uname").chmod(0o755)
        (commands / "getconf").write_text(f"#!/bin/sh\necho {libc}\n" if libc else "#!/bin/sh\nexit 1\n")
        (commands / "getconf").chmod(0o755)
        if system:
            (root / "etc/os-release").write_text(system)
        for number, (vendor, kind) in enumerate(devices):
            device = root / f"sys/bus/pci/devices/0000:0{number}:00.0"
            device.mkdir(parents=True)
            (device / "vendor").write_text(f"{vendor}\n")
            (device / "class").write_text(f"{kind}\n")
        done = subprocess.run(
            ["/bin/sh", "-c", systems.script(str(root))],
            capture_output=True,
            text=True,
            env={"PATH": f"{commands}:/usr/bin:/bin"},
        )
        assert (done.returncode, done.stderr) == (0, "")
        return "Welcome to the cluster!\r\n" + done.stdout.replace("\n", "\r\n")

    return answer


def test_a_host_of_x86_64_with_debian_and_gpus_of_nvidia_is_taken(ask):
    said = ask(devices=[(NVIDIA, "0x030200"), (INTEL, VGA)])
    assert systems.refusal("NODE1", said, installs=True) == ""


@pytest.mark.parametrize("processor", ["aarch64", "ppc64le", "riscv64"])
def test_another_processor_is_refused_by_name_with_what_is_missing(ask, processor):
    said = systems.refusal("NODE1", ask(processor), device="cpu")
    assert said.startswith(f"NODE1 has {processor} processors, and only x86-64 is supported. Missing: ")
    assert ("Grace" in said) is (processor == "aarch64")


@pytest.mark.parametrize("kind", [ACCELERATOR, DISPLAY])
def test_gpus_of_amd_are_refused_by_name_with_what_is_missing(ask, kind):
    said = systems.refusal("NODE1", ask(devices=[(INTEL, VGA), (AMD, kind), (AMD, kind)]))
    assert said.startswith("NODE1 has 2 GPUs of AMD, and only those of NVIDIA are supported. Missing: ")
    assert "ROCm" in said and "device=cpu" in said


@pytest.mark.parametrize(
    ("device", "devices"),
    [
        ("cpu", [(AMD, ACCELERATOR)]),
        ("auto", [(AMD, VGA)]),
        ("auto", [(AMD, DISPLAY), (NVIDIA, "0x030200")]),
    ],
)
def test_what_amd_makes_beside_the_devices_of_the_runs_is_no_reason(ask, device, devices):
    assert systems.refusal("NODE1", ask(devices=devices), device=device) == ""


@pytest.mark.parametrize(
    ("system", "name"),
    [
        (CENTOS, "CentOS Linux 7 (Core)"),
        ('ID=opensuse-leap\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"\n', "opensuse-leap 15.6"),
        ("", "a system without a name"),
    ],
)
def test_a_system_whose_packages_have_no_names_is_not_provisioned(ask, system, name):
    answer = ask(system=system)
    said = systems.refusal("NODE1", answer, installs=True)
    assert said.startswith(
        f"NODE1 runs {name}, and provision.yml installs on Debian, Ubuntu and releases 8 to 10 "
        "of the RHEL family alone. Missing: "
    )
    assert systems.refusal("NODE1", answer) == ""


@pytest.mark.parametrize(
    ("system", "version", "taken"),
    [
        (ROCKY, "9.4", True),
        (ROCKY, "8.10", True),
        (ROCKY, "10.0", True),
        (ROCKY, "11.0", False),
        ('ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n', "9.4", True),
        ('ID="ol"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n', "9.4", True),
    ],
)
def test_releases_of_the_rhel_family_are_provisioned_by_their_number(ask, system, version, taken):
    answer = ask(system=system.replace("9.4", version))
    assert (systems.refusal("NODE1", answer, installs=True) == "") is taken


@pytest.mark.parametrize(
    ("system", "taken"),
    [
        (UBUNTU.format("16.04", "16.04.7"), False),
        (UBUNTU.format("18.04", "18.04.5"), True),
        (UBUNTU.format("24.04", "24.04.1"), True),
        ('ID=debian\nVERSION_ID="9"\n', False),
        ("ID=debian\nPRETTY_NAME='Debian GNU/Linux trixie/sid'\n", True),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"\n', True),
    ],
)
def test_a_debian_or_ubuntu_whose_python_is_too_old_is_not_provisioned(ask, system, taken):
    said = systems.refusal("NODE1", ask(system=system), installs=True)
    assert (said == "") is taken
    assert taken or "Missing: Python 3.6 or newer" in said


@pytest.mark.parametrize(("libc", "version"), [("glibc 2.27", "2.27"), ("glibc 2.36", "2.36"), ("", "")])
def test_a_host_says_its_glibc_if_it_has_one(ask, libc, version):
    assert systems.glibc(ask(libc=libc)) == version


@pytest.mark.parametrize("answer", ["", "sh: permission denied", "scalebook-processor"])
def test_a_host_that_does_not_answer_is_left_to_the_tasks_that_need_it(answer):
    assert systems.refusal("NODE1", answer, installs=True) == ""
