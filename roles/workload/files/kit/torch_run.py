# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A run with torch.distributed under torchrun: its group, lines about it, its clock and its loop of steps.

Runs on the nodes, with torch.
"""

import gc
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.distributed as dist
import trainer_kit

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def join(device: str, tf32: bool) -> torch.device:
    """Form the group of all processes, with NCCL on GPUs and gloo on CPUs; return this process's device."""
    if device == "cpu":
        dist.init_process_group("gloo")
        return torch.device("cpu")
    own = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(own)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    dist.init_process_group("nccl", device_id=own)
    return own


def precision(device: torch.device, dtype: str) -> Any:
    """Return the context that computes a loss in `dtype`: autocast, but for fp32."""
    return torch.autocast(device.type, DTYPES[dtype], enabled=dtype != "fp32")


def product_dtype(device: torch.device, context: Any, weights: torch.dtype = torch.float32) -> str:
    """Return the dtype that a product has in a context, by the name that a case has for it.

    Where a device lacks a dtype, autocast warns and computes in fp32.
    """
    with context:
        ones = torch.ones(8, 8, dtype=weights, device=device)
        product = ones @ ones
    return {each: name for name, each in DTYPES.items()}[product.dtype]


def nodes() -> int:
    """Return how many nodes take part: launchers counted over the ranks, not an argument."""
    mine = (os.environ["GROUP_RANK"], socket.gethostname())
    places: List[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(places, mine)
    return len(set(places))


def where() -> Dict[str, str]:
    """Return the place of this process, by the launcher."""
    return {
        "node_rank": os.environ["GROUP_RANK"],
        "processes": os.environ["LOCAL_WORLD_SIZE"],
        "host": socket.gethostname(),
    }


def announce(say: Callable[..., None], args: Any, nodes: int, dtype: str, **options: Any) -> None:
    """Print what takes part, the batch and the precision; `options` are the workload's own choices."""
    world = dist.get_world_size()
    say(world_size=world, backend=dist.get_backend(), nodes=nodes, **where())
    say(
        batch=args.batch,
        accumulation=args.accumulation,
        global_batch=args.batch * args.accumulation * world,
    )
    say(dtype=dtype, compile=str(args.compile).lower(), tf32=str(args.tf32).lower(), **options)


def driver() -> Optional[str]:
    """Return the version of the NVIDIA driver, or None."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None  # torch runs without the tool; the line then has None
    words = answer.stdout.split()
    return words[0] if words else None


def software(device: torch.device) -> Iterator[Dict[str, Any]]:
    """Yield lines, each a dict, about versions and devices of this node."""
    yield {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
    if device.type == "cuda":
        version = torch.cuda.nccl.version()
        yield {"cuda": torch.version.cuda, "nccl": ".".join(map(str, version)), "driver": driver()}
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            yield {
                "gpu": index,
                "memory_mib": properties.total_memory >> 20,
                "name": "'%s'" % properties.name,
            }


class Clock:
    """The times at which steps ended, in seconds since the epoch, read without stopping the device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.pending: List[Tuple[Any, Any]] = []
        self.last = None
        if device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            event.synchronize()
            self.last = (event, time.time())

    def queue(self, loss: torch.Tensor) -> None:
        """Keep the loss (a tensor) of a step that was queued, and the event of its end."""
        if self.last is None:
            self.pending.append((loss.item(), time.time()))
            return
        value = torch.empty((), pin_memory=True)
        value.copy_(loss.detach(), non_blocking=True)
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self.pending.append((value, event))

    def take(self) -> Tuple[float, float]:
        """Return (loss, time) of the oldest step that was not taken; wait for its end."""
        value, event = self.pending.pop(0)
        if self.last is None:
            return value, event
        event.synchronize()
        before, stamp = self.last
        stamp += before.elapsed_time(event) / 1000
        self.last = (event, stamp)
        return float(value), stamp


def end_compile_workers() -> None:
    """End the processes in which torch.compile builds kernels for GPUs, where it has started them.

    torch 2.11 starts them before it knows that its cache on disk has all kernels. They then load torch for
    seconds, which would be measured as work of the job. A later step that needs them starts them again.
    """
    compiler = sys.modules.get("torch._inductor.async_compile")
    if compiler is not None:
        compiler.shutdown_compile_workers()


def take_steps(
    say: Callable[..., None],
    steps: int,
    warmup: int,
    device: torch.device,
    step: Callable[[int], torch.Tensor],
) -> List[float]:
    """Call `step` with 1 to `steps` and return the times at which the device finished each.

    `step` queues a step and returns its loss; the next one is queued by the time a loss is read, so nothing
    waits, but for the compile workers in the middle of the `warmup` steps.  Rank 0 prints a line for each.
    Exits where a loss is not a number.
    """
    rank, clock = dist.get_rank(), Clock(device)
    stamps: List[float] = []

    def report() -> None:
        loss, stamp = clock.take()
        stamps.append(stamp)
        if rank == 0:
            say(step="%d/%d" % (len(stamps), steps), loss="%.4f" % loss, time="%.6f" % stamp)
        if not trainer_kit.is_number(loss):
            sys.exit("the loss of step %d on rank %d is %s" % (len(stamps), rank, loss))

    # The garbage collector would run in the middle of a step and be measured with it.
    gc.collect()
    gc.freeze()
    gc.disable()
    for number in range(1, steps + 1):
        clock.queue(step(number))
        if len(clock.pending) > 1:
            report()
        if number == warmup // 2:
            end_compile_workers()
    report()
    return stamps


def quantile(ordered: List[float], share: float) -> float:
    """Return the quantile `share` (0 to 1) of an ascending list, linear between neighbours."""
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def rate(stamps: List[float], warmup: int) -> Tuple[float, Dict[str, Any]]:
    """Return (steps per second after the warm-up, the values of the line about the time of a step)."""
    first = max(1, min(warmup, len(stamps) - 1))
    count = len(stamps) - first
    steps = sorted(b - a for a, b in zip(stamps[first - 1 :], stamps[first:]))  # noqa: B905
    values = {
        "step_ms_median": "%.3f" % (1000 * statistics.median(steps)),
        "step_ms_p95": "%.3f" % (1000 * quantile(steps, 0.95)),
        "step_ms_p99": "%.3f" % (1000 * quantile(steps, 0.99)),
        "step_ms_low": "%.3f" % (1000 * steps[0]),
        "step_ms_high": "%.3f" % (1000 * steps[-1]),
        "steps_counted": count,
    }
    return count / (stamps[-1] - stamps[first - 1]), values


def print_rate(
    say: Callable[..., None],
    unit: str,
    samples: int,
    device: torch.device,
    stamps: List[float],
    warmup: int,
    tokens: int = 0,
) -> None:
    """Print, by the first rank, the rate after the warm-up and the time of a step.

    A process trains `samples` in a step, each of `tokens` tokens if any.
    """
    steps, times = rate(stamps, warmup)
    if dist.get_rank() == 0:
        each = steps * samples * dist.get_world_size()
        values = {"%s_per_second" % unit: "%.2f" % each}
        if tokens:
            values["tokens_per_second"] = "%.0f" % (each * tokens)
        memory = torch.cuda.max_memory_allocated() >> 20 if device.type == "cuda" else "none"
        say(**values, peak_memory_mib=memory, **times)
