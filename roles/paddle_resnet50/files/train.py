# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train the ResNet-50 of paddle.vision for a number of steps: one process per device, started by mpirun.

The lines for the reader begin with PADDLE_RESNET50. Rank 0 prints a `step=` line with the time at which the
device finished the step. The first process of every node prints what the reader compares with the case.
The data are one batch of random images and labels per rank, made on the device before the first step.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before paddle is imported, which takes seconds.
trainer_kit.die_with_parent()

import paddle  # noqa: E402
import paddle_run  # noqa: E402

say = trainer_kit.Say("PADDLE_RESNET50")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


class Trainer:
    """The model, its optimizer and one step of training."""

    def __init__(self, args: argparse.Namespace, rank: int, world: int) -> None:
        self.dtype = args.dtype
        paddle.seed(args.seed)  # the same weights everywhere
        self.model = paddle.vision.models.resnet50(num_classes=args.classes)
        self.runner = paddle.DataParallel(self.model) if world > 1 else self.model
        # 0.875 and 1/32768 are those of DLPerf's script.
        self.optimizer = paddle.optimizer.Momentum(
            args.learning_rate, 0.875, parameters=self.model.parameters(), weight_decay=1 / 32768
        )
        self.scaler = paddle.amp.GradScaler(enable=args.dtype == "fp16")
        self.loss = paddle.nn.CrossEntropyLoss()
        paddle.seed(args.seed + 1 + rank)  # ranks have different images
        self.images = paddle.randn([args.batch, 3, args.image_size, args.image_size])
        self.labels = paddle.randint(0, args.classes, [args.batch])

    def step(self) -> float:
        """Take one step and return its loss; reading the loss waits for the device."""
        with paddle_run.precision(self.dtype):
            loss = self.loss(self.runner(self.images), self.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.clear_grad()
        return float(loss)


def main() -> None:
    """Form the process group, train, compare the weights and print the results."""
    args = arguments()
    group = paddle_run.Group(say, args.device, args.devices_per_node)
    data = {"image_size": args.image_size, "classes": args.classes, "data": "synthetic-random"}
    group.announce(args, **data)
    trainer = Trainer(args, group.rank, group.world)
    group.take_steps(args.steps, trainer.step)
    group.finish(trainer.model.parameters(), args.steps)


if __name__ == "__main__":
    main()
