# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which driver of NVIDIA a host can have: its kernel modules, branch and packages, by the GPUs on its bus.

The host is asked without a driver, so all follows from /sys: lspci and mokutil may not be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypedDict

from ansible.module_utils.scalebook.provision import systems


class Generation(NamedTuple):
    """GPUs of one architecture: ranges of numbers of PCI devices, modules, and the branches that know them.

    `newest` is 0 where every newer branch knows them.
    """

    name: str
    devices: tuple[tuple[int, int], ...]
    modules: tuple[str, ...]
    oldest: int
    newest: int = 0


_BOTH = ("open", "proprietary")
# Numbers: https://pci-ids.ucw.cz/read/PC/10de. Modules and branches: NVIDIA's Driver Installation Guide,
# "Kernel Modules"; 580 is the last branch for Maxwell, Pascal and Volta.
GENERATIONS = (
    Generation("Kepler", ((0x0FC0, 0x12FF),), ("proprietary",), 0, 470),
    Generation("Maxwell", ((0x1340, 0x15EF), (0x1600, 0x17FF)), ("proprietary",), 0, 580),
    Generation("Pascal", ((0x15F0, 0x15FF), (0x1B00, 0x1D7F)), ("proprietary",), 0, 580),
    Generation("Volta", ((0x1D80, 0x1DFF),), ("proprietary",), 0, 580),
    Generation("Turing", ((0x1E00, 0x1FFF), (0x2180, 0x21FF)), _BOTH, 0),
    Generation("Ampere", ((0x2080, 0x20FF), (0x2200, 0x22FF), (0x2400, 0x25FF)), _BOTH, 0),
    Generation("Hopper", ((0x2300, 0x23FF),), _BOTH, 525),
    Generation("Ada Lovelace", ((0x2600, 0x28FF),), _BOTH, 525),
    Generation("Blackwell", ((0x2900, 0x2FFF), (0x3180, 0x31FF)), ("open",), 570),
)
OLDEST_BRANCH = 515
"""The oldest branch with open modules, as NVIDIA packs them."""

UNVERSIONED = 590
"""From this branch on, no package of NVIDIA for apt has the branch in its name."""

# HGX B200 and B300: their switches are not on the bus of the GPUs' host as NVIDIA's bridges are.
_NVLINK5 = {0x2901, 0x2909, 0x2920, 0x3180, 0x3182}
_LINE = re.compile(r"^scalebook-([a-z]+) (.*?)\s*$", re.MULTILINE)
_SECURE_BOOT = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
MOK = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der")
"""Keys that DKMS signs modules with: its own, and on Ubuntu that of shim-signed."""

_MOK_STEPS = (
    "install dkms and mokutil there; make the key, with dkms generate_mok ({own}), on Ubuntu with "
    "update-secureboot-policy --new-key ({ubuntu}); run mokutil --import with it; reboot, and choose Enroll "
    "MOK at the console. Or switch Secure Boot off in the firmware. Then run provision.yml again"
).format(own=MOK[0], ubuntu=MOK[1])


class State(TypedDict):
    """What a host says about its driver.

    `gpus` are the numbers of NVIDIA's GPUs on its bus, `switches` counts its NVSwitches.  `secure` is true
    where the firmware checks signatures, `enrolled` where it knows a key that modules built there get.
    `loaded` is the version of the loaded module, `smi_text` what nvidia-smi printed, `versions` the driver's
    version for each GPU in it.
    """

    gpus: list[int]
    switches: int
    kernel: str
    secure: bool
    enrolled: bool
    nouveau: bool
    loaded: str
    smi_text: str
    versions: list[str]


class Trouble(TypedDict):
    """Why a driver does not run, "" where it does, and whether a reboot may help."""

    text: str
    reboot: bool


class Plan(TypedDict):
    """What a host gets: packages of one version (`names`) and of their own; `refusal` tells why nothing."""

    refusal: str
    names: list[str]
    others: list[str]
    headers: str
    fabric: bool


def script(root: str = "") -> str:
    """Return a script of POSIX sh that prints what `state` reads; `root` is the directory of its files."""
    return f"""
for d in '{root}'/sys/bus/pci/devices/*; do
  if read v 2>/dev/null <"$d/vendor" && [ "$v" = 0x10de ] && read c <"$d/class" && read n <"$d/device"; then
    echo "scalebook-device $c $n"
  fi
done
echo "scalebook-kernel $(uname -r)"
secure=$(od -An -t u1 -j 4 -N 1 '{root}/sys/firmware/efi/efivars/{_SECURE_BOOT}' 2>/dev/null | tr -d ' ')
[ "$secure" != 1 ] || echo "scalebook-secure on"
for key in {" ".join(root + key for key in MOK)}; do
  mokutil --test-key "$key" 2>/dev/null | grep -q 'already enrolled' && echo "scalebook-enrolled $key"
done
[ ! -d '{root}/sys/module/nouveau' ] || echo "scalebook-nouveau loaded"
sed 's/^/scalebook-loaded /' '{root}/sys/module/nvidia/version' 2>/dev/null
LC_ALL=C timeout -k 5 60 nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>&1 |
  sed 's/^/scalebook-smi /'
exit 0
"""


def state(answer: str) -> State:
    """Return what a host answered to `script`."""
    answers: dict[str, list[str]] = {}
    for kind, text in _LINE.findall(answer.replace("\r", "")):
        answers.setdefault(kind, []).append(text)
    devices = [tuple(int(word, 16) for word in text.split()) for text in answers.get("device", [])]
    smi = [text for text in answers.get("smi", []) if text]
    return {
        "gpus": [number for kind, number in devices if kind >> 16 == 0x03],
        "switches": sum(kind >> 8 == 0x0680 for kind, _ in devices),
        "kernel": "".join(answers.get("kernel", [])[:1]),
        "secure": "secure" in answers,
        "enrolled": "enrolled" in answers,
        "nouveau": "nouveau" in answers,
        "loaded": "".join(answers.get("loaded", [])[:1]),
        "smi_text": " ".join(smi),
        "versions": [text for text in smi if re.fullmatch(r"[0-9.]+", text)],
    }


def generation(number: int) -> Generation | None:
    """Return the architecture of the GPU with this number of PCI, None for an unknown one."""
    fits = (each for each in GENERATIONS if any(first <= number <= last for first, last in each.devices))
    return next(fits, None)


def kernel_modules(host: State, modules_option: str = "auto") -> str:
    """Return open or proprietary: what all GPUs of the host take, open where they take both."""
    if modules_option != "auto":
        return modules_option
    generations = [each for each in map(generation, host["gpus"]) if each]
    return "open" if all("open" in each.modules for each in generations) else "proprietary"


def refusal(name: str, host: State, branch: str, modules_option: str = "auto") -> str:
    """Return why the host `name` cannot have this branch of the driver, and the fix; "" where it can.

    `branch` is text such as 580, `modules_option` is auto, open or proprietary.
    """
    if not re.fullmatch(r"[1-9][0-9]{2}", branch):
        return (
            f"nvidia_driver_branch is {branch}. Fix: give the first number of a driver's version, such as 580"
        )
    if not host["gpus"]:
        return (
            f"{name} has no GPU of NVIDIA on its bus. Fix: leave it out, or start provision.yml without "
            "provision_driver"
        )
    number = int(branch)
    for device in sorted(set(host["gpus"])):
        each = generation(device)
        if each is None:
            return (
                f"{name} has a GPU of NVIDIA with the number 10de:{device:04x}, whose generation is not "
                "known here. Fix: install its driver as its maker says"
            )
        if number < max(each.oldest, OLDEST_BRANCH) or each.newest and number > each.newest:
            return _of_branch(name, each, branch)
    modules = kernel_modules(host, modules_option)
    lacking_names = sorted(
        {each.name for each in map(generation, host["gpus"]) if each and modules not in each.modules}
    )
    if lacking_names:
        other = "open" if modules == "proprietary" else "proprietary"
        return (
            f"{name} has GPUs of {' and '.join(lacking_names)}, for which there are no {modules} modules. "
            "Fix: "
            + (
                f"nvidia_driver_modules={other}"
                if modules_option != "auto"
                else "take them and the others apart into two hosts"
            )
        )
    if host["secure"] and not host["enrolled"]:
        return (
            f"{name} has started with Secure Boot, and its kernel would not load the driver: the modules are "
            f"built there and signed with a key that the firmware does not know. Fix: {_MOK_STEPS}"
        )
    return ""


def _of_branch(name: str, each: Generation, branch: str) -> str:
    oldest = max(each.oldest, OLDEST_BRANCH)
    if each.newest and each.newest < oldest:
        return (
            f"{name} has GPUs of {each.name}; {each.newest} is the last branch of the driver for them, and "
            f"this role installs {oldest} and newer. Fix: leave the host out"
        )
    range_text = f"{oldest} to {each.newest}" if each.newest else f"{oldest} or newer"
    return (
        f"{name} has GPUs of {each.name}, and branch {branch} of the driver has nothing for them. Fix: "
        f"nvidia_driver_branch of {range_text}"
    )


def needs_fabric(host: State) -> bool:
    """Return whether the GPUs need the fabric manager: they are connected by NVSwitches."""
    return host["switches"] > 0 or sum(number in _NVLINK5 for number in host["gpus"]) > 1


def package_names(host: State, branch: str, modules_option: str, tool: str) -> list[str]:
    """Return the packages that must have one version, the driver's own first; `tool` is apt or dnf."""
    names = ["nvidia-open" if kernel_modules(host, modules_option) == "open" else "cuda-drivers"]
    if needs_fabric(host):
        of_apt = "" if int(branch) >= UNVERSIONED else f"-{branch}"
        # dnf's package was renamed with branch 580.
        of_dnf = "nvidia-fabricmanager" if int(branch) >= 580 else "nvidia-fabric-manager"
        names += [f"nvidia-fabricmanager{of_apt}" if tool == "apt" else of_dnf]
        names += [f"libnvidia-nscq{of_apt}" if tool == "apt" else "libnvidia-nscq"]
    return names


def other_names(host: State) -> list[str]:
    """Return packages that have versions of their own: the subnet manager of NVLink 5, which has no other."""
    return ["nvlsm"] if any(number in _NVLINK5 for number in host["gpus"]) and needs_fabric(host) else []


def headers(kernel: str, tool: str) -> str:
    """Return the package with the headers of this kernel, which the modules are built with."""
    return f"linux-headers-{kernel}" if tool == "apt" else f"kernel-devel-{re.sub(r'[.]x86_64$', '', kernel)}"


def plan(answer: str, name: str, branch: str, modules_option: str, tool: str) -> Plan:
    """Return what the host `name` gets, which answered `script`; `tool` is what installs packages there."""
    host = state(answer)
    why_not = refusal(name, host, branch, modules_option)
    return {
        "refusal": why_not,
        "names": [] if why_not else package_names(host, branch, modules_option, tool),
        "others": [] if why_not else other_names(host),
        "headers": headers(host["kernel"], tool),
        "fabric": needs_fabric(host),
    }


def repository_of(answer: str) -> str:
    """Return NVIDIA's name of the host's system, such as ubuntu2204; for `answer` see systems.refusal."""
    family, number = systems.family(answer)
    name, version = systems.name_and_version(answer)
    if family == "rhel":
        return f"rhel{number}"
    return name + (version.replace(".", "") if name == "ubuntu" else version.split(".")[0])


def upstream(version: str) -> str:
    """Return 580.126.09 of 580.126.09-1ubuntu1 and of 3:580.126.09-1.el9."""
    return re.sub(r"-[^-]*$", "", version.split(":")[-1])


def newest(versions: Iterable[str], branch: str, exact_version: str = "") -> str:
    """Return the newest version of this branch, or that which is NVIDIA's `exact_version`; "" for none."""
    fits = [each for each in versions if upstream(each).split(".")[0] == branch]
    fits = [each for each in fits if not exact_version or upstream(each) == exact_version]
    return max(fits, key=lambda each: [int(number) for number in re.findall(r"\d+", each)], default="")


def lacking(
    names: Sequence[str], others: Sequence[str], installed: Mapping[str, str], branch: str, exact_version: str
) -> bool:
    """Return whether `installed`, {name: version}, is not one version of this branch, or the exact one."""
    versions = {upstream(installed[name]) for name in names if name in installed}
    fits = len(versions) == 1 and (
        versions == {exact_version} if exact_version else newest(versions, branch) != ""
    )
    return not (fits and set(installed).issuperset([*names, *others]))


def of_version(installed: Mapping[str, str], version: str) -> list[str]:
    """Return the installed packages of NVIDIA's version, which are held."""
    return sorted(name for name, each in installed.items() if upstream(each) == version)


def trouble(answer: str, name: str, version: str) -> Trouble:
    """Return why this version does not run on the host `name`, which answered `script`, and the fix."""
    host = state(answer)
    versions = host["versions"]
    if host["loaded"] == version and versions == [version] * len(host["gpus"]):
        return {"text": "", "reboot": False}
    mismatch = host["loaded"] not in ("", version) or "version mismatch" in host["smi_text"]
    if host["nouveau"] or mismatch or not host["loaded"]:
        kernel = "its module is not loaded"
        if host["nouveau"] or mismatch:
            old = "nouveau" if host["nouveau"] else host["loaded"] or "another version"
            kernel = f"its kernel still has the module of {old}"
        text = (
            f"{name} has driver {version} installed, and {kernel}. Fix: reboot it, or let provision.yml do "
            "so, one host after another, with driver_reboot=true. Where that does not help, dkms status and "
            "dmesg say why the module is not loaded"
        )
        return {"text": text, "reboot": True}
    text = (
        f"{name} runs driver {version}, and nvidia-smi shows {len(versions)} of the {len(host['gpus'])} GPUs "
        f"on its bus: {host['smi_text'] or 'it prints nothing'}. Fix: see dmesg for NVRM and Xid lines"
    )
    return {"text": text, "reboot": False}
