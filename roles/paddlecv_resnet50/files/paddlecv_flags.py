# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What PaddleCV's train.py is given for a case: its command line, and its list of images.

Python 3.6 or newer.
"""

import argparse
import os
from typing import Any, List

import image_folder

AHEAD = 100  # batches, more than the trainer reads before their step


def write_list(directory: str, folder: Any, batch: int, steps: int) -> None:
    """Write the list of images, each in turn, as often as the steps take, by their full paths.

    `batch` is that of all devices. The list is longer: at its end the trainer would save its model, and while
    it trains the last steps it reads on, as it does with ImageNet.
    """
    with open(os.path.join(directory, "train_list.txt"), "w", errors="surrogateescape") as file:
        for number in range(batch * (steps + AHEAD)):
            path = folder.path(number % len(folder))
            if len(path.split()) > 1:
                raise image_folder.ImageError(
                    "%s: PaddleCV's list has no names with spaces: rename it" % path
                )
            file.write("%s %d\n" % (path, folder.labels[number % len(folder)]))


def flags(args: argparse.Namespace, directory: str, workers: int) -> List[str]:
    """Return the command line of train.py, with the list of images in `directory`.

    The batch is that of all devices of the node. What a case does not have is DLPerf's. The learning rate is
    the same for the first 30 epochs of ImageNet.
    """
    values = {
        "use_gpu": args.device == "gpu",
        "use_fp16": args.dtype == "fp16",
        "batch_size": args.batch * args.devices_per_node,
        "max_iter": args.steps,
        "class_dim": args.classes,
        "data_dir": directory,
        "model_save_dir": directory,
        "reader_thread": workers,
        "lr": args.learning_rate,
        "random_seed": args.seed,
        "model": "ResNet50",
        "momentum_rate": 0.875,
        "l2_decay": 0.000030518,
        "use_label_smoothing": True,
        "validate": False,
        "print_step": 1,
    }
    words = ["--%s=%s" % pair for pair in values.items()]
    return words + ["--image_shape", "3", str(args.image_size), str(args.image_size)]
