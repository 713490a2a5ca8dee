# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run the Wide & Deep of Oneflow-Inc/models, and print what it does not: world size, and equal weights.

One process per device, started by mpirun; the node script sets RANK, WORLD_SIZE and so on for OneFlow. The
lines for the reader begin with ONEFLOW_WIDE_DEEP; the lines of steps are the trainer's own.
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
import wide_deep_flags  # noqa: E402

say = trainer_kit.Say("ONEFLOW_WIDE_DEEP")


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    parser = oneflow_run.parser(wide_deep_flags.MODELS, ["fp32"])
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--print-every", type=int, required=True)
    args = parser.parse_args()
    first = oneflow_run.begin(say, args, args.dtype, model=args.model, data="synthetic-random")
    sys.path.insert(0, args.trainer)
    sys.argv = ["train.py", *wide_deep_flags.flags(args, flow.env.get_world_size())]
    trainer = importlib.import_module("train").Trainer()
    trainer()
    oneflow_run.end(say, first, trainer.wdl_module, trainer.cur_iter)


if __name__ == "__main__":
    trainer_kit.run(main)
