# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""ResNet v1.5 with bottleneck blocks (He et al. 2015, arXiv:1512.03385; stride in the 3x3 convolution)."""

import torch
from sizes import EXPANSION, MODELS
from torch import nn


def conv(inputs: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """Return a convolution whose output is as large as its input divided by the stride."""
    return nn.Conv2d(inputs, out, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    """[batch, given, y, x] -> [batch, EXPANSION * inner, y / stride, x / stride]."""

    def __init__(self, inputs: int, inner: int, stride: int, first: bool) -> None:
        super().__init__()
        out = inner * EXPANSION
        self.conv1, self.norm1 = conv(inputs, inner, 1), nn.BatchNorm2d(inner)
        self.conv2, self.norm2 = conv(inner, inner, 3, stride), nn.BatchNorm2d(inner)
        self.conv3, self.norm3 = conv(inner, out, 1), nn.BatchNorm2d(out)
        self.shortcut: nn.Module = nn.Identity()
        if first:
            self.shortcut = nn.Sequential(conv(inputs, out, 1, stride), nn.BatchNorm2d(out))
        # A block begins as its shortcut (Goyal et al. 2017, arXiv:1706.02677, section 5.1).
        nn.init.zeros_(self.norm3.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        y = torch.relu_(self.norm1(self.conv1(x)))
        y = torch.relu_(self.norm2(self.conv2(y)))
        return torch.relu_(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """[batch, 3, size, size] -> [batch, classes] logits."""

    def __init__(self, name: str, classes: int) -> None:
        super().__init__()
        width, blocks = MODELS[name]
        self.stem = nn.Sequential(
            conv(3, width, 7, 2), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        stages, inputs = [], width
        for stage, count in enumerate(blocks):
            inner = width << stage
            parts = []
            for block in range(count):
                parts.append(Block(inputs, inner, 2 if stage and not block else 1, not block))
                inputs = inner * EXPANSION
            stages.append(nn.Sequential(*parts))
        self.stages = nn.ModuleList(stages)
        self.classifier = nn.Linear(inputs, classes)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
        nn.init.normal_(self.classifier.weight, std=0.01)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.classifier(x.mean((2, 3)))
