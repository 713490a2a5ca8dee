# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train a masked language model with Hugging Face's Trainer and print the throughput: one process per device.

The lines for the reader begin with HF_MLM. For the last step of an epoch rank 0 prints the line after the
evaluation, so the last epoch, from that line to its own last step, holds training alone.
"""

import argparse
import os
import sys
from typing import Any, Dict, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before transformers is imported, which takes seconds.
trainer_kit.die_with_parent()

import hf_models  # noqa: E402
import hf_trainer  # noqa: E402
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
    parser = hf_trainer.parser(models.MODELS)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--train-samples", type=int, required=True)
    parser.add_argument("--eval-samples", type=int, required=True)
    parser.add_argument(
        "--length", type=int, required=True, help="words of a sample, less where a model takes less"
    )
    parser.add_argument("--data", default="", help="directory of make_data.py; empty: invented samples")
    return parser.parse_args()


class Watch(hf_trainer.Watch):
    """Prints the line of the last step of an epoch after its evaluation."""

    waiting: Optional[float] = None
    evaluated: Dict[str, Any] = {}

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Print the line of the last step of the previous epoch, whose evaluation has ended."""
        if self.waiting:
            super().line(state, self.waiting)
        self.waiting = None

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Dict[str, Any], **kwargs: Any
    ) -> None:
        """Keep the metrics of the evaluation."""
        self.evaluated = metrics

    def line(self, state: Any, loss: float) -> None:
        """Print the line of a step unless an evaluation follows."""
        steps = state.max_steps // int(self.trainer.args.num_train_epochs)
        if state.global_step % steps or state.global_step == state.max_steps:
            super().line(state, loss)
        else:
            self.waiting = loss


def trainer_of(args: argparse.Namespace, watch: Watch) -> hf_trainer.Trainer:
    """Return Trainer with its model and samples."""
    settings = hf_trainer.settings(
        args,
        per_device_eval_batch_size=args.batch,
        num_train_epochs=args.epochs,
        eval_strategy="epoch",
        logging_strategy="epoch",
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
    watch.trainer = hf_trainer.Trainer(
        model=models.make(args.model, checkpointing=args.checkpointing),
        args=settings,
        data_collator=Masker(shape.vocab_size, any((part == PAD).any() for part in parts)),
        train_dataset=train_set,
        eval_dataset=eval_set,
        callbacks=[watch],
    )
    trainer: hf_trainer.Trainer = watch.trainer
    return trainer


def main() -> None:
    """Train, and print the results."""
    args, watch = arguments(), Watch(say)
    trainer = trainer_of(args, watch)
    hf_trainer.check_group()
    world, nodes = dist.get_world_size(), torch_run.nodes()
    hf_trainer.announce(
        say,
        args,
        hf_trainer.precision(trainer),
        trainer.model,
        processes="DDP" if world > 1 else "one",
    )
    if os.environ["LOCAL_RANK"] == "0":
        length = trainer.train_dataset.words.shape[1]
        say(model=args.model, parameters=hf_models.count(trainer.model), length=length)
    trained = trainer.train().metrics
    same, steps = torch_end.agree(trainer.model, trainer.args.device), trainer.state.global_step
    if dist.get_rank() == 0:
        name = torch.cuda.get_device_name() if args.device == "gpu" else None
        figures = row.figures(
            args.dtype, args.batch, world, args.accumulation, steps, trained, watch.evaluated
        )
        say(row=row.name(name, nodes, world // nodes, args.batch), **figures)
    hf_trainer.check_steps(args, trainer.state)
    torch_end.finish(say, same, steps)


if __name__ == "__main__":
    main()
