# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The two configuration files and the command line of bing_bert's deepspeed_train.py.

The values are DLPerf's (branch dev_deepspeed_bert, DeepSpeed/scripts/multi_node_train.sh): Adam without bias
correction, clipping at 1, schedule EP with an offset of 1e-3, one line per step, and gradients that are
summed after 1024 batches of all devices together. Python 3.6 or newer.
"""

import argparse
from typing import Any, Dict, List

POSITIONS = 512
NAMES = {"base": "bert-base-uncased", "large": "bert-large-uncased"}
"""Vocabularies that bing_bert knows by name; those of other models are given as a path."""
DLPERF_BATCHES = 1024
"""Batches of all devices together in one step of the optimizer, in DLPerf's measurements."""


def batches_per_sum(summed: str, devices: int) -> int:
    """Return after how many batches of a device gradients are summed; `summed` is each or dlperf."""
    return max(1, DLPERF_BATCHES // devices) if summed == "dlperf" else 1


def model(args: argparse.Namespace, size: Dict[str, int]) -> Dict[str, Any]:
    """Return bing_bert's config file: the model, its data and its schedule.

    The vocabulary's size is that of the file; the number of epochs ends the run.
    """
    length = str(args.length)
    return {
        "name": "bing_bert_%s_seq" % args.model,
        "bert_token_file": NAMES.get(args.model, "%s/bert-%s-vocab.txt" % (args.vocabulary, args.model)),
        "bert_model_file": NAMES.get(args.model, "bert-" + args.model),
        "bert_model_config": {
            "vocab_size_or_config_json_file": size["vocabulary"],
            "hidden_size": size["hidden"],
            "num_hidden_layers": size["layers"],
            "num_attention_heads": size["heads"],
            "intermediate_size": size["intermediate"],
            "hidden_act": "gelu",
            "hidden_dropout_prob": args.dropout,
            "attention_probs_dropout_prob": args.dropout,
            "max_position_embeddings": POSITIONS,
            "type_vocab_size": 2,
            "initializer_range": 0.02,
        },
        "data": {
            "flags": {"pretrain_dataset": True, "pretrain_type": "wiki_bc"},
            "mixed_seq_datasets": {length: {"pretrain_dataset": str(size["vocabulary"])}},
        },
        "mixed_seq_training": {
            length: {
                "num_epochs": 1,
                "warmup_proportion": 0.1,
                "learning_rate": 4e-4,
                "num_workers": args.workers,
                "async_worker": True,
                "decay_rate": 0.99,
                "decay_step": 520,
                "total_training_steps": 125000,
            }
        },
        "validation": {"path": "validation_set/"},
    }


def deepspeed(args: argparse.Namespace) -> Dict[str, Any]:
    """Return DeepSpeed's own configuration."""
    batches = batches_per_sum(args.summed, args.devices)
    return {
        "train_batch_size": args.batch * args.devices * batches,
        "train_micro_batch_size_per_gpu": args.batch,
        "gradient_accumulation_steps": batches,
        "steps_per_print": 1,
        "prescale_gradients": False,
        "optimizer": {
            "type": "Adam",
            "params": {"lr": args.learning_rate, "weight_decay": 0.01, "bias_correction": False},
        },
        "gradient_clipping": args.clip,
        "wall_clock_breakdown": False,
        "fp16": {"enabled": args.dtype == "fp16", "loss_scale": 0},
    }


def flags(args: argparse.Namespace, folder: str) -> List[str]:
    """Return deepspeed_train.py's own command line; `folder` holds config.json and deepspeed.json."""
    return [
        "--local_rank=%d" % args.local_rank,
        "--cf=%s/config.json" % folder,
        "--output_dir=%s/output" % folder,
        "--deepspeed",
        "--deepspeed_config=%s/deepspeed.json" % folder,
        "--data_path_prefix=" + args.data,
        "--use_nvidia_dataset",
        "--max_seq_length=%d" % args.length,
        "--max_predictions_per_seq=%d" % args.predictions,
        "--print_steps=1",
        "--lr_schedule=EP",
        "--lr_offset=10e-4",
        "--seed=%d" % args.seed,
        # Micro-steps, because of bing_bert_patch; the run ends after one epoch.
        "--max_steps_per_epoch=%d" % args.steps,
        # No checkpoint: epochs are counted from 1.
        "--ckpt_to_save=0",
    ]
