# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a machine says of itself, and what tells it from all others."""

import array
import contextlib
import fcntl
import hashlib
import hmac
import os
import platform
import re
import socket
import struct
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Tuple

QUERY = ("name", "memory.total", "power.limit", "pcie.link.gen.max", "pcie.link.width.max")
SECONDS = 30
ANSWERED = (0, 14)  # nvidia-smi ends with 14 where it answers and warns of a damaged infoROM
# What a driver says that does not know the speed: -1 in 16 and in 32 bits (linux/ethtool.h, SPEED_UNKNOWN).
UNKNOWN_SPEEDS = (65535, 4294967295)
# linux/sockios.h, linux/ethtool.h
SIOCETHTOOL = 0x8946
ETHTOOL_GPERMADDR = 0x20
LONGEST_ADDRESS = 32
LOCAL = "local-"


def read_text(path: str) -> str:
    """Return the text of a file without its last newline, an empty one where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def output_of(*command: str) -> str:
    """Return what a command prints, an empty text where it fails, hangs or is not installed."""
    pipes: Dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.DEVNULL,
    }
    try:
        process = subprocess.Popen(command, universal_newlines=True, **pipes)
    except OSError:
        return ""
    try:
        text = process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        # Nobody waits for its end: what hangs in a driver cannot be ended.
        process.kill()
        return ""
    return str(text) if process.returncode in ANSWERED else ""


def number(text: str) -> Optional[float]:
    """Return the number that a text begins with, None where it has none, such as `[N/A]`."""
    match = re.match(r"\s*(\d+(?:\.\d+)?)", text)
    return float(match.group(1)) if match else None


def system(release: str) -> str:
    """Return name and version of the system from the text of /etc/os-release."""
    values = dict(re.findall(r'(?m)^(NAME|VERSION_ID)="?([^"\n]*)"?$', release))
    return " ".join(values[key] for key in ("NAME", "VERSION_ID") if values.get(key))


def processor(cpuinfo: str, machine: str) -> Dict[str, Any]:
    """Return model, sockets, cores and threads from the text of /proc/cpuinfo.

    Machines that are not x86 list neither sockets nor cores there: only their threads are counted.
    """
    blocks = [dict(re.findall(r"(?m)^([^\t:]+?)\s*:\s*(.*)$", block)) for block in cpuinfo.split("\n\n")]
    blocks = [block for block in blocks if "processor" in block]
    facts: Dict[str, Any] = {"processor": machine, "threads": len(blocks)}
    if blocks and blocks[0].get("model name"):
        facts["processor"] = " ".join(blocks[0]["model name"].split())
    if blocks and all("physical id" in block and "core id" in block for block in blocks):
        facts["sockets"] = len({block["physical id"] for block in blocks})
        facts["cores"] = len({(block["physical id"], block["core id"]) for block in blocks})
    return facts


def virtual(cpuinfo: str) -> str:
    """Return `container`, `virtual machine` or an empty text; a container hides what its machine is."""
    if os.path.exists("/run/.containerenv") or os.path.exists("/.dockerenv"):
        return "container"
    return "virtual machine" if re.search(r"(?m)^flags\s*:.*\bhypervisor\b", cpuinfo) else ""


def networks(root: str = "/sys/class") -> List[Dict[str, Any]]:
    """Return the network devices that are up: [{"name", "kind", "speed_gbit"}], InfiniBand first.

    `speed_gbit` is absent where the driver gives none, as those of virtual machines and containers.
    """
    networks_up = []
    for device in _names(root + "/infiniband"):
        for port in _names("%s/infiniband/%s/ports" % (root, device)):
            place = "%s/infiniband/%s/ports/%s" % (root, device, port)
            if not read_text(place + "/state").startswith("4"):  # 4: ACTIVE
                continue
            layer = read_text(place + "/link_layer") or "InfiniBand"
            kind = "RoCE" if layer == "Ethernet" else layer
            networks_up.append(_network(device, kind, number(read_text(place + "/rate"))))
    devices = [name for name in _names(root + "/net") if read_text("%s/net/%s/type" % (root, name)) == "1"]
    # Bridges and tunnels are left out, but a container has no other device.
    real = [name for name in devices if os.path.exists("%s/net/%s/device" % (root, name))]
    for device in real or devices:
        place = "%s/net/%s" % (root, device)
        if read_text(place + "/operstate") != "down":
            megabit = number(read_text(place + "/speed"))
            has_speed = megabit not in (None, 0, *UNKNOWN_SPEEDS)
            networks_up.append(
                _network(device, "Ethernet", megabit / 1000 if megabit and has_speed else None)
            )
    return networks_up


def _names(path: str) -> List[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _network(name: str, kind: str, speed: Optional[float]) -> Dict[str, Any]:
    network: Dict[str, Any] = {"name": name, "kind": kind}
    if speed:
        network["speed_gbit"] = speed
    return network


def gpus(table: str) -> List[Dict[str, Any]]:
    """Return the GPUs in what nvidia-smi prints for QUERY as CSV without a header."""
    models = []
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(QUERY):
            continue
        gpu: Dict[str, Any] = {"name": cells[0]}
        keys = ("memory_mib", "power_limit_w", "pcie_generation", "pcie_width")
        for column, key in enumerate(keys, 1):
            value = number(cells[column])
            if value is not None:
                gpu[key] = int(value)
        models.append(gpu)
    return models


def without_uuids(table: str) -> Tuple[str, List[str]]:
    """Return what nvidia-smi prints for QUERY and `uuid` as two: GPUs of a kind are described alike."""
    pattern = r"(?m),[ ]*(GPU-[0-9a-fA-F-]+)[ ]*$"
    return re.sub(pattern, "", table), sorted(re.findall(pattern, table))


def digest(text: str) -> str:
    """Return a word by which `text` can be compared and not read (machine-id(5) asks for a key)."""
    return hmac.new(b"scalebook", text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:16]


def permanent_address(device: str) -> str:
    """Return the address that the maker gave to a network device, whatever a bond or a user made of it.

    A device that the kernel made, such as that of a container, has none.
    """
    data = array.array("B", struct.pack("II", ETHTOOL_GPERMADDR, LONGEST_ADDRESS) + bytes(LONGEST_ADDRESS))
    request = struct.pack("16sP", device.encode("utf-8", "surrogateescape")[:15], data.buffer_info()[0])
    try:
        with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as inquiry:
            fcntl.ioctl(inquiry, SIOCETHTOOL, request.ljust(40, b"\0"))
    except OSError:
        return ""
    size = struct.unpack("II", data[:8].tobytes())[1]
    address = data[8 : 8 + size].tobytes()
    return address.hex() if any(address) and address != b"\xff" * size else ""


def hardware_addresses(root: str = "/sys/class") -> List[str]:
    """Return digests of the permanent addresses of the network devices, and of the GUIDs of InfiniBand.

    The device by which a board's own processor is reached (USB) has the same one on all boards.
    """
    devices = [
        name
        for name in _names(root + "/net")
        if os.path.basename(os.path.realpath("%s/net/%s/device/subsystem" % (root, name))) != "usb"
    ]
    addresses = {permanent_address(name) for name in devices}
    # An Ethernet address has a bit for «not from a maker»: other virtual machines may have it too.
    chosen = {address for address in addresses if len(address) == 12 and int(address[1], 16) & 2}
    for name in _names(root + "/infiniband"):
        guid = read_text("%s/infiniband/%s/node_guid" % (root, name))
        addresses.add(guid if guid.strip("0:") else "")
    return sorted(LOCAL * (address in chosen) + digest(address) for address in addresses if address)


def container(mounts: str, kind: str) -> str:
    """Return a digest of the layer to which the root is written, from the text of /proc/self/mountinfo.

    Each container has one of its own, which it keeps when it is started again; a root on a disk has none.
    Layers of other hosts may have the same number, so that the name belongs to it.  A container (`kind` of
    virtual()) without a layer has only its name, as others may have.
    """
    layers = re.findall(r"(?m)^\S+ \S+ \S+ \S+ / .* - overlay \S+ \S*\bupperdir=([^,\s]+)", mounts)
    if layers:
        return digest(layers[-1] + " " + socket.gethostname())
    return LOCAL + digest(socket.gethostname()) if kind == "container" else ""


def identity(uuids: List[str], kind: str) -> Dict[str, Any]:
    """Return what tells this machine, of a kind of virtual(), from others; `uuids` are those of its GPUs."""
    machine = read_text("/etc/machine-id")
    board = read_text("/sys/class/dmi/id/product_uuid").lower()
    digests = {
        "machine": digest(machine) if re.match(r"[0-9a-f]{32}$", machine) else "",
        "container": container(read_text("/proc/self/mountinfo"), kind),
        "board": digest(board) if board else "",
        "addresses": hardware_addresses(),
        "gpus": uuids,
        "boot": read_text("/proc/sys/kernel/random/boot_id"),
    }
    return {key: value for key, value in digests.items() if value}


def topology(text: str) -> Dict[str, Any]:
    """Return the matrix of `nvidia-smi topo -m`, and how many pairs of GPUs each kind of link connects."""
    rows = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in text.split("Legend:")[0].splitlines()]
    rows = [row for row in rows if row.strip()]
    cells = {row.split()[0]: row.split()[1:] for row in rows if re.match(r"GPU\d+\s", row)}
    links: Dict[str, int] = {}
    for index, line in enumerate(cells.values()):
        for other in line[index + 1 : len(cells)]:
            links[other] = links.get(other, 0) + 1
    return {"gpu_topology": "\n".join(rows), "gpu_links": links} if cells else {}


def run(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """Return the hardware and the identity of this machine; module hardware_info describes the result."""
    del options, check  # it has none, and changes nothing
    cpuinfo = read_text("/proc/cpuinfo")
    memory = re.search(r"(?m)^MemTotal:\s*(\d+) kB", read_text("/proc/meminfo"))
    facts: Dict[str, Any] = {
        "system": system(read_text("/etc/os-release")),
        "kernel": platform.release(),
        "memory_gib": round(int(memory.group(1)) / 2**20, 1) if memory else None,
        "virtual": virtual(cpuinfo),
        "networks": networks(),
    }
    facts.update(processor(cpuinfo, platform.machine()))
    query = "--query-gpu=" + ",".join(QUERY + ("uuid",))
    table, uuids = without_uuids(output_of("nvidia-smi", query, "--format=csv,noheader,nounits"))
    if table:
        facts["gpus"] = gpus(table)
        facts.update(topology(output_of("nvidia-smi", "topo", "-m")))
        head = output_of("nvidia-smi")
        for key, pattern in (
            ("driver", r"Driver Version:\s*([\d.]+)"),
            ("cuda", r"CUDA Version:\s*([\d.]+)"),
        ):
            match = re.search(pattern, head)
            facts[key] = match.group(1) if match else ""
    return {
        "changed": False,
        "hardware": {key: value for key, value in facts.items() if value not in ("", None)},
        "identity": identity(uuids, facts["virtual"]),
    }
