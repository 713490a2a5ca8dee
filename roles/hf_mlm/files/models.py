# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The models by name, with their configurations written out, so that nothing is downloaded."""

from typing import Any

import hf_models
from transformers import BertConfig, BertForMaskedLM, DebertaV2Config, DebertaV2ForMaskedLM

# The settings of microsoft/deberta-v3-base; `tiny` is a small model with the same settings.
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
"""Name: (class, configuration, number of parameters including the head for masked language modeling)."""


def config(name: str) -> Any:
    """Return the configuration of a model."""
    return MODELS[name][1]


def make(name: str, device: str = "cpu", checkpointing: bool = False) -> Any:
    """Return a new model, with gradient checkpointing of its layers if asked for."""
    return hf_models.make(name, *MODELS[name], device, checkpointing)


def check() -> None:
    """Make the models without their weights. Raise RuntimeError if one has not its number of parameters."""
    for name in MODELS:
        make(name, "meta")
