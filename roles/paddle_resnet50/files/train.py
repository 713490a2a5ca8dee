# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train the ResNet-50 of paddle.vision for a number of steps: one process per device, started by mpirun.

The lines for the reader begin with PADDLE_RESNET50. Rank 0 prints a `step=` line with the time at which the
device finished the step. The first process of every node prints what the reader compares with the case.
"""

import argparse
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before paddle is imported, which takes seconds.
trainer_kit.die_with_parent()

import image_folder  # noqa: E402
import images  # noqa: E402
import paddle  # noqa: E402
import paddle_run  # noqa: E402

say = trainer_kit.Say("PADDLE_RESNET50")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--data", default="", help="directory of images, see image_folder.py")
    parser.add_argument("--workers", type=int, default=0, help="that prepare images; 0: the cores there are")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


def batches(args: argparse.Namespace, group: paddle_run.Group) -> Any:
    """Return the endless batches of a rank."""
    if not args.data:
        paddle.seed(args.seed + 1 + group.rank)  # ranks have different images
        return images.Synthetic(args.batch, args.image_size, args.classes)
    folder = image_folder.Folder("paddle_resnet50", args.data, args.classes)
    folder.require(args.batch * group.world)
    workers = image_folder.processes(args.workers, args.devices_per_node)
    if group.first:
        count = workers * args.devices_per_node
        say(images=len(folder), image_classes=len(folder.classes), loader_workers=count)
    pictures = image_folder.Pictures(folder, args.image_size, args.seed)
    turns = image_folder.Turns(len(folder), args.batch, (group.rank, group.world), args.seed)
    return images.Files(pictures, turns, workers)


class Trainer:
    """The model, its optimizer, its images and one step of training."""

    def __init__(self, args: argparse.Namespace, group: paddle_run.Group) -> None:
        self.dtype = args.dtype
        paddle.seed(args.seed)  # the same weights everywhere
        self.model = paddle.vision.models.resnet50(num_classes=args.classes)
        self.runner = paddle.DataParallel(self.model) if group.world > 1 else self.model
        # 0.875 and 1/32768 are those of DLPerf's script.
        self.optimizer = paddle.optimizer.Momentum(
            args.learning_rate, 0.875, parameters=self.model.parameters(), weight_decay=1 / 32768
        )
        self.scaler = paddle.amp.GradScaler(enable=args.dtype == "fp16")
        self.loss = paddle.nn.CrossEntropyLoss()
        self.images = batches(args, group)

    def step(self) -> float:
        """Take one step and return its loss; reading the loss waits for the device."""
        pictures, labels = next(self.images)
        with paddle_run.precision(self.dtype):
            loss = self.loss(self.runner(pictures), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.clear_grad()
        return float(loss)


def main() -> None:
    """Form the process group, train, compare the weights and print the results."""
    args = arguments()
    group = paddle_run.Group(say, args.device, args.devices_per_node)
    data = {
        "image_size": args.image_size,
        "classes": args.classes,
        "data": "files" if args.data else "synthetic",
    }
    group.announce(args, **data)
    try:
        trainer = Trainer(args, group)
        group.take_steps(args.steps, trainer.step)
    except image_folder.ImageError as error:
        sys.exit(str(error))
    group.finish(trainer.model.parameters(), args.steps)


if __name__ == "__main__":
    main()
