# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Attention: torch's own (SDPA), or one kernel a head for short sequences (Triton).

Both take qkv [batch, seq, 3 x hidden], lengths int32 [batch] (tokens that are no padding; None: all are), two
int32 keys, the number of heads and the dropout probability, and give back [batch, seq, hidden].
"""

import torch
import torch.nn.functional as functional
from model import Layer, split_heads


def sdpa(qkv, lengths, keys, heads, probability):
    """torch's scaled_dot_product_attention, which chooses among flash, memory-efficient, cuDNN and plain."""
    query, key, value = split_heads(qkv, heads)
    mask = None
    if lengths is not None:
        mask = (torch.arange(qkv.shape[1], device=qkv.device) < lengths.unsqueeze(1))[:, None, None, :]
    context = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=probability
    )
    return context.transpose(1, 2).reshape(qkv.shape[0], qkv.shape[1], -1)


def choose(name, device, dtype, seq, head):
    """The function for a name: sdpa, short, or auto (short where it runs: GPU, 16 bits, up to 128 tokens)."""
    fits = (
        device == "gpu"
        and dtype in (torch.bfloat16, torch.float16)
        and seq in (16, 32, 64, 128)
        and head in (16, 32, 64, 128)
    )
    if name == "sdpa" or (name == "auto" and not fits):
        return sdpa
    if not fits:
        raise ValueError("attention=short needs a GPU, bf16 or fp16, and a power of two up to 128 tokens")
    from short_attention import attend  # needs Triton, which a CPU's torch lacks

    return attend


# Tokens of a micro-step from which on a fused layer's time is the device's, not that of the processor which
# starts its kernels (H200: 32,768 are faster fused, 8,192 are faster compiled).
FUSED_FROM = 24576


def layer(name, attend, tokens):
    """The kind of layer for a name: plain, fused, or auto (fused where it runs and has enough to do)."""
    fits = attend is not sdpa
    if name == "plain" or (name == "auto" and not (fits and tokens >= FUSED_FROM)):
        return Layer
    if not fits:
        raise ValueError(
            "layer=fused brings its attention: it runs where attention=short does, not with sdpa"
        )
    from fused import FusedLayer

    return FusedLayer
