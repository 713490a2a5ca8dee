# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The models by name, with their configurations written out, so that nothing is downloaded."""

from typing import Any

import torch
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


def count(model: torch.nn.Module) -> int:
    """Return the number of parameters of a model; shared parameters count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def checkpoints(model: torch.nn.Module) -> bool:
    """Return whether the layers of a model compute again in the backward pass."""
    return any(getattr(module, "gradient_checkpointing", False) for module in model.modules())


def make(name: str, device: str = "cpu", checkpointing: bool = False) -> Any:
    """Return a new model, with gradient checkpointing of its layers if asked for.

    Raise RuntimeError if its number of parameters is not the expected one, or it cannot checkpoint.
    """
    kind, configuration, wanted = MODELS[name]
    with torch.device(device):
        model = kind(configuration)
    if count(model) != wanted:
        raise RuntimeError("%s has %d parameters, must have %d" % (name, count(model), wanted))
    if checkpointing:
        # The name since transformers 5.23; the older one is deprecated.
        names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")
        enable = next(getattr(model, name) for name in names if hasattr(model, name))
        enable({"use_reentrant": False})
        if not checkpoints(model):
            raise RuntimeError("%s has no gradient checkpointing" % type(model).__name__)
    # The loss is the mean of a batch. With this setting, Trainer divides it by the accumulation, as it must.
    model.accepts_loss_kwargs = False
    return model


def check() -> None:
    """Make the models without their weights. Raise RuntimeError if one has not its number of parameters."""
    for name in MODELS:
        make(name, "meta")
