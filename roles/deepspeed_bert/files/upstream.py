# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run bing_bert's deepspeed_train.py, with seed 001's edits, as a rank of DeepSpeed's launcher.

DeepSpeed itself prints the steps, from the third on. Lines of ours begin with DEEPSPEED_BERT, in the words of
pretrain.py; they are got by standing between the trainer and its engine, which is left as it is.

On a CPU, for which DeepSpeed of 2020 has no way, the engine's device is the CPU, gradients go through gloo
and what asks CUDA to wait waits for nothing: everything is trained, the figures say nothing about a GPU. Runs
on Python 3.7 or newer, torch 1.6 or newer.
"""

import argparse
import ctypes
import json
import os
import runpy
import shutil
import signal
import socket
import sys
import tempfile
import time
import zlib


def end_with_parent():
    """Die when the process that started this one does (Linux: PR_SET_PDEATHSIG is 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


# A run that loses its launcher must not live on, nor what bing_bert forks to prepare its batches.
end_with_parent()
os.register_at_fork(after_in_child=end_with_parent)

import apex.optimizers  # noqa: E402
import closing  # noqa: E402
import deepspeed  # noqa: E402
import deepspeed.runtime.engine as engines  # noqa: E402
import sizes  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import upstream_flags  # noqa: E402


def say(*pairs):
    """One line of ours on standard output."""
    print("DEEPSPEED_BERT " + " ".join("%s=%s" % pair for pair in pairs), flush=True)


def arguments():
    """The command line; every value that decides a measurement is named here."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--local_rank", type=int, required=True, help="given by DeepSpeed's launcher")
    parser.add_argument("--trainer", required=True, help="directory of deepspeed_train.py")
    parser.add_argument("--data", required=True, help="directory that upstream_data.py has filled")
    parser.add_argument("--vocabulary", required=True, help="directory of NAME-vocab.txt")
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, required=True, help="ranks that the run must have")
    parser.add_argument("--model", choices=sorted(sizes.MODELS), required=True)
    parser.add_argument("--dtype", choices=["fp32", "fp16"], required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples per device and step")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True, help="steps that do not count")
    parser.add_argument("--summed", choices=["each", "dlperf"], required=True)
    parser.add_argument("--length", type=int, required=True, help="words of a sample")
    parser.add_argument("--predictions", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True, help="processes that prepare a rank's batches")
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--clip", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    return parser.parse_args()


def nothing(*_):
    """What CUDA's calls do where there is none."""


def without_cuda():
    """Have DeepSpeed's engine train on this machine's CPU."""
    dist.init_process_group("gloo")

    def place(self, dist_init_required):
        self.device = torch.device("cpu")
        self.world_size, self.global_rank = dist.get_world_size(), dist.get_rank()

    engines.DeepSpeedEngine._init_distributed = place
    # It knows the tensors of a GPU only, and would send none of these.
    engines.split_half_float_double_csr = lambda tensors: [("torch.FloatTensor", tensors)]
    torch.cuda.synchronize = torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = nothing


class Watch:
    """Stands between the trainer and its engine: counts steps, keeps losses, says what takes part."""

    def __init__(self, args):
        self.args, self.engine, self.losses, self.stamps = args, None, [], []

    def initialize(self, *positional, **named):
        """deepspeed.initialize, after which the engine is known."""
        made = self.genuine(*positional, **named)
        self.engine = made[0]
        self.introduce()
        self.backward, self.engine.backward = self.engine.backward, self.keep
        return made

    def keep(self, loss, *positional, **named):
        """The engine's backward; the trainer has waited for the loss."""
        self.losses.append(loss.detach())
        self.stamps.append(time.monotonic())
        return self.backward(loss, *positional, **named)

    def stand(self):
        """Be asked in DeepSpeed's place."""
        self.genuine, deepspeed.initialize = deepspeed.initialize, self.initialize

    def introduce(self):
        """Lines on what takes part: of rank 0 what must be believed, of each node's first rank its place."""
        args, world = self.args, dist.get_world_size()
        if world != args.devices:
            sys.exit("DeepSpeed sees %d ranks, the run has %d" % (world, args.devices))
        # Not what one was told: different launchers among the ranks.
        launcher = zlib.crc32(("%s %d" % (socket.gethostname(), os.getppid())).encode())
        mine = torch.tensor([launcher], dtype=torch.int64, device=self.engine.device)
        seen = [torch.zeros_like(mine) for _ in range(world)]
        dist.all_gather(seen, mine)
        if dist.get_rank() == 0:
            nodes = len({int(one) for one in seen})
            say(("world_size", world), ("nodes", nodes), ("backend", dist.get_backend()), ("zero_stage", 0))
            summed = upstream_flags.summed_every(args.summed, world)
            batch = [("batch", args.batch), ("accumulation", 1), ("global_batch", args.batch * world)]
            say(*batch, ("summed_every", summed))
            say(("dtype", args.dtype), ("model", args.model))
            ours = apex.optimizers.FusedAdam.__module__ == "sitecustomize"
            adam = "torch" if ours else "apex"
            say(("deepspeed", deepspeed.__version__), ("torch", torch.__version__), ("adam", adam))
        if args.local_rank == 0:
            say(("rank", dist.get_rank()), ("host", socket.gethostname()))

    def close(self):
        """Lines on what came of it; ends the process where it counts for nothing."""
        rank, losses = dist.get_rank(), torch.stack(self.losses).float()
        if not bool(torch.isfinite(losses).all()):
            sys.exit("rank %d had losses that are no numbers" % rank)
        if not closing.agree(self.engine.module, self.engine.device):
            sys.exit("the ranks hold different weights: the gradients were not summed")
        if rank == 0:
            self.summary()
            ends = ("loss_first", "%.4f" % losses[0].item()), ("loss_last", "%.4f" % losses[-1].item())
            say(*ends, ("loss", "finite"))
            engine = self.engine
            done = ("optimizer_steps", engine.global_steps), ("skipped", engine.skipped_steps)
            say(("steps_done", len(self.losses)), *done)

    def summary(self):
        """The rate over the steps after the warm-up, and what share of the device's peak that is."""
        args, device = self.args, self.engine.device
        first = min(args.warmup, len(self.stamps) - 1)
        rate = args.batch * (len(self.stamps) - first) / (self.stamps[-1] - self.stamps[first - 1])
        flops = sizes.flops_per_sample(sizes.MODELS[args.model], args.length, args.predictions)
        # torch of 2020 knows no TF32; today's uses it only where it is told to.
        tf32 = getattr(getattr(torch.backends.cuda, "matmul", None), "allow_tf32", False)
        figures = closing.arithmetic(rate, flops, device, args.dtype, tf32)
        say(("samples_per_second", "%.2f" % (rate * dist.get_world_size())), *figures.items())


def train(args):
    """Let the trainer train; returns what watched it."""
    folder = tempfile.mkdtemp(prefix="bing_bert-")
    # What is ended removes its folder too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        files = {"config": upstream_flags.model(args, sizes.MODELS[args.model])}
        files["deepspeed"] = upstream_flags.deepspeed(args)
        for name, content in files.items():
            with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
        watch = Watch(args)
        watch.stand()
        sys.argv = ["deepspeed_train.py"] + upstream_flags.flags(args, folder)
        if args.local_rank == 0:
            say(("command", "'%s'" % " ".join(sys.argv)))
        sys.path.insert(0, args.trainer)
        runpy.run_path(os.path.join(args.trainer, "deepspeed_train.py"), run_name="__main__")
        return watch
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    """Train, and say what came of it; 2020's launcher takes no notice of how a rank ends, so that is said."""
    args = arguments()
    try:
        if args.device == "cpu":
            without_cuda()
        train(args).close()
        dist.barrier()
        if dist.get_rank() == 0:
            say(("weights", "agree"), ("end", "true"))
        dist.destroy_process_group()
    except BaseException as error:
        said = "rank %s exits with return code = 1 (%s)"
        print(said % (os.environ.get("RANK"), type(error).__name__), flush=True)
        raise


if __name__ == "__main__":
    main()
