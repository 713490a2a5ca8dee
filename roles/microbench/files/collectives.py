# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measure the bandwidth between devices: all-reduce and all-gather, by size.

    torchrun --nproc_per_node 8 collectives.py --out DIR      rank 0 writes DIR/collectives.json

Requires only PyTorch. The conventions are those of NVIDIA's nccl-tests. Numbers are fp32. The size is that of
the whole buffer; for all-gather, of the receive buffer. The time of an operation is the mean over all ranks
of the mean over all iterations. Algorithm bandwidth is size / time. Bus bandwidth is algorithm bandwidth
times 2 (n - 1) / n for all-reduce, and (n - 1) / n for all-gather; it can be compared with the speed of a
link for any number of ranks. Every result is checked: a wrong result stops the run.

`forward` and `backward`, for acceptance.yml: the first half of the ranks sends to the other half, each rank
to one, and the other way; the bandwidth is that of all of them.
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import sys
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
import torch.distributed as dist

# Stop this process when its launcher dies (Linux: PR_SET_PDEATHSIG is 1).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)

SCHEMA = 1
WIDTH = 4  # bytes per number
FACTORS: Dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "forward": lambda n: n // 2,
    "backward": lambda n: n // 2,
}


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
    parser.add_argument("--only", default="all_reduce,all_gather", help="names, separated by commas")
    args = parser.parse_args(argv)
    unknown = [name for name in args.only.split(",") if name not in FACTORS]
    if unknown:
        parser.error("--only %s: unknown; allowed are %s" % (",".join(unknown), ", ".join(FACTORS)))
    if args.device == "auto":
        args.device = "gpu" if torch.cuda.is_available() else "cpu"
    args.most = args.most or (1 << 30 if args.device == "gpu" else 1 << 22)
    return args


def sizes(least: int, most: int, world: int) -> Iterator[int]:
    """Yield sizes in bytes from `least` to `most`; every rank gets the same number of numbers."""
    size = least
    while size <= most:
        count = max(1, size // WIDTH // world) * world
        yield count * WIDTH
        size *= 4


def operations(
    count: int, rank: int, world: int, device: torch.device
) -> Iterator[Tuple[str, torch.Tensor, Callable[[], Any], torch.Tensor]]:
    """Yield (name, buffer, operation, expected content of the buffer) for collectives of `count` numbers."""
    buffer = torch.empty(count, device=device)
    part = torch.full((count // world,), float(rank + 1), device=device)
    gathered = torch.arange(1, world + 1, device=device, dtype=torch.float32).repeat_interleave(
        count // world
    )
    yield "all_reduce", buffer, lambda: dist.all_reduce(buffer), torch.full_like(buffer, float(world))
    yield "all_gather", buffer, lambda: dist.all_gather_into_tensor(buffer, part), gathered
    if world % 2 == 0:
        half = world // 2
        numbers, sent = torch.full_like(buffer, rank + 2.0), torch.ones_like(buffer)
        for name, sends in (("forward", rank < half), ("backward", rank >= half)):
            peer = (rank + half) % world
            transfer = partial(dist.send, numbers, peer) if sends else partial(dist.recv, buffer, peer)
            yield name, buffer, transfer, sent if sends else torch.full_like(buffer, peer + 2.0)


def settle(device: torch.device) -> None:
    """Wait until the device of this rank has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(operation: Callable[[], Any], args: argparse.Namespace, device: torch.device) -> float:
    """Return the mean seconds of an operation over all iterations and ranks."""
    for _ in range(args.warmup):
        operation()
    settle(device)
    dist.barrier()
    start = time.monotonic()
    for _ in range(args.iterations):
        operation()
    settle(device)
    mean = torch.tensor([(time.monotonic() - start) / args.iterations], dtype=torch.float64, device=device)
    dist.all_reduce(mean)
    seconds: float = mean.item() / dist.get_world_size()
    return seconds


def run(args: argparse.Namespace, device: torch.device) -> Iterator[Dict[str, Any]]:
    """Yield every row; raise SystemExit on a wrong result."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for size in sizes(args.least, args.most, world):
        for name, buffer, operation, wanted in operations(size // WIDTH, rank, world, device):
            if name not in args.only.split(","):
                continue
            buffer.fill_(1.0)
            operation()
            settle(device)
            if not torch.equal(buffer, wanted):
                raise SystemExit("%s of %d bytes gave wrong numbers on rank %d" % (name, size, rank))
            # Measure with zeros: repeated sums of other numbers would overflow.
            buffer.zero_()
            seconds = measure(operation, args, device)
            yield {
                "collective": name,
                "bytes": size,
                "seconds": seconds,
                "algbw_gb_per_second": size / seconds / 1e9,
                "busbw_gb_per_second": size / seconds / 1e9 * FACTORS[name](world),
            }


def main(argv: List[str]) -> None:
    """Initialize the process group, measure, and write collectives.json in one piece."""
    args = arguments(argv)
    local = int(os.environ["LOCAL_RANK"])
    if args.device == "gpu":
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if world < 2:
        raise SystemExit("collectives need at least 2 processes, torchrun started 1")
    places: List[Any] = [None] * world
    # Each launcher is a node. Several nodes can share a machine.
    dist.all_gather_object(places, (os.environ["GROUP_RANK"], socket.gethostname()))
    result: Dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "collectives",
        "device": args.device,
        "name": torch.cuda.get_device_name() if args.device == "gpu" else "cpu",
        "backend": dist.get_backend(),
        "world_size": world,
        "nodes": len(set(places)),
        "hosts": sorted({host for _, host in places}),
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if args.device == "gpu" else None,
        "iterations": args.iterations,
        "measurements": [],
    }
    for row in run(args, device):
        result["measurements"].append(row)
        if rank == 0:
            text = "MICROBENCH {collective} {bytes} bytes: {busbw_gb_per_second:.3f} GB/s on the bus"
            print(text.format(**row), flush=True)
    if rank == 0:
        os.makedirs(args.out, exist_ok=True)
        path = os.path.join(args.out, "collectives.json")
        with open(path + ".new", "w", encoding="utf-8") as stream:
            json.dump(result, stream, indent=1)
        os.replace(path + ".new", path)
        print(
            "MICROBENCH world_size=%d nodes=%d backend=%s end=true"
            % (world, result["nodes"], result["backend"]),
            flush=True,
        )
    dist.barrier()
    dist.destroy_process_group()
    # The interpreter's shutdown aborts where a thread of gloo still holds a tensor (pytorch/pytorch#190489).
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
