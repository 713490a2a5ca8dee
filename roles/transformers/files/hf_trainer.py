# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Trainer of Transformers with the lines and checks of this project.

Rank 0 prints a `step=` line at the end of a step. The first process of every node prints what the reader
compares with the case.
"""

import argparse
import os
import platform
import sys
import time
from typing import Any, Callable, Iterable, List

import hf_models
import torch
import torch.distributed as dist
import torch_run
import trainer_kit
import transformers


def parser(models: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all workloads with Trainer have."""
    new_parser = trainer_kit.parser(models, torch_run.DTYPES)
    for name in ("--compile", "--tf32", "--checkpointing"):
        new_parser.add_argument(name, type=trainer_kit.boolean, default=False)
    new_parser.add_argument("--learning-rate", type=float, required=True)
    new_parser.add_argument("--seed", type=int, required=True)
    new_parser.add_argument("--report-to", default="none")
    new_parser.add_argument("--output", required=True, help="directory that Trainer requires")
    return new_parser


def settings(args: argparse.Namespace, **own: Any) -> transformers.TrainingArguments:
    """Return the settings of Trainer for these arguments; `own` are those of the workload."""
    return transformers.TrainingArguments(
        output_dir=args.output,
        use_cpu=args.device == "cpu",
        ddp_backend={"gpu": "nccl", "cpu": "gloo"}[args.device],
        ddp_find_unused_parameters=False,
        per_device_train_batch_size=args.batch,
        gradient_accumulation_steps=args.accumulation,
        learning_rate=args.learning_rate,
        bf16=args.dtype == "bf16",
        fp16=args.dtype == "fp16",
        tf32=args.tf32 if args.device == "gpu" else None,
        torch_compile=args.compile,
        save_strategy="no",
        report_to=args.report_to,
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=args.seed,
        **own,
    )


class Trainer(transformers.Trainer):
    """Trainer that keeps the loss of the current step; its own log has scaled losses, and only some."""

    step_loss = 0.0

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """Train as Trainer does, and add the loss of the micro-step to the loss of its step."""
        loss = super().training_step(*args, **kwargs)
        self.step_loss = self.step_loss + loss
        return loss


class Watch(transformers.TrainerCallback):
    """Prints a line for each step."""

    def __init__(self, say: Callable[..., None]) -> None:
        self.say = say
        self.trainer: Any = None
        self.stamps: List[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Read the loss, which waits for the device, and print the line."""
        loss, self.trainer.step_loss = float(self.trainer.step_loss), 0.0
        if not trainer_kit.is_number(loss):
            sys.exit("the loss of step %d on rank %d is %s" % (state.global_step, dist.get_rank(), loss))
        self.line(state, loss)

    def line(self, state: Any, loss: float) -> None:
        """Print the line of a step."""
        self.stamps.append(time.time())
        if state.is_world_process_zero:
            self.say(
                step="%d/%d" % (state.global_step, state.max_steps),
                loss="%.4f" % loss,
                time="%.6f" % self.stamps[-1],
            )


def precision(trainer: transformers.Trainer) -> str:
    """Return the dtype of a product as Trainer has it computed.

    It is not always the one that was asked for: where a device lacks bf16, Accelerate computes in fp32.
    """
    context = trainer.accelerator.autocast()
    return torch_run.product_dtype(trainer.args.device, context, trainer.model.dtype)


def check_group() -> None:
    """Exit where torchrun, which alone forms the group, did not start this process."""
    if not dist.is_initialized():
        sys.exit("no process group was formed: start this with torchrun")


def announce(say: Callable[..., None], args: Any, dtype: str, model: Any, **options: Any) -> None:
    """Print what takes part and what it does, from the model; `options` are the workload's own."""
    nodes = torch_run.nodes()  # all ranks are asked
    if os.environ["LOCAL_RANK"] != "0":
        return
    # What the model does, not what was asked of Trainer.
    checkpointing = str(hf_models.checkpoints(model)).lower()
    torch_run.announce(say, args, nodes, dtype, checkpointing=checkpointing, **options)
    say(torch=torch.__version__, transformers=transformers.__version__, python=platform.python_version())


def check_steps(args: argparse.Namespace, state: Any) -> None:
    """Exit where Trainer did another number of steps than the case has."""
    if state.global_step != args.steps:
        sys.exit("%d steps were done, %d are expected" % (state.global_step, args.steps))
