# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of NVIDIA's main.py for a case. Python 3.6 or newer, standard library only."""

import argparse
from typing import List, Optional

# The trainer's hook counts from the step after these, and divides by the number of steps that it counted.
UNCOUNTED = 20


class FlagsError(ValueError):
    """A case that the trainer does not measure; the message names the value and the fix."""


def check(args: argparse.Namespace, world: int, files: int, images: Optional[int]) -> None:
    """Raise FlagsError where the trainer would fail without saying why, or compute in another precision.

    `files` are those of the data, `images` the number in them where it is known.
    """
    if args.dtype == "fp16" and args.device == "cpu":
        raise FlagsError(
            "dtype=fp16: TensorFlow's automatic mixed precision changes graphs for GPUs alone, and says "
            "nothing where it leaves one in fp32. Fix: dtype=fp32"
        )
    if args.steps <= UNCOUNTED:
        raise FlagsError(
            "%d steps: after %d or fewer the trainer divides by zero. Fix: a larger warmup or window"
            % (args.steps, UNCOUNTED)
        )
    if files < world:
        raise FlagsError(
            "%s has %d files train-*, and %d processes share them by whole files. Fix: tf1_resnet50_files=%d "
            "or more, or more files of your own" % (args.data, files, world, world)
        )
    needed = args.batch * world
    if images is not None and images < needed:
        raise FlagsError(
            "%s has %d images, and a step of all processes takes %d: the trainer, which counts epochs, "
            "divides by zero. Fix: tf1_resnet50_images=%d or more" % (args.data, images, needed, needed)
        )


def flags(args: argparse.Namespace, results: str) -> List[str]:
    """Return the command line of main.py for a case, which writes its checkpoints to `results`.

    With a warm-up of eight epochs, as in NVIDIA's scripts, the learning rate stays near 0 in a short run.
    Convolutions of CPUs need NHWC; NCHW is the trainer's default. The loss is scaled as in NVIDIA's scripts.
    """
    words = ["--arch=resnet50", "--mode=train", "--iter_unit=batch", "--num_iter=%d" % args.steps]
    words += ["--data_dir=" + args.data, "--results_dir=" + results, "--batch_size=%d" % args.batch]
    words += ["--data_format=" + ("NHWC" if args.device == "cpu" else "NCHW"), "--display_every=1"]
    words += ["--use_cosine_lr", "--lr_init=%r" % args.learning_rate, "--lr_warmup_epochs=0"]
    words += ["--momentum=0.875", "--weight_decay=%r" % (1 / 32768), "--label_smoothing=0.1"]
    words += ["--weight_init=fan_in", "--precision=fp32"]
    if args.dtype == "fp16":
        words += ["--use_tf_amp", "--use_static_loss_scaling", "--loss_scale=128"]
    return words + (["--use_xla"] if args.xla else [])
