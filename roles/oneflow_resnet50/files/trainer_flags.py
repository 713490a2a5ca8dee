# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of train.py of Oneflow-Inc/models for a case.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import argparse
from typing import List


def flags(args: argparse.Namespace, world: int, files: int) -> List[str]:
    """Return the command line of train.py for a case, whose data are in a number of files.

    With its defaults the learning rate is 0 in the first epochs and the loss does not move.
    """
    samples = args.batch * args.steps * world
    words = ["--skip-eval", "--print-interval", "1", "--num-epochs", "1"]
    if args.data:
        words += ["--ofrecord-path", args.data, "--ofrecord-part-num", str(files)]
    else:
        words += ["--synthetic-data"]
    words += ["--train-batch-size", str(args.batch), "--val-batch-size", str(args.batch)]
    # It refuses --num-nodes above 1, and takes the ranks of all nodes from the process group.
    words += ["--num-devices-per-node", str(args.devices_per_node)]
    words += ["--batches-per-epoch", str(args.steps), "--samples-per-epoch", str(samples)]
    words += ["--val-batches-per-epoch", "1", "--val-samples-per-epoch", str(args.batch * world)]
    words += ["--warmup-epochs", "0", "--lr-decay-type", "none", "--lr", repr(args.learning_rate)]
    if args.mode == "graph":
        words += ["--graph", "--scale-grad", "--metric-local", "True"]
    elif world > 1:
        words += ["--ddp"]
    if args.dtype == "fp16":
        words += ["--use-fp16"]
    return words
