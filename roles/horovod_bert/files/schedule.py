# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How the steps of one device are divided among several, and the learning rate of each step.

As run_classifier.py does with --use_multi_gpu in the fork of BERT that added Horovod: every process keeps its
batch size, so `size` processes need a `size`-th of the steps, at a rate `size` times as high. Standard
library only.
"""

from typing import Tuple

WARMUP = 0.1  # share of the steps with a rising rate, run_classifier's --warmup_proportion


def divide(steps: int, rate: float, size: int) -> Tuple[int, int, float]:
    """Return (steps, warm-up steps, learning rate) of each of `size` processes.

    `steps` and `rate` are those of one device. Raises ValueError where a process would have no step.
    """
    if steps // size < 1:
        raise ValueError("%d steps of one device leave none to each of %d processes" % (steps, size))
    return steps // size, int(steps * WARMUP) // size, rate * size


def rate_at(steps_done: int, steps: int, warmup: int, rate: float) -> float:
    """Return the learning rate after `steps_done` steps: a linear warm-up, then a linear decay to 0."""
    if steps_done < warmup:
        return rate * steps_done / warmup
    return rate * (1 - steps_done / steps)
