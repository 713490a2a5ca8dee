# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One layer of BERT, GPT-2 and T5 in plain PyTorch, as in transformers with eager attention.

Attention is a matrix product, a softmax and a matrix product, each a separate kernel, as in 2022. Results can
therefore be compared with those published then. Dropout is on, which is the default of a new layer. The input
and the output of each layer are [batch, seq, hidden].
"""

import math
from typing import Optional

import torch
from torch import nn
from torch.nn import functional

DROPOUT = 0.1


def heads(x: torch.Tensor, count: int) -> torch.Tensor:
    """[batch, seq, hidden] -> [batch, count, seq, hidden / count]."""
    return x.view(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def merged(x: torch.Tensor) -> torch.Tensor:
    """[batch, count, seq, hidden / count] -> [batch, seq, hidden]; the reverse of heads()."""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


class BertAttention(nn.Module):
    """Attention with its output, residual and norm."""

    def __init__(self, hidden: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.dense = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the module."""
        query, key, value = (heads(part(x), self.count) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        context = merged(self.dropout(functional.softmax(scores, dim=-1)) @ value)
        return self.norm(self.dropout(self.dense(context)) + x)


class BertIntermediate(nn.Module):
    """First half of the feed-forward: [batch, seq, hidden] -> [batch, seq, 4 x hidden]."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, 4 * hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return functional.gelu(self.dense(x))


class BertOutput(nn.Module):
    """Second half of the feed-forward, with residual and norm."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(4 * hidden, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, wide: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """`wide` is the output of BertIntermediate, `x` its input."""
        return self.norm(self.dropout(self.dense(wide)) + x)


class BertLayer(nn.Module):
    """A layer of BERT: attention, then feed-forward, each with a norm at its end."""

    def __init__(self, hidden: int, count: int) -> None:
        super().__init__()
        self.attention = BertAttention(hidden, count)
        self.intermediate = BertIntermediate(hidden)
        self.output = BertOutput(hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the module."""
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class Gpt2Layer(nn.Module):
    """A block of GPT-2: causal attention, then feed-forward, each with its norm first; GELU as a formula."""

    POSITIONS = 1024

    def __init__(self, hidden: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.before, self.between = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.dropout = nn.Dropout(DROPOUT)
        causal = torch.ones(self.POSITIONS, self.POSITIONS, dtype=torch.bool).tril()
        self.register_buffer("causal", causal, persistent=False)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """Return the causal self-attention of the normalized input."""
        query, key, value = (heads(part, self.count) for part in self.qkv(x).chunk(3, dim=-1))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        seq = x.shape[1]
        least = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype, device=scores.device)
        scores = torch.where(self.causal[:seq, :seq], scores, least)
        context = merged(self.dropout(functional.softmax(scores, dim=-1)) @ value)
        return self.dropout(self.projection(context))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the module."""
        x = self.attend(self.before(x)) + x
        wide = self.up(self.between(x))
        wide = 0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * torch.pow(wide, 3))))
        return x + self.dropout(self.down(wide))


class T5Norm(nn.Module):
    """Root mean square norm without bias; the mean is computed in fp32."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the module."""
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-6)).to(self.weight.dtype)


class T5Attention(nn.Module):
    """Attention on itself or on the states of an encoder: norm first, residual last, no scale, no biases."""

    def __init__(self, hidden: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.norm = T5Norm(hidden)
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: torch.Tensor, states: Optional[torch.Tensor] = None) -> torch.Tensor:
        """`states`: those of the encoder, or None for self-attention."""
        normed = self.norm(x)
        source = normed if states is None else states
        query = heads(self.query(normed), self.count)
        key, value = heads(self.key(source), self.count), heads(self.value(source), self.count)
        scores = query @ key.transpose(3, 2)
        # Only the first layer of a stack learns a position bias; other layers add the bias that they receive.
        scores = scores + torch.zeros(
            1, self.count, *scores.shape[2:], dtype=scores.dtype, device=scores.device
        )
        weights = self.dropout(functional.softmax(scores.float(), dim=-1).type_as(scores))
        return finite(x + self.dropout(self.out(merged(weights @ value))))


class T5Layer(nn.Module):
    """A block of the T5 encoder or, with `cross`, of the decoder: with attention on encoder states too."""

    def __init__(self, hidden: int, count: int, cross: bool = False) -> None:
        super().__init__()
        self.attention = T5Attention(hidden, count)
        self.cross = T5Attention(hidden, count) if cross else None
        self.norm = T5Norm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden, bias=False)
        self.down = nn.Linear(4 * hidden, hidden, bias=False)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: torch.Tensor, states: Optional[torch.Tensor] = None) -> torch.Tensor:
        """See the module; `states` is for a decoder."""
        x = self.attention(x)
        if self.cross is not None:
            x = self.cross(x, states)
        wide = self.dropout(functional.relu(self.up(self.norm(x))))
        return finite(x + self.dropout(self.down(wide)))


def finite(x: torch.Tensor) -> torch.Tensor:
    """Clamp fp16 values that overflow, as T5 does; return other dtypes unchanged."""
    if x.dtype != torch.float16:
        return x
    top = torch.finfo(x.dtype).max
    limit = torch.where(torch.isinf(x).any(), top - 1000, top)
    return torch.clamp(x, min=-limit, max=limit)
