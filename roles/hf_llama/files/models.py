# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Llama 3 of the sizes of a case, so that nothing is downloaded, and LoRA adapters."""

from typing import Any, Dict

import hf_models
import peft
import torch
from transformers import LlamaConfig, LlamaForCausalLM

PROBED = {"hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "intermediate": 128, "vocabulary": 256}


def parameters(size: Dict[str, int]) -> int:
    """Return the number of parameters of a model of these sizes, without adapters."""
    hidden, keys = size["hidden"], size["hidden"] * size["kv_heads"] // size["heads"]
    layer = 2 * hidden * (hidden + keys) + 3 * hidden * size["intermediate"] + 2 * hidden
    return 2 * size["vocabulary"] * hidden + size["layers"] * layer + hidden


def make(name: str, size: Dict[str, int], device: str = "cpu", checkpointing: bool = False) -> Any:
    """Return a new model, with gradient checkpointing of its layers if asked for.

    The embedding is not tied to the projection to the vocabulary.
    """
    configuration = LlamaConfig(
        hidden_size=size["hidden"],
        num_hidden_layers=size["layers"],
        num_attention_heads=size["heads"],
        num_key_value_heads=size["kv_heads"],
        intermediate_size=size["intermediate"],
        vocab_size=size["vocabulary"],
        max_position_embeddings=131072,
        rope_theta=500000.0,
        use_cache=False,
    )
    expected = parameters(size)
    return hf_models.make(name, LlamaForCausalLM, configuration, expected, device, checkpointing)


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
    """Make a small model without weights. Raise RuntimeError if it has not its number of parameters."""
    make("the model of the probe", PROBED, "meta")
