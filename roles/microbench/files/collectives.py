# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the network between devices carries: all-reduce and all-gather by size.

    torchrun --nproc_per_node 8 collectives.py --out DIR      rank 0 writes DIR/collectives.json

Needs torch and nothing else. The conventions are those of NVIDIA's nccl-tests: fp32 numbers; a size is that
of the whole buffer, for all-gather the one that receives; the time of an operation is the mean over the ranks
of the mean over the iterations; algorithm bandwidth is size / time; bus bandwidth is that times 2 (n - 1) / n
for all-reduce and (n - 1) / n for all-gather, which compares with the speed of a link whatever the number of
ranks. Every result is checked: a wrong one ends the run.
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist

# A run that loses its launcher must not live on (Linux: PR_SET_PDEATHSIG is 1).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)

SCHEMA = 1
WIDTH = 4  # bytes of a number
FACTORS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n}


def arguments(argv):
    """The command line; sizes in bytes."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", required=True, help="directory for collectives.json")
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument(
        "--least", type=int, default=1 << 10, help="smallest size; each next one is 4 x as large"
    )
    parser.add_argument("--most", type=int, default=0, help="largest size; 0: 1 GiB on GPUs, 4 MiB on CPUs")
    parser.add_argument("--warmup", type=int, default=5, help="operations before the measured ones")
    parser.add_argument("--iterations", type=int, default=20)
    args = parser.parse_args(argv)
    if args.device == "auto":
        args.device = "gpu" if torch.cuda.is_available() else "cpu"
    args.most = args.most or (1 << 30 if args.device == "gpu" else 1 << 22)
    return args


def sizes(least, most, world):
    """Sizes in bytes from `least` to `most`, each a whole number of numbers for every rank."""
    size = least
    while size <= most:
        count = max(1, size // WIDTH // world) * world
        yield count * WIDTH
        size *= 4


def operations(count, rank, world, device):
    """(name, buffer, operation, what the buffer must hold) of each collective of `count` numbers."""
    buffer = torch.empty(count, device=device)
    part = torch.full((count // world,), float(rank + 1), device=device)
    gathered = torch.arange(1, world + 1, device=device, dtype=torch.float32).repeat_interleave(
        count // world
    )
    yield "all_reduce", buffer, lambda: dist.all_reduce(buffer), torch.full_like(buffer, float(world))
    yield "all_gather", buffer, lambda: dist.all_gather_into_tensor(buffer, part), gathered


def settle(device):
    """Wait until this rank's device has done what it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(operation, args, device):
    """Mean seconds of an operation over the iterations and the ranks."""
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
    return mean.item() / dist.get_world_size()


def run(args, device):
    """Every row; raises SystemExit on a wrong result."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for size in sizes(args.least, args.most, world):
        for name, buffer, operation, wanted in operations(size // WIDTH, rank, world, device):
            buffer.fill_(1.0)
            operation()
            settle(device)
            if not torch.equal(buffer, wanted):
                raise SystemExit("%s of %d bytes gave wrong numbers on rank %d" % (name, size, rank))
            # Of zeros from here on: sums of sums would overflow.
            buffer.zero_()
            seconds = measure(operation, args, device)
            yield {
                "collective": name,
                "bytes": size,
                "seconds": seconds,
                "algbw_gb_per_second": size / seconds / 1e9,
                "busbw_gb_per_second": size / seconds / 1e9 * FACTORS[name](world),
            }


def main(argv):
    """Form the group, measure, write collectives.json whole."""
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
    places = [None] * world
    # Different launchers are different nodes, though they may share a machine.
    dist.all_gather_object(places, (os.environ["GROUP_RANK"], socket.gethostname()))
    result = {
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


if __name__ == "__main__":
    main(sys.argv[1:])
