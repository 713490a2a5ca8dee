# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command line of run_pretraining.py of Oneflow-Inc/models for a case.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import argparse
from typing import List

import bert_sizes

HEAD = 64  # the trainer's width of a head: the number of heads decides the width of the model


def parts(world: int) -> int:
    """Return the number of data files: as many for every rank, and four at least, which its test set has."""
    return world * -(-4 // world)


def flags(args: argparse.Namespace, world: int, data: str) -> List[str]:
    """Return the command line of run_pretraining.py for a case, with the data set in `data`."""
    model = bert_sizes.MODELS[args.model]
    words = ["--use_consistent", "--ofrecord_path", data, "--train-data-part", str(parts(world))]
    words += ["--train-batch-size", str(args.batch), "--epochs", "1", "--loss_print_every_n_iters", "1"]
    # The trainer has no number of steps: an epoch has as many as its data set has batches.
    words += ["--train-dataset-size", str(args.steps * args.batch * world)]
    words += ["--num_hidden_layers", str(model["layers"])]
    words += ["--num_attention_heads", str(model["hidden"] // HEAD)]
    words += ["--vocab_size", str(model["vocabulary"])]
    words += ["--max_position_embeddings", str(bert_sizes.POSITIONS)]
    words += ["--type_vocab_size", str(bert_sizes.SEGMENTS)]
    words += ["--seq_length", str(args.seq_length), "--max_predictions_per_seq", str(args.predictions)]
    words += ["--hidden_dropout_prob", repr(args.dropout)]
    words += ["--attention_probs_dropout_prob", repr(args.dropout)]
    words += ["--optim_name", "adamw", "--lr", repr(args.learning_rate)]
    if args.dtype == "fp16":
        words += ["--use_fp16"]
    return words
