# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run a trainer for MXNet, and print what it does not: world size, and whether the weights agree.

One process per device, started by mpirun. The lines for the reader begin with MXNET_RESNET50; the lines of
steps are those of NVIDIA's train.py itself, which every rank prints with the rate of all: those of the first
rank of a node are kept. gluoncv_trainer.py prints such lines for gluon-cv's. The files of the trainers stay
as they are. Runs on Python 3.7.
"""

import argparse
import importlib
import logging
import math
import os
import sys
import traceback
import types
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before MXNet is imported, which takes seconds.
trainer_kit.die_with_parent()

import backend  # noqa: E402
import gluoncv_trainer  # noqa: E402
import horovod  # noqa: E402
import horovod.mxnet as hvd  # noqa: E402
import labelled_images  # noqa: E402
import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
import record_files  # noqa: E402
import trainer_flags  # noqa: E402

say = trainer_kit.Say("MXNET_RESNET50")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument("--trainer", choices=["nvidia", "gluoncv"], required=True)
    parser.add_argument("--source", required=True, help="directory of the trainer")
    parser.add_argument(
        "--data", required=True, help="file of records, or nothing for NVIDIA's synthetic data"
    )
    parser.add_argument("--devices", type=int, required=True, help="number of processes of the run")
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--image-size", type=int, required=True, help="width and height of an image")
    parser.add_argument("--learning-rate", type=float, required=True)
    return parser.parse_args()


def gathered(values: List[float], name: str) -> List[List[float]]:
    """Return a list of every rank's `values`, in the order of the ranks.

    A sum of rows, as Horovod 0.19.5's allgather for MXNet gives the rank's own rows alone to who reads it.
    """
    rows = np.zeros((hvd.size(), len(values)))
    rows[hvd.rank()] = values
    total = hvd.allreduce(mx.nd.array(rows, dtype="float64"), average=False, name=name)
    found: List[List[float]] = total.asnumpy().tolist()
    return found


def sums(model: Any) -> List[float]:
    """Return the sum and the sum of squares of the weights, without the statistics of BatchNorm."""
    total, squares = 0.0, 0.0
    for parameter in model.collect_params().values():
        if parameter.grad_req != "null":
            numbers = parameter.list_data()[0].asnumpy().astype("float64")
            total, squares = total + numbers.sum(), squares + (numbers * numbers).sum()
    return [float(total), float(squares)]


def adapt(device: str) -> None:
    """Let the trainer run without DALI, and on CPUs if the case is for those.

    It imports DALI though its synthetic data need none, and names its devices mx.gpu.
    """
    dali = types.ModuleType("dali")
    dali.add_dali_args = lambda parser: None  # type: ignore[attr-defined]
    sys.modules["dali"] = dali
    if device == "cpu":
        mx.gpu = mx.cpu


def data(args: argparse.Namespace) -> Dict[str, Any]:
    """Return what the log says of the data; refuse the run where the trainer cannot use them."""
    if not args.data:
        return {"data": "synthetic-random"}
    try:
        found = record_files.describe(args.data)
        trainer_flags.check(args, args.devices, found["images"])
    except (labelled_images.ImageError, trainer_flags.FlagsError) as error:
        trainer_kit.refuse(error)
    return {"data": "records", **found}


def train_nvidia(args: argparse.Namespace, flags: List[str]) -> Any:
    """Do what the last lines of train.py do; return the model."""
    adapt(args.device)
    sys.argv = ["train.py", *flags]
    trainer = importlib.import_module("train")
    given = trainer.parse_args()
    trainer.setup_logging(given)
    model = trainer.models.get_model(**vars(given))
    trainer.fit.fit(given, model, trainer.data.get_data_loader(given))
    return model


def train(args: argparse.Namespace, images: int) -> Any:
    """Train with a file of so many images, or synthetic ones; return the model."""
    sys.path.insert(0, args.source)
    machine = (hvd.local_size(), len(os.sched_getaffinity(0)))
    if args.trainer == "nvidia":
        return train_nvidia(args, trainer_flags.nvidia(args, hvd.rank(), hvd.size(), *machine))
    return gluoncv_trainer.train(args, trainer_flags.gluoncv(args, images, hvd.size(), *machine), say)


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    args = arguments()
    operation = backend.backend(args.device, backend.operations(hvd))
    about = data(args)
    hvd.init()
    rank, world = hvd.rank(), hvd.size()
    if world != args.devices:
        sys.exit(
            "Horovod sees %d processes, the run has %d: start it with the mpirun that Horovod was built with"
            % (world, args.devices)
        )
    first = rank % args.devices_per_node == 0
    # Each rank counts for its node.
    nodes = len({row[0] for row in gathered([float(os.environ["TASK_INDEX"])], "scalebook_nodes")})
    if first:
        node_rank = rank // args.devices_per_node
        say(world_size=world, nodes=nodes, node_rank=node_rank, backend=operation)
        built = "+".join(backend.operations(hvd))
        say(trainer=args.trainer, horovod=horovod.__version__, built=built, mxnet=mx.__version__)
        say(dtype=args.dtype, device=args.device, **about)
    else:
        logging.disable(logging.INFO)
    model = train(args, about.get("images", 0))
    found = gathered(sums(model), "scalebook_weights")
    if not all(math.isfinite(value) for value in found[0]):
        sys.exit("the weights are not finite: %s" % found[0])
    if any(values != found[0] for values in found):
        sys.exit("the ranks hold different weights: the gradients were not summed: %s" % found)
    if first:
        say(steps_done=args.steps)
        say(weights_sum="%.9e" % found[0][0], weights_sum_of_squares="%.9e" % found[0][1])
        say(weights="agree", end="true")


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        # Horovod would wait for the other ranks, which wait for this one.
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
