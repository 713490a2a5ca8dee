# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Result records and campaign directories made to order, for the tests of the report."""

import hashlib
import json
from itertools import accumulate

from ansible.module_utils.scalebook.contracts import case_name
from dlperf_figures import SPEEDS_BY_SIZE


def case(nodes=1, gpus=1, **other):
    base = {
        "workload": "tf2_bert",
        "model": "base",
        "device": "gpu",
        "dtype": "fp32",
        "xla": False,
        "bsz": 64,
        "accumulation": 1,
        "warmup": 20,
        "window": 100,
        "settings": {},
        "nodes": nodes,
        "gpus": gpus,
        "devices": nodes * gpus,
        "global_batch": 64 * nodes * gpus,
        "label": f"{nodes}n{gpus}g",
        **other,
    }
    return {"name": case_name(base), **base}


def record(of, repeat=1, rate=100.0, **other):
    """Return a record whose window gives `rate` samples/s; no rate makes it one that stopped at step 60."""
    step = of["devices"] * of["bsz"] * of["accumulation"] / (rate or 100.0)
    last = of["warmup"] + of["window"] if rate else 60
    return {
        "schema": 2,
        "case": of,
        "repeat": repeat,
        "status": "ok" if rate else "incomplete",
        "reason": None if rate else "NODE1.log stops at step 60, step 120 is required",
        "notes": [],
        "unit": "samples",
        "nodes": [
            {
                "node": "NODE1",
                "task_index": 0,
                "log": "NODE1.log",
                "sha256": hashlib.sha256(f"{of['name']}/{repeat}/{rate}".encode()).hexdigest(),
                "bytes": 1,
                "steps": list(range(1, last + 1)),
                "times": list(accumulate([step] * (last - 1), initial=0.0)),
                "received": None,
                "rates": None,
                "loss": {"first": 7.1, "last": 6.6},
                "exit": None,
            }
        ],
        "job": {
            "rc": 0,
            "seconds": 21.4,
            "started": "2026-11-21T01:02:03Z",
            "ended": "2026-11-21T01:02:24Z",
        },
        **other,
    }


def campaign(top, records, **plan):
    """Lay `records` out as a campaign below `top` and return it."""
    for each in records:
        run = top / "runs" / each["case"]["name"] / str(each["repeat"])
        run.mkdir(parents=True)
        (run / "result.json").write_text(json.dumps(each))
    cases = {each["case"]["name"]: each["case"] for each in records}
    whole = {
        "schema": 2,
        "campaign": "night",
        "inventory": "inventory/cluster",
        "parameters": {},
        "repeats": 3,
        "cases": list(cases.values()),
        "skipped": [],
        "runs": [{"case": each["case"]["name"], "repeat": each["repeat"]} for each in records],
        **plan,
    }
    (top / "plan.json").write_text(json.dumps(whole))
    return top


def dlperf_records(**other):
    """Return the 30 records of DLPerf's published speeds."""
    return [
        record(case(*shape, **other), repeat, rate)
        for shape, rates in SPEEDS_BY_SIZE.items()
        for repeat, rate in enumerate(rates, 1)
    ]
