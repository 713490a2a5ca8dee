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


def flops_per_sample(name, length):
    """Floating point operations of a sample of `length` words, forward and backward: 3 x the forward ones.

    A product of [m, k] and [k, n] counts 2mkn. Per layer and word 8h^2 (query, key, value, output) and 4hi
    (feed-forward); attention 4 s^2 h, and with relative positions 4 s r h more (words with the r rows of the
    position table, both ways; He et al. 2021, DeBERTa). The head is given every word: 2h^2 + 2hv. The table's
    own projections are done once for a batch and count nothing, nor do norms, biases, softmax and optimizer.
    """
    shape = config(name)
    h, i, v = shape.hidden_size, shape.intermediate_size, shape.vocab_size
    rows = 2 * shape.position_buckets if getattr(shape, "relative_attention", False) else 0
    layer = length * (8 * h * h + 4 * h * i) + 4 * length * (length + rows) * h
    return 3 * (shape.num_hidden_layers * layer + length * (2 * h * h + 2 * h * v))


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
