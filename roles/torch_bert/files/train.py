# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Pretrain BERT for a number of steps and say how fast: one process per device, under torchrun.

Every line of ours begins with TORCH_BERT. Rank 0 prints `step=` lines with the time at which the device was
done with the step (taken from its own events; the next step is queued by then, so that nothing waits), and
the first process of every node what is to be believed before the figures are: world size, backend, dtype.
"""

import argparse
import ctypes
import gc
import os
import signal
import statistics
import sys
import time

# A run that loses its launcher must not live on (Linux: PR_SET_PDEATHSIG is 1).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import about  # noqa: E402
import attention  # noqa: E402
import closing  # noqa: E402
import optim  # noqa: E402
import sizes  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from model import Bert  # noqa: E402

from data import Loader  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def say(**values):
    """One line of ours on standard output."""
    print("TORCH_BERT " + " ".join("%s=%s" % pair for pair in values.items()), flush=True)


def boolean(text):
    """An argument that is true or false."""
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError("must be true or false")
    return text == "true"


def arguments():
    """The command line; every value that decides a measurement is named here."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--model", choices=sorted(sizes.MODELS), required=True)
    parser.add_argument("--dtype", choices=sorted(DTYPES), required=True)
    parser.add_argument("--data", required=True, help="directory of the arrays, one per vocabulary below it")
    parser.add_argument("--batch", type=int, required=True, help="samples per device and micro-step")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, default=20, help="steps that the summary leaves out")
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--compile-mode", default="default")
    parser.add_argument("--attention", choices=["auto", "sdpa", "short"], default="auto")
    parser.add_argument("--layer", choices=["auto", "plain", "fused"], default="auto")
    parser.add_argument("--tf32", type=boolean, default=True, help="for fp32 on GPUs")
    parser.add_argument("--optimizer", choices=["adamw", "lamb"], default="adamw")
    parser.add_argument("--fused", type=boolean, default=True)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--rate-warmup", type=int, default=100, help="steps until the full learning rate")
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--clip", type=float, default=1.0, help="norm of the gradients; 0: as they are")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--parallel", choices=["ddp", "fsdp"], default="ddp")
    parser.add_argument("--bucket-mb", type=int, default=25)
    parser.add_argument("--seed", type=int, default=2020)
    parser.add_argument(
        "--profile", default="", help="file for the kernels' times of ten steps after the last"
    )
    return parser.parse_args()


class Clock:
    """Times at which steps were done, in seconds since the epoch; reads them without stopping the device."""

    def __init__(self, device):
        self.device = device
        self.pending = []
        self.last = None
        if device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            event.synchronize()
            self.last = (event, time.time())

    def done(self, loss):
        """A step was queued: keep its loss (a tensor) and the moment it ends."""
        if self.last is None:
            self.pending.append((loss.item(), time.time()))
            return
        value = torch.empty((), pin_memory=True)
        value.copy_(loss.detach(), non_blocking=True)
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self.pending.append((value, event))

    def take(self):
        """(loss, time) of the oldest step not taken yet; waits for it."""
        value, event = self.pending.pop(0)
        if self.last is None:
            return value, event
        event.synchronize()
        before, stamp = self.last
        stamp += before.elapsed_time(event) / 1000
        self.last = (event, stamp)
        return float(value), stamp


class Trainer:
    """The model, its optimizer and what one step does with them."""

    def __init__(self, args, device, world):
        self.args, self.world = args, world
        size = sizes.MODELS[args.model]
        dtype = DTYPES[args.dtype]
        head = size["hidden"] // size["heads"]
        attend = attention.choose(args.attention, args.device, dtype, args.seq, head)
        layer = attention.layer(args.layer, attend, args.batch * args.seq)
        torch.manual_seed(args.seed)  # the same weights everywhere
        self.model = Bert(size, dtype, attend, args.dropout, layer).to(device)
        self.sites = self.model.sites
        self.attention, self.layer = attend.__name__, layer.__name__
        if args.compile:
            self.model.compile_parts(mode=args.compile_mode, dynamic=False)
        torch.manual_seed(args.seed + dist.get_rank())  # dropout differs
        self.sharded, self.check = world > 1 and args.parallel == "fsdp", closing.agree
        if self.sharded:
            import sharding  # wants a newer torch than the rest does

            sharding.shard(self.model, dtype, args.bucket_mb)
            self.check = sharding.once
        self.optimizer = optim.make(args.optimizer, self.model, args.learning_rate, args.decay, args.fused)
        self.scaler = torch.amp.GradScaler(device.type, enabled=args.dtype == "fp16")
        self.runner = self.model
        if world > 1 and not self.sharded:
            self.runner = torch.nn.parallel.DistributedDataParallel(
                self.model,
                gradient_as_bucket_view=True,
                static_graph=args.accumulation == 1,
                bucket_cap_mb=args.bucket_mb,
            )

    def step(self, number, loader):
        """One optimizer step; returns the loss of its last micro-step as a tensor on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.args.learning_rate * min(1.0, number / self.args.rate_warmup)
        for micro in range(self.args.accumulation):
            batch, keys = next(loader)
            last = micro + 1 == self.args.accumulation
            if self.sharded:
                self.model.set_requires_gradient_sync(last)
            elif self.world > 1:
                self.runner.require_backward_grad_sync = last
            loss = self.runner(batch, keys)
            self.scaler.scale(loss / self.args.accumulation).backward()
        if self.args.clip:
            self.scaler.unscale_(self.optimizer)
            optim.clip(self.model, self.args.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def agree(self, device):
        """Whether this was one training: all ranks hold the same weights, or each its share of them."""
        return self.check(self.model, device)


def summary(args, stamps, device, world):
    """The last figures: rate over the steps after the warm-up, and what share of the peak that is."""
    first = min(args.warmup, len(stamps) - 1)
    seconds = stamps[-1] - stamps[first - 1]
    count = len(stamps) - first
    rate = args.batch * args.accumulation * world * count / seconds
    steps = sorted(b - a for a, b in zip(stamps[first - 1 :], stamps[first:], strict=False))
    size = sizes.MODELS[args.model]
    flops = sizes.flops_per_sample(size, args.seq, args.predictions)
    figures = closing.arithmetic(rate / world, flops, device, args.dtype, args.tf32)
    say(samples_per_second="%.2f" % rate, **figures)
    say(
        step_ms_median="%.3f" % (1000 * statistics.median(steps)),
        step_ms_low="%.3f" % (1000 * steps[0]),
        step_ms_high="%.3f" % (1000 * steps[-1]),
        steps_counted=count,
    )


def profile(trainer, loader, path):
    """Write the kernels of ten more steps, most time first."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watch

    with watch(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for number in range(10):
            trainer.step(10**6 + number, loader)
        torch.cuda.synchronize()
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(
            seen.key_averages().table(sort_by="self_cuda_time_total", row_limit=60, max_name_column_width=110)
        )


def train(args, device):
    """All steps; returns the stamps. Ends with status 1 when the loss is no number."""
    rank, world = dist.get_rank(), dist.get_world_size()
    size = sizes.MODELS[args.model]
    directory = os.path.join(args.data, str(size["vocabulary"]))
    args.seq, args.predictions = about.shape(directory)
    trainer = Trainer(args, device, world)
    loader = Loader(directory, args.batch, trainer.sites, rank, world, args.seed, device)
    if os.environ.get("LOCAL_RANK") == "0":
        say(
            parameters=sizes.parameters(size),
            attention=trainer.attention,
            layer=trainer.layer,
            padded=str(not loader.full).lower(),
        )
    clock, stamps = Clock(device), []

    def report():
        loss, stamp = clock.take()
        stamps.append(stamp)
        if rank == 0:
            say(step="%d/%d" % (len(stamps), args.steps), loss="%.4f" % loss, time="%.6f" % stamp)
        if loss != loss or loss in (float("inf"), float("-inf")):
            sys.exit("the loss of step %d on rank %d is %s" % (len(stamps), rank, loss))

    # A collection of garbage in the middle of a step would be measured with it.
    gc.collect()
    gc.freeze()
    gc.disable()
    for number in range(1, args.steps + 1):
        clock.done(trainer.step(number, loader))
        if len(clock.pending) > 1:
            report()
    report()
    return trainer, loader, stamps


def main():
    """Form the group, train, and say what came of it."""
    args = arguments()
    backend = {"gpu": "nccl", "cpu": "gloo"}[args.device]
    local = int(os.environ["LOCAL_RANK"])
    if args.device == "gpu":
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = args.tf32
        torch.backends.cudnn.allow_tf32 = args.tf32
        dist.init_process_group(backend, device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group(backend)
    first = local == 0
    nodes = about.nodes()
    if first:
        say(world_size=dist.get_world_size(), backend=dist.get_backend(), nodes=nodes, **about.where())
        say(
            batch=args.batch,
            accumulation=args.accumulation,
            global_batch=args.batch * args.accumulation * dist.get_world_size(),
        )
        say(
            dtype=args.dtype,
            compile=str(args.compile).lower(),
            tf32=str(args.tf32).lower(),
            optimizer=args.optimizer,
            parallel=args.parallel if dist.get_world_size() > 1 else "none",
        )
        for line in about.software(device):
            say(**line)
    trainer, loader, stamps = train(args, device)
    same = trainer.agree(device)
    if args.device == "gpu" and first:
        say(
            peak_memory_mib=torch.cuda.max_memory_allocated() >> 20,
            reserved_mib=torch.cuda.max_memory_reserved() >> 20,
        )
    if dist.get_rank() == 0:
        summary(args, stamps, device, dist.get_world_size())
    if args.profile and dist.get_rank() == 0 and dist.get_world_size() == 1:
        profile(trainer, loader, args.profile)
    if not same:
        sys.exit("the ranks hold different weights: the gradients were not summed")
    if first:
        say(steps_done=len(stamps))
        say(weights="agree", end="true")
    closing.leave()


if __name__ == "__main__":
    main()
