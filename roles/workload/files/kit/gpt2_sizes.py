# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the GPT-2 models and their parameters. Standard library only."""

from typing import Dict, List

PADDED_TO = 64  # rows of the embedding table: aligned matrices of the projection, for tensor cores

MODELS = {
    "tiny": {"hidden": 64, "layers": 2, "heads": 4, "vocabulary": 1024},
    "117M": {"hidden": 768, "layers": 12, "heads": 12, "vocabulary": 50257},
    "345M": {"hidden": 1024, "layers": 24, "heads": 16, "vocabulary": 50257},
}
"""117M and 345M are named as Radford et al. 2019 do; they have 124 and 355 million parameters."""


def padded(vocabulary: int) -> int:
    """Return the rows of the embedding table: the vocabulary rounded up to PADDED_TO."""
    return -(-vocabulary // PADDED_TO) * PADDED_TO


def parameters(model: Dict[str, int], seq: int) -> int:
    """Return the parameters of a model for `seq` positions, without padding rows.

    The projection to the vocabulary is the embedding.
    124,439,808 for 117M and 354,823,168 for 345M with 1024 positions.
    """
    h = model["hidden"]
    layer = 12 * h * h + 13 * h
    return (model["vocabulary"] + seq) * h + model["layers"] * layer + 2 * h


def layers_of_stages(model: Dict[str, int], stages: int) -> List[int]:
    """Return how many layers each stage of a pipeline has, one or more.

    The last stage also projects to the vocabulary, which costs as much as some layers: so it has fewer.
    """
    layers, projection = model["layers"], padded(model["vocabulary"]) / (12 * model["hidden"])
    before = stages - 1

    def slowest(last: int) -> float:
        return max(-(-(layers - last) // before), last + projection)

    last = min(range(layers - before, 0, -1), key=slowest) if before else layers
    share, more = divmod(layers - last, before or 1)
    return [share + (stage < more) for stage in range(before)] + [last]
