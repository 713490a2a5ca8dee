# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""BERT with its two pretraining heads (masked words, next sentence), written for today's GPUs.

Parameters are fp32. Weights are cast to the dtype of the computation where they are used, so that all
activations have that dtype (with autocast, the output of every layer norm would be fp32). Masked positions
are gathered before the head: only they are projected to the vocabulary. That projection shares its weight
with the word embedding. As in the original BERT, layers are post-norm and GELU is the tanh approximation.
"""

from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Type

import torch
import torch.nn.functional as functional
from bert_sizes import POSITIONS, SEGMENTS, padded
from torch import nn
from torch.utils.checkpoint import checkpoint

NORM_EPSILON = 1e-12
DEVIATION = 0.02

# (qkv, lengths, keys, heads, dropout probability) -> output; see attention.py.
Attention = Callable[[torch.Tensor, Optional[torch.Tensor], torch.Tensor, int, float], torch.Tensor]

# Dropout needs few random bits per element: two rounds of multiply and shift of a counter are enough, and
# cost a tenth of Philox. Philox alone would take longer than the memory traffic of the fused kernel that
# contains it. The constants are those of lowbias32.
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)


def keep_mask(shape: Sequence[int], probability: float, keys: torch.Tensor) -> torch.Tensor:
    """Return a bool tensor, False with `probability`.

    `keys` is two int32 on the device, different for each step and each dropout of the model.
    """
    count = 1
    for size in shape:
        count *= size
    x = torch.arange(count, dtype=torch.int32, device=keys.device).view(shape)
    x = x ^ keys[0]
    x = (x ^ ((x >> 16) & 0xFFFF)) * _FIRST + keys[1]
    x = (x ^ ((x >> 15) & 0x1FFFF)) * _SECOND
    x = x ^ ((x >> 16) & 0xFFFF)
    return (x & 0x7FFFFFFF) >= int(probability * (1 << 31))


def dropout(x: torch.Tensor, probability: float, keys: torch.Tensor) -> torch.Tensor:
    """Apply dropout: with a mask computed from `keys` if compiled, with PyTorch's own dropout otherwise."""
    if probability == 0:
        return x
    if not torch.compiler.is_compiling():
        return functional.dropout(x, probability)
    return torch.where(keep_mask(x.shape, probability, keys), x * (1 / (1 - probability)), 0.0)


class Linear(nn.Module):
    """x W^T + b in x's dtype, with fp32 parameters."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., inputs] -> [..., outputs]."""
        return functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


class Norm(nn.Module):
    """Layer norm, computed in fp32 and returned in x's dtype."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., hidden] -> same."""
        # The weights are already fp32, unless a library such as DeepSpeed has cast the model.
        weight, bias = self.weight.float(), self.bias.float()
        return functional.layer_norm(x.float(), weight.shape, weight, bias, NORM_EPSILON).to(x.dtype)


class Embedding(nn.Module):
    """Normalized sum of word, position and segment embeddings: [batch, seq] -> [batch, seq, hidden]."""

    def __init__(self, model: Dict[str, int], probability: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.word = nn.Parameter(torch.empty(padded(model["vocabulary"]), model["hidden"]))
        self.position = nn.Parameter(torch.empty(POSITIONS, model["hidden"]))
        self.segment = nn.Parameter(torch.empty(SEGMENTS, model["hidden"]))
        self.norm = Norm(model["hidden"])
        self.probability = probability
        self.dtype = dtype

    def forward(self, words: torch.Tensor, segments: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        """See the class; `keys` int32 [2]."""
        # Interpolate between both segments: the backward pass of a lookup would add all tokens to two rows.
        first, second = self.segment
        segment = first + segments.unsqueeze(-1).to(first.dtype) * (second - first)
        x = functional.embedding(words, self.word) + self.position[: words.shape[1]] + segment
        return dropout(self.norm(x), self.probability, keys).to(self.dtype)


class Layer(nn.Module):
    """Self-attention and feed-forward, each with dropout, residual, norm: [batch, seq, hidden] -> same."""

    def __init__(self, model: Dict[str, int], probability: float, attention: Attention) -> None:
        super().__init__()
        hidden = model["hidden"]
        self.heads = model["heads"]
        self.probability = probability
        self.attention = attention
        self.qkv = Linear(hidden, 3 * hidden)
        self.projection = Linear(hidden, hidden)
        self.attention_norm = Norm(hidden)
        self.up = Linear(hidden, model["intermediate"])
        self.down = Linear(model["intermediate"], hidden)
        self.output_norm = Norm(hidden)

    def forward(self, x: torch.Tensor, lengths: Optional[torch.Tensor], keys: torch.Tensor) -> torch.Tensor:
        """See the class; `keys` int32 [3, 2]."""
        probability = self.probability if self.training else 0.0
        context = self.attention(self.qkv(x), lengths, keys[0], self.heads, probability)
        x = self.attention_norm(x + dropout(self.projection(context), probability, keys[1]))
        y = self.down(functional.gelu(self.up(x), approximate="tanh"))
        return self.output_norm(x + dropout(y, probability, keys[2]))


class Heads(nn.Module):
    """Both losses from the encoder's output: mean over the predictions plus mean over the samples."""

    def __init__(self, model: Dict[str, int], word: torch.Tensor) -> None:
        super().__init__()
        hidden = model["hidden"]
        self.word = word
        self.transform = Linear(hidden, hidden)
        self.norm = Norm(hidden)
        self.bias = nn.Parameter(torch.zeros(word.shape[0]))
        self.pooler = Linear(hidden, hidden)
        self.classifier = Linear(hidden, 2)

    def masked(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Return the rows of the masked positions, [batch x predictions, hidden]."""
        batch, seq, hidden = x.shape
        start = torch.arange(batch, device=x.device, dtype=positions.dtype).unsqueeze(1) * seq
        return x.reshape(batch * seq, hidden).index_select(0, (positions + start).reshape(-1))

    def forward(
        self, x: torch.Tensor, positions: torch.Tensor, labels: torch.Tensor, following: torch.Tensor
    ) -> torch.Tensor:
        """[batch, seq, hidden] -> the sum of both losses."""
        y = self.norm(functional.gelu(self.transform(self.masked(x, positions)), approximate="tanh"))
        logits = functional.linear(y, self.word.to(y.dtype), self.bias.to(y.dtype))
        words = functional.cross_entropy(logits.float(), labels.reshape(-1).long(), ignore_index=-1)
        pooled = torch.tanh(self.pooler(x[:, 0]))
        return words + functional.cross_entropy(self.classifier(pooled).float(), following.long())


class Bert(nn.Module):
    """Batch -> loss, computed in `dtype`; attention.py selects `attention` and the class of `layer`.

    With `checkpointing` a layer keeps its input alone, and the backward pass computes the rest again, with
    the same dropout. Loss and gradients are those of a model without it.
    """

    def __init__(
        self,
        model: Dict[str, int],
        dtype: torch.dtype,
        attention: Attention,
        probability: float = 0.1,
        layer: Type[Layer] = Layer,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.checkpointing = checkpointing
        self.embedding = Embedding(model, probability, dtype)
        self.layers = nn.ModuleList(layer(model, probability, attention) for _ in range(model["layers"]))
        self.heads = Heads(model, self.embedding.word)
        self.sites = 1 + 3 * model["layers"]  # where dropout is applied
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.trunc_normal_(parameter, std=DEVIATION, a=-2 * DEVIATION, b=2 * DEVIATION)

    def compile_parts(self, **options: Any) -> None:
        """Compile each part separately.

        All layers share one compiled program, and DDP can sum gradients while the backward pass goes on.
        """
        for part in (self.embedding, *self.layers, self.heads):
            part.compile(**options)

    def forward(self, batch: Any, keys: torch.Tensor) -> torch.Tensor:
        """`batch` is data.Batch on the device, `keys` int32 [sites, 2]."""
        x = self.embedding(batch.words, batch.segments, keys[0])
        for index, layer in enumerate(self.layers):
            part = keys[1 + 3 * index : 4 + 3 * index]
            if self.checkpointing:
                x = checkpoint(layer, x, batch.lengths, part, use_reentrant=False)
            else:
                x = layer(x, batch.lengths, part)
        return self.heads(x, batch.positions, batch.labels, batch.following)


def split_heads(qkv: torch.Tensor, heads: int) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """[batch, seq, 3 x hidden] -> query, key, value, each [batch, heads, seq, hidden / heads]."""
    batch, seq, width = qkv.shape
    parts: Tuple[torch.Tensor, torch.Tensor, torch.Tensor] = (
        qkv.view(batch, seq, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4).unbind(0)
    )
    return parts
