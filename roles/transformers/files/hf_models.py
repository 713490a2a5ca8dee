# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Models of Transformers that are made from a configuration, so that nothing is downloaded."""

from typing import Any

import torch


def count(model: torch.nn.Module) -> int:
    """Return the number of parameters of a model; shared parameters count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def checkpoints(model: torch.nn.Module) -> bool:
    """Return whether the layers of a model compute again in the backward pass."""
    return any(getattr(module, "gradient_checkpointing", False) for module in model.modules())


def make(name: str, kind: Any, configuration: Any, parameters: int, device: str, checkpointing: bool) -> Any:
    """Return a new model, with gradient checkpointing of its layers if asked for.

    Raise RuntimeError if its number of parameters is not the expected one, or it cannot checkpoint.
    """
    with torch.device(device):
        model = kind(configuration)
    if count(model) != parameters:
        raise RuntimeError("%s has %d parameters, must have %d" % (name, count(model), parameters))
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
