# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of NVIDIA's train.py for MXNet for a case. Python 3.6 or newer, standard library only."""

import argparse
from typing import List

DTYPES = {"fp32": "float32", "fp16": "float16"}


def flags(args: argparse.Namespace, rank: int, world: int, processes: int) -> List[str]:
    """Return the command line of train.py for a case; `processes` is the number on this machine.

    Batches are counted from 0, and one more than the steps is taken: the last is number `steps`. With the
    default warm-up of five epochs the learning rate stays near 0, and nothing is learned. Each rank has a
    seed of its own: with one for all, all have the same images, and the weights agree without communication.
    """
    words = ["--mode", "train", "--data-backend", "synthetic", "--kv-store", "horovod"]
    words += ["--arch", "resnetv15", "--num-layers", "50", "--num-classes", "1000"]
    words += ["--image-shape", "3,%d,%d" % (args.image_size, args.image_size)]
    words += ["--gpus", ",".join(str(index) for index in range(processes))]
    words += ["--batch-size", str(args.batch * world), "--benchmark-iters", str(args.steps + 1)]
    words += ["--num-epochs", "1", "--disp-batches", "1", "--no-metrics", "--dtype", DTYPES[args.dtype]]
    words += ["--warmup-epochs", "0", "--lr", repr(args.learning_rate), "--seed", str(7 + rank)]
    return words + ["--log", "/dev/null", "--report", "", "--save-frequency", "0"]
