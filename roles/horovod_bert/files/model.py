# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""BERT with a classifier of sentences on its first word, as in run_classifier.py."""

from typing import Any, Dict, List

import torch
from torch import nn

POSITIONS = 512
SEGMENTS = 2
NORM_EPSILON = 1e-12
DEVIATION = 0.02

# base has 109,483,778 parameters with its classifier, as BERT-base.
MODELS = {
    "tiny": {"hidden": 64, "layers": 2, "heads": 2, "intermediate": 256, "vocabulary": 1024},
    "base": {"hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072, "vocabulary": 30522},
}


class Classifier(nn.Module):
    """[batch, length] words -> [batch, classes] logits. Sentences are full and of one segment."""

    def __init__(
        self,
        hidden: int,
        layers: int,
        heads: int,
        intermediate: int,
        vocabulary: int,
        dropout: float,
        classes: int = 2,
    ) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, hidden)
        self.position = nn.Embedding(POSITIONS, hidden)
        self.segment = nn.Embedding(SEGMENTS, hidden)
        self.norm = nn.LayerNorm(hidden, NORM_EPSILON)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                hidden, heads, intermediate, dropout, "gelu", NORM_EPSILON, batch_first=True
            )
            for _ in range(layers)
        )
        self.pooler = nn.Linear(hidden, hidden)
        self.classifier = nn.Linear(hidden, classes)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.trunc_normal_(parameter, std=DEVIATION, a=-2 * DEVIATION, b=2 * DEVIATION)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the logits; see the class."""
        x = self.word(words) + self.position.weight[: words.shape[1]] + self.segment.weight[0]
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))


def groups(model: nn.Module, decay: float) -> List[Dict[str, Any]]:
    """Return the parameter groups of the optimizer: norms and biases have no weight decay."""
    named = [(parameter.dim() > 1, parameter) for parameter in model.parameters()]
    return [
        {"params": [parameter for matrix, parameter in named if matrix], "weight_decay": decay},
        {"params": [parameter for matrix, parameter in named if not matrix], "weight_decay": 0.0},
    ]
