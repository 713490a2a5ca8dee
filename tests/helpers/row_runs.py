# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Cases and digested runs as the tables of a report take them."""

NAME = ("workload", "label", "bsz", "dtype", "xla", "accumulation", "model")


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
        "label": f"{nodes}n{gpus}g",
        **other,
    }
    return {
        **base,
        "name": "-".join(
            str(base[key]) for key in ("workload", "label", "bsz", "dtype", "xla", "accumulation", "model")
        ),
    }


def run(of, repeat=1, rate=100.0, **other):
    base = {
        "case": of["name"],
        "label": of["label"],
        "repeat": repeat,
        "unit": "samples",
        "status": "ok" if rate else "failed",
        "reason": None if rate else "rank 1 on NODE2 died of signal 9",
        "notes": [],
        "rate": rate,
        "seconds": 1.0,
        "time_source": "times",
        "second": None,
        "differs": None,
        "drift": None,
        "steady": None,
        "source": None,
        "last_lines": [],
        "started": None,
        "steps": [],
        "hosts": {},
    }
    return {**base, **other}
