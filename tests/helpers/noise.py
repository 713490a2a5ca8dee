# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Simulated rates and step times, for what the rules of a report promise.

Campaigns in docs/results of which the GPU sets the pace scatter like this: runs by 0.02 to 1 % (standard
deviation), steps by 0.2 to 3 %, and a step resembles the one before it (correlation 0 to 0.7).
"""

from __future__ import annotations

import numpy as np
from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.judge import flags, weak_scaling
from ansible.module_utils.scalebook.judge.utilisation import valid_by_case
from report_records import case
from row_runs import run

SPREAD_1_PERCENT = 0.0043
"""Standard deviation at which five runs have a spread (max - min) / median of 1 % on average."""
SHAPES = ((1, 1), (1, 2), (1, 4), (2, 4))
STEPS = 100

# Draws of a distribution with its true median taken off: symmetric, with a tail, with a long tail.
DRAWS = {
    "normal": lambda source, shape: source.standard_normal(shape),
    "exponential": lambda source, shape: np.log(2) - source.exponential(size=shape),
    "lognormal": lambda source, shape: 1 - np.exp(0.8 * source.standard_normal(shape)),
}


def rates(source, sets, runs, scatter, kind="normal", correlation=0.0):
    """Return `sets` lists of the rates of `runs` runs with the true median 100."""
    draws = correlated(DRAWS[kind](source, (sets, runs)), correlation)
    return (100 * (1 + scatter * draws)).tolist()


def correlated(draws, correlation):
    """Return `draws` of which each resembles the one before it in its row (AR(1))."""
    made = np.array(draws)
    fresh = np.sqrt(1 - np.square(correlation))
    for at in range(1, made.shape[1]):
        made[:, at] = correlation * made[:, at - 1] + fresh * draws[:, at]
    return made


def windows(source, sets, drift=0.0, scatter=(0.002, 0.02), correlation=(0.0, 0.7)):
    """Return `sets` lists of step times around 0.1 s, each with a scatter and a correlation of its own.

    The last quarter takes `drift` longer than the first, and the steps between go from one to the other.
    """
    draws = correlated(source.standard_normal((sets, STEPS)), source.uniform(*correlation, sets))
    quarter = STEPS // 4
    slope = np.interp(np.arange(STEPS), (quarter - 1, STEPS - quarter), (1, 1 + drift))
    return (0.1 * slope * (1 + source.uniform(*scatter, (sets, 1)) * draws)).tolist()


def campaign(source, repeats=5, scatter=(0.0002, 0.03), change=None, drift=0.0, of_steps=(0.002, 0.02)):
    """Return the rows of the report of a campaign of four cases, each with a scatter of its own.

    `scatter` and `of_steps` are the limits of the scatter of runs and of steps.  An efficiency of 95 % keeps
    the rows from a flag of their own.  `change` makes another list of a row's rates.
    """
    cases, runs = [], []
    drawn = windows(source, len(SHAPES) * repeats, drift, of_steps)
    for index, (nodes, gpus) in enumerate(SHAPES):
        each = case(nodes, gpus)
        cases.append(each)
        devices = nodes * gpus
        level = devices * (0.95 if devices > 1 else 1.0)
        own = float(np.exp(source.uniform(*np.log(scatter))))
        (row,) = rates(source, 1, repeats, own)
        row = change(row) if change else row
        steps = drawn[index * repeats : (index + 1) * repeats]
        runs += [
            run(
                each,
                repeat,
                level * rate,
                steps=times,
                drift=stats.drift(times),
                steady=stats.steadiness(times),
                differs=float(source.normal(0, 0.002)),
                gpus=[quiet_gpu(source, gpu) for gpu in range(gpus)],
            )
            for repeat, (rate, times) in enumerate(zip(row, steps, strict=True), 1)
        ]
    rows = weak_scaling.tabulate(cases, runs)["rows"]
    for row, flag in flags.of_gpus(rows, valid_by_case(runs)):
        row["flags"].append(flag)
    return rows


def quiet_gpu(source, gpu):
    """Return a GPU that nothing holds up: up to a fiftieth of its window is idle, or hot, by its readings.

    Its driver reports the power limit for any part of the window, after bursts: its power is far from it.
    """
    shares = {
        "throttle_power_cap": float(source.uniform(0, 1)),
        "throttle_thermal": float(source.uniform(0, 0.02)),
        "idle": float(source.uniform(0, 0.02)),
    }
    power = float(source.uniform(0.3, 0.85))
    return {"node": "NODE1", "gpu": str(gpu), "shares": shares, "highest": 100.0, "power_used": power}


def share_flagged(rows, code=None):
    """Return the share of `rows` with the flag `code`, or with any flag."""
    return sum(any(code in (None, flag["code"]) for flag in row["flags"]) for row in rows) / len(rows)
