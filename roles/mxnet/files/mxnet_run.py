# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the workloads with trainers for MXNet have in common: their data, who takes part, and equal weights.

The trainers print none of it. Import it after trainer_kit.die_with_parent(): MXNet takes seconds to import.
Runs on Python 3.7.
"""

import argparse
import logging
import os
import sys
from typing import Any, Callable, Dict, List, Tuple

import backend
import horovod
import horovod.mxnet as hvd
import labelled_images
import mxnet as mx
import numpy as np
import record_files
import trainer_kit


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument("--source", required=True, help="directory of the trainer")
    parser.add_argument("--data", required=True, help="file of records, or nothing for synthetic data")
    parser.add_argument("--devices", type=int, required=True, help="number of processes of the run")
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--image-size", type=int, required=True, help="width and height of an image")
    parser.add_argument("--learning-rate", type=float, required=True)
    return parser.parse_args()


def data(args: argparse.Namespace, check: Callable[[argparse.Namespace, int, int], None]) -> Dict[str, Any]:
    """Return what the log says of the data; refuse the run where the trainer cannot use them.

    `check` raises ImageError where a number of images is too small for a number of processes.
    """
    if not args.data:
        return {"data": "synthetic-random"}
    try:
        about = record_files.describe(args.data)
        check(args, args.devices, about["images"])
    except labelled_images.ImageError as error:
        trainer_kit.refuse(error)
    return {"data": "records", **about}


def gathered(values: List[float], name: str) -> List[List[float]]:
    """Return a list of every rank's `values`, in the order of the ranks.

    A sum of rows, as Horovod 0.19.5's allgather for MXNet gives the rank's own rows alone to who reads it.
    """
    rows = np.zeros((hvd.size(), len(values)))
    rows[hvd.rank()] = values
    total = hvd.allreduce(mx.nd.array(rows, dtype="float64"), average=False, name=name)
    ranks: List[List[float]] = total.asnumpy().tolist()
    return ranks


def sums(model: Any) -> List[float]:
    """Return the sum and the sum of squares of the weights, without the statistics of BatchNorm."""
    trained = (each for each in model.collect_params().values() if each.grad_req != "null")
    return trainer_kit.sums(each.list_data()[0].asnumpy().astype("float64") for each in trained)


def begin(say: trainer_kit.Say, args: argparse.Namespace, **about: Any) -> bool:
    """Join all processes, print who takes part and `about` the data; return whether this rank prints.

    That is the first one of each node, which also prints what the trainer logs.
    """
    operation = backend.backend(args.device, backend.operations(hvd))
    hvd.init()
    rank, world = hvd.rank(), hvd.size()
    if world != args.devices:
        sys.exit(
            "Horovod sees %d processes, the run has %d: start it with the mpirun that Horovod was built with"
            % (world, args.devices)
        )
    # Each rank counts for its node.
    nodes = len({row[0] for row in gathered([float(os.environ["TASK_INDEX"])], "scalebook_nodes")})
    if rank % args.devices_per_node:
        logging.disable(logging.INFO)
        return False
    say(world_size=world, nodes=nodes, node_rank=rank // args.devices_per_node, backend=operation)
    operations = "+".join(backend.operations(hvd))
    say(horovod=horovod.__version__, built=operations, mxnet=mx.__version__)
    say(dtype=args.dtype, device=args.device, **about)
    return True


def machine() -> Tuple[int, int]:
    """Return the number of processes on this machine, and of cores that they share."""
    return hvd.local_size(), len(os.sched_getaffinity(0))


def end(say: trainer_kit.Say, first: bool, model: Any, steps: int) -> None:
    """Compare the weights of all ranks and print that they agree; exit where they do not."""
    trainer_kit.finish(say, first, gathered(sums(model), "scalebook_weights"), steps)
