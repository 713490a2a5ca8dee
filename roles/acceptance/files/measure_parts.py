# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measure the parts of this node, and what it sends to other nodes, in steps; print a line of JSON of each.

    python3 measure_parts.py --node NODE1 --device gpu --devices 8 --own 10.11.0.2 --steps '[{"at": 0},
        {"at": 1, "nodes": ["NODE1", "NODE2"], "address": "10.11.0.2", "port": 11111}]'

`steps` are those of a schedule of all nodes that this node takes part in, `at` is their place in it. A step
without `nodes` measures this node alone: its devices, processor and memory, what the devices send each other
and, where fio is installed, the disk, or what `only` lists of these. The others measure what nodes send each
other: two in both directions, more of them, and two in a step with a `group`, together.

Each device has a process, measure_device.py, that loads torch once for all steps. A line has the names of
device and processor, the rates of each part by quantity, the digest of each part's training, what was sent
between devices by size and between pairs of devices of two nodes (rails), the packed lines of NCCL, and what
could not be measured. Of several nodes, the first prints the rates and the lines.

The nodes are connected from the start, so that each knows at once when another one has died, cannot be
measured or has failed: a step with it is left out, or ends, and the next one begins. Python 3.6 or later.
"""

import argparse
import fcntl
import hashlib
import json
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Union

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORK_BYTES = {"gpu": 1 << 28, "cpu": 1 << 24}
NODE_BYTES = {"gpu": 1 << 30, "cpu": 1 << 22}
SENT_BYTES = {"gpu": 1 << 33, "cpu": 1 << 23}
MOVED_BYTES = 1 << 34  # of a size, so that the largest ones do not take most of the time
PAIR_BYTES = {"gpu": 1 << 28, "cpu": 1 << 22}
COLLECTIVES = "all_reduce,all_gather,reduce_scatter,all_to_all"
COMPUTED = ("matmul", "products", "memory", "launch")
ALONE = (*COMPUTED, "trace", "host", "GPUs")
HOST_BYTES = 1 << 25
LEAST_TRIES = 3
MOST_RECEIVED = 1000  # bytes of a line between nodes
GET_ADDRESS = 0x8915  # Linux: SIOCGIFADDR
SECONDS_OF_START = 120  # after which a node that has not started is no longer waited for
# A node that does not answer any more is noticed after 25 seconds.
ALIVE = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}


class ProgramError(Exception):
    """A program ended with an error; `reason` is the message that says so, with the last that it printed."""

    def __init__(self, program: str, status: int, printed: str) -> None:
        super().__init__(program, status, printed)
        self.reason: Dict[str, Any] = {
            "code": "acceptance.program-ended" if printed else "acceptance.program-silent",
            "values": {"program": program, "status": status, **({"line": printed} if printed else {})},
        }


class LateError(Exception):
    """Something had not ended in time."""


class OtherNodeError(Exception):
    """Another node has died or failed; it says why, or its silence does."""


def arguments(argv: List[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--node", required=True, help="name of this node in the steps")
    parser.add_argument("--steps", type=json.loads, required=True)
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, default=1, help="GPUs of this node; 1 on CPUs")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to measure an operation for")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that a step may take")
    parser.add_argument("--own", default="127.0.0.1", help="address of this node")
    return parser.parse_args(argv)


class Peer:
    """The connection to another node: lines of a step's place, a word, and a number."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.received, self.ended = connection, b"", False
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ALIVE.items():
            connection.setsockopt(socket.IPPROTO_TCP, option, value)

    def fileno(self) -> int:
        """Return what select takes."""
        return self.connection.fileno()

    def line(self, deadline: float) -> List[str]:
        """Return the words of the next line; raise OtherNodeError or LateError."""
        while b"\n" not in self.received:
            self.connection.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self.connection.recv(100)
            except socket.timeout:
                raise LateError from None
            except OSError:
                data = b""
            self.received += data
            if not data or len(self.received) > MOST_RECEIVED:
                self.ended = True
                raise OtherNodeError
        line, _, self.received = self.received.partition(b"\n")
        return line.decode("utf-8", "replace").split()

    def receive(self, place: int, word: str, deadline: float) -> int:
        """Return the number that comes with a word."""
        while True:
            words = self.line(deadline)
            # What came of an earlier step has lost its meaning.
            if words[:2] == [str(place), word]:
                return int(words[2])

    def send(self, *words: Any) -> None:
        """Send a line."""
        try:
            self.connection.sendall(" ".join(map(str, words)).encode() + b"\n")
        except OSError:
            self.ended = True


class Wait(NamedTuple):
    """How long to wait for what a step takes: until the deadline, or until one of the other nodes fails.

    `peers` are the other nodes that have not done their part of it.
    """

    deadline: float
    peers: List[Peer] = []  # noqa: RUF012 - nothing is added
    place: int = 0


class Worker:
    """A process of measure_device.py."""

    def __init__(self, environment: Dict[str, str]) -> None:
        self.printed = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "measure_device.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.printed,
            env=dict(os.environ, **environment),
        )  # fmt: skip

    def fileno(self) -> int:
        """Return what select takes."""
        assert self.process.stdout
        return self.process.stdout.fileno()

    def ask(self, do: str, **options: Any) -> None:
        """Ask for something; an answer follows unless the process has ended."""
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps({"do": do, "with": options}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # answer() says why

    def answer(self) -> Any:
        """Return the answer, or raise ProgramError."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        status = self.process.wait()
        self.printed.seek(0)
        text = self.printed.read().decode("utf-8", "replace")
        lines = [line for line in text.splitlines() if line.strip()] or [""]
        raise ProgramError("measure_device.py", status, lines[-1][:300])

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        self.printed.close()


def answers(workers: Sequence[Worker], wait: Wait) -> List[Any]:
    """Return what each process answers.

    Raise the error of the first that ends, OtherNodeError as soon as another node fails, or LateError.
    """
    answered: Dict[Worker, Any] = {}
    while len(answered) < len(workers):
        waiting = [each for each in workers if each not in answered]
        seconds = max(0, wait.deadline - time.monotonic())
        sources: List[Union[Worker, Peer]] = [*waiting, *wait.peers]
        ready, _, _ = select.select(sources, [], [], seconds)
        if not ready:
            raise LateError
        for each in ready:
            if isinstance(each, Worker):
                answered[each] = each.answer()
            elif each.receive(wait.place, "done", wait.deadline):
                wait.peers.remove(each)
            else:
                raise OtherNodeError
    return [answered[each] for each in workers]


def of_size(least: int, most: int) -> List[str]:
    """Return the options of collectives.py for these sizes."""
    return ["--least", str(least), "--most", str(most)]


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("", 0))
        port: int = free.getsockname()[1]
    return port


class Node:
    """This node: its processes by name, its connections to other nodes by their name, a folder for files."""

    def __init__(self, args: argparse.Namespace, folder: str) -> None:
        self.args, self.begun = args, time.monotonic()
        self.workers: Dict[str, Worker] = {}
        self.peers: Dict[str, Peer] = {}
        self.measurable, self.folder = True, folder

    def line(self, step: Dict[str, Any]) -> Dict[str, Any]:
        """Measure a step, and return the line that is printed of it."""
        line: Dict[str, Any] = {
            "at": step["at"], "name": None, "rates": {}, "traces": {}, "problems": {},
        }  # fmt: skip
        if "nodes" in step:
            self.with_others(step, line)
        else:
            self.measure_alone(step.get("only") or ALONE, line)
            self.measurable = self.measurable and not line["problems"]
        return line

    # -- alone --------------------------------------------------------------------------------------

    def measure_alone(self, only: Sequence[str], line: Dict[str, Any]) -> None:
        """Add what this node measures without others."""
        args = self.args
        line["processor"], line["gpus"] = processor(), gpus() if args.device == "gpu" else []
        for index in range(args.devices if {*only} & {*COMPUTED, "trace"} else 0):
            part = "GPU%d" % index if args.device == "gpu" else "CPU"
            self.tried(line, part, lambda: self.one_device(index, part, only, line))  # noqa: B023
        if "host" in only:
            self.tried(line, "node", lambda: host(args, line))
        if "GPUs" in only and args.devices > 1:
            self.tried(line, "node", lambda: self.inside(line))

    def wait(self, peers: Sequence[Peer] = (), place: int = 0) -> Wait:
        """Return how long to wait for what is asked for now: one that hangs leaves the next one its time."""
        return Wait(time.monotonic() + self.args.timeout, [*peers], place)

    def tried(self, line: Dict[str, Any], part: str, measure: Callable[[], None]) -> None:
        """Measure something; what cannot be measured is a problem of the part, and its processes end."""
        try:
            measure()
            return
        except ProgramError as error:
            line["problems"][part] = error.reason
        except LateError:
            seconds = int(self.args.timeout)
            line["problems"][part] = {"code": "acceptance.not-ended", "values": {"seconds": seconds}}
        except OtherNodeError:
            pass  # it says why, or its silence does
        self.end()

    def worker(self, name: str, environment: Dict[str, str]) -> Worker:
        """Return the process of this name."""
        if name not in self.workers:
            self.workers[name] = Worker(environment)
        return self.workers[name]

    def end(self) -> None:
        """End all processes; the next step starts new ones."""
        while self.workers:
            self.workers.popitem()[1].end()

    def one_device(self, index: int, part: str, only: Sequence[str], line: Dict[str, Any]) -> None:
        """Add the rates and the trace of one device."""
        wait = self.wait()
        gpu = self.args.device == "gpu"
        # A GPU is measured by a process that sees no other one.
        worker = self.worker(
            part if gpu else rank_name(index), {"CUDA_VISIBLE_DEVICES": str(index) if gpu else ""}
        )
        computed = [name for name in COMPUTED if name in only]
        if computed:
            options = ["--device", self.args.device, "--size", "large" if gpu else "moderate"]
            options += ["--only", ",".join(computed), "--seconds", str(self.args.seconds)]
            worker.ask("compute", options=options)
            [content] = answers([worker], wait)
            line["name"], rates = content["name"], line["rates"].setdefault(part, {})
            for each in content["measurements"]:
                name = {"matmul": "matmul_" + each["variant"], "product": "best_" + each["variant"]}.get(
                    each["benchmark"], each["variant"]
                )
                if each["seconds"]:
                    # Of an operation that only has to be launched: how many in a second.
                    rate = each["tflops"] or each["gbytes_per_second"] or 1 / each["seconds"]
                    rates[name] = max(rate, rates.get(name, 0))
                elif each["reason"]["code"] != "microbench.no-fp8":
                    line["problems"][part] = {
                        "code": "acceptance.out-of-memory", "values": {"quantity": name},
                    }  # fmt: skip
        if "trace" in only:
            worker.ask("trace", device=self.args.device)
            [line["traces"][part]] = answers([worker], wait)
        if gpu:
            self.workers.pop(part).end()

    def inside(self, line: Dict[str, Any]) -> None:
        """Add what the devices of the node send each other, all together and by pairs."""
        device, wait = self.args.device, self.wait()
        workers = self.join(1, 0, "127.0.0.1", free_port(), wait)
        most = NODE_BYTES[device]
        content = self.collectives(workers, ["--only", COLLECTIVES, *of_size(most, most)], wait)
        swept = ["--only", COLLECTIVES + ",sendrecv", "--moved", str(MOVED_BYTES)]
        of_sizes = self.collectives(workers, [*swept, *of_size(8, SENT_BYTES[device])], wait)
        exchanged = [row for row in of_sizes["measurements"] if row["collective"] == "sendrecv"]
        rates = {row["collective"]: row["busbw_gb_per_second"] for row in content["measurements"]}
        line["rates"]["GPUs"] = dict(rates, sendrecv=exchanged[-1]["busbw_gb_per_second"])
        most = PAIR_BYTES[device]
        # --least above --most: no collective, only the pairs.
        line["pairs"] = self.collectives(workers, ["--pairs", *of_size(most + 1, most)], wait)["pairs"]
        line["sizes"] = [*content["measurements"], *of_sizes["measurements"]]
        line["sizes"].append(left_out(device, of_sizes["largest"]))
        if "lines" in content:
            line["nccl"] = content["lines"]
        self.leave(workers, wait)

    # -- with other nodes ---------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect this node with the others of its steps; those that do not start are left out.

        Of two nodes the one connects that is not the first in their earliest step, which both know.
        """
        to: Dict[str, Any] = {}
        other_nodes: Set[str] = set()
        for step in self.args.steps:
            first, *others = step.get("nodes", [self.args.node])
            if first == self.args.node:
                other_nodes.update(name for name in others if name not in to)
            elif first not in other_nodes:
                to[first] = (step["address"], step["port"])
        with listening(self.args.steps, self.args.node) as listener:
            deadline = self.begun + SECONDS_OF_START
            while (to or other_nodes) and time.monotonic() < deadline:
                for name, address in list(to.items()):
                    try:
                        peer = self.peers[name] = Peer(socket.create_connection(address, timeout=2))
                    except OSError:
                        continue  # it has not started yet
                    peer.send(self.args.node)
                    del to[name]
                try:
                    peer = Peer(listener.accept()[0])
                    [name] = peer.line(time.monotonic() + 2)
                except (OSError, OtherNodeError, LateError, ValueError):
                    continue
                if name in other_nodes:
                    self.peers[name] = peer
                    other_nodes.remove(name)

    def with_others(self, step: Dict[str, Any], line: Dict[str, Any]) -> None:
        """Add what nodes send each other, unless one of them cannot be measured."""
        args, place, nodes = self.args, step["at"], step["nodes"]
        rank = nodes.index(args.node)
        names = nodes[:1] if rank else nodes[1:]
        peers = [self.peers[name] for name in names if name in self.peers and not self.peers[name].ended]
        complete = len(peers) == len(names)
        successes: List[bool] = []

        def measure() -> None:
            port = self.meet(place, rank, peers, complete)
            if not port:
                return
            wait = self.wait(peers, place)
            workers = self.join(len(nodes), rank, step["address"], port, wait)
            most = NETWORK_BYTES[args.device]
            is_link = len(nodes) == 2 and "group" not in step
            only = "forward,backward" if is_link else COLLECTIVES
            content = self.collectives(workers, ["--only", only, *of_size(most, most)], wait)
            self.leave(workers, wait)
            if "lines" in content:
                line["nccl"] = content["lines"]
            for row in content.get("measurements", []):
                line["rates"][row["collective"]] = row["busbw_gb_per_second"]
                if len(row.get("rails", ())) > 1:
                    line.setdefault("rails", {})[row["collective"]] = row["rails"]
            successes.append(True)

        self.tried(line, "node", measure)
        for peer in peers:
            peer.send(place, "done", len(successes))

    def meet(self, place: int, rank: int, peers: Sequence[Peer], complete: bool) -> int:
        """Return the port of the process group, which the first node chooses; 0 if a node is missing.

        A node is late by the time-outs of the steps before, at most.
        """
        deadline = self.begun + SECONDS_OF_START + (place + 1) * self.args.timeout
        ready = self.measurable and complete
        if rank:
            for peer in peers:
                peer.send(place, "ready", int(ready))
                return peer.receive(place, "port", deadline)
            return 0
        for peer in peers:
            try:
                ready = bool(peer.receive(place, "ready", deadline)) and ready
            except OtherNodeError:
                ready = False
        port = free_port() if ready else 0
        for peer in peers:
            peer.send(place, "port", port)
        return port

    def join(self, nodes: int, rank: int, address: str, port: int, wait: Wait) -> List[Worker]:
        """Return the processes of all devices, in one process group with those of the other nodes."""
        args, name = self.args, interface(self.args.own)
        environment = {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name} if name else {}
        if args.device == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        workers = [self.worker(rank_name(index), environment) for index in range(args.devices)]
        for index, worker in enumerate(workers):
            group = {
                "RANK": rank * args.devices + index, "WORLD_SIZE": nodes * args.devices,
                "LOCAL_RANK": index, "GROUP_RANK": rank, "MASTER_ADDR": address, "MASTER_PORT": port,
            }  # fmt: skip
            texts = {**environment, **{key: str(value) for key, value in group.items()}}
            worker.ask("join", device=args.device, environment=texts, folder=self.folder)
        answers(workers, wait)
        return workers

    def collectives(self, workers: Sequence[Worker], options: List[str], wait: Wait) -> Dict[str, Any]:
        """Return what collectives.py measured; {} but on the first node."""
        for worker in workers:
            worker.ask("send", options=["--device", self.args.device, *options])
        return answers(workers, wait)[0] or {}

    def leave(self, workers: Sequence[Worker], wait: Wait) -> None:
        """Leave the process group."""
        for worker in workers:
            worker.ask("leave")
        answers(workers, wait)


def rank_name(index: int) -> str:
    """Return the name of the process of a device that takes part in process groups."""
    return "rank %d" % index


def listening(steps: Sequence[Dict[str, Any]], node: str) -> socket.socket:
    """Return a socket that other nodes find at the port of the steps of which this node is the first."""
    ports = [step["port"] for step in steps if step.get("nodes", [""])[0] == node]
    try:
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    except OSError:  # without IPv6
        listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.settimeout(0.2)
    listener.bind(("", (ports + [0])[0]))
    listener.listen(128)
    return listener


def left_out(device: str, largest: int) -> Dict[str, Any]:
    """Return why larger sizes than the largest are not measured."""
    if largest >= SENT_BYTES["gpu"]:
        return {"largest": SENT_BYTES["gpu"], "reason": None}
    code = "acceptance.sizes-memory" if device == "gpu" else "acceptance.sizes-processor"
    return {"largest": largest, "reason": {"code": code, "values": {"bytes": largest}}}


def repeated(operation: Callable[[], Any], seconds: float) -> float:
    """Return how often a second an operation can be done, the best of several tries.

    The first try does not count: it gets its memory from the kernel.
    """
    operation()
    rates: List[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(rates) < LEAST_TRIES:
        begun = time.monotonic()
        operation()
        rates.append(1 / (time.monotonic() - begun))
    return max(rates)


def host(args: argparse.Namespace, line: Dict[str, Any]) -> None:
    """Add the rates of the processor on one thread, of its memory, and of the disk."""
    # Zeros that nobody wrote would all be one page, and come from the cache.
    source, target = memoryview(bytes(range(256)) * (HOST_BYTES // 256)), memoryview(bytearray(HOST_BYTES))

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
    """Measure all steps, and print a line of each as soon as it has ended."""
    args = arguments(argv)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(args, folder)
        try:
            node.connect()
            for step in args.steps:
                print(json.dumps(node.line(step)), flush=True)
        finally:
            node.end()


if __name__ == "__main__":
    main(sys.argv[1:])
