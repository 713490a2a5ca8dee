# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train a BERT classifier of sentences with Horovod and measure its rate: a process per device.

As run_classifier.py does with --use_multi_gpu in the fork of BERT that added Horovod: the steps of one device
are divided and its learning rate is multiplied, weights and optimizer state come from rank 0, gradients are
averaged, with fp16 as 16 bits. mpirun starts the processes. Every line of this program begins with
HOROVOD_BERT; each process prints its own steps, and before them what the sanity checks read.
"""

import argparse
import gc
import math
import os
import socket
import sys
import time
from typing import Any, Dict, List, Tuple

import trainer_kit

trainer_kit.die_with_parent()

import backend  # noqa: E402
import horovod  # noqa: E402
import horovod.torch as hvd  # noqa: E402
import model as bert  # noqa: E402
import schedule  # noqa: E402
import torch  # noqa: E402
from samples import Samples  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


say = trainer_kit.Say("HOROVOD_BERT")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that affects a measurement has an option."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, required=True, help="number of processes of the run")
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--model", choices=sorted(bert.MODELS), required=True)
    parser.add_argument("--dtype", choices=sorted(DTYPES), required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples per device and micro-step")
    parser.add_argument("--accumulation", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="steps that one device alone would take")
    parser.add_argument("--warmup", type=int, required=True, help="steps before the window")
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--length", type=int, required=True, help="words of a sample")
    parser.add_argument("--learning-rate", type=float, required=True, help="learning rate of one device")
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tf32", choices=["true", "false"], required=True)
    parser.add_argument("--through-host", choices=["true", "false"], default="false")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--eval-samples", type=int, default=0, help="other samples to classify at the end")
    return parser.parse_args()


def join(args: argparse.Namespace) -> Tuple[torch.device, str]:
    """Form the group; return (device, operation that sums the gradients)."""
    where = "cpu" if args.through_host == "true" else args.device
    operation = backend.backend(where, backend.operations(hvd))
    hvd.init()
    if hvd.size() != args.devices:
        sys.exit(
            "Horovod sees %d processes, the run has %d: start it with the mpirun that Horovod was built with"
            % (hvd.size(), args.devices)
        )
    if args.device == "cpu":
        return torch.device("cpu"), operation
    # Not hvd.local_rank(): simulated nodes of one machine have been given different devices.
    device = torch.device("cuda", hvd.rank() % args.devices_per_node)
    torch.cuda.set_device(device)
    torch.set_float32_matmul_precision("high" if args.tf32 == "true" else "highest")
    return device, operation


class ThroughHost:
    """Moves gradients to the memory of the host to be summed there, as a Horovod without NCCL does."""

    def __init__(self, compression: Any) -> None:
        self.inner = compression

    def compress(self, gradient: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        """Return what is sent of a gradient, and what `decompress` needs to know."""
        smaller, context = self.inner.compress(gradient)
        return smaller.cpu(), (gradient.device, context)

    def decompress(self, total: torch.Tensor, context: Any) -> torch.Tensor:
        """Return the sum of the gradients, where they were."""
        device, inner_context = context
        result: torch.Tensor = self.inner.decompress(total.to(device), inner_context)
        return result


class Trainer:
    """The model, its optimizer over all processes, and one step of them."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        size = hvd.size()
        self.args, self.device = args, device
        self.steps, self.warmup, self.rate = schedule.divide(args.steps, args.learning_rate, size)
        shape = bert.MODELS[args.model]
        self.samples = Samples(args.samples, args.length, shape["vocabulary"], args.seed)
        # Different weights on every rank, so that those of rank 0 have to arrive; dropout differs too.
        torch.manual_seed(args.seed + hvd.rank())
        self.model = bert.Classifier(dropout=args.dropout, **shape).to(device)
        groups = bert.groups(self.model, args.decay)
        optimizer = torch.optim.AdamW(groups, lr=self.rate, eps=1e-6, fused=args.device == "gpu")
        self.compression = "fp16" if args.dtype == "fp16" else "none"
        compression = getattr(hvd.Compression, self.compression)
        self.optimizer = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=self.model.named_parameters(),
            compression=ThroughHost(compression) if args.through_host == "true" else compression,
            backward_passes_per_step=args.accumulation,
        )
        # The optimizer first: Horovod creates missing state with a step.
        hvd.broadcast_optimizer_state(self.optimizer, root_rank=0)
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        self.scaler = torch.amp.GradScaler(device.type, enabled=args.dtype == "fp16")

    def step(self, steps_done: int) -> float:
        """Run the step that follows `steps_done` others; return its loss when the device has finished."""
        args = self.args
        total: Any = 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = schedule.rate_at(steps_done, self.steps, self.warmup, self.rate)
        for micro in range(args.accumulation):
            number = (steps_done * args.accumulation + micro) * hvd.size() + hvd.rank()
            words, labels = self.samples.batch(number, args.batch, self.device)
            with torch.autocast(self.device.type, DTYPES[args.dtype], enabled=args.dtype != "fp32"):
                logits = self.model(words)
            loss = torch.nn.functional.cross_entropy(logits.float(), labels) / args.accumulation
            self.scaler.scale(loss).backward()
            total += loss.detach()
        # Wait for the sum over the processes before it is used.
        self.optimizer.synchronize()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), args.clip)
        with self.optimizer.skip_synchronize():
            self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        result: float = total.item()
        return result

    def agree(self) -> bool:
        """Return whether all processes have the same weights: they were sent, and gradients were summed."""
        total = torch.stack([p.detach().double().sum() for p in self.model.parameters()]).sum()
        return len(set(hvd.allgather(total.view(1)).tolist())) == 1


def place() -> Dict[str, Any]:
    """Return the place of this process: the number of its node in the job, its host's name, its rank."""
    return {"node_rank": os.environ["TASK_INDEX"], "host": socket.gethostname(), "rank": hvd.rank()}


def nodes() -> int:
    """Return how many nodes take part, counted among the processes."""
    places = hvd.allgather_object((os.environ["TASK_INDEX"], socket.gethostname()))
    return len(set(places))


def print_setup(trainer: Trainer, operation: str) -> None:
    """Print what takes part and what it does."""
    args, size = trainer.args, hvd.size()
    say(world_size=size, backend=operation, nodes=nodes(), **place())
    operations = "+".join(backend.operations(hvd))
    say(horovod=horovod.__version__, built=operations, torch=torch.__version__)
    say(
        batch=args.batch,
        accumulation=args.accumulation,
        global_batch=args.batch * args.accumulation * size,
        length=args.length,
    )
    say(dtype=args.dtype, compression=trainer.compression, tf32=args.tf32, through_host=args.through_host)
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


def train(trainer: Trainer) -> List[float]:
    """Run all steps; return the end of each. Exits with status 1 when a loss is not finite."""
    # A garbage collection within a step would be part of the measurement.
    gc.collect()
    gc.freeze()
    gc.disable()
    stamps = []
    for index in range(trainer.steps):
        loss = trainer.step(index)
        stamps.append(time.time())
        say(step="%d/%d" % (index + 1, trainer.steps), loss="%.4f" % loss, time="%.6f" % stamps[-1])
        if not math.isfinite(loss):
            sys.exit("the loss of step %d on rank %d is %s" % (index + 1, hvd.rank(), loss))
    return stamps


def evaluate(trainer: Trainer) -> Dict[str, Any]:
    """Return how many samples that were not trained with are classified, and which share rightly.

    The processes share them; nothing of it is timed.
    """
    args = trainer.args
    if not args.eval_samples:
        return {}
    vocabulary = bert.MODELS[args.model]["vocabulary"]
    samples = Samples(args.eval_samples, args.length, vocabulary, args.seed + 1)
    trainer.model.eval()
    right = torch.zeros(1, dtype=torch.int64, device=trainer.device)
    own = range(hvd.rank(), args.eval_samples, hvd.size())
    autocast = torch.autocast(trainer.device.type, DTYPES[args.dtype], enabled=args.dtype != "fp32")
    with torch.no_grad(), autocast:
        for first in range(0, len(own), args.batch):
            words, labels = samples.rows(list(own[first : first + args.batch]), trainer.device)
            right += (trainer.model(words).argmax(-1) == labels).sum()
    total = hvd.allreduce(right, op=hvd.Sum, name="right").item()
    return {"eval_samples": args.eval_samples, "eval_accuracy": "%.4f" % (total / args.eval_samples)}


def print_results(trainer: Trainer, stamps: List[float], evaluated: Dict[str, Any]) -> None:
    """Print the rate over the window, and what the evaluation found."""
    args = trainer.args
    first = min(args.warmup, len(stamps) - 1)
    rate = args.batch * args.accumulation * (len(stamps) - first) / (stamps[-1] - stamps[first - 1])
    say(samples_per_second="%.2f" % (rate * hvd.size()), **evaluated)


def main() -> None:
    """Form the group, train, check, and print the results."""
    args = arguments()
    try:
        device, operation = join(args)
    except backend.MissingOperationError as error:
        sys.exit(str(error))
    trainer = Trainer(args, device)
    print_setup(trainer, operation)
    stamps = train(trainer)
    if not trainer.agree():
        sys.exit("the processes have different weights: gradients were not summed")
    if args.device == "gpu":
        say(peak_memory_mib=torch.cuda.max_memory_allocated() >> 20)
    print_results(trainer, stamps, evaluate(trainer))
    say(steps_done=trainer.steps, loss="finite")
    say(weights="agree", end="true")
    hvd.shutdown()


if __name__ == "__main__":
    main()
