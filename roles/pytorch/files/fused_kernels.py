# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Triton kernels for a layer's work between matrix products: GELU; dropout, residual and layer norm.

There is one kernel per direction for each. The bias of a matrix product is added here. The gradients of
biases and norms, which are sums over all rows, are computed here as well, because the values are already
loaded: separate kernels would read again what the previous kernel has just written. Tensors are contiguous,
16-bit, [rows, width]; sums are fp32.
"""

from typing import Any, Dict, Sequence, Tuple

import torch
import triton
import triton.language as tl
from bert_model import NORM_EPSILON

# The parameters of kernels have no Python types: Triton evaluates annotations itself.


@triton.jit
def _gelu_parts(x):  # type: ignore[no-untyped-def]
    """Return sigmoid(2u) and the derivative of 2u; GELU, in its tanh form, is x sigmoid(2u)."""
    u = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    return tl.sigmoid(u), 1.5957691216057308 * (1 + 0.134145 * x * x)


@triton.jit
def _gelu_forward(  # type: ignore[no-untyped-def]
    x, bias, out, rows, width: tl.constexpr, tile: tl.constexpr, columns: tl.constexpr
):
    across = tl.program_id(1) * columns + tl.arange(0, columns)
    down = tl.program_id(0) * tile + tl.arange(0, tile)
    there = (down[:, None] < rows) & (across[None, :] < width)
    offsets = down[:, None].to(tl.int64) * width + across[None, :]
    added = tl.load(bias + across, across < width).to(tl.float32)
    value = tl.load(x + offsets, there).to(tl.float32) + added[None, :]
    slope, _ = _gelu_parts(value)
    tl.store(out + offsets, (value * slope).to(out.dtype.element_ty), there)


@triton.jit
def _gelu_backward(  # type: ignore[no-untyped-def]
    grad, x, bias, out, sums, rows, each, width: tl.constexpr, tile: tl.constexpr, columns: tl.constexpr
):
    across = tl.program_id(1) * columns + tl.arange(0, columns)
    added = tl.load(bias + across, across < width).to(tl.float32)
    total = tl.zeros([columns], tl.float32)
    first = tl.program_id(0) * each
    for start in range(first, first + each, tile):
        down = start + tl.arange(0, tile)
        there = (down[:, None] < rows) & (across[None, :] < width)
        offsets = down[:, None].to(tl.int64) * width + across[None, :]
        value = tl.load(x + offsets, there, 0.0).to(tl.float32) + added[None, :]
        part, inner = _gelu_parts(value)
        slope = tl.load(grad + offsets, there, 0.0).to(tl.float32) * (
            part + value * part * (1 - part) * inner
        )
        tl.store(out + offsets, slope.to(out.dtype.element_ty), there)
        total += tl.sum(slope, 0)
    tl.store(sums + tl.program_id(0) * width + across, total, across < width)


@triton.jit
def _keep(position, first, second, threshold):  # type: ignore[no-untyped-def]
    """Return which elements dropout keeps: a hash of their position and two keys, as in model.keep_mask."""
    x = position.to(tl.uint32) ^ first
    x = (x ^ (x >> 16)) * 0x7FEB352D + second
    x = (x ^ (x >> 15)) * 0x846CA68B
    x = x ^ (x >> 16)
    return (x & 0x7FFFFFFF) >= threshold


@triton.jit
def _norm_forward(  # type: ignore[no-untyped-def]
    y, bias, x, weight, beta, keys, summed, means, scales, out, inverse, epsilon,
    threshold: tl.constexpr, width: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    across = tl.arange(0, block)
    there = across < width
    offsets = row.to(tl.int64) * width + across
    value = tl.load(y + offsets, there, 0.0).to(tl.float32) + tl.load(bias + across, there, 0.0).to(
        tl.float32
    )
    if threshold > 0:
        first = tl.load(keys).to(tl.uint32, bitcast=True)
        second = tl.load(keys + 1).to(tl.uint32, bitcast=True)
        value = tl.where(_keep(row * width + across, first, second, threshold), value * inverse, 0.0)
    value += tl.load(x + offsets, there, 0.0).to(tl.float32)
    # Normalize the rounded values, because those are what the backward pass reads.
    value = value.to(summed.dtype.element_ty)
    tl.store(summed + offsets, value, there)
    value = value.to(tl.float32)
    mean = tl.sum(tl.where(there, value, 0.0), 0) / width
    apart = tl.where(there, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / width + epsilon)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    result = apart * scale * tl.load(weight + across, there, 0.0).to(tl.float32)
    result += tl.load(beta + across, there, 0.0).to(tl.float32)
    tl.store(out + offsets, result.to(out.dtype.element_ty), there)


@triton.jit
def _norm_backward(  # type: ignore[no-untyped-def]
    grad, summed, means, scales, weight, keys, to_y, to_x, sums, rows, each, inverse,
    threshold: tl.constexpr, width: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    across = tl.arange(0, block)
    there = across < width
    factor = tl.load(weight + across, there, 0.0).to(tl.float32)
    first = tl.load(keys).to(tl.uint32, bitcast=True)
    second = tl.load(keys + 1).to(tl.uint32, bitcast=True)
    of_weight = tl.zeros([block], tl.float32)
    of_beta = tl.zeros([block], tl.float32)
    of_bias = tl.zeros([block], tl.float32)
    start = tl.program_id(0) * each
    for row in range(start, min(start + each, rows)):
        offsets = row.to(tl.int64) * width + across  # type: ignore[attr-defined]
        above = tl.load(grad + offsets, there, 0.0).to(tl.float32)
        scale = tl.load(scales + row)
        normed = (tl.load(summed + offsets, there, 0.0).to(tl.float32) - tl.load(means + row)) * scale
        normed = tl.where(there, normed, 0.0)
        scaled = above * factor
        slope = (scaled - tl.sum(scaled, 0) / width - normed * (tl.sum(scaled * normed, 0) / width)) * scale
        tl.store(to_x + offsets, slope.to(to_x.dtype.element_ty), there)
        if threshold > 0:
            slope = tl.where(_keep(row * width + across, first, second, threshold), slope * inverse, 0.0)
            tl.store(to_y + offsets, slope.to(to_y.dtype.element_ty), there)
        of_weight += above * normed
        of_beta += above
        of_bias += tl.where(there, slope, 0.0)
    sums += tl.program_id(0).to(tl.int64) * 3 * width
    tl.store(sums + across, of_weight, there)
    tl.store(sums + width + across, of_beta, there)
    tl.store(sums + 2 * width + across, of_bias, there)


# Measured on an H200; see docs/performance.md.
GELU_FORWARD = {"tile": 16, "columns": 256, "num_warps": 4}
GELU_BACKWARD = {"tile": 64, "columns": 64, "num_warps": 4}
GELU_TILES = 8  # per program, backward
NORM_WARPS = 1
NORM_PROGRAMS = 1056  # backward: eight for each of the 132 multiprocessors


def gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return GELU(x + bias), in the tanh form."""
    out = torch.empty_like(x)
    rows, width = x.shape
    grid = (triton.cdiv(rows, GELU_FORWARD["tile"]), triton.cdiv(width, GELU_FORWARD["columns"]))
    _gelu_forward[grid](x, bias, out, rows, width=width, **GELU_FORWARD)
    return out


def gelu_backward(
    grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of x and of bias, the latter in fp32."""
    out = torch.empty_like(x)
    rows, width = x.shape
    each = GELU_TILES * GELU_BACKWARD["tile"]
    grid = (triton.cdiv(rows, each), triton.cdiv(width, GELU_BACKWARD["columns"]))
    sums = torch.empty(grid[0], width, dtype=torch.float32, device=x.device)
    _gelu_backward[grid](grad, x, bias, out, sums, rows, each, width=width, **GELU_BACKWARD)
    return out, sums.sum(0)


def _norm_options(width: int, probability: float) -> Dict[str, Any]:
    return {
        "threshold": int(probability * (1 << 31)),
        "width": width,
        "block": triton.next_power_of_2(width),
        "num_warps": NORM_WARPS,
    }


def add_norm(
    y: torch.Tensor,
    bias: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    beta: torch.Tensor,
    keys: torch.Tensor,
    probability: float,
) -> Tuple[torch.Tensor, Tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return the layer norm of x + dropout(y + bias), and what the backward pass needs.

    The latter is (input of the norm, means, 1 / deviations).
    """
    rows, width = x.shape
    summed, out = torch.empty_like(x), torch.empty_like(x)
    means = torch.empty(rows, dtype=torch.float32, device=x.device)
    scales = torch.empty_like(means)
    _norm_forward[(rows,)](
        y, bias, x, weight, beta, keys, summed, means, scales, out, 1 / (1 - probability), NORM_EPSILON,
        **_norm_options(width, probability),
    )  # fmt: skip
    return out, (summed, means, scales)


def add_norm_backward(
    grad: torch.Tensor,
    normed: Sequence[torch.Tensor],
    weight: torch.Tensor,
    keys: torch.Tensor,
    probability: float,
) -> Tuple[torch.Tensor, ...]:
    """Return the gradients of y, x, weight, beta and bias.

    The last three are fp32. The caller may write to the gradient of x.
    """
    summed, means, scales = normed
    rows, width = summed.shape
    to_x = torch.empty_like(summed)
    to_y = torch.empty_like(summed) if probability else to_x
    each = triton.cdiv(rows, NORM_PROGRAMS)
    programs = triton.cdiv(rows, each)
    sums = torch.empty(programs, 3, width, dtype=torch.float32, device=grad.device)
    _norm_backward[(programs,)](
        grad, summed, means, scales, weight, keys, to_y, to_x, sums, rows, each, 1 / (1 - probability),
        **_norm_options(width, probability),
    )  # fmt: skip
    return (to_y if probability else to_x.clone()), to_x, *sums.sum(0).unbind(0)
