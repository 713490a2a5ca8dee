# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""GPT-2 (Radford et al. 2019): norms before the products, embedding and projection share their weights.

Without dropout, as is usual today where a model does not see its data twice.
"""

import math
from typing import Any, Dict

import torch
import torch.nn.functional as functional
from gpt2_sizes import padded
from tensor_parallel import copied, summed
from torch import nn

DEVIATION = 0.02


class Layer(nn.Module):
    """[batch, seq, hidden] -> same."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads, self.group = heads, None  # tensor_parallel.split changes them
        self.first_norm, self.second_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        batch, seq, _ = x.shape
        parts = self.qkv(copied(self.first_norm(x), self.group)).view(batch, seq, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, seq, -1)
        # A bias is added once, to the sum.
        x = x + summed(functional.linear(y, self.projection.weight), self.group) + self.projection.bias
        y = functional.gelu(self.up(copied(self.second_norm(x), self.group)), approximate="tanh")
        return x + summed(functional.linear(y, self.down.weight), self.group) + self.down.bias


class Head(nn.Module):
    """([batch, seq, hidden], weight [vocabulary, hidden], [batch, seq] next tokens) -> mean loss."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: torch.Tensor, weight: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """See the class. Padding rows of the table take part, and training drives their share to 0."""
        logits = functional.linear(self.norm(x), weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


class Gpt(nn.Module):
    """([batch, seq] tokens, [batch, seq] next tokens) -> mean loss.

    A stage of a pipeline has parts of it alone (pipeline_parallel.split): without `positions` it takes the
    residual [batch, seq, hidden] in place of tokens, without `head` it returns that.
    """

    def __init__(self, size: Dict[str, int], seq: int) -> None:
        super().__init__()
        hidden = size["hidden"]
        self.words = nn.Embedding(padded(size["vocabulary"]), hidden)
        self.positions = nn.Embedding(seq, hidden)
        self.layers = nn.ModuleList(Layer(hidden, size["heads"]) for _ in range(size["layers"]))
        self.head = Head(hidden)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                # Two sums a layer add to the residual.
                into = name.endswith(("projection.weight", "down.weight"))
                scale = math.sqrt(2 * size["layers"]) if into else 1.0
                nn.init.normal_(parameter, std=DEVIATION / scale)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, x: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """See the class."""
        if self.positions is not None:
            x = self.words(x) + self.positions.weight[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return x if self.head is None else self.head(x, self.words.weight, following)

    def compile_parts(self, **options: Any) -> None:
        """Compile layer by layer: one compilation serves all, and DDP sums gradients meanwhile."""
        for part in filter(None, [*self.layers, self.head]):
            part.compile(**options)
