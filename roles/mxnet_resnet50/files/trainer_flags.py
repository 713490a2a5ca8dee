# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command lines of the trainers for a case. Python 3.6 or newer, standard library only."""

import argparse
from typing import List

import record_files

DTYPES = {"fp32": "float32", "fp16": "float16"}


class FlagsError(ValueError):
    """A case that the trainer does not run; the message names the value and the fix."""


def check(args: argparse.Namespace, world: int, images: int) -> None:
    """Raise FlagsError where a process would have fewer images than its batch.

    MXNet gives each process the same number of records, rounded up, and the last one what is left. gluon-cv's
    trainer gives each the same number, rounded down.
    """
    if args.trainer == "gluoncv":
        share = last = images // world
        each = "%d of them each" % share
    else:
        share = -(-images // world)
        last = images - share * (world - 1)
        each = "%d of them each, and the last one what is left" % share
    if last < args.batch:
        raise FlagsError(
            "%s has %d images: %d processes have %s, fewer than the batch of %d. Fix: %d images, or a smaller"
            " batch" % (args.data, images, world, each, args.batch, max(share, args.batch) * world)
        )


def data_flags(args: argparse.Namespace, processes: int, cores: int) -> List[str]:
    """Return the words for the data: a file of records, or the trainer's synthetic data.

    Every process decodes images with its share of the machine's cores; the trainer's default are 40 threads.
    """
    if not args.data:
        return ["--data-backend", "synthetic"]
    words = ["--data-backend", "mxnet", "--data-train", args.data]
    words += ["--data-train-idx", record_files.index_of(args.data)]
    return words + ["--data-mxnet-threads", str(max(1, cores // processes))]


def nvidia(args: argparse.Namespace, rank: int, world: int, processes: int, cores: int) -> List[str]:
    """Return the command line of train.py for a case; `processes` and `cores` are those of this machine.

    Batches are counted from 0, and one more than the steps is taken: the last is number `steps`. With the
    default warm-up of five epochs the learning rate stays near 0, and nothing is learned. Each rank has a
    seed of its own: with one for all, all have the same images, and the weights agree without communication.
    """
    words = ["--mode", "train", *data_flags(args, processes, cores), "--kv-store", "horovod"]
    words += ["--arch", "resnetv15", "--num-layers", "50", "--num-classes", "1000"]
    words += ["--image-shape", "3,%d,%d" % (args.image_size, args.image_size)]
    words += ["--gpus", ",".join(str(index) for index in range(processes))]
    words += ["--batch-size", str(args.batch * world), "--benchmark-iters", str(args.steps + 1)]
    words += ["--num-epochs", "1", "--disp-batches", "1", "--no-metrics", "--dtype", DTYPES[args.dtype]]
    words += ["--warmup-epochs", "0", "--lr", repr(args.learning_rate), "--seed", str(7 + rank)]
    return words + ["--log", "/dev/null", "--report", "", "--save-frequency", "0"]


def gluoncv(args: argparse.Namespace, images: int, world: int, processes: int, cores: int) -> List[str]:
    """Return the command line of train_horovod.py for a case, with a file of so many images.

    The batch is that of a process, and the trainer multiplies the learning rate by their number. It takes as
    many epochs as the steps need. No images are evaluated, but a file must be named.
    """
    batches = images // world // args.batch
    words = ["--use-rec", "--rec-train", args.data, "--rec-val", args.data]
    words += ["--data-nthreads", str(max(1, cores // processes))]
    words += ["--model", "resnet50_v1b", "--input-size", str(args.image_size)]
    words += ["--batch-size", str(args.batch), "--num-epochs", str(-(-args.steps // batches))]
    words += ["--warmup-epochs", "0", "--lr", repr(args.learning_rate / world), "--dtype", DTYPES[args.dtype]]
    words += ["--log-interval", "1", "--save-frequency", "0", "--save-dir", ""]
    return words + (["--no-cuda"] if args.device == "cpu" else [])
