# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Llama 3 by size, with configurations written out, so that nothing is downloaded, and LoRA adapters."""

from typing import Any

import hf_models
import peft
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def llama(**sizes: Any) -> LlamaConfig:
    """Return a configuration of Llama 3; the embedding is not tied to the projection to the vocabulary."""
    return LlamaConfig(
        max_position_embeddings=131072,
        rope_theta=500000.0,
        use_cache=False,
        **{"vocab_size": 128256, **sizes},
    )


MODELS = {
    "tiny": (
        llama(
            hidden_size=256, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
            intermediate_size=768, vocab_size=2048,
        ),
        4_196_608,
    ),
    "1B": (
        llama(
            hidden_size=2048, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
            intermediate_size=8192,
        ),
        1_498_482_688,
    ),
    "3B": (
        llama(
            hidden_size=3072, num_hidden_layers=28, num_attention_heads=24, num_key_value_heads=8,
            intermediate_size=8192,
        ),
        3_606_752_256,
    ),
    "8B": (
        llama(
            hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
            intermediate_size=14336,
        ),
        8_030_261_248,
    ),
}  # fmt: skip
"""Name: (configuration, number of parameters without adapters)."""


def make(name: str, device: str = "cpu", checkpointing: bool = False) -> Any:
    """Return a new model, with gradient checkpointing of its layers if asked for."""
    configuration, parameters = MODELS[name]
    return hf_models.make(name, LlamaForCausalLM, configuration, parameters, device, checkpointing)


def adapt(model: Any, rank: int, frozen: torch.dtype) -> Any:
    """Return the model with LoRA adapters of all linear layers of its blocks; its weights become `frozen`."""
    adapted = peft.get_peft_model(
        model.to(frozen),
        peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    adapted.accepts_loss_kwargs = False
    return adapted


def rank(model: torch.nn.Module) -> int:
    """Return the rank of the adapters of a model, 0 where it has none."""
    return max((each.shape[0] for name, each in model.named_parameters() if "lora_A" in name), default=0)


def trained(model: torch.nn.Module) -> int:
    """Return the number of parameters that are trained."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def check() -> None:
    """Make the models without their weights. Raise RuntimeError if one has not its number of parameters."""
    for name in MODELS:
        make(name, "meta")
