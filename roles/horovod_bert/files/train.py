# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train BERT to tell two classes of sentences apart with Horovod, and say how fast: a process per device.

What run_classifier.py does with --use_multi_gpu in the fork of BERT that brought Horovod to it: the steps of
one device are dealt out and its learning rate is multiplied, weights and optimizer state come from rank 0,
gradients are averaged, with fp16 as 16 bits. mpirun starts the processes. Every line of ours begins with
HOROVOD_BERT; each process prints its own steps, and before them what is to be believed first.
"""

import argparse
import ctypes
import gc
import math
import os
import signal
import sys
import time

# A run that loses its launcher must not live on (Linux: PR_SET_PDEATHSIG is 1).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import about  # noqa: E402
import carrier  # noqa: E402
import closing  # noqa: E402
import horovod.torch as hvd  # noqa: E402
import model as bert  # noqa: E402
import schedule  # noqa: E402
import sizes  # noqa: E402
import torch  # noqa: E402
from samples import Samples  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def say(**values):
    """One line of ours on standard output."""
    print("HOROVOD_BERT " + " ".join("%s=%s" % pair for pair in values.items()), flush=True)


def arguments():
    """The command line; every value that decides a measurement is named here."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, required=True, help="processes that the run must have")
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--model", choices=sorted(bert.MODELS), required=True)
    parser.add_argument("--dtype", choices=sorted(DTYPES), required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples per device and micro-step")
    parser.add_argument("--accumulation", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="what one device would have to do")
    parser.add_argument("--warmup", type=int, required=True, help="steps that the last figures leave out")
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--length", type=int, required=True, help="words of a sample")
    parser.add_argument("--learning-rate", type=float, required=True, help="that of one device")
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tf32", choices=["true", "false"], required=True)
    parser.add_argument("--seed", type=int, required=True)
    return parser.parse_args()


def join(args):
    """Form the group; return (device, what carries the gradients)."""
    backend = carrier.backend(args.device, carrier.operations(hvd))
    hvd.init()
    if hvd.size() != args.devices:
        sys.exit(
            "Horovod sees %d processes, the run has %d: start it with the mpirun that Horovod was built with"
            % (hvd.size(), args.devices)
        )
    if args.device == "cpu":
        return torch.device("cpu"), backend
    # Not hvd.local_rank(): nodes that share a machine have been given devices of their own each.
    device = torch.device("cuda", hvd.rank() % args.devices_per_node)
    torch.cuda.set_device(device)
    torch.set_float32_matmul_precision("high" if args.tf32 == "true" else "highest")
    return device, backend


class Trainer:
    """The model, its optimizer over all processes, and what one step does with them."""

    def __init__(self, args, device):
        size = hvd.size()
        self.args, self.device = args, device
        self.steps, self.warmup, self.rate = schedule.deal(args.steps, args.learning_rate, size)
        shape = bert.MODELS[args.model]
        self.samples = Samples(args.samples, args.length, shape["vocabulary"], args.seed)
        # Other weights everywhere, so that those of rank 0 have to arrive; dropout differs from then on.
        torch.manual_seed(args.seed + hvd.rank())
        self.model = bert.Classifier(dropout=args.dropout, **shape).to(device)
        groups = bert.groups(self.model, args.decay)
        optimizer = torch.optim.AdamW(groups, lr=self.rate, eps=1e-6, fused=args.device == "gpu")
        self.compression = "fp16" if args.dtype == "fp16" else "none"
        self.optimizer = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=self.model.named_parameters(),
            compression=getattr(hvd.Compression, self.compression),
            backward_passes_per_step=args.accumulation,
        )
        # The optimizer's first: where it has no state yet, Horovod makes it with a step.
        hvd.broadcast_optimizer_state(self.optimizer, root_rank=0)
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        self.scaler = torch.amp.GradScaler(device.type, enabled=args.dtype == "fp16")

    def step(self, done):
        """One step of the optimizer after `done` others; return its loss once the device is done with it."""
        args, total = self.args, 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = schedule.rate_at(done, self.steps, self.warmup, self.rate)
        for micro in range(args.accumulation):
            turn = (done * args.accumulation + micro) * hvd.size() + hvd.rank()
            words, labels = self.samples.batch(turn, args.batch, self.device)
            with torch.autocast(self.device.type, DTYPES[args.dtype], enabled=args.dtype != "fp32"):
                logits = self.model(words)
            loss = torch.nn.functional.cross_entropy(logits.float(), labels) / args.accumulation
            self.scaler.scale(loss).backward()
            total += loss.detach()
        # The sum over the processes has to be there before it is looked at.
        self.optimizer.synchronize()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), args.clip)
        with self.optimizer.skip_synchronize():
            self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return total.item()

    def agree(self):
        """Whether all processes hold the same weights: they were sent, and gradients were really summed."""
        total = torch.stack([p.detach().double().sum() for p in self.model.parameters()]).sum()
        return len(set(hvd.allgather(total.view(1)).tolist())) == 1


def introduce(trainer, backend):
    """Lines on what takes part, and on what it does."""
    args, size = trainer.args, hvd.size()
    say(world_size=size, backend=backend, nodes=about.nodes(), **about.place())
    say(horovod=about.horovod.__version__, built="+".join(carrier.operations(hvd)), torch=torch.__version__)
    say(
        batch=args.batch,
        accumulation=args.accumulation,
        global_batch=args.batch * size,
        length=args.length,
    )
    say(dtype=args.dtype, compression=trainer.compression, tf32=args.tf32)
    say(model=args.model, parameters=sum(p.numel() for p in trainer.model.parameters()))
    say(
        steps=trainer.steps,
        steps_of_one=args.steps,
        warmup_steps=trainer.warmup,
        learning_rate="%.6g" % trainer.rate,
        rate_of_one="%.6g" % args.learning_rate,
    )
    if args.device == "gpu":
        say(cuda=torch.version.cuda, gpu="'%s'" % torch.cuda.get_device_name(trainer.device))


def train(trainer):
    """All steps; return when each was done. Ends with status 1 when the loss is no number."""
    # A collection of garbage in the middle of a step would be measured with it.
    gc.collect()
    gc.freeze()
    gc.disable()
    stamps = []
    for done in range(trainer.steps):
        loss = trainer.step(done)
        stamps.append(time.time())
        say(step="%d/%d" % (done + 1, trainer.steps), loss="%.4f" % loss, time="%.6f" % stamps[-1])
        if not math.isfinite(loss):
            sys.exit("the loss of step %d on rank %d is %s" % (done + 1, hvd.rank(), loss))
    return stamps


def summary(trainer, stamps):
    """The rate over the steps after the warm-up, and what share of the device's peak that is."""
    args = trainer.args
    first = min(args.warmup, len(stamps) - 1)
    rate = args.batch * args.accumulation * (len(stamps) - first) / (stamps[-1] - stamps[first - 1])
    flops = sizes.flops_per_sample(bert.MODELS[args.model], args.length, 0)
    figures = closing.arithmetic(rate, flops, trainer.device, args.dtype, args.tf32 == "true")
    say(samples_per_second="%.2f" % (rate * hvd.size()), **figures)


def main():
    """Form the group, train, and say what came of it."""
    args = arguments()
    try:
        device, backend = join(args)
    except carrier.LackingError as error:
        sys.exit(str(error))
    trainer = Trainer(args, device)
    introduce(trainer, backend)
    stamps = train(trainer)
    if not trainer.agree():
        sys.exit("the processes hold different weights: gradients were not summed")
    if args.device == "gpu":
        say(peak_memory_mib=torch.cuda.max_memory_allocated() >> 20)
    summary(trainer, stamps)
    say(steps_done=trainer.steps, loss="finite")
    say(weights="agree", end="true")
    hvd.shutdown()


if __name__ == "__main__":
    main()
