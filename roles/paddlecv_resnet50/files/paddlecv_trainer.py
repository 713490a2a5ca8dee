# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run PaddleCV's train.py for a number of steps: one process per device, started by mpirun.

It prints what the trainer does not: the time of a step, the processes that its program joins, and the weights
of every rank. The files of the trainer stay as they are. The lines for the reader begin with
PADDLECV_RESNET50. Runs on Python 3.7.
"""

import argparse
import atexit
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from typing import Any, List, NoReturn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before paddle is imported, which takes seconds.
trainer_kit.die_with_parent()

import image_folder  # noqa: E402
import numpy as np  # noqa: E402
import paddle  # noqa: E402
import paddle.fluid as fluid  # noqa: E402
import paddlecv_flags  # noqa: E402

say = trainer_kit.Say("PADDLECV_RESNET50")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument("--source", required=True, help="directory of the trainer")
    parser.add_argument("--scratch", required=True, help="directory for the list of images")
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--data", required=True, help="directory of images, see image_folder.py")
    parser.add_argument(
        "--workers", type=int, required=True, help="that prepare images; 0: the cores there are"
    )
    parser.add_argument("--image-size", type=int, required=True)
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    return parser.parse_args()


def refuse(scratch: str, reason: Any) -> NoReturn:
    """End this process, also from a thread that reads images, and leave no list behind."""
    shutil.rmtree(scratch, ignore_errors=True)
    trainer_kit.refuse(reason)


class Run:
    """What the trainer does, seen where it calls a function of its own."""

    def __init__(self, args: argparse.Namespace, rank: int, scratch: str) -> None:
        self.args, self.scratch, self.steps = args, scratch, 0
        self.node, place = divmod(rank, args.devices_per_node)
        # The first process of every node prints what the reader compares with the case.
        self.first = place == 0
        self.program: Any = None

    def watch(self, trainer: Any) -> None:
        """Put this between the trainer and its functions."""
        compiled, print_info = trainer.best_strategy_compiled, trainer.print_info
        read = trainer.reader.process_image

        def compile_program(flags: Any, program: Any, *rest: Any) -> Any:
            program_compiled = compiled(flags, program, *rest)
            self.program = program
            self.announce(flags)
            return program_compiled

        def print_step(kind: str, metrics: Any, *rest: Any) -> None:
            print_info(kind, metrics, *rest)
            self.print_step(float(metrics[0]))

        def read_image(sample: List[Any], *rest: Any) -> Any:
            # The trainer would go on with a smaller batch.
            image = read(sample, *rest)
            if image is None:
                refuse(self.scratch, "%s cannot be read as an image (by OpenCV)" % sample[0])
            return image

        trainer.best_strategy_compiled, trainer.print_info = compile_program, print_step
        trainer.reader.process_image = read_image

    def announce(self, flags: Any) -> None:
        """Print what takes part, the batch and the precision, as the trainer's program has them."""
        if not self.first:
            return
        # Where processes do not synchronise, the program has no trainers.
        world = len(self.program._trainers_endpoints) or 1
        devices = fluid.core.get_cuda_device_count() if flags.use_gpu else 1
        half = any(
            value.dtype == fluid.core.VarDesc.VarType.FP16
            for value in self.program.list_vars()
            if value.type == fluid.core.VarDesc.VarType.LOD_TENSOR
        )
        nodes = -(-world // self.args.devices_per_node)
        backend = "nccl" if world > 1 else "none"
        say(world_size=world, backend=backend, nodes=nodes, node_rank=self.node, paddle=paddle.__version__)
        batch = flags.batch_size // devices
        say(batch=batch, global_batch=batch * world)
        size = flags.image_shape[1]
        say(dtype="fp16" if half else "fp32", image_size=size, classes=flags.class_dim, data="files")

    def print_step(self, loss: float) -> None:
        """Print a step, whose loss the trainer has read from the device."""
        self.steps += 1
        say(step="%d/%d" % (self.steps, self.args.steps), loss="%.5f" % loss, time="%.6f" % time.time())
        if not trainer_kit.is_number(loss):
            sys.exit("the loss of step %d is %s" % (self.steps, loss))

    def finish(self) -> None:
        """Print the steps that the program has taken, and the weights of this rank.

        Not compared are the statistics of BatchNorm, which each rank has of its own images.
        """

        def value(name: str) -> Any:
            return np.array(fluid.global_scope().find_var(name).get_tensor())

        if self.first:
            # Counted from 0 by the schedule of the learning rate.
            say(steps_done=int(value("@LR_DECAY_COUNTER@")[0]) + 1)
        weights = [
            value(each.name).astype("float64") for each in self.program.all_parameters() if each.trainable
        ]
        total, squares = sum(each.sum() for each in weights), sum((each * each).sum() for each in weights)
        say(weights_sum="%.9e" % total, weights_sum_of_squares="%.9e" % squares)
        # The reader compares them.
        say(weights="of_each_rank", end="true")


def main() -> None:
    """Write the list of images, train and print the results."""
    args = arguments()
    rank, world = int(os.environ["PADDLE_TRAINER_ID"]), int(os.environ["PADDLE_TRAINERS_NUM"])
    # The devices of a process.
    os.environ["CPU_NUM"] = "1"
    # A process that is stopped removes its list too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = tempfile.mkdtemp(prefix="list-", dir=args.scratch)
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    workers = image_folder.processes(args.workers, args.devices_per_node)
    try:
        folder = image_folder.Folder("paddlecv_resnet50", args.data, args.classes)
        folder.require(args.batch * world)
        paddlecv_flags.write_list(scratch, folder, args.batch * world, args.steps)
    except image_folder.ImageError as error:
        refuse(scratch, error)
    run = Run(args, rank, scratch)
    if run.first:
        count = workers * args.devices_per_node
        say(images=len(folder), image_classes=len(folder.classes), loader_workers=count)
    sys.path.insert(0, args.source)
    sys.argv = ["train.py", *paddlecv_flags.flags(args, scratch, workers)]
    trainer = importlib.import_module("train")
    run.watch(trainer)
    trainer.main()
    run.finish()


if __name__ == "__main__":
    main()
