# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of NVIDIA's train.py for a case. Python 3.6 or newer, standard library only."""

import argparse
from typing import List

import record_files

DTYPES = {"fp32": "float32", "fp16": "float16"}


def check(args: argparse.Namespace, world: int, images: int) -> None:
    """Raise ImageError where a process would have fewer images than its batch.

    MXNet gives each process the same number of records, rounded up, and the last one what is left.
    """
    share = -(-images // world)
    shares = [share] * (world - 1) + [images - share * (world - 1)]
    record_files.check_enough(args.data, images, args.batch, shares)


def data_flags(args: argparse.Namespace, processes: int, cores: int) -> List[str]:
    """Return the words for the data: a file of records, or the trainer's synthetic data.

    Every process decodes images with its share of the machine's cores; the trainer's default are 40 threads.
    """
    if not args.data:
        return ["--data-backend", "synthetic"]
    words = ["--data-backend", "mxnet", "--data-train", args.data]
    words += ["--data-train-idx", record_files.index_of(args.data)]
    return words + ["--data-mxnet-threads", str(max(1, cores // processes))]


def flags(args: argparse.Namespace, rank: int, world: int, processes: int, cores: int) -> List[str]:
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
