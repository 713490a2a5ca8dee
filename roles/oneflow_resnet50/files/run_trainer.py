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
import traceback
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before oneflow is imported, which takes seconds.
trainer_kit.die_with_parent()

import oneflow as flow  # noqa: E402
import trainer_flags  # noqa: E402

say = trainer_kit.Say("ONEFLOW_RESNET50")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument("--trainer", required=True, help="directory of train.py")
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--mode", choices=["eager", "graph"], required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    return parser.parse_args()


def gathered(values: List[float], world: int) -> List[List[float]]:
    """Return a list of every rank's `values`, in the order of the ranks."""
    if world == 1:
        return [values]
    rows = flow.zeros(world, len(values), dtype=flow.float64)
    rows[flow.env.get_rank()] = flow.tensor(values, dtype=flow.float64)
    everywhere = flow.placement.all("cpu")
    total = rows.to_global(placement=everywhere, sbp=flow.sbp.partial_sum)
    found: List[List[float]] = total.to_global(sbp=flow.sbp.broadcast).to_local().numpy().tolist()
    return found


def sums(model: Any) -> List[float]:
    """Return the sum and the sum of squares of the weights, without the statistics of BatchNorm."""
    total, squares = 0.0, 0.0
    for parameter in model.parameters():
        local = parameter.to_local() if parameter.is_global else parameter
        numbers = local.detach().numpy().astype("float64")
        total, squares = total + numbers.sum(), squares + (numbers * numbers).sum()
    return [float(total), float(squares)]


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    args = arguments()
    rank, world = flow.env.get_rank(), flow.env.get_world_size()
    first = rank % args.devices_per_node == 0
    # Each rank counts for its node: a group that lacks a node's ranks has fewer.
    ranks = gathered([float(os.environ["TASK_INDEX"])], world)
    if first:
        nodes = len({row[0] for row in ranks})
        say(world_size=world, nodes=nodes, node_rank=rank // args.devices_per_node, oneflow=flow.__version__)
        say(dtype=args.dtype, mode=args.mode, device=args.device, data="synthetic-random")
    sys.path.insert(0, args.trainer)
    sys.argv = ["train.py", *trainer_flags.flags(args, world)]
    trainer = importlib.import_module("train").Trainer()
    trainer()
    found = gathered(sums(trainer.model), world)
    if any(values != found[0] for values in found):
        sys.exit("the ranks hold different weights: the gradients were not summed: %s" % found)
    if first:
        say(steps_done=trainer.cur_batch)
        say(weights_sum="%.9e" % found[0][0], weights_sum_of_squares="%.9e" % found[0][1])
        say(weights="agree", end="true")


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        # OneFlow would wait for the other ranks, which wait for this one.
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
