# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run the patched deepspeed_train.py of bing_bert as a rank of DeepSpeed's launcher.

DeepSpeed itself prints the steps, from the third on. The lines of this program begin with DEEPSPEED_BERT, as
those of role deepspeed_bert. It wraps the engine's backward method; the engine and the trainer are not
changed.

DeepSpeed of 2020 does not support CPUs. On a CPU the engine's device is the CPU, gradients go through gloo,
and calls that synchronize with CUDA do nothing: the model is trained, but the results say nothing about a
GPU. Runs on Python 3.7 or newer, torch 1.6 or newer.
"""

import argparse
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
from typing import Any, List

import trainer_kit

# Neither a rank nor the processes that bing_bert forks to prepare its batches may outlive the launcher.
trainer_kit.die_with_parent()
os.register_at_fork(after_in_child=trainer_kit.die_with_parent)

import apex.optimizers  # noqa: E402
import bert_sizes  # noqa: E402
import deepspeed  # noqa: E402
import deepspeed.runtime.engine as engines  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import trainer_flags  # noqa: E402

# The prefix of the recorded logs.
say = trainer_kit.Say("DEEPSPEED_BERT")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that affects a measurement has an option."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--local_rank", type=int, required=True, help="given by DeepSpeed's launcher")
    parser.add_argument("--trainer", required=True, help="directory of deepspeed_train.py")
    parser.add_argument("--data", required=True, help="directory that make_data.py has filled")
    parser.add_argument("--vocabulary", required=True, help="directory of NAME-vocab.txt")
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, required=True, help="number of ranks of the run")
    parser.add_argument("--model", choices=sorted(bert_sizes.MODELS), required=True)
    parser.add_argument("--dtype", choices=["fp32", "fp16"], required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples per device and step")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True, help="steps before the window")
    parser.add_argument("--summed", choices=["each", "dlperf"], required=True)
    parser.add_argument("--length", type=int, required=True, help="words of a sample")
    parser.add_argument("--predictions", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True, help="processes that prepare a rank's batches")
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--clip", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    return parser.parse_args()


def do_nothing(*_: Any) -> None:
    """Replace a call of CUDA."""


def use_cpu() -> None:
    """Patch DeepSpeed's engine to train on the CPU."""
    dist.init_process_group("gloo")

    def set_device(self: Any, dist_init_required: Any) -> None:
        self.device = torch.device("cpu")
        self.world_size, self.global_rank = dist.get_world_size(), dist.get_rank()

    engines.DeepSpeedEngine._init_distributed = set_device
    # The original handles only tensors of a GPU, and would send none of these.
    engines.split_half_float_double_csr = lambda tensors: [("torch.FloatTensor", tensors)]
    torch.cuda.synchronize = torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = do_nothing


class Monitor:
    """Wraps deepspeed.initialize and the engine: prints what takes part, counts steps and keeps losses."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.engine: Any = None
        self.losses: List[torch.Tensor] = []
        self.stamps: List[float] = []

    def initialize(self, *positional: Any, **named: Any) -> Any:
        """Call the original deepspeed.initialize and wrap the engine's backward."""
        result = self.original(*positional, **named)
        self.engine = result[0]
        self.print_setup()
        self.original_backward, self.engine.backward = self.engine.backward, self.backward
        return result

    def backward(self, loss: torch.Tensor, *positional: Any, **named: Any) -> Any:
        """Keep the loss and the time, and call the original; the trainer has waited for the loss."""
        self.losses.append(loss.detach())
        self.stamps.append(time.monotonic())
        return self.original_backward(loss, *positional, **named)

    def install(self) -> None:
        """Patch `deepspeed.initialize`."""
        self.original, deepspeed.initialize = deepspeed.initialize, self.initialize

    def print_setup(self) -> None:
        """Print what takes part: rank 0 what the sanity checks read, each node's first rank its host."""
        args, world = self.args, dist.get_world_size()
        if world != args.devices:
            sys.exit("DeepSpeed sees %d ranks, the run has %d" % (world, args.devices))
        # Counted, not taken from the command line: the launchers of the ranks.
        launcher = zlib.crc32(("%s %d" % (socket.gethostname(), os.getppid())).encode())
        mine = torch.tensor([launcher], dtype=torch.int64, device=self.engine.device)
        launchers = [torch.zeros_like(mine) for _ in range(world)]
        dist.all_gather(launchers, mine)
        if dist.get_rank() == 0:
            nodes = len({int(number) for number in launchers})
            say(world_size=world, nodes=nodes, backend=dist.get_backend(), zero_stage=0)
            summed = trainer_flags.batches_per_sum(args.summed, world)
            say(batch=args.batch, accumulation=1, global_batch=args.batch * world, summed_every=summed)
            say(dtype=args.dtype, model=args.model)
            replaced = apex.optimizers.FusedAdam.__module__ == "sitecustomize"
            adam = "torch" if replaced else "apex"
            say(deepspeed=deepspeed.__version__, torch=torch.__version__, adam=adam)
        if args.local_rank == 0:
            say(rank=dist.get_rank(), host=socket.gethostname())

    def print_end(self) -> None:
        """Check losses and weights, and print the results; end the process when a check fails."""
        rank, losses = dist.get_rank(), torch.stack(self.losses).float()
        if not bool(torch.isfinite(losses).all()):
            sys.exit("rank %d had losses that are not finite" % rank)
        if not torch_end.agree(self.engine.module, self.engine.device):
            sys.exit("the ranks have different weights: the gradients were not summed")
        if rank == 0:
            self.print_rate()
            first, last = losses[0].item(), losses[-1].item()
            say(loss_first="%.4f" % first, loss_last="%.4f" % last, loss="finite")
            engine = self.engine
            say(
                steps_done=len(self.losses),
                optimizer_steps=engine.global_steps,
                skipped=engine.skipped_steps,
            )

    def print_rate(self) -> None:
        """Print the rate over the window."""
        args = self.args
        first = min(args.warmup, len(self.stamps) - 1)
        rate = args.batch * (len(self.stamps) - first) / (self.stamps[-1] - self.stamps[first - 1])
        say(samples_per_second="%.2f" % (rate * dist.get_world_size()))


def train(args: argparse.Namespace) -> Monitor:
    """Run the trainer; return its monitor."""
    folder = tempfile.mkdtemp(prefix="bing_bert-")
    # A process that is stopped removes its directory too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        files = {"config": trainer_flags.model(args, bert_sizes.MODELS[args.model])}
        files["deepspeed"] = trainer_flags.deepspeed(args)
        for name, content in files.items():
            with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
        monitor = Monitor(args)
        monitor.install()
        sys.argv = ["deepspeed_train.py"] + trainer_flags.flags(args, folder)
        if args.local_rank == 0:
            say(command="'%s'" % " ".join(sys.argv))
        sys.path.insert(0, args.trainer)
        runpy.run_path(os.path.join(args.trainer, "deepspeed_train.py"), run_name="__main__")
        return monitor
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Train and check; print how the rank ends, because the launcher of 2020 ignores exit statuses."""
    args = arguments()
    bert_sizes.data_of(args.data, args.model)
    try:
        if args.device == "cpu":
            use_cpu()
        train(args).print_end()
        dist.barrier()
        if dist.get_rank() == 0:
            say(weights="agree", end="true")
        torch_end.leave()
    except BaseException as error:
        message = "rank %s exits with return code = 1 (%s)"
        trainer_kit.print_line(message % (os.environ.get("RANK"), type(error).__name__))
        raise


if __name__ == "__main__":
    main()
