# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How a training for one device is dealt to several, and its learning rate at each step.

As run_classifier.py does it with --use_multi_gpu in the fork of BERT that brought Horovod to it: every
process goes on taking its batch, so `size` of them need a `size`-th of the steps, at a rate `size` times as
high. Standard library only.
"""

WARMUP = 0.1  # share of the steps in which the rate rises, run_classifier's --warmup_proportion


def deal(steps, rate, size):
    """Return (steps, steps of the rise, learning rate) of each of `size` processes.

    `steps` and `rate` are those of one device. Raises ValueError where no step is left for a process.
    """
    if steps // size < 1:
        raise ValueError("%d steps of one device leave none to each of %d processes" % (steps, size))
    return steps // size, int(steps * WARMUP) // size, rate * size


def rate_at(done, steps, warmup, rate):
    """Return the learning rate after `done` steps: it rises from 0 to a line that falls to 0 at the end."""
    if done < warmup:
        return rate * done / warmup
    return rate * (1 - done / steps)
