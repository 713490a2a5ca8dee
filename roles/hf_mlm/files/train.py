# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train a masked language model with Hugging Face's Trainer and say how fast: a process per device.

Every line of ours begins with HF_MLM. Rank 0 prints a `step=` line when a step is done, for the last of an
epoch when the evaluation after it is: so the last epoch, from the first such line to its own last step, is
training alone. The first process of every node prints what is to be believed before the figures are.
"""

import argparse
import ctypes
import os
import platform
import signal
import socket
import sys
import time

# A run that loses its launcher must not live on (Linux: PR_SET_PDEATHSIG is 1).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import closing  # noqa: E402
import models  # noqa: E402
import row  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import transformers  # noqa: E402
from samples import Masker, Samples  # noqa: E402


def say(**values):
    """One line of ours on standard output."""
    print("HF_MLM " + " ".join("%s=%s" % pair for pair in values.items()), flush=True)


def arguments():
    """The command line; every value that decides a measurement is named here."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], required=True)
    parser.add_argument("--compile", choices=["true", "false"], required=True)
    parser.add_argument("--tf32", choices=["true", "false"], required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples per device and micro-step")
    parser.add_argument("--accumulation", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="what all epochs must come to")
    parser.add_argument("--train-samples", type=int, required=True)
    parser.add_argument("--eval-samples", type=int, required=True)
    parser.add_argument(
        "--length", type=int, required=True, help="words of a sample, less where a model takes less"
    )
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--report-to", default="none")
    parser.add_argument("--output", required=True, help="directory that Trainer wants to have")
    return parser.parse_args()


class Trainer(transformers.Trainer):
    """Trainer that keeps the loss of the step it is at; its own log has it scaled, and of some steps only."""

    step_loss = 0.0

    def training_step(self, *args, **kwargs):
        """As Trainer's, with the loss of the micro-step added to that of its step."""
        loss = super().training_step(*args, **kwargs)
        self.step_loss = self.step_loss + loss
        return loss


class Watch(transformers.TrainerCallback):
    """Prints a line for every step."""

    def __init__(self):
        self.trainer = None
        self.waiting = None
        self.evaluated = {}
        self.stamps = []

    def on_epoch_begin(self, args, state, control, **kwargs):
        """Say the last step of the epoch before: its evaluation is over."""
        if self.waiting:
            self.say(state, self.waiting)

    def on_step_end(self, args, state, control, **kwargs):
        """Read the loss, for which the device has to be done, and say it unless an evaluation follows."""
        loss, self.trainer.step_loss = float(self.trainer.step_loss), 0.0
        if loss != loss or loss in (float("inf"), float("-inf")):
            sys.exit("the loss of step %d on rank %d is %s" % (state.global_step, dist.get_rank(), loss))
        steps = state.max_steps // int(args.num_train_epochs)
        if state.global_step % steps or state.global_step == state.max_steps:
            self.say(state, loss)
        else:
            self.waiting = loss

    def on_evaluate(self, args, state, control, metrics, **kwargs):
        """Keep what the evaluation came to."""
        self.evaluated = metrics

    def say(self, state, loss):
        """A step's line."""
        self.waiting = None
        self.stamps.append(time.time())
        if state.is_world_process_zero:
            say(
                step="%d/%d" % (state.global_step, state.max_steps),
                loss="%.4f" % loss,
                time="%.6f" % self.stamps[-1],
            )


def nodes():
    """How many nodes really take part: different launchers among the ranks, not what one was told."""
    seen = [None] * dist.get_world_size()
    dist.all_gather_object(seen, (os.environ["GROUP_RANK"], socket.gethostname()))
    return len(set(seen))


def reached(args, watch, steps, length):
    """The rate over the last epoch, which is training alone, and what share of the device's peak that is."""
    count = steps // args.epochs if args.epochs > 1 else steps - 1
    rate = args.batch * args.accumulation * count / (watch.stamps[-1] - watch.stamps[-1 - count])
    flops = models.flops_per_sample(args.model, length)
    return closing.arithmetic(rate, flops, watch.trainer.args.device, args.dtype, args.tf32 == "true")


def trainer_of(args, watch):
    """Return Trainer with its model and samples."""
    settings = transformers.TrainingArguments(
        output_dir=args.output,
        use_cpu=args.device == "cpu",
        ddp_backend={"gpu": "nccl", "cpu": "gloo"}[args.device],
        ddp_find_unused_parameters=False,
        per_device_train_batch_size=args.batch,
        per_device_eval_batch_size=args.batch,
        gradient_accumulation_steps=args.accumulation,
        num_train_epochs=args.epochs,
        learning_rate=args.learning_rate,
        bf16=args.dtype == "bf16",
        fp16=args.dtype == "fp16",
        tf32=args.tf32 == "true" if args.device == "gpu" else None,
        torch_compile=args.compile == "true",
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to=args.report_to,
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=args.seed,
    )
    transformers.set_seed(args.seed)
    shape = models.config(args.model)
    length = min(args.length, shape.max_position_embeddings)
    made = [
        Samples(count, length, shape.vocab_size, args.seed + part)
        for part, count in enumerate((args.train_samples, args.eval_samples))
    ]
    watch.trainer = Trainer(
        model=models.make(args.model),
        args=settings,
        data_collator=Masker(shape.vocab_size),
        train_dataset=made[0],
        eval_dataset=made[1],
        callbacks=[watch],
    )
    return watch.trainer


def main():
    """Train, and say what came of it."""
    args, watch = arguments(), Watch()
    trainer = trainer_of(args, watch)
    # torchrun alone forms the group: a process that was started otherwise must not pass for a run.
    if not dist.is_initialized():
        sys.exit("no process group was formed: start this with torchrun")
    device, world = trainer.args.device, dist.get_world_size()
    first = os.environ["LOCAL_RANK"] == "0"
    here = {"node_rank": os.environ["GROUP_RANK"], "host": socket.gethostname()}
    there = nodes()
    if first:
        say(world_size=world, backend=dist.get_backend(), nodes=there, **here)
        say(
            batch=args.batch,
            accumulation=args.accumulation,
            global_batch=args.batch * world,
            length=trainer.train_dataset.words.shape[1],
        )
        say(dtype=args.dtype, compile=args.compile, tf32=args.tf32, processes="DDP" if world > 1 else "one")
        say(model=args.model, parameters=models.count(trainer.model))
        say(torch=torch.__version__, transformers=transformers.__version__, python=platform.python_version())
    trained = trainer.train().metrics
    same, steps = closing.agree(trainer.model, device), trainer.state.global_step
    if dist.get_rank() == 0:
        name = torch.cuda.get_device_name() if args.device == "gpu" else None
        figures = row.figures(
            args.dtype, args.batch, world, args.accumulation, steps, trained, watch.evaluated
        )
        figures.update(reached(args, watch, steps, trainer.train_dataset.words.shape[1]))
        say(row=row.name(name, there, world // there, args.batch), **figures)
    if not same:
        sys.exit("the ranks hold different weights: the gradients were not summed")
    if steps != args.steps:
        sys.exit("%d steps were done, %d are wanted" % (steps, args.steps))
    if first:
        say(steps_done=steps)
        say(weights="agree", end="true")
    closing.leave()


if __name__ == "__main__":
    main()
