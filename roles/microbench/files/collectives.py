# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measure the bandwidth between devices: all-reduce, all-gather and others, by size.

    torchrun --nproc_per_node 8 collectives.py --out DIR      rank 0 writes DIR/collectives.json

Requires only PyTorch. The conventions are those of NVIDIA's nccl-tests. Numbers are fp32. The size is that of
the whole buffer; for all-gather, of the receive buffer. The time of an operation is the mean over all ranks
of the mean over all iterations. Algorithm bandwidth is size / time. Bus bandwidth is algorithm bandwidth
times 2 (n - 1) / n for all-reduce, and (n - 1) / n for all-gather, reduce-scatter and all-to-all; it can be
compared with the speed of a link for any number of ranks. With `sendrecv` each rank sends to the next one
and receives from the one before: both bandwidths are the same. Every result is checked: a wrong result stops
the run.

`--pairs`, for acceptance.yml: each rank sends to each other one alone, in rounds in which no rank is in two
pairs, n - 1 rounds for an even number of ranks; rank 0 writes the bandwidth of each direction.

`forward` and `backward`, for acceptance.yml: the first half of the ranks sends to the other half, each rank
to one, and the other way; the bandwidth is that of all of them, `rails` those of each pair of ranks.

On GPUs the lines of NCCL about what it connects them by are kept in DIR/collectives.nccl.xz, by node.
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import nccl_file
import torch
import torch.distributed as dist

# Stop this process when its launcher dies (Linux: PR_SET_PDEATHSIG is 1).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)

SCHEMA = 1
WIDTH = 4  # bytes per number
FACTORS: Dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "sendrecv": lambda _: 1,
    "forward": lambda n: n // 2,
    "backward": lambda n: n // 2,
}
DIVIDED = ("all_gather", "reduce_scatter", "all_to_all")  # each rank gets a part of the buffer


def arguments(argv: List[str]) -> argparse.Namespace:
    """Parse the command line; sizes are in bytes."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", required=True, help="directory for collectives.json")
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument(
        "--least", type=int, default=1 << 10, help="smallest size; each following size is 4 times as large"
    )
    parser.add_argument("--most", type=int, default=0, help="largest size; 0: 1 GiB on GPUs, 4 MiB on CPUs")
    parser.add_argument("--warmup", type=int, default=5, help="operations before the measured ones")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument(
        "--moved", type=int, default=0, help="bytes after which the iterations of a size end, 0 for no limit"
    )
    parser.add_argument("--only", default="all_reduce,all_gather", help="names, separated by commas")
    parser.add_argument("--pairs", action="store_true", help="each pair of ranks alone, of the largest size")
    args = parser.parse_args(argv)
    unknown = [name for name in args.only.split(",") if name not in FACTORS]
    if unknown:
        parser.error("--only %s: unknown; allowed are %s" % (",".join(unknown), ", ".join(FACTORS)))
    if args.device == "auto":
        args.device = "gpu" if torch.cuda.is_available() else "cpu"
    args.most = args.most or (1 << 30 if args.device == "gpu" else 1 << 22)
    return args


def sizes(args: argparse.Namespace, most: int, world: int) -> Iterator[Tuple[str, int]]:
    """Yield each collective with each size in bytes from `least` to `most`, as many as it can have.

    Where every rank gets a part, each gets the same number of numbers.
    """
    names, size = args.only.split(","), args.least
    last: Dict[str, int] = {}
    while size <= most:
        for name in [each for each in FACTORS if each in names]:
            unit = WIDTH * (world if name in DIVIDED else 1)
            rounded = max(unit, size // unit * unit)
            if rounded != last.get(name):
                yield name, rounded
            last[name] = rounded
        size *= 4


class Group(NamedTuple):
    """This process among all: its rank, their number, its device, and the file of NCCL's lines, if any."""

    rank: int
    world: int
    device: torch.device
    nccl_path: str


# (buffer, operation, expected content of the buffer)
Operation = Tuple[torch.Tensor, Callable[[], Any], torch.Tensor]


def blocks(count: int, group: Group) -> torch.Tensor:
    """Return `count` numbers, an equal share of them for each rank: 1 of the first, 2 of the second ..."""
    ranks = torch.arange(1, group.world + 1, device=group.device, dtype=torch.float32)
    return ranks.repeat_interleave(count // group.world)


def all_reduce(count: int, group: Group) -> Operation:
    """Return the sum over all ranks."""
    buffer = torch.empty(count, device=group.device)
    return buffer, lambda: dist.all_reduce(buffer), torch.full_like(buffer, float(group.world))


def all_gather(count: int, group: Group) -> Operation:
    """Return the parts of all ranks put together."""
    buffer = torch.empty(count, device=group.device)
    part = torch.full((count // group.world,), group.rank + 1.0, device=group.device)
    return buffer, lambda: dist.all_gather_into_tensor(buffer, part), blocks(count, group)


def reduce_scatter(count: int, group: Group) -> Operation:
    """Return the sum of which each rank gets its part."""
    numbers, part = blocks(count, group), torch.empty(count // group.world, device=group.device)
    expected = torch.full_like(part, (group.rank + 1.0) * group.world)
    return part, lambda: dist.reduce_scatter_tensor(part, numbers), expected


def all_to_all(count: int, group: Group) -> Operation:
    """Return the exchange in which each rank sends a part to each other one."""
    expected = blocks(count, group)
    numbers, buffer = torch.full_like(expected, group.rank + 1.0), torch.empty_like(expected)
    return buffer, lambda: dist.all_to_all_single(buffer, numbers), expected


def sendrecv(count: int, group: Group) -> Operation:
    """Return the ring: each rank sends to the next one."""
    before, after = (group.rank - 1) % group.world, (group.rank + 1) % group.world
    buffer = torch.empty(count, device=group.device)
    numbers = torch.full_like(buffer, group.rank + 1.0)

    def pass_on() -> None:
        sending = dist.P2POp(dist.isend, numbers, after)
        for each in dist.batch_isend_irecv([sending, dist.P2POp(dist.irecv, buffer, before)]):
            each.wait()

    return buffer, pass_on, torch.full_like(buffer, before + 1.0)


def one_way(source: int, target: int, count: int, group: Group) -> Operation:
    """Return what one rank sends to another one; the others have nothing to do."""
    buffer = torch.empty(count, device=group.device)
    if group.rank == source:
        numbers = torch.full_like(buffer, source + 2.0)
        return buffer, lambda: dist.send(numbers, target), torch.ones_like(buffer)
    if group.rank == target:
        return buffer, lambda: dist.recv(buffer, source), torch.full_like(buffer, source + 2.0)
    return buffer, lambda: None, torch.ones_like(buffer)


def forward(count: int, group: Group) -> Operation:
    """Return what each rank of the first half sends to one of the other half."""
    half = group.world // 2
    return one_way(group.rank % half, group.rank % half + half, count, group)


def backward(count: int, group: Group) -> Operation:
    """Return the same from the other half."""
    half = group.world // 2
    return one_way(group.rank % half + half, group.rank % half, count, group)


OPERATIONS: Dict[str, Callable[[int, Group], Operation]] = {
    each.__name__: each
    for each in (all_reduce, all_gather, reduce_scatter, all_to_all, sendrecv, forward, backward)
}


def settle(device: torch.device) -> None:
    """Wait until the device of this rank has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def iterations(args: argparse.Namespace, size: int) -> int:
    """Return how often an operation on `size` bytes is measured, at least twice."""
    count: int = args.iterations
    return min(count, max(2, args.moved // size)) if args.moved else count


def timed(operation: Callable[[], Any], args: argparse.Namespace, size: int, device: torch.device) -> float:
    """Return the mean seconds of an operation over all iterations; all ranks start together."""
    count = iterations(args, size)
    for _ in range(min(args.warmup, count)):
        operation()
    settle(device)
    dist.barrier()
    start = time.monotonic()
    for _ in range(count):
        operation()
    settle(device)
    seconds: float = (time.monotonic() - start) / count
    return seconds


def measure(operation: Callable[[], Any], args: argparse.Namespace, size: int, group: Group) -> List[float]:
    """Return the mean seconds of an operation over all iterations, of each rank."""
    seconds = torch.zeros(group.world, dtype=torch.float64, device=group.device)
    seconds[group.rank] = timed(operation, args, size, group.device)
    dist.all_reduce(seconds)
    of_ranks: List[float] = seconds.tolist()
    return of_ranks


def rails(size: int, of_ranks: List[float]) -> List[float]:
    """Return GB/s between the first rank of each half, between the second ones and so on."""
    half = len(of_ranks) // 2
    return [size / max(of_ranks[rank], of_ranks[rank + half]) / 1e9 for rank in range(half)]


def checked(name: str, operation: Operation, group: Group) -> None:
    """Do an operation once; raise SystemExit where its result is wrong."""
    buffer, call, expected = operation
    buffer.fill_(1.0)
    call()
    settle(group.device)
    if not torch.equal(buffer, expected):
        size = buffer.numel() * WIDTH
        raise SystemExit("%s of %d bytes gave wrong numbers on rank %d" % (name, size, group.rank))
    # Measure with zeros: repeated sums of other numbers would overflow.
    buffer.zero_()


def run(args: argparse.Namespace, group: Group) -> Iterator[Dict[str, Any]]:
    """Yield every row; raise SystemExit on a wrong result."""
    for name, size in sizes(args, min(args.most, largest(args, group)), group.world):
        operation = OPERATIONS[name](size // WIDTH, group)
        checked(name, operation, group)
        of_ranks = measure(operation[1], args, size, group)
        seconds = sum(of_ranks) / group.world
        row = {
            "collective": name,
            "bytes": size,
            "seconds": seconds,
            "algbw_gb_per_second": size / seconds / 1e9,
            "busbw_gb_per_second": size / seconds / 1e9 * FACTORS[name](group.world),
        }
        yield {**row, "rails": rails(size, of_ranks)} if name in ("forward", "backward") else row


def largest(args: argparse.Namespace, group: Group) -> int:
    """Return the largest size that fits with what it is checked against: a quarter of the memory of a GPU."""
    return memory(group.device) // 4 if group.device.type == "cuda" else args.most


def memory(device: torch.device) -> int:
    """Return the bytes of the smallest GPU of the job: all ranks have to leave out the same sizes."""
    least = torch.tensor([torch.cuda.get_device_properties(device).total_memory], device=device)
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    return int(least.item())


def pairs(args: argparse.Namespace, group: Group) -> Iterator[Dict[str, Any]]:
    """Yield the bandwidth from each rank to each other one, in rounds of disjoint pairs."""
    ring = [*range(group.world), *([-1] if group.world % 2 else [])]
    for _ in range(len(ring) - 1):
        halves = [(ring[index], ring[-1 - index]) for index in range(len(ring) // 2)]
        ring = [ring[0], ring[-1], *ring[1:-1]]
        for order in (1, -1):
            mine = [pair[::order] for pair in halves if group.rank in pair and -1 not in pair]
            seconds = 0.0
            if mine:
                operation = one_way(mine[0][0], mine[0][1], args.most // WIDTH, group)
                checked("pairs", operation, group)
                seconds = timed(operation[1], args, args.most, group.device)
            else:
                dist.barrier()
            every: List[Any] = [None] * group.world
            dist.all_gather_object(every, (mine, seconds))
            for source, target in sorted({pair for own_pairs, _ in every for pair in own_pairs}):
                slower = max(every[source][1], every[target][1])
                yield {"source": source, "target": target, "gb_per_second": args.most / slower / 1e9}


def join(device: str, folder: str) -> Group:
    """Join the process group that the environment names, as torchrun sets it; NCCL writes into the folder."""
    local, nccl_path = int(os.environ["LOCAL_RANK"]), ""
    if device == "gpu":
        place = torch.device("cuda", local)
        torch.cuda.set_device(place)
        nccl_path = nccl_file.listen(folder, int(os.environ["RANK"]))
        dist.init_process_group("nccl", device_id=place)
    else:
        place = torch.device("cpu")
        dist.init_process_group("gloo")
    if dist.get_world_size() < 2:
        raise SystemExit("collectives need at least 2 processes, torchrun started 1")
    return Group(dist.get_rank(), dist.get_world_size(), place, nccl_path)


def leave() -> None:
    """Leave the process group, when all its processes have measured."""
    dist.barrier()
    dist.destroy_process_group()


def measured(args: argparse.Namespace, group: Group) -> Dict[str, Any]:
    """Return the content of collectives.json; the first rank prints a line per measurement."""
    places: List[Any] = [None] * group.world
    # Each launcher is a node. Several nodes can share a machine.
    dist.all_gather_object(places, (os.environ["GROUP_RANK"], socket.gethostname()))
    result: Dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "collectives",
        "device": args.device,
        "name": torch.cuda.get_device_name() if args.device == "gpu" else "cpu",
        "backend": dist.get_backend(),
        "world_size": group.world,
        "nodes": len(set(places)),
        "hosts": sorted({host for _, host in places}),
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if args.device == "gpu" else None,
        "iterations": args.iterations,
        # Sizes above it are left out.
        "largest": largest(args, group),
        "measurements": [],
    }
    if args.pairs:
        result["pairs"] = [*pairs(args, group)]
    for row in run(args, group):
        result["measurements"].append(row)
        if group.rank == 0:
            text = "MICROBENCH {collective} {bytes} bytes: {busbw_gb_per_second:.3f} GB/s on the bus"
            print(text.format(**row), flush=True)
    if args.device == "gpu":
        torch.cuda.empty_cache()
    return result


def nccl_lines(group: Group) -> bytes:
    """Return the packed lines of NCCL of all ranks, by node; nothing where they are not kept."""
    of_ranks: List[Any] = [None] * group.world
    if group.device.type != "cuda":
        return b""
    # Also where the environment of this node says where NCCL writes: the others take part.
    dist.all_gather_object(of_ranks, (int(os.environ["GROUP_RANK"]), nccl_file.packed(group.nccl_path)))
    return nccl_file.of_nodes(of_ranks)


def main(argv: List[str]) -> None:
    """Measure, and write collectives.json in one piece."""
    args = arguments(argv)
    group = join(args.device, args.out)
    result, lines = measured(args, group), nccl_lines(group)
    nccl_file.remove(group.nccl_path)
    if group.rank == 0:
        os.makedirs(args.out, exist_ok=True)
        if lines:
            with open(os.path.join(args.out, nccl_file.NAME), "wb") as packed:
                packed.write(lines)
        path = os.path.join(args.out, "collectives.json")
        with open(path + ".new", "w", encoding="utf-8") as stream:
            json.dump(result, stream, indent=1)
        os.replace(path + ".new", path)
        print(
            "MICROBENCH world_size=%d nodes=%d backend=%s end=true"
            % (group.world, result["nodes"], result["backend"]),
            flush=True,
        )
    leave()
    # The interpreter's shutdown aborts where a thread of gloo still holds a tensor (pytorch/pytorch#190489).
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
