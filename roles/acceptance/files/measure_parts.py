# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measure the parts of this node once, or the links between it and another node, and print one line of JSON.

    python3 measure_parts.py alone --device gpu --devices 8
    python3 measure_parts.py pair --device gpu --devices 8 --rank 0 --address 10.11.0.2 --own 10.11.0.2

It starts the programs of role microbench, which lie beside it, and training_trace.py.  The line has the name
of the device, the rates of each part by quantity, the digest of each part's training, and what could not be
measured.  Of a pair, the first node prints the rates.  Python 3.6 or later.
"""

import argparse
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORK_BYTES = {"gpu": 1 << 28, "cpu": 1 << 24}
NODE_BYTES = 1 << 30
GET_ADDRESS = 0x8915  # Linux: SIOCGIFADDR


class ProgramError(Exception):
    """A program ended with an error; the text is the last that it printed."""


def arguments(argv: List[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("what", choices=["alone", "pair"])
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, default=1, help="GPUs of this node; 1 on CPUs")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to measure an operation for")
    parser.add_argument("--rank", type=int, default=0, help="0 or 1: the first or the second node of a pair")
    parser.add_argument("--address", default="127.0.0.1", help="of the first node of a pair")
    parser.add_argument("--own", default="127.0.0.1", help="address of this node")
    parser.add_argument("--port", type=int, default=11111)
    return parser.parse_args(argv)


def start(argv: List[str]) -> str:
    """Return what a program printed, or raise ProgramError."""
    ended = subprocess.Popen(
        [sys.executable, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    printed, errors = ended.communicate()
    if ended.returncode:
        lines = [line for line in (printed + errors).splitlines() if line.strip()] or ["nothing"]
        raise ProgramError("%s ended with status %d: %s" % (argv[0], ended.returncode, lines[-1][:300]))
    return printed


def measure(program: List[str], name: str) -> Dict[str, Any]:
    """Run a program of role microbench, and return what it wrote into the file `name`, {} if nothing."""
    with tempfile.TemporaryDirectory() as out:
        start([*program, "--out", out])
        path = os.path.join(out, name)
        if not os.path.exists(path):
            return {}
        with open(path, encoding="utf-8") as stream:
            content: Dict[str, Any] = json.load(stream)
        return content


def collectives(args: argparse.Namespace, only: str, size: int, placing: List[str]) -> Dict[str, float]:
    """Return the bandwidth on the bus of the collectives `only`; {} on the second node of a pair."""
    program = ["-m", "torch.distributed.run", "--nproc_per_node", str(args.devices), *placing]
    program += [os.path.join(HERE, "collectives.py"), "--device", args.device, "--only", only]
    content = measure([*program, "--least", str(size), "--most", str(size)], "collectives.json")
    return {row["collective"]: row["busbw_gb_per_second"] for row in content.get("measurements", [])}


def one_device(args: argparse.Namespace, index: int, line: Dict[str, Any]) -> None:
    """Add the rates and the trace of one device to the line."""
    part = "GPU%d" % index if args.device == "gpu" else "CPU"
    os.environ["CUDA_VISIBLE_DEVICES"] = str(index) if args.device == "gpu" else ""
    size = "large" if args.device == "gpu" else "moderate"
    program = [os.path.join(HERE, "microbench.py"), "--device", args.device, "--size", size]
    try:
        content = measure(
            [*program, "--only", "matmul,memory", "--seconds", str(args.seconds)], "compute.json"
        )
        line["name"], line["rates"][part] = content["name"], {}
        for each in content["measurements"]:
            name = each["variant"] if each["benchmark"] == "memory" else "matmul_" + each["variant"]
            if each["seconds"]:
                line["rates"][part][name] = each["tflops"] or each["gbytes_per_second"]
            else:
                line["problems"][part] = "%s: %s" % (name, each["reason"])
        trace = start([os.path.join(HERE, "training_trace.py"), args.device])
        line["traces"][part] = "%s torch %s" % (trace.strip(), content["torch"])
    except ProgramError as error:
        line["problems"][part] = str(error)
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
        line["gpus"] = gpus() if args.device == "gpu" else []
        for index in range(args.devices):
            one_device(args, index, line)
    try:
        if args.what == "pair":
            name = interface(args.own)
            if name:
                os.environ.update(GLOO_SOCKET_IFNAME=name, NCCL_SOCKET_IFNAME=name)
            placing = ["--nnodes", "2", "--node_rank", str(args.rank)]
            placing += ["--master_addr", args.address, "--master_port", str(args.port)]
            line["rates"] = collectives(args, "forward,backward", NETWORK_BYTES[args.device], placing)
        elif args.devices > 1:
            line["rates"]["GPUs"] = collectives(args, "all_reduce", NODE_BYTES, ["--standalone"])
    except ProgramError as error:
        line["problems"]["node"] = str(error)
    print(json.dumps(line))


if __name__ == "__main__":
    main(sys.argv[1:])
