# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Pretrain BERT on Paddle for a number of steps: one process per device, started by mpirun.

The lines for the reader begin with PADDLE_BERT. Rank 0 prints a `step=` line with the time at which the
device finished the step. The first process of every node prints what the reader compares with the case.
The data are samples of texts, or one batch of random words per rank, made before the first step.
"""

import argparse
import itertools
import os
import sys
from typing import Any, Iterator, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before paddle is imported, which takes seconds.
trainer_kit.die_with_parent()

import bert_sizes  # noqa: E402
import numpy as np  # noqa: E402
import paddle  # noqa: E402
import paddle_run  # noqa: E402
from model import NOTHING, Bert  # noqa: E402

say = trainer_kit.Say("PADDLE_BERT")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(bert_sizes.MODELS, paddle_run.DTYPES)
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--seq-length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.0001)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0, help="largest norm of the gradients")
    parser.add_argument("--seed", type=int, default=2020)
    parser.add_argument("--hdf5", default="", help="directory of HDF5 files; words are random without it")
    parser.add_argument("--samples", type=int, default=32768, help="of these files at most")
    parser.add_argument("--text", default="", help="what the files were made of, for the log")
    return parser.parse_args()


def invented(args: argparse.Namespace, vocabulary: int) -> List[Any]:
    """Return words, segments, positions and labels of masked words, and which second sentences follow."""
    words = paddle.randint(0, vocabulary, [args.batch, args.seq_length])
    second = (paddle.arange(args.seq_length) >= args.seq_length // 2).astype("int64")
    positions = paddle.argsort(paddle.rand([args.batch, args.seq_length]))[:, : args.predictions]
    labels = paddle.randint(0, vocabulary, [args.batch, args.predictions])
    following = paddle.randint(0, 2, [args.batch])
    return [words, second.expand([args.batch, args.seq_length]), positions, labels, following]


def of_texts(args: argparse.Namespace, vocabulary: int) -> List[Any]:
    """Return the arrays of `invented`, and which tokens do not pad, of samples of texts."""
    import nvidia_hdf5

    arrays = nvidia_hdf5.first(args.hdf5, args.samples)
    most = int(max(arrays["input_ids"].max(), arrays["masked_lm_ids"].max()))
    if most >= vocabulary:
        sys.exit("the texts have the token %d, model %s has those below %d" % (most, args.model, vocabulary))
    filled = nvidia_hdf5.filled(arrays["masked_lm_positions"])
    columns = [
        arrays["input_ids"],
        arrays["segment_ids"],
        np.where(filled, arrays["masked_lm_positions"], 0),
        np.where(filled, arrays["masked_lm_ids"], NOTHING),
        arrays["next_sentence_labels"],
        arrays["input_mask"],
    ]
    return [column.astype(np.int64) for column in columns]


def turns(args: argparse.Namespace, arrays: List[Any], rank: int, world: int) -> Iterator[List[Any]]:
    """Yield the batches of a rank.

    All ranks use the permutation of the seed and take its batches in turn, as torch_batches.py does.
    """
    order = np.random.RandomState(args.seed).permutation(len(arrays[0]))
    for turn in itertools.count(rank, world):
        rows = order[np.arange(turn * args.batch, (turn + 1) * args.batch) % len(order)]
        yield [paddle.to_tensor(array[rows]) for array in arrays]


class Trainer:
    """The model, its optimizer and one step of training."""

    def __init__(self, args: argparse.Namespace, rank: int, world: int) -> None:
        self.size = bert_sizes.MODELS[args.model]
        self.dtype = args.dtype
        paddle.seed(args.seed)  # the same weights everywhere
        self.model = Bert(self.size, args.dropout)
        self.runner = paddle.DataParallel(self.model) if world > 1 else self.model
        # Biases and norms have no weight decay, as in the original BERT.
        wide = {parameter.name for parameter in self.model.parameters() if len(parameter.shape) > 1}
        self.optimizer = paddle.optimizer.AdamW(
            args.learning_rate,
            epsilon=1e-6,
            parameters=self.model.parameters(),
            weight_decay=0.01,
            apply_decay_param_fun=lambda name: name in wide,
            grad_clip=paddle.nn.ClipGradByGlobalNorm(args.clip),
        )
        self.scaler = paddle.amp.GradScaler(enable=args.dtype == "fp16")
        paddle.seed(args.seed + 1 + rank)  # ranks have different samples and dropout
        self.batches = self._batches(args, rank, world)

    def _batches(self, args: argparse.Namespace, rank: int, world: int) -> Iterator[List[Any]]:
        if args.hdf5:
            return turns(args, of_texts(args, self.size["vocabulary"]), rank, world)
        return itertools.repeat(invented(args, self.size["vocabulary"]))

    def parameters(self) -> int:
        """Return how many weights there are, without the rows that pad the vocabulary."""
        rows = bert_sizes.padded(self.size["vocabulary"]) - self.size["vocabulary"]
        return sum(int(p.size) for p in self.model.parameters()) - rows * (self.size["hidden"] + 1)

    def step(self) -> float:
        """Take one step and return its loss; reading the loss waits for the device."""
        with paddle_run.precision(self.dtype):
            loss = self.runner(*next(self.batches))
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.clear_grad()
        return float(loss)


def main() -> None:
    """Form the process group, train, compare the weights and print the results."""
    args = arguments()
    group = paddle_run.Group(say, args.device, args.devices_per_node)
    trainer = Trainer(args, group.rank, group.world)
    group.announce(
        args,
        model=args.model,
        parameters=trainer.parameters(),
        seq_length=args.seq_length,
        predictions=args.predictions,
        data="texts" if args.hdf5 else "synthetic-random",
        text=args.text,
    )
    group.take_steps(args.steps, trainer.step)
    group.finish(trainer.model.parameters(), args.steps)


if __name__ == "__main__":
    main()
