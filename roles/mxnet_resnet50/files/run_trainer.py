# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run NVIDIA's train.py, and print what it does not: world size, and whether the weights agree.

One process per device, started by mpirun. The lines for the reader begin with MXNET_RESNET50; the lines of
steps are those of the trainer, which every rank prints with the rate of all: those of the first rank of a
node are kept. The files of the trainer stay as they are. Runs on Python 3.7.
"""

import importlib
import os
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before MXNet is imported, which takes seconds.
trainer_kit.die_with_parent()

import horovod.mxnet as hvd  # noqa: E402
import mxnet as mx  # noqa: E402
import mxnet_run  # noqa: E402
import trainer_flags  # noqa: E402

say = trainer_kit.Say("MXNET_RESNET50")


def adapt(device: str) -> None:
    """Let the trainer run without DALI, and on CPUs if the case is for those.

    It imports DALI though its synthetic data need none, and names its devices mx.gpu.
    """
    dali = types.ModuleType("dali")
    dali.add_dali_args = lambda parser: None  # type: ignore[attr-defined]
    sys.modules["dali"] = dali
    if device == "cpu":
        mx.gpu = mx.cpu


def main() -> None:
    """Train, as the last lines of train.py do, compare the weights of all ranks and print the results."""
    args = mxnet_run.arguments()
    first = mxnet_run.begin(say, args, **mxnet_run.data(args, trainer_flags.check))
    adapt(args.device)
    sys.path.insert(0, args.source)
    sys.argv = ["train.py", *trainer_flags.flags(args, hvd.rank(), hvd.size(), *mxnet_run.machine())]
    trainer = importlib.import_module("train")
    parsed = trainer.parse_args()
    trainer.setup_logging(parsed)
    model = trainer.models.get_model(**vars(parsed))
    trainer.fit.fit(parsed, model, trainer.data.get_data_loader(parsed))
    mxnet_run.end(say, first, model, args.steps)


if __name__ == "__main__":
    trainer_kit.run(main)
