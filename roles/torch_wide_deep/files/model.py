# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Wide & Deep (Cheng et al. 2016, arXiv:1606.07792), without its tables: the layers that all devices hold.

As train.py of Wide & Deep of Oneflow-Inc/models and samples/wdl of NVIDIA-Merlin/HugeCTR have it.
"""

from typing import Dict

import torch
import torch.nn.functional as functional
from samples import CATEGORIES, NUMBERS
from torch import nn


class WideDeep(nn.Module):
    """(numbers, deep vectors [batch, 26 * vector], wide weights [batch, 2], labels [batch]) -> mean loss."""

    def __init__(self, size: Dict[str, int], dropout: float) -> None:
        super().__init__()
        widths = [CATEGORIES * size["vector"] + NUMBERS] + [size["hidden"]] * size["layers"]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in zip(widths, widths[1:]))  # noqa: B905
        self.score = nn.Linear(size["hidden"], 1)
        self.dropout = dropout
        for layer in [*self.layers, self.score]:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self, numbers: torch.Tensor, deep: torch.Tensor, wide: torch.Tensor, labels: torch.Tensor
    ) -> torch.Tensor:
        """See the class."""
        x = torch.cat([deep, numbers.to(deep.dtype)], 1)
        for layer in self.layers:
            x = functional.dropout(functional.relu(layer(x)), self.dropout)
        scores = self.score(x).float().squeeze(1) + wide.float().sum(1)
        return functional.binary_cross_entropy_with_logits(scores, labels)
