# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What main.py of pytorch/examples is given for a case. Python 3.6 or newer, standard library only."""

import argparse
from typing import List

# For how many images torch_resnet50_learning_rate is; as train.py.
RATE_BATCH = 256


class FlagsError(ValueError):
    """A case that main.py does not run; the message names the value and the fix."""


def check(args: argparse.Namespace, images: int, world: int) -> None:
    """Raise FlagsError where a step would have fewer images than the batch: the last one of an epoch may.

    Every process gets the same number of images, rounded up.
    """
    share = -(-images // world)
    whole = share // args.batch
    if share % args.batch and whole < args.steps:
        raise FlagsError(
            "%s has %d images, %d for each of %d processes: after %d batches of %d a smaller one follows,"
            % (args.data, images, share, world, whole, args.batch)
            + " and the run has %d steps. Fix: a multiple of %d images, or another bsz"
            % (args.steps, args.batch * world)
        )


def flags(args: argparse.Namespace, rank: int, world: int, workers: int) -> List[str]:
    """Return the command line for a process. Its batch is that of the process: examples_trainer.py.

    An epoch has a step at least, so there are enough epochs. With a seed torch would be slower.
    """
    words = [args.data] if args.data else ["--dummy"]
    words += ["--arch", args.model, "--batch-size", str(args.batch), "--epochs", str(args.steps)]
    words += ["--lr", repr(args.learning_rate * args.batch * world / RATE_BATCH), "--workers", str(workers)]
    words += ["--print-freq", "1", "--world-size", str(world), "--rank", str(rank), "--dist-url", "env://"]
    return words + ["--dist-backend", "gloo" if args.device == "cpu" else "nccl"]
