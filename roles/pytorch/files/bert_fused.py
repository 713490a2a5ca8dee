# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A layer whose forward and backward pass are written by hand.

Matrix products use the library's kernels, everything else uses fused_kernels.py. At a residual connection two
gradients are added: the matrix product that computes the second one adds it to the first, which saves reading
and writing both once more. torch.compile adds them in a separate kernel.
"""

from typing import Any, List, Optional, Tuple

import torch
import torch.nn.functional as functional
from bert_model import Layer
from fused_kernels import add_norm, add_norm_backward, gelu, gelu_backward
from short_attention import backward as attention_backward
from short_attention import forward as attention_forward


def _of_weight(slope: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a weight [outputs, inputs] from slope [rows, outputs] and x [rows, inputs]."""
    if weight.dtype == torch.float32:
        return torch.mm(slope.t(), x, out_dtype=torch.float32)
    return slope.t() @ x


class _Passes(torch.autograd.Function):
    """Layer.forward of model.py, and its gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        lengths: Optional[torch.Tensor],
        keys: torch.Tensor,
        heads: int,
        probability: float,
        *parts: torch.Tensor,
    ) -> torch.Tensor:
        """x [batch, seq, hidden], contiguous -> same; `parts` is what FusedLayer.parts returns."""
        (qkv_weight, qkv_bias, context_weight, context_bias, up_weight, up_bias, down_weight, down_bias,
         norm_weight, norm_bias, last_weight, last_bias) = parts  # fmt: skip
        narrow = [part.to(x.dtype) for part in (qkv_weight, context_weight, up_weight, down_weight)]
        qkv_weight, context_weight, up_weight, down_weight = narrow
        rows = x.view(-1, x.shape[-1])
        qkv = functional.linear(x, qkv_weight, qkv_bias.to(x.dtype))
        context = attention_forward(qkv, lengths, keys[0], heads, probability)
        y = functional.linear(context.view_as(rows), context_weight)
        middle, normed = add_norm(y, context_bias, rows, norm_weight, norm_bias, keys[1], probability)
        wide = functional.linear(middle, up_weight)
        active = gelu(wide, up_bias)
        y = functional.linear(active, down_weight)
        out, last = add_norm(y, down_bias, middle, last_weight, last_bias, keys[2], probability)
        ctx.lengths, ctx.heads, ctx.probability = lengths, heads, probability
        saved = (rows, keys, qkv, context, middle, wide, active)
        ctx.counts = [len(group) for group in (saved, narrow, normed, last, parts)]
        ctx.save_for_backward(*saved, *narrow, *normed, *last, *parts)
        return out.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[Any, ...]:
        """Return the gradients of x and of the parts."""
        tensors = iter(ctx.saved_tensors)
        saved, narrow, normed, last, parts = ([next(tensors) for _ in range(n)] for n in ctx.counts)
        rows, keys, qkv, context, middle, wide, active = saved
        qkv_weight, context_weight, up_weight, down_weight = narrow
        up_bias, norm_weight, last_weight = parts[5], parts[8], parts[10]
        grad_rows = grad.contiguous().view_as(rows)
        slope, total, to_last_weight, to_last_bias, to_down_bias = add_norm_backward(
            grad_rows, last, last_weight, keys[2], ctx.probability
        )
        to_down_weight = _of_weight(slope, active, parts[6])
        to_wide, to_up_bias = gelu_backward(slope @ down_weight, wide, up_bias)
        to_up_weight = _of_weight(to_wide, middle, parts[4])
        total.addmm_(to_wide, up_weight)
        slope, total, to_norm_weight, to_norm_bias, to_context_bias = add_norm_backward(
            total, normed, norm_weight, keys[1], ctx.probability
        )
        to_context_weight = _of_weight(slope, context.view_as(rows), parts[2])
        to_context = (slope @ context_weight).view_as(context)
        to_qkv = attention_backward(to_context, qkv, ctx.lengths, keys[0], ctx.heads, ctx.probability)
        to_qkv = to_qkv.view(-1, to_qkv.shape[-1])
        to_qkv_bias = to_qkv.sum(0, dtype=torch.float32)
        to_qkv_weight = _of_weight(to_qkv, rows, parts[0])
        total.addmm_(to_qkv, qkv_weight)
        slopes: Any = (
            to_qkv_weight, to_qkv_bias, to_context_weight, to_context_bias, to_up_weight, to_up_bias,
            to_down_weight, to_down_bias, to_norm_weight, to_norm_bias, to_last_weight, to_last_bias,
        )  # fmt: skip
        slopes = [slope.to(part.dtype) for slope, part in zip(slopes, parts, strict=True)]
        return total.view_as(grad), None, None, None, None, *slopes


class FusedLayer(Layer):
    """Layer of model.py, written by hand; it uses the attention of short_attention.py."""

    def parts(self) -> List[torch.Tensor]:
        """Return the parameters: weight and bias of the four matrix products, then of both norms."""
        parts = (self.qkv, self.projection, self.up, self.down, self.attention_norm, self.output_norm)
        return [parameter for part in parts for parameter in (part.weight, part.bias)]

    def compile(self, **options: Any) -> None:
        """Do nothing: there is nothing left for torch.compile to improve."""

    def forward(self, x: torch.Tensor, lengths: Optional[torch.Tensor], keys: torch.Tensor) -> torch.Tensor:
        """See Layer."""
        probability = self.probability if self.training else 0.0
        x, keys = x.contiguous(), keys.contiguous()
        return _Passes.apply(x, lengths, keys, self.heads, probability, *self.parts())
