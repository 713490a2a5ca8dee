# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What main.py of pytorch/examples is given for a case, and its text for CPUs.

Python 3.6 or newer, standard library only.
"""

import argparse
from typing import List

# For how many images torch_examples_resnet50_learning_rate is.
RATE_BATCH = 256


PLACE = "        print('using CPU, this will be slow')\n", "    elif args.distributed:\n"
SUMMED = "        model = torch.nn.parallel.DistributedDataParallel(model)\n"


class FlagsError(ValueError):
    """A case that main.py does not run; the message names the value and the fix."""


def for_cpus(text: str, path: str) -> str:
    """Return the text of main.py with one more line, which sums the gradients; raise FlagsError for another.

    On CPUs main.py forms the group and divides the images, but each process trains a model of its own, and
    ends with status 0. The place of the line is found by the text around it.
    """
    if text.count("".join(PLACE)) != 1:
        raise FlagsError(
            "%s is not the one that this workload is for: the lines %s and %s must follow each other in it"
            " once. Fix: set torch_examples_resnet50_commit to a commit that has them, as the stack's"
            % (path, PLACE[0].strip(), PLACE[1].strip())
        )
    return text.replace("".join(PLACE), SUMMED.join(PLACE))


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
