# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""BERT with its two pretraining heads (masked words, next sentence) for Paddle, in the sizes of torch_bert.

As there, masked positions are gathered before the head, whose projection shares its weight with the word
embedding; as in the original BERT, layers are post-norm and GELU is the tanh approximation.
"""

from typing import Any, Dict

import paddle
import paddle.nn.functional as functional
from bert_sizes import POSITIONS, SEGMENTS, padded
from paddle import nn

NORM_EPSILON = 1e-12
DEVIATION = 0.02
HIDDEN = -1e4  # what is added to the score of a token that only pads its sample, as the original BERT does
NOTHING = -1  # the label of a place where a sample has no masked word


def weight() -> Any:
    """Return the attributes of a matrix of weights."""
    return paddle.ParamAttr(initializer=nn.initializer.TruncatedNormal(std=DEVIATION))


def linear(inputs: int, outputs: int) -> Any:
    """Return a linear layer with BERT's first weights; its bias begins with 0."""
    return nn.Linear(inputs, outputs, weight_attr=weight())


def norm(hidden: int) -> Any:
    """Return a layer norm."""
    return nn.LayerNorm(hidden, epsilon=NORM_EPSILON)


class Layer(nn.Layer):
    """Self-attention and feed-forward, each with dropout, residual, norm: [batch, seq, hidden] -> same."""

    def __init__(self, model: Dict[str, int], dropout: float) -> None:
        super().__init__()
        hidden = model["hidden"]
        self.heads = model["heads"]
        self.qkv = linear(hidden, 3 * hidden)
        self.projection = linear(hidden, hidden)
        self.attention_norm = norm(hidden)
        self.up = linear(hidden, model["intermediate"])
        self.down = linear(model["intermediate"], hidden)
        self.output_norm = norm(hidden)
        self.dropout = nn.Dropout(dropout)

    def attention(self, x: Any, padding: Any) -> Any:
        """Return the context of every token; `padding` is added to the scores, None where there is none."""
        batch, seq, hidden = x.shape
        size = hidden // self.heads
        parts = self.qkv(x).reshape([batch, seq, 3, self.heads, size]).transpose([2, 0, 3, 1, 4])
        query, key, value = parts.unbind(0)
        scores = paddle.matmul(query, key, transpose_y=True) * size**-0.5
        if padding is not None:
            scores = scores + padding.astype(scores.dtype)
        context = paddle.matmul(self.dropout(functional.softmax(scores)), value)
        return context.transpose([0, 2, 1, 3]).reshape([batch, seq, hidden])

    def forward(self, x: Any, padding: Any) -> Any:
        """See the class."""
        x = self.attention_norm(x + self.dropout(self.projection(self.attention(x, padding))))
        y = self.down(functional.gelu(self.up(x), approximate=True))
        return self.output_norm(x + self.dropout(y))


class Bert(nn.Layer):
    """A batch -> the sum of both losses: the means over the predictions and over the samples."""

    def __init__(self, model: Dict[str, int], dropout: float) -> None:
        super().__init__()
        hidden, rows = model["hidden"], padded(model["vocabulary"])
        self.word = nn.Embedding(rows, hidden, weight_attr=weight())
        self.position = nn.Embedding(POSITIONS, hidden, weight_attr=weight())
        self.segment = nn.Embedding(SEGMENTS, hidden, weight_attr=weight())
        self.norm = norm(hidden)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.LayerList([Layer(model, dropout) for _ in range(model["layers"])])
        self.transform = linear(hidden, hidden)
        self.transform_norm = norm(hidden)
        self.bias = self.create_parameter([rows], is_bias=True)
        self.pooler = linear(hidden, hidden)
        self.classifier = linear(hidden, 2)

    def forward(
        self, words: Any, segments: Any, positions: Any, labels: Any, following: Any, valid: Any = None
    ) -> Any:
        """`words` and `segments` are [batch, seq], `positions` and `labels` [batch, predictions].

        `valid` is [batch, seq], 0 where a token pads its sample, or None. A label of NOTHING is not counted.
        """
        batch, seq = words.shape
        padding = (
            None if valid is None else (1 - valid.astype("float32")).reshape([batch, 1, 1, seq]) * HIDDEN
        )
        x = self.word(words) + self.position(paddle.arange(seq)) + self.segment(segments)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, padding)
        rows = (positions + (paddle.arange(batch) * seq).unsqueeze(1)).reshape([-1])
        masked = paddle.gather(x.reshape([batch * seq, -1]), rows)
        y = self.transform_norm(functional.gelu(self.transform(masked), approximate=True))
        logits = paddle.matmul(y, self.word.weight, transpose_y=True) + self.bias
        pooled = paddle.tanh(self.pooler(x[:, 0]))
        of_words = functional.cross_entropy(
            logits.astype("float32"), labels.reshape([-1]), ignore_index=NOTHING
        )
        return of_words + functional.cross_entropy(self.classifier(pooled).astype("float32"), following)
