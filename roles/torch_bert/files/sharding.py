# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One model split over several devices by torch's fully_shard (FSDP2), as ZeRO-2 does it.

Under DDP every device gets the sum of all gradients and updates all weights. Here it gets the sum of its
share, updates that, and the weights are gathered before the next step in the dtype of the computation: with
16 bits three quarters of what DDP moves, and an optimizer step that is shorter the more devices there are.
Biases, norms and embeddings, too, are then of 16 bits in the computation; under DDP they are fp32.
"""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def groups(layers, megabytes):
    """`layers` in lists of neighbours whose fp32 gradients are `megabytes` or more together."""
    whole, part, size = [], [], 0
    for layer in layers:
        part.append(layer)
        size += 4 * sum(parameter.numel() for parameter in layer.parameters())
        if size >= megabytes << 20:
            whole.append(part)
            part, size = [], 0
    return whole + ([part] if part else [])


def shard(model, dtype, megabytes):
    """Split the weights of a model.Bert over all ranks, in place; before its optimizer is made.

    Layers are gathered and their gradients summed a group at a time, the rest (embeddings and heads, which
    share the words) together. Gradients are summed in fp32. What a step has gathered it keeps until its end.
    """
    narrow = None if dtype == torch.float32 else dtype
    policy = MixedPrecisionPolicy(param_dtype=narrow, reduce_dtype=torch.float32)
    for group in groups(model.layers, megabytes):
        fully_shard(group, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mp_policy=policy, reshard_after_forward=False)


def once(model, device):
    """Whether all ranks together hold every weight once: the model was really split among them."""
    parameters = list(model.parameters())
    held = torch.tensor([sum(p.to_local().numel() for p in parameters)], device=device)
    dist.all_reduce(held)
    return held.item() == sum(p.numel() for p in parameters)
