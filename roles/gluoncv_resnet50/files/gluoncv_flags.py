# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of gluon-cv's train_horovod.py for a case. Python 3.6 or newer, standard library only."""

import argparse
from typing import List

import record_files

DTYPES = {"fp32": "float32", "fp16": "float16"}


def check(args: argparse.Namespace, world: int, images: int) -> None:
    """Raise ImageError where a process would have fewer images than its batch.

    The trainer gives each process the same number of records, rounded down.
    """
    record_files.check_enough(args.data, images, args.batch, [images // world] * world)


def flags(args: argparse.Namespace, images: int, world: int, processes: int, cores: int) -> List[str]:
    """Return the command line of train_horovod.py for a case, with a file of so many images.

    The batch is that of a process, and the trainer multiplies the learning rate by their number. It takes as
    many epochs as the steps need. No images are evaluated, but a file must be named. `processes` and `cores`
    are those of this machine.
    """
    batches = images // world // args.batch
    words = ["--use-rec", "--rec-train", args.data, "--rec-val", args.data]
    words += ["--data-nthreads", str(max(1, cores // processes))]
    words += ["--model", "resnet50_v1b", "--input-size", str(args.image_size)]
    words += ["--batch-size", str(args.batch), "--num-epochs", str(-(-args.steps // batches))]
    words += ["--warmup-epochs", "0", "--lr", repr(args.learning_rate / world), "--dtype", DTYPES[args.dtype]]
    words += ["--log-interval", "1", "--save-frequency", "0", "--save-dir", ""]
    return words + (["--no-cuda"] if args.device == "cpu" else [])
