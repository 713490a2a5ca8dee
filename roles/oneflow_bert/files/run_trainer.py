# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run run_pretraining.py of Oneflow-Inc/models, and print what it does not: world size, and equal weights.

One process per device, started by mpirun; the node script sets RANK, WORLD_SIZE and so on for OneFlow. The
lines for the reader begin with ONEFLOW_BERT; the lines of steps are the trainer's own.
"""

import importlib
import os
import sys
from typing import Any, Callable, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before oneflow is imported, which takes seconds.
trainer_kit.die_with_parent()

import bert_data  # noqa: E402
import bert_flags  # noqa: E402
import bert_sizes  # noqa: E402
import oneflow as flow  # noqa: E402
import oneflow_run  # noqa: E402

say = trainer_kit.Say("ONEFLOW_BERT")


def before_first_step(trainer: Any, begin: Callable[[Any], None]) -> None:
    """Have the trainer call `begin` with its graph before it takes the first step."""
    pretrain = trainer.pretrain

    def first(graph: Any, *others: Any) -> Any:
        trainer.pretrain = pretrain
        begin(graph)
        return pretrain(graph, *others)

    trainer.pretrain = first


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    parser = oneflow_run.parser(bert_sizes.MODELS, ["fp32", "fp16"])
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--seq-length", type=int, required=True)
    parser.add_argument("--predictions", type=int, required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--data", required=True, help="directory to make the data set in")
    parser.add_argument("--hdf5", default="", help="HDF5 files of samples; words are random without them")
    parser.add_argument("--text", default="", help="what they were made of, for the log")
    args = parser.parse_args()
    world = flow.env.get_world_size()
    model = bert_sizes.MODELS[args.model]
    if args.hdf5:
        samples = bert_data.of_texts(args.hdf5, args.samples, model["vocabulary"])
    else:
        sizes = (args.seq_length, args.predictions, model["vocabulary"])
        samples = bert_data.invented(args.samples, args.seed, *sizes)
    bert_data.write(args.data, bert_flags.parts(world), samples)
    sys.path.insert(0, args.trainer)
    sys.argv = ["run_pretraining.py", *bert_flags.flags(args, world, args.data)]
    trainer: Any = importlib.import_module("run_pretraining")
    first: List[bool] = []
    trained: List[Any] = []

    def begin(graph: Any) -> None:
        dtype = oneflow_run.product_dtype(graph, args.device)
        about = {"model": args.model, "data": "texts" if args.hdf5 else "synthetic-random", "text": args.text}
        first.append(oneflow_run.begin(say, args, dtype, **about))
        if first[0]:
            say(batch=args.batch, global_batch=args.batch * world, seq_length=args.seq_length)

    before_first_step(trainer, begin)
    # After the last step the trainer evaluates and fails: it leaves out the positions of the masked words.
    trainer.validation = lambda *_: 0.0
    trainer.save_model = lambda model, *_: trained.append(model)
    trainer.main()
    oneflow_run.end(say, first[0], trained[0], args.steps)


if __name__ == "__main__":
    trainer_kit.run(main)
