# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run train.py of Oneflow-Inc/models, and print what it does not: world size, and whether the weights agree.

One process per device, started by mpirun; the node script sets RANK, WORLD_SIZE and so on for OneFlow. The
lines for the reader begin with ONEFLOW_RESNET50; the lines of steps are the trainer's own.
"""

import argparse
import importlib
import os
import sys
from typing import Any, Dict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before oneflow is imported, which takes seconds.
trainer_kit.die_with_parent()

import labelled_images  # noqa: E402
import ofrecord_files  # noqa: E402
import oneflow as flow  # noqa: E402
import oneflow_run  # noqa: E402
import trainer_flags  # noqa: E402

say = trainer_kit.Say("ONEFLOW_RESNET50")

DTYPES = {flow.float32: "fp32", flow.float16: "fp16"}


def data(args: argparse.Namespace, world: int) -> Dict[str, Any]:
    """Return what the log says of the data; refuse the run where the trainer cannot use them."""
    if not args.data:
        return {"data": "synthetic-random"}
    try:
        description = ofrecord_files.describe(args.data)
        ofrecord_files.check_enough(args.data, world, args.batch)
    except labelled_images.ImageError as error:
        trainer_kit.refuse(error)
    return {"data": "records", **description}


def precision(trainer: Any, device: str) -> str:
    """Return the dtype that products have in the trainer's graph, or without one.

    Without a graph there is no automatic mixed precision: products have the dtype of the weights.
    """
    if trainer.graph:
        return oneflow_run.product_dtype(trainer.train_graph, device)
    return DTYPES[next(iter(trainer.model.parameters())).dtype]


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    parser = oneflow_run.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument(
        "--data", required=True, help="directory of files of records, or nothing for synthetic data"
    )
    args = parser.parse_args()
    world = flow.env.get_world_size()
    about = data(args, world)
    sys.path.insert(0, args.trainer)
    sys.argv = ["train.py", *trainer_flags.flags(args, world, about.get("files", 0))]
    trainer = importlib.import_module("train").Trainer()
    first = oneflow_run.begin(say, args, precision(trainer, args.device), **about)
    if first:
        say(lr="%.6f" % trainer.optimizer.param_groups[0]["lr"])
    trainer()
    oneflow_run.end(say, first, trainer.model, trainer.cur_batch)


if __name__ == "__main__":
    trainer_kit.run(main)
