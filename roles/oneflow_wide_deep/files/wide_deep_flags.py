# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of train.py of Wide & Deep of Oneflow-Inc/models for a case.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import argparse
from typing import List

# The synthetic fields have values below 256. base is the model of the trainer's own scripts: the vocabulary
# is that of Criteo's logs, the sizes are the defaults of config.py.
MODELS = {
    "tiny": {"vocabulary": 3200, "vector": 16, "hidden": 64, "layers": 2},
    "base": {"vocabulary": 2322444, "vector": 16, "hidden": 1024, "layers": 7},
}


def flags(args: argparse.Namespace, world: int) -> List[str]:
    """Return the command line of train.py for a case."""
    model = MODELS[args.model]
    vocabulary = str(model["vocabulary"])
    words = ["--dataset_format", "synthetic", "--execution_mode", args.mode]
    # The trainer's batch is that of all ranks.
    words += ["--batch_size", str(args.batch * world), "--max_iter", str(args.steps)]
    words += ["--loss_print_every_n_iter", str(args.print_every), "--eval_interval", "0"]
    words += ["--model_save_dir", "", "--learning_rate", repr(args.learning_rate)]
    words += ["--wide_vocab_size", vocabulary, "--deep_vocab_size", vocabulary]
    words += ["--deep_embedding_vec_size", str(model["vector"]), "--deep_dropout_rate", repr(args.dropout)]
    words += ["--hidden_size", str(model["hidden"]), "--hidden_units_num", str(model["layers"])]
    # Without it the ranks split the embedding tables between them instead of training copies of the model.
    if args.mode == "eager" and world > 1:
        words += ["--ddp"]
    return words
