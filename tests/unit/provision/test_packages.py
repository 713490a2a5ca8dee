# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What packages are called on Debian and in the RHEL family, and which of them a host has."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.provision import packages, systems

ROOT = Path(__file__).resolve().parents[3]
# As /etc/os-release of Debian 12 is, and as the documentation of the others prints it: they were not there.
SYSTEMS = {
    "debian": 'ID=debian\nVERSION_ID="12"\n',
    "mint": 'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"\n',
    "rocky8": 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="8.10"\n',
    "rocky9": 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n',
    "alma10": 'ID="almalinux"\nID_LIKE="rhel centos fedora"\nVERSION_ID="10.0"\n',
    "rhel9": 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n',
    "oracle9": 'ID="ol"\nID_LIKE="fedora"\nVERSION_ID="9.4"\n',
    "centos7": 'ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="7"\n',
    "suse": 'ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n',
}
NEEDS = ["libgomp1", "openssh-client", "pdsh", "rsync"]
OF_RPM = ["libgomp", "openssh-clients", "pdsh", "pdsh-rcmd-ssh", "rsync"]


def answer(name):
    lines = [f"scalebook-system {line}" for line in SYSTEMS[name].splitlines()]
    return "\r\n".join(["scalebook-processor x86_64", *lines, ""])


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("debian", NEEDS),
        ("mint", NEEDS),
        ("rocky8", OF_RPM),
        ("rocky9", OF_RPM),
        ("alma10", OF_RPM),
        ("rhel9", OF_RPM),
        ("oracle9", OF_RPM),
        ("centos7", NEEDS),
        ("suse", NEEDS),
    ],
)
def test_packages_are_called_as_the_system_calls_them(name, names):
    assert packages.names(NEEDS, answer(name)) == names


def test_a_system_that_nobody_has_asked_about_is_called_as_before():
    assert packages.names(NEEDS, "") == NEEDS


@pytest.mark.parametrize(
    ("name", "version", "base"),
    [
        ("rocky8", "3.6", "python3"),
        ("rocky9", "3.9", "python3"),
        ("rocky8", "3.9", "python39"),
        ("rocky9", "3.11", "python3.11"),
        ("alma10", "3.12", "python3"),
    ],
)
def test_venv_comes_with_python_and_headers_are_a_package(name, version, base):
    needs = [f"python{version}-venv", f"python{version}-dev"]
    assert packages.names(needs, answer(name)) == [base, f"{base}-devel"]


@pytest.mark.parametrize(
    ("name", "versions", "shipped"),
    [
        ("rocky9", ["3.13", "3.12", "3.11"], "3.12"),
        ("rocky8", ["3.8"], "3.8"),
        ("rocky9", ["3.8"], ""),
        ("debian", ["3.11"], ""),
    ],
)
def test_the_family_ships_several_versions_of_python(name, versions, shipped):
    assert packages.interpreter(versions, answer(name)) == shipped


@pytest.mark.parametrize(
    ("name", "tool"), [("debian", "apt"), ("rocky9", "dnf"), ("alma10", "dnf"), ("centos7", "apt")]
)
def test_packages_are_installed_with_what_the_system_has(name, tool):
    assert packages.tool(answer(name)) == tool


@pytest.mark.parametrize("name", ["rocky8", "rocky9", "alma10", "rhel9"])
def test_epel_is_that_of_the_release_with_a_key_of_its_own(name):
    epel, release = packages.epel(answer(name)), systems.family(answer(name))[1]
    assert f"/epel/{release}/" in epel["uri"] and epel["key"].endswith(f"-EPEL-{release}")
    assert re.fullmatch(r"[0-9A-F]{40}", epel["fingerprint"])
    assert len(set(packages.EPEL_KEYS.values())) == len(packages.EPEL_KEYS) == len(systems.OF_RHEL)


@pytest.mark.parametrize("name", ["debian", "centos7", "suse"])
def test_other_systems_have_no_epel(name):
    assert not any(packages.epel(answer(name)).values())


def test_epel_has_pdsh_with_its_module_for_ssh_and_slurm():
    found = packages.names(["pdsh", "slurm-client", "slurmctld", "slurmd"], answer("rocky9"))
    assert sorted(found) == sorted(packages.epel(answer("rocky9"))["packages"])


def needed():
    """Return each name of a package that a role needs, where it is written as it is."""
    for file in ROOT.glob("roles/*/tasks/*.yml"):
        for names in re.findall(r"node_(?:needs|tools): \[([^{]*?)\]", file.read_text()):
            yield from names.split(", ")
    yield from yaml.safe_load((ROOT / "roles/node/defaults/main.yml").read_text())["node_packages"]


def test_the_table_has_each_name_that_a_role_needs():
    assert set(needed()) - set(packages.OF_RPM) == set()


# The name of a package is its third argument. As rpm 4.18 answers: what provides it, or a line about nothing.
RPM = """#!/bin/sh
case " $HAVE " in
  *" $3 "*) echo "$3-1.el9.noarch" ;;
  *) echo "no package provides $3"; exit 1 ;;
esac
"""
DPKG = """#!/bin/sh
shift 3; status=0
for name; do
  case " $HAVE " in *" $name "*) echo "$name installed" ;; *) status=1 ;; esac
done
exit $status
"""


@pytest.mark.parametrize(
    ("name", "installed"), [("debian", ["libgomp1", "pdsh"]), ("rocky9", ["libgomp", "pdsh"])]
)
def test_a_host_says_which_packages_are_installed_by_their_names(tmp_path, name, installed):
    quiet = "#!/bin/sh\n"
    for program, text in (("rpm", RPM), ("dpkg-query", DPKG), ("dpkg", quiet), ("dnf", quiet)):
        (tmp_path / program).write_text(text)
        (tmp_path / program).chmod(0o755)
    done = subprocess.run(
        packages.question(NEEDS, answer(name)),
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HAVE": " ".join(installed)},
    )
    assert done.returncode in (0, 1)
    lines = [line for line in done.stdout.splitlines() if line.endswith(" installed")]
    assert lines == [f"{each} installed" for each in installed]


# As dnf 4.14 marks a transaction in which it was killed; of the last package nothing was installed.
CUT = """\
Return-Code    : Failure: 1
Packages Altered:
 ** Install  libgomp-11.4.1-3.el9.x86_64 @baseos
 ** Upgrade  pdsh-2.34-7.el9.x86_64      @baseos
 ** Upgraded pdsh-2.34-6.el9.x86_64      @@System
 ** Install  rsync-3.2.3-19.el9.x86_64   @baseos
"""


@pytest.mark.parametrize(
    ("history", "cut"),
    [
        (CUT, ["dnf was interrupted: libgomp-11.4.1-3.el9.x86_64 pdsh-2.34-7.el9.x86_64"]),
        (CUT.replace(" ** ", "    "), []),
        ("", []),
    ],
)
def test_a_host_says_what_a_killed_dnf_has_left(tmp_path, history, cut):
    (tmp_path / "history").write_text(history)
    rpm = RPM.replace("$3", "$wanted").replace(
        "case", 'for wanted; do :; done\n[ "$2" = --all ] && exit\ncase', 1
    )
    for program, text in (("rpm", rpm), ("dnf", f"#!/bin/sh\ncat {tmp_path}/history\n")):
        (tmp_path / program).write_text(text)
        (tmp_path / program).chmod(0o755)
    have = "libgomp-11.4.1-3.el9.x86_64 pdsh-2.34-7.el9.x86_64 pdsh-2.34-6.el9.x86_64"
    done = subprocess.run(
        packages.question([], answer("rocky9")),
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HAVE": have},
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, cut)


def test_a_system_is_of_one_family_for_names_and_for_refusals():
    assert systems.family(answer("rocky9")) == ("rhel", 9)
    assert systems.family(answer("mint")) == ("debian", 22)
    assert systems.family(answer("suse")) == ("", 15)
