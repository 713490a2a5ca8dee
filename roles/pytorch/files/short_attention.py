# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Attention for sequences that fit one tile: one Triton program computes a whole head, forward or backward.

With 128 tokens, general flash attention spends its time on work that only long sequences need: two backward
passes, partial sums, copies of query, key and value from the packed tensor. These kernels read the packed
tensor and write its gradient directly. They keep only the input for the backward pass, which computes the
softmax again and derives the dropout mask from a hash of position and keys.
"""

from typing import Any, Optional, Tuple

import torch
import triton
import triton.language as tl

# The parameters of kernels have no Python types: Triton evaluates annotations itself.


@triton.jit
def _mix(x):  # type: ignore[no-untyped-def]
    """Return the hash lowbias32 of uint32 values."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _weights(  # type: ignore[no-untyped-def]
    query, key, length, seed, program, scale, threshold: tl.constexpr, seq: tl.constexpr
):
    """Return the softmax of one head [seq, seq] in fp32, and which weights dropout keeps."""
    rows = tl.arange(0, seq)
    scores = tl.dot(query, tl.trans(key)) * (scale * 1.4426950408889634)
    scores = tl.where(rows[None, :] < length, scores, float("-inf"))
    weights = tl.exp2(scores - tl.max(scores, 1)[:, None])
    weights = weights / tl.sum(weights, 1)[:, None]
    # Hash rows and columns separately, then mix each pair with one more round: a third of a full hash's cost.
    row = _mix((program * seq + rows).to(tl.uint32) ^ tl.load(seed).to(tl.uint32, bitcast=True))
    column = _mix(rows.to(tl.uint32) + tl.load(seed + 1).to(tl.uint32, bitcast=True))
    x = row[:, None] ^ column[None, :]
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = x ^ (x >> 15)
    return weights, (x & 0x7FFFFFFF) >= threshold


@triton.jit
def _attention_forward(  # type: ignore[no-untyped-def]
    qkv, lengths, seed, out, heads, scale, inverse,
    threshold: tl.constexpr, padded: tl.constexpr, seq: tl.constexpr, head: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    sample = (program // heads).to(tl.int64)
    hidden = heads * head
    rows = tl.arange(0, seq)[:, None]
    columns = tl.arange(0, head)[None, :] + (program % heads) * head
    source = qkv + sample * seq * 3 * hidden + rows * 3 * hidden + columns
    query = tl.load(source)
    key = tl.load(source + hidden)
    value = tl.load(source + 2 * hidden)
    length = seq
    if padded:
        length = tl.load(lengths + sample)
    weights, keep = _weights(query, key, length, seed, program, scale, threshold, seq)
    if threshold > 0:
        weights = tl.where(keep, weights * inverse, 0.0)
    context = tl.dot(weights.to(query.dtype), value)
    tl.store(out + sample * seq * hidden + rows * hidden + columns, context.to(query.dtype))


@triton.jit
def _attention_backward(  # type: ignore[no-untyped-def]
    qkv, lengths, seed, grad, out, heads, scale, inverse,
    threshold: tl.constexpr, padded: tl.constexpr, seq: tl.constexpr, head: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    sample = (program // heads).to(tl.int64)
    hidden = heads * head
    rows = tl.arange(0, seq)[:, None]
    columns = tl.arange(0, head)[None, :] + (program % heads) * head
    packed = sample * seq * 3 * hidden + rows * 3 * hidden + columns
    query = tl.load(qkv + packed)
    key = tl.load(qkv + packed + hidden)
    length = seq
    if padded:
        length = tl.load(lengths + sample)
    weights, keep = _weights(query, key, length, seed, program, scale, threshold, seq)
    above = tl.load(grad + sample * seq * hidden + rows * hidden + columns)
    dropped = weights
    if threshold > 0:
        dropped = tl.where(keep, weights * inverse, 0.0)
    tl.store(out + packed + 2 * hidden, tl.dot(tl.trans(dropped.to(query.dtype)), above).to(query.dtype))
    value = tl.load(qkv + packed + 2 * hidden)
    slope = tl.dot(above, tl.trans(value))
    if threshold > 0:
        slope = tl.where(keep, slope * inverse, 0.0)
    slope = weights * (slope - tl.sum(weights * slope, 1)[:, None]) * scale
    slope = slope.to(query.dtype)
    tl.store(out + packed, tl.dot(slope, key).to(query.dtype))
    tl.store(out + packed + hidden, tl.dot(tl.trans(slope), query).to(query.dtype))


WARPS = {"forward": 4, "backward": 8}


def _launch(
    kernel: Any,
    qkv: torch.Tensor,
    lengths: Optional[torch.Tensor],
    keys: torch.Tensor,
    heads: int,
    probability: float,
    *tensors: torch.Tensor,
) -> None:
    batch, seq, width = qkv.shape
    head = width // 3 // heads
    masked = lengths is not None
    kernel[(batch * heads,)](
        qkv, lengths if masked else keys, keys, *tensors, heads, head**-0.5, 1 / (1 - probability),
        threshold=int(probability * (1 << 31)), padded=masked, seq=seq, head=head,
        num_warps=WARPS["forward" if kernel is _attention_forward else "backward"], num_stages=1,
    )  # fmt: skip


def forward(
    qkv: torch.Tensor, lengths: Optional[torch.Tensor], keys: torch.Tensor, heads: int, probability: float
) -> torch.Tensor:
    """See attention.py; qkv must be contiguous."""
    out = torch.empty(qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3, dtype=qkv.dtype, device=qkv.device)
    _launch(_attention_forward, qkv, lengths, keys, heads, probability, out)
    return out


def backward(
    grad: torch.Tensor,
    qkv: torch.Tensor,
    lengths: Optional[torch.Tensor],
    keys: torch.Tensor,
    heads: int,
    probability: float,
) -> torch.Tensor:
    """Return the gradient of qkv; grad must be contiguous."""
    out = torch.empty_like(qkv)
    _launch(_attention_backward, qkv, lengths, keys, heads, probability, grad, out)
    return out


@torch.library.custom_op("scalebook::short_attention", mutates_args=())
def short_attention(
    qkv: torch.Tensor, lengths: Optional[torch.Tensor], keys: torch.Tensor, heads: int, probability: float
) -> torch.Tensor:
    """Call `forward`, as an operator that torch.compile does not look into."""
    return forward(qkv, lengths, keys, heads, probability)


@short_attention.register_fake
def _(
    qkv: torch.Tensor, lengths: Optional[torch.Tensor], keys: torch.Tensor, heads: int, probability: float
) -> torch.Tensor:
    return qkv.new_empty(qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3)


@torch.library.custom_op("scalebook::short_attention_backward", mutates_args=())
def short_attention_backward(
    grad: torch.Tensor,
    qkv: torch.Tensor,
    lengths: Optional[torch.Tensor],
    keys: torch.Tensor,
    heads: int,
    probability: float,
) -> torch.Tensor:
    """Call `backward`, likewise."""
    return backward(grad.contiguous(), qkv, lengths, keys, heads, probability)


@short_attention_backward.register_fake
def _(
    grad: torch.Tensor,
    qkv: torch.Tensor,
    lengths: Optional[torch.Tensor],
    keys: torch.Tensor,
    heads: int,
    probability: float,
) -> torch.Tensor:
    return torch.empty_like(qkv)


def _keep(ctx: Any, inputs: Tuple[Any, ...], output: torch.Tensor) -> None:
    qkv, lengths, keys, ctx.heads, ctx.probability = inputs
    ctx.save_for_backward(qkv, lengths, keys)


def _differentiate(ctx: Any, grad: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
    qkv, lengths, keys = ctx.saved_tensors
    return (
        short_attention_backward(grad, qkv, lengths, keys, ctx.heads, ctx.probability),
        None,
        None,
        None,
        None,
    )


short_attention.register_autograd(_differentiate, setup_context=_keep)


def attend(
    qkv: torch.Tensor, lengths: Optional[torch.Tensor], keys: torch.Tensor, heads: int, probability: float
) -> torch.Tensor:
    """Call short_attention, with the parameters that attention.py describes."""
    return short_attention(qkv.contiguous(), lengths, keys.contiguous(), heads, probability)
