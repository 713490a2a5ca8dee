# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The weights that all ranks must have the same of.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

from typing import Any, Iterable, List

import trainer_kit


def trained(parameters: Iterable[Any]) -> List[Any]:
    """Return the weights that gradients change.

    `Layer.parameters()` of Paddle also has the running mean and variance of BatchNorm, with `stop_gradient`
    set. Every rank computes those from its own images, so they differ between ranks that train together.
    """
    return [parameter for parameter in parameters if not parameter.stop_gradient]


def sums(parameters: Iterable[Any]) -> List[float]:
    """Return the sum and the sum of squares of the trained weights."""
    return trainer_kit.sums(parameter.astype("float64") for parameter in trained(parameters))
