# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train a masked language model with Hugging Face's Trainer and print the throughput: one process per device.

The lines for the reader begin with HF_MLM. Rank 0 prints a `step=` line at the end of a step. For the last
step of an epoch it prints the line after the evaluation, so the last epoch, from that line to its own last
step, holds training alone. The first process of every node prints what the reader compares with the case.
"""

import argparse
import os
import platform
import socket
import sys
import time
from typing import Any, Dict, List, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before transformers is imported, which takes seconds.
trainer_kit.die_with_parent()

import models  # noqa: E402
import row  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_run  # noqa: E402
import transformers  # noqa: E402
from word_samples import PAD, Masker, Samples, invented, own  # noqa: E402

say = trainer_kit.Say("HF_MLM")


def arguments() -> argparse.Namespace:
    """Return the command line, which has every value of a measurement; `steps` are those of all epochs."""
    parser = trainer_kit.parser(models.MODELS, ["fp32", "bf16", "fp16"])
    parser.add_argument("--compile", choices=["true", "false"], required=True)
    parser.add_argument("--tf32", choices=["true", "false"], required=True)
    parser.add_argument("--checkpointing", choices=["true", "false"], default="false")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--train-samples", type=int, required=True)
    parser.add_argument("--eval-samples", type=int, required=True)
    parser.add_argument(
        "--length", type=int, required=True, help="words of a sample, less where a model takes less"
    )
    parser.add_argument("--data", default="", help="directory of make_data.py; empty: invented samples")
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--report-to", default="none")
    parser.add_argument("--output", required=True, help="directory that Trainer requires")
    return parser.parse_args()


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

    def __init__(self) -> None:
        self.trainer: Any = None
        self.waiting: Optional[float] = None
        self.evaluated: Dict[str, Any] = {}
        self.stamps: List[float] = []

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Print the line of the last step of the previous epoch, whose evaluation has ended."""
        if self.waiting:
            self.say(state, self.waiting)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Read the loss, which waits for the device, and print the line unless an evaluation follows."""
        loss, self.trainer.step_loss = float(self.trainer.step_loss), 0.0
        if not trainer_kit.is_number(loss):
            sys.exit("the loss of step %d on rank %d is %s" % (state.global_step, dist.get_rank(), loss))
        steps = state.max_steps // int(args.num_train_epochs)
        if state.global_step % steps or state.global_step == state.max_steps:
            self.say(state, loss)
        else:
            self.waiting = loss

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Dict[str, Any], **kwargs: Any
    ) -> None:
        """Keep the metrics of the evaluation."""
        self.evaluated = metrics

    def say(self, state: Any, loss: float) -> None:
        """Print the line of a step."""
        self.waiting = None
        self.stamps.append(time.time())
        if state.is_world_process_zero:
            say(
                step="%d/%d" % (state.global_step, state.max_steps),
                loss="%.4f" % loss,
                time="%.6f" % self.stamps[-1],
            )


def precision(trainer: Trainer) -> str:
    """Return the dtype of a product as Trainer has it computed.

    It is not always the one that was asked for: where a device lacks bf16, Accelerate computes in fp32.
    """
    context = trainer.accelerator.autocast()
    return torch_run.product_dtype(trainer.args.device, context, trainer.model.dtype)


def trainer_of(args: argparse.Namespace, watch: Watch) -> Trainer:
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
    if args.data:
        parts = [own(args.data, args.model, part) for part in ("train", "eval")]
    else:
        counts = (args.train_samples, args.eval_samples)
        parts = [invented(count, length, shape.vocab_size, args.seed + i) for i, count in enumerate(counts)]
    train_set, eval_set = (Samples(part) for part in parts)
    watch.trainer = Trainer(
        model=models.make(args.model, checkpointing=args.checkpointing == "true"),
        args=settings,
        data_collator=Masker(shape.vocab_size, any((part == PAD).any() for part in parts)),
        train_dataset=train_set,
        eval_dataset=eval_set,
        callbacks=[watch],
    )
    trainer: Trainer = watch.trainer
    return trainer


def main() -> None:
    """Train, and print the results."""
    args, watch = arguments(), Watch()
    trainer = trainer_of(args, watch)
    # torchrun alone forms the group: a process that was started without it must not look like a run.
    if not dist.is_initialized():
        sys.exit("no process group was formed: start this with torchrun")
    device, world = trainer.args.device, dist.get_world_size()
    first = os.environ["LOCAL_RANK"] == "0"
    place = {"node_rank": os.environ["GROUP_RANK"], "host": socket.gethostname()}
    node_count, dtype = torch_run.nodes(), precision(trainer)
    if first:
        say(world_size=world, backend=dist.get_backend(), nodes=node_count, **place)
        say(
            batch=args.batch,
            accumulation=args.accumulation,
            global_batch=args.batch * args.accumulation * world,
            length=trainer.train_dataset.words.shape[1],
        )
        say(
            dtype=dtype,
            compile=args.compile,
            tf32=args.tf32,
            # What the model does, not what was asked of Trainer.
            checkpointing=str(models.checkpoints(trainer.model)).lower(),
            processes="DDP" if world > 1 else "one",
        )
        say(model=args.model, parameters=models.count(trainer.model))
        say(torch=torch.__version__, transformers=transformers.__version__, python=platform.python_version())
    trained = trainer.train().metrics
    same, steps = torch_end.agree(trainer.model, device), trainer.state.global_step
    if dist.get_rank() == 0:
        name = torch.cuda.get_device_name() if args.device == "gpu" else None
        figures = row.figures(
            args.dtype, args.batch, world, args.accumulation, steps, trained, watch.evaluated
        )
        say(row=row.name(name, node_count, world // node_count, args.batch), **figures)
    if not same:
        sys.exit("the ranks hold different weights: the gradients were not summed")
    if steps != args.steps:
        sys.exit("%d steps were done, %d are expected" % (steps, args.steps))
    if first:
        say(steps_done=steps)
        say(weights="agree", end="true")
    torch_end.leave()


if __name__ == "__main__":
    main()
