# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of the fork's run_classifier.py. Python 3.6 or newer."""

import argparse
from typing import List


def epochs(steps: int, devices: int, batch: int, samples: int) -> float:
    """Return the --num_train_epochs that make the fork take `steps` steps on each device.

    It takes int(samples / batch * epochs) // devices. Half a step more absorbs the rounding of floats.
    """
    return (steps * devices + 0.5) * batch / samples


def flags(args: argparse.Namespace, output: str) -> List[str]:
    """Return the arguments of run_classifier.py: a task on several devices."""
    words = [
        "--data_dir=" + args.data_dir,
        "--task_name=" + args.task,
        "--vocab_file=%s/vocab_%s.txt" % (args.data, args.model),
        "--bert_config_file=%s/bert_config_%s.json" % (args.data, args.model),
        "--output_dir=" + output,
        "--do_train=true",
        "--do_eval=true",
        "--max_seq_length=%d" % args.length,
        "--train_batch_size=%d" % args.batch,
        "--learning_rate=%r" % args.learning_rate,
        "--num_train_epochs=%r" % epochs(args.steps, args.devices, args.batch, args.samples),
        "--use_multi_gpu=true",
    ]
    return words + (["--init_checkpoint=" + args.checkpoint] if args.checkpoint else [])
