# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Attention: PyTorch's own (SDPA), or a Triton kernel that computes one head of a short sequence.

Both functions take qkv [batch, seq, 3 x hidden], lengths int32 [batch] (number of tokens that are not
padding; None: no sample is padded), two int32 keys, the number of heads and the dropout probability. Both
return [batch, seq, hidden].
"""

from typing import Optional, Type

import torch
import torch.nn.functional as functional
from bert_model import Attention, Layer, split_heads


def sdpa(
    qkv: torch.Tensor, lengths: Optional[torch.Tensor], keys: torch.Tensor, heads: int, probability: float
) -> torch.Tensor:
    """Call scaled_dot_product_attention, which selects flash, memory-efficient, cuDNN or plain attention."""
    query, key, value = split_heads(qkv, heads)
    mask = None
    if lengths is not None:
        mask = (torch.arange(qkv.shape[1], device=qkv.device) < lengths.unsqueeze(1))[:, None, None, :]
    context = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=probability
    )
    return context.transpose(1, 2).reshape(qkv.shape[0], qkv.shape[1], -1)


def choose(name: str, device: str, dtype: torch.dtype, seq: int, head: int) -> Attention:
    """Return the function for a name: sdpa, short or auto.

    auto is short where that is supported (GPU, 16-bit dtype, up to 128 tokens), otherwise sdpa.
    """
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
    from short_attention import attend  # needs Triton, which PyTorch for CPUs does not include

    return attend


# With at least this many tokens per micro-step, the GPU limits the speed of a fused layer. With fewer, the
# CPU that launches the kernels does (H200: fused is faster with 32,768 tokens, compiled with 8,192).
FUSED_FROM = 24576


def layer(name: str, attend: Attention, tokens: int) -> Type[Layer]:
    """Return the class of layer for a name: plain, fused or auto.

    auto is fused where that is supported and a micro-step has at least FUSED_FROM tokens, otherwise plain.
    """
    fits = attend is not sdpa
    if name == "plain" or (name == "auto" and not (fits and tokens >= FUSED_FROM)):
        return Layer
    if not fits:
        raise ValueError(
            "layer=fused brings its attention: it runs where attention=short does, not with sdpa"
        )
    from bert_fused import FusedLayer

    return FusedLayer
