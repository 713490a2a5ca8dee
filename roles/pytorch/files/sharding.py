# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Split one model over several devices with PyTorch's fully_shard (FSDP2), in the way of ZeRO-2 or ZeRO-3.

With DDP every device receives the sum of all gradients and updates all weights. With FSDP it receives the sum
of its share and updates that share. The weights are gathered before the next step, in the dtype of the
computation. With a 16-bit dtype this moves three quarters of the data that DDP moves, and the optimizer step
gets shorter the more devices there are. Biases, norms and embeddings are then 16-bit in the computation too;
with DDP they are fp32.
"""

from typing import Any, Iterable, List

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def groups(layers: Iterable[Any], megabytes: int) -> List[List[Any]]:
    """Return `layers` in lists of neighbours, each list with at least `megabytes` of fp32 gradients."""
    whole: List[List[Any]] = []
    part: List[Any] = []
    size = 0
    for layer in layers:
        part.append(layer)
        size += 4 * sum(parameter.numel() for parameter in layer.parameters())
        if size >= megabytes << 20:
            whole.append(part)
            part, size = [], 0
    return whole + ([part] if part else [])


def shard(model: Any, dtype: torch.dtype, megabytes: int, keep: bool = True) -> None:
    """Split the weights of a model with `layers` over all ranks, in place, before its optimizer is created.

    Layers are gathered, and their gradients summed, one group at a time. The rest (embeddings and heads,
    which share the word embedding) is one more group. Gradients are summed in fp32. With `keep`, gathered
    weights stay until the end of the step (ZeRO-2), else those of layers are gathered again for the backward
    pass (ZeRO-3).
    """
    narrow = None if dtype == torch.float32 else dtype
    policy = MixedPrecisionPolicy(param_dtype=narrow, reduce_dtype=torch.float32)
    for group in groups(model.layers, megabytes):
        fully_shard(group, mp_policy=policy, reshard_after_forward=not keep)
    fully_shard(model, mp_policy=policy, reshard_after_forward=False)


def once(model: torch.nn.Module, device: torch.device) -> bool:
    """Return whether all ranks together hold every weight once, so that the model is really split."""
    parameters = list(model.parameters())
    held = torch.tensor([sum(p.to_local().numel() for p in parameters)], device=device)
    dist.all_reduce(held)
    return bool(held.item() == sum(p.numel() for p in parameters))
