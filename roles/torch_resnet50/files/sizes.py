# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the models and their parameters. Standard library only."""

from typing import Dict, Iterator, List, Tuple

MODELS: Dict[str, Tuple[int, List[int]]] = {"tiny": (16, [1, 1, 1, 1]), "resnet50": (64, [3, 4, 6, 3])}
"""Name: (channels of the first layer, bottleneck blocks of each stage)."""

EXPANSION = 4  # the channels that a block returns, in multiples of those of its 3x3 convolution


def convolutions(name: str) -> Iterator[Tuple[int, int, int, int]]:
    """Yield (channels in, channels out, width of the kernel, what the image's width is divided by) of each.

    v1.5: the 3x3 convolution of a block has its stride, not the first 1x1 as in He et al. 2015.
    """
    width, blocks = MODELS[name]
    yield 3, width, 7, 2
    channels, shrunk = width, 4
    for stage, count in enumerate(blocks):
        inner = width << stage
        for block in range(count):
            before = shrunk
            shrunk *= 2 if stage and not block else 1
            yield channels, inner, 1, before
            yield inner, inner, 3, shrunk
            yield inner, inner * EXPANSION, 1, shrunk
            if not block:
                yield channels, inner * EXPANSION, 1, shrunk
            channels = inner * EXPANSION


def features(name: str) -> int:
    """Return the inputs of the last layer."""
    width, blocks = MODELS[name]
    return (width << (len(blocks) - 1)) * EXPANSION


def parameters(name: str, classes: int) -> int:
    """Return the number of parameters: 25,557,032 for resnet50 with 1000 classes, as torchvision's."""
    body = sum(channels * out * kernel**2 + 2 * out for channels, out, kernel, _ in convolutions(name))
    return body + features(name) * classes + classes
