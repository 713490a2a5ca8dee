# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The models by name: transformers' configurations, written out so that nothing is fetched."""

import torch
from transformers import BertConfig, BertForMaskedLM, DebertaV2Config, DebertaV2ForMaskedLM

# As microsoft/deberta-v3-base has it; `tiny` is the same in small.
DEBERTA = {
    "relative_attention": True,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "max_relative_positions": -1,
    "position_biased_input": False,
    "type_vocab_size": 0,
}

MODELS = {
    "tiny": (
        DebertaV2ForMaskedLM,
        DebertaV2Config(
            vocab_size=1024, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=256, position_buckets=16, max_position_embeddings=32, **DEBERTA,
        ),
        173_120,
    ),
    "bert-base": (BertForMaskedLM, BertConfig(), 109_514_298),
    "deberta-v3-base": (
        DebertaV2ForMaskedLM,
        DebertaV2Config(
            vocab_size=128100, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
            intermediate_size=3072, position_buckets=256, **DEBERTA,
        ),
        184_551_780,
    ),
}  # fmt: skip
"""Name: (class, configuration, parameters with the masked language model's head)."""


def config(name):
    """Return the configuration of a model."""
    return MODELS[name][1]


def count(model):
    """Return how many parameters a model has, shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


def make(name, device="cpu"):
    """Return a new model; raises RuntimeError where transformers builds another one than was meant."""
    kind, configuration, wanted = MODELS[name]
    with torch.device(device):
        model = kind(configuration)
    if count(model) != wanted:
        raise RuntimeError("%s has %d parameters, must have %d" % (name, count(model), wanted))
    # The loss is the mean of a batch: Trainer has to divide it by the accumulation, and does so if told.
    model.accepts_loss_kwargs = False
    return model
