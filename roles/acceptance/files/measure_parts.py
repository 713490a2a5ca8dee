# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measure the parts of this node once, or what it sends to other nodes, and print one line of JSON.

    python3 measure_parts.py alone --device gpu --devices 8
    python3 measure_parts.py pair --device gpu --devices 8 --rank 0 --address 10.11.0.2 --own 10.11.0.2
    python3 measure_parts.py all --nodes 4 --device gpu --rank 3 --address 10.11.0.2 --own 10.11.0.5

It starts the programs of role microbench, which lie beside it, and training_trace.py, and measures the
processor, its memory and, where fio is installed, the disk itself.  The line has the names of device and
processor, the rates of each part by quantity, the digest of each part's training, what was sent between
devices by size, between pairs of devices of two nodes (rails), the packed lines of NCCL, and what could not
be measured.  Of several nodes, the first prints the rates and the lines.  Python 3.6 or later.
"""

import argparse
import base64
import fcntl
import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORK_BYTES = {"gpu": 1 << 28, "cpu": 1 << 24}
NODE_BYTES = {"gpu": 1 << 30, "cpu": 1 << 22}
SENT_BYTES = {"gpu": 1 << 33, "cpu": 1 << 23}
PAIR_BYTES = {"gpu": 1 << 28, "cpu": 1 << 22}
COLLECTIVES = "all_reduce,all_gather,reduce_scatter,all_to_all"
HOST_BYTES = 1 << 25
LINES = "collectives.nccl.xz"  # of NCCL, beside collectives.json
GET_ADDRESS = 0x8915  # Linux: SIOCGIFADDR


class ProgramError(Exception):
    """A program ended with an error; `reason` is the message that says so, with the last that it printed."""

    def __init__(self, program: str, status: int, printed: str) -> None:
        super().__init__(program, status, printed)
        self.reason: Dict[str, Any] = {
            "code": "acceptance.program-ended" if printed else "acceptance.program-silent",
            "values": {"program": program, "status": status, **({"line": printed} if printed else {})},
        }


def arguments(argv: List[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("what", choices=["alone", "pair", "all"])
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, default=1, help="GPUs of this node; 1 on CPUs")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to measure an operation for")
    parser.add_argument("--nodes", type=int, default=2, help="that measure together")
    parser.add_argument("--rank", type=int, default=0, help="the number of this node among them, from 0")
    parser.add_argument("--address", default="127.0.0.1", help="of the first of them")
    parser.add_argument("--own", default="127.0.0.1", help="address of this node")
    parser.add_argument("--port", type=int, default=11111)
    return parser.parse_args(argv)


def start(argv: List[str], ranks: int = 1, environment: Optional[Dict[str, str]] = None) -> str:
    """Return what the first of `ranks` processes of a program printed, or raise ProgramError.

    The first process that fails ends the others, which would wait for it.
    """
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(ranks):
            own = dict(os.environ, LOCAL_RANK=str(rank), **(environment or {}))
            own["RANK"] = str(int(own.get("RANK", 0)) + rank)
            with open(os.path.join(folder, str(rank)), "w") as stream:
                process = subprocess.Popen(
                    [sys.executable, *argv], stdout=stream, stderr=subprocess.STDOUT, env=own
                )
            processes.append(process)
        waiting = list(processes)
        while waiting and not any(each.returncode for each in processes):
            waiting = [each for each in waiting if each.poll() is None]
            time.sleep(0.05)
        ended = next((rank for rank, each in enumerate(processes) if each.returncode), 0)
        for each in waiting:
            each.kill()
            each.wait()
        with open(os.path.join(folder, str(ended)), encoding="utf-8", errors="replace") as stream:
            printed = stream.read()
    status = processes[ended].returncode
    if status:
        lines = [line for line in printed.splitlines() if line.strip()] or [""]
        raise ProgramError(argv[0], status, lines[-1][:300])
    return printed


def measure(program: List[str], name: str, *placing: Any) -> Dict[str, Any]:
    """Run a program of role microbench, and return what it wrote into the file `name`, {} if nothing."""
    with tempfile.TemporaryDirectory() as out:
        start([*program, "--out", out], *placing)
        path = os.path.join(out, name)
        if not os.path.exists(path):
            return {}
        with open(path, encoding="utf-8") as stream:
            content: Dict[str, Any] = json.load(stream)
        lines = os.path.join(out, LINES)
        if os.path.exists(lines):
            with open(lines, "rb") as packed:
                content["lines"] = base64.b64encode(packed.read()).decode()
        return content


def collectives(args: argparse.Namespace, nodes: int, *options: str) -> Dict[str, Any]:
    """Return what collectives.py measured on the devices of `nodes` nodes; {} but on the first of these."""
    program = [os.path.join(HERE, "collectives.py"), "--device", args.device, *options]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        "RANK": str(args.rank * args.devices if nodes > 1 else 0),
        "WORLD_SIZE": str(nodes * args.devices),
        "GROUP_RANK": str(args.rank),
        "MASTER_ADDR": args.address if nodes > 1 else "127.0.0.1",
        "MASTER_PORT": str(args.port if nodes > 1 else port),
    }
    return measure(program, "collectives.json", args.devices, environment)


def of_size(least: int, most: int) -> List[str]:
    """Return the options of collectives.py for these sizes."""
    return ["--least", str(least), "--most", str(most)]


def inside(args: argparse.Namespace, line: Dict[str, Any]) -> None:
    """Add what the devices of the node send each other, all together and by pairs."""
    most = NODE_BYTES[args.device]
    content = collectives(args, 1, "--only", COLLECTIVES, *of_size(most, most))
    rates = {row["collective"]: row["busbw_gb_per_second"] for row in content["measurements"]}
    exchanged = collectives(args, 1, "--only", "sendrecv", *of_size(8, SENT_BYTES[args.device]))[
        "measurements"
    ]
    line["rates"]["GPUs"] = dict(rates, sendrecv=exchanged[-1]["busbw_gb_per_second"])
    most = PAIR_BYTES[args.device]
    # --least above --most: no collective, only the pairs.
    line["pairs"] = collectives(args, 1, "--pairs", *of_size(most + 1, most))["pairs"]
    line["sizes"] = [*content["measurements"], *exchanged]
    if "lines" in content:
        line["nccl"] = content["lines"]


def repeated(operation: Callable[[], Any], seconds: float) -> float:
    """Return how often a second an operation can be done, the best of several tries."""
    best, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end or not best:
        begun = time.monotonic()
        operation()
        best = max(best, 1 / (time.monotonic() - begun))
    return best


def host(args: argparse.Namespace, line: Dict[str, Any]) -> None:
    """Add the rates of the processor on one thread, of its memory, and of the disk."""
    source, target = memoryview(bytes(HOST_BYTES)), memoryview(bytearray(HOST_BYTES))

    def copy() -> None:
        target[:] = source

    line["rates"]["host"] = {
        "processor": repeated(lambda: hashlib.sha256(source).digest(), args.seconds / 2) * HOST_BYTES / 1e9,
        "memory": repeated(copy, args.seconds / 2) * 2 * HOST_BYTES / 1e9,
    }
    if shutil.which("fio"):
        for way in ("write", "read"):
            line["rates"]["host"]["disk_" + way] = disk(way, args.seconds)


def disk(way: str, seconds: float) -> float:
    """Return GB/s of the disk below the programs, as fio measures it: 1 MiB each, past the cache of files."""
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        command = ["fio", "--name=scalebook", "--rw=" + way, "--bs=1M", "--size=256M", "--end_fsync=1"]
        command += ["--invalidate=1", "--runtime=%d" % max(1, seconds), "--output-format=json"]
        command.append("--directory=" + folder)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
        )
        printed = process.communicate()[0]
        if process.returncode:
            raise ProgramError("fio", process.returncode, printed.strip()[-300:])
    rate: float = json.loads(printed[printed.index("{") :])["jobs"][0][way]["bw_bytes"] / 1e9
    return rate


def processor() -> str:
    """Return the name of the processor, "" where it has none."""
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        names = [text.split(":", 1)[1].strip() for text in stream if text.startswith("model name")]
    return (names + [""])[0]


def one_device(args: argparse.Namespace, index: int, line: Dict[str, Any]) -> None:
    """Add the rates and the trace of one device to the line."""
    part = "GPU%d" % index if args.device == "gpu" else "CPU"
    os.environ["CUDA_VISIBLE_DEVICES"] = str(index) if args.device == "gpu" else ""
    size = "large" if args.device == "gpu" else "moderate"
    program = [os.path.join(HERE, "microbench.py"), "--device", args.device, "--size", size]
    try:
        content = measure(
            [*program, "--only", "matmul,products,memory,launch", "--seconds", str(args.seconds)],
            "compute.json",
        )
        line["name"], rates = content["name"], line["rates"].setdefault(part, {})
        for each in content["measurements"]:
            name = {"matmul": "matmul_" + each["variant"], "product": "best_" + each["variant"]}.get(
                each["benchmark"], each["variant"]
            )
            if each["seconds"]:
                # Of an operation that only has to be launched: how many in a second.
                rate = each["tflops"] or each["gbytes_per_second"] or 1 / each["seconds"]
                rates[name] = max(rate, rates.get(name, 0))
            elif not each["reason"].startswith("not available"):
                line["problems"][part] = {"code": "acceptance.out-of-memory", "values": {"quantity": name}}
        trace = start([os.path.join(HERE, "training_trace.py"), args.device])
        line["traces"][part] = "%s torch %s" % (trace.strip(), content["torch"])
    except ProgramError as error:
        line["problems"][part] = error.reason
    del os.environ["CUDA_VISIBLE_DEVICES"]


def gpus() -> List[str]:
    """Return the UUIDs of the GPUs of this node, [] where the driver does not tell."""
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        listed = subprocess.check_output(query, universal_newlines=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return []
    return [each.strip() for each in listed.splitlines()]


def interface(address: str) -> Optional[str]:
    """Return the network interface that has this address: the host name may resolve to another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), GET_ADDRESS, request)
            except OSError:
                continue  # it has no address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def main(argv: List[str]) -> None:
    """Measure, and print the line."""
    args = arguments(argv)
    line: Dict[str, Any] = {"name": None, "rates": {}, "traces": {}, "problems": {}}
    if args.what == "alone":
        line["processor"], line["gpus"] = processor(), gpus() if args.device == "gpu" else []
        for index in range(args.devices):
            one_device(args, index, line)
    try:
        if args.what != "alone":
            name = interface(args.own)
            if name:
                os.environ.update(GLOO_SOCKET_IFNAME=name, NCCL_SOCKET_IFNAME=name)
            size = of_size(NETWORK_BYTES[args.device], NETWORK_BYTES[args.device])
            measured = "forward,backward" if args.what == "pair" else COLLECTIVES
            content = collectives(args, args.nodes, "--only", measured, *size)
            if "lines" in content:
                line["nccl"] = content["lines"]
            for row in content.get("measurements", []):
                line["rates"][row["collective"]] = row["busbw_gb_per_second"]
                if len(row.get("rails", ())) > 1:
                    line.setdefault("rails", {})[row["collective"]] = row["rails"]
        else:
            host(args, line)
            if args.devices > 1:
                inside(args, line)
    except ProgramError as error:
        line["problems"]["node"] = error.reason
    print(json.dumps(line))


if __name__ == "__main__":
    main(sys.argv[1:])
