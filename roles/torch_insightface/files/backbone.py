# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The residual network of InsightFace: pictures of faces -> embeddings.

Improved blocks of two 3x3 convolutions (Deng et al. 2019, arXiv:1801.07698, section 3.1), as
backbones/iresnet.py of recognition/arcface_torch of deepinsight/insightface has them: 43,590,848 weights with
24 blocks (r50).
"""

from typing import Dict

import torch
from torch import nn

STAGES = 4


def conv(inputs: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Return a convolution whose output is as large as its input divided by the stride."""
    return nn.Conv2d(inputs, out, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    """[batch, inputs, y, x] -> [batch, out, y / stride, x / stride]."""

    def __init__(self, inputs: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inputs),
            conv(inputs, out, 3),
            nn.BatchNorm2d(out),
            nn.PReLU(out),
            conv(out, out, 3, stride),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Sequential(conv(inputs, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return self.body(x) + self.shortcut(x)


class Backbone(nn.Module):
    """[batch, 3, pixels, pixels] -> [batch, embedding], float32."""

    def __init__(self, size: Dict[str, int], pixels: int) -> None:
        super().__init__()
        width = size["width"]
        self.stem = nn.Sequential(conv(3, width, 3), nn.BatchNorm2d(width), nn.PReLU(width))
        blocks, inputs = [], width
        for stage in range(STAGES):
            out = width << stage
            for block in range(size["blocks_%d" % (stage + 1)]):
                blocks.append(Block(inputs, out, 1 if block else 2))
                inputs = out
        self.blocks = nn.Sequential(*blocks, nn.BatchNorm2d(inputs))
        self.embed = nn.Linear(inputs * (pixels >> STAGES) ** 2, size["embedding"])
        self.norm = nn.BatchNorm1d(size["embedding"])
        self.norm.weight.requires_grad = False
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.normal_(part.weight, std=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        x = self.embed(self.blocks(self.stem(x)).flatten(1))
        return self.norm(x.float())
