# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train the ResNet-50 of paddle.vision for a number of steps: one process per device, started by mpirun.

The lines for the reader begin with PADDLE_RESNET50. Rank 0 prints a `step=` line with the time at which the
device finished the step. The first process of every node prints what the reader compares with the case.
The data are one batch of random images and labels per rank, made on the device before the first step.
"""

import argparse
import gc
import os
import sys
import time
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before paddle is imported, which takes seconds.
trainer_kit.die_with_parent()

import paddle  # noqa: E402
import paddle.distributed as dist  # noqa: E402
import weights  # noqa: E402

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
        self.half = args.dtype == "fp16"
        paddle.seed(args.seed)  # the same weights everywhere
        self.model = paddle.vision.models.resnet50(num_classes=args.classes)
        self.runner = paddle.DataParallel(self.model) if world > 1 else self.model
        # 0.875 and 1/32768 are those of DLPerf's script.
        self.optimizer = paddle.optimizer.Momentum(
            args.learning_rate, 0.875, parameters=self.model.parameters(), weight_decay=1 / 32768
        )
        self.scaler = paddle.amp.GradScaler(enable=self.half)
        self.loss = paddle.nn.CrossEntropyLoss()
        paddle.seed(args.seed + 1 + rank)  # ranks have different images
        self.images = paddle.randn([args.batch, 3, args.image_size, args.image_size])
        self.labels = paddle.randint(0, args.classes, [args.batch])

    def step(self) -> float:
        """Take one step and return its loss; reading the loss waits for the device."""
        with paddle.amp.auto_cast(enable=self.half):
            loss = self.loss(self.runner(self.images), self.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.clear_grad()
        return float(loss)


def gathered(value: List[Any], world: int) -> List[Any]:
    """Return a list of every rank's `value`, in the order of the ranks."""
    if world == 1:
        return [value]
    found: List[Any] = []
    dist.all_gather_object(found, value)
    return found


def main() -> None:
    """Form the process group, train, compare the weights and print the results."""
    args = arguments()
    local = int(os.environ["PADDLE_TRAINER_ID"]) % args.devices_per_node
    paddle.set_device("cpu" if args.device == "cpu" else "gpu:%d" % local)
    wanted = int(os.environ["PADDLE_TRAINERS_NUM"])
    if wanted > 1:
        dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    backend = dist.get_backend().lower() if world > 1 else "none"
    node = rank // args.devices_per_node
    nodes = len({place[0] for place in gathered([os.environ["NODE"]], world)})
    first = rank % args.devices_per_node == 0
    if first:
        say(world_size=world, backend=backend, nodes=nodes, node_rank=node, paddle=paddle.__version__)
        say(batch=args.batch, global_batch=args.batch * world)
        say(dtype=args.dtype, image_size=args.image_size, classes=args.classes, data="synthetic-random")
    trainer = Trainer(args, rank, world)
    # The garbage collector would run in the middle of a step and be measured with it.
    gc.collect()
    gc.disable()
    for step in range(1, args.steps + 1):
        loss = trainer.step()
        if rank == 0:
            say(step="%d/%d" % (step, args.steps), loss="%.5f" % loss, time="%.6f" % time.time())
        if not trainer_kit.is_number(loss):
            sys.exit("the loss of step %d on rank %d is %s" % (step, rank, loss))
    ranks = gathered(weights.sums(trainer.model.parameters()), world)
    if not weights.agree(ranks):
        sys.exit("the ranks hold different weights: the gradients were not summed: %s" % ranks)
    if first:
        say(steps_done=args.steps)
        say(weights_sum="%.9e" % ranks[0][0], weights_sum_of_squares="%.9e" % ranks[0][1])
        say(weights="agree", end="true")


if __name__ == "__main__":
    main()
