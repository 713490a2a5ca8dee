# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run train.py of Oneflow-Inc/models, and print what it does not: world size, and whether the weights agree.

One process per device, started by mpirun; the node script sets RANK, WORLD_SIZE and so on for OneFlow. The
lines for the reader begin with ONEFLOW_RESNET50; the lines of steps are the trainer's own.
"""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before oneflow is imported, which takes seconds.
trainer_kit.die_with_parent()

import oneflow as flow  # noqa: E402
import oneflow_run  # noqa: E402
import trainer_flags  # noqa: E402

say = trainer_kit.Say("ONEFLOW_RESNET50")


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    args = oneflow_run.parser(["resnet50"], ["fp32", "fp16"]).parse_args()
    first = oneflow_run.begin(say, args, args.dtype, data="synthetic-random")
    sys.path.insert(0, args.trainer)
    sys.argv = ["train.py", *trainer_flags.flags(args, flow.env.get_world_size())]
    trainer = importlib.import_module("train").Trainer()
    trainer()
    oneflow_run.end(say, first, trainer.model, trainer.cur_batch)


if __name__ == "__main__":
    oneflow_run.run(main)
