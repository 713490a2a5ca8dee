# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A run as a row of the published table: `V100_4gpu_8`, its batches, and what Trainer says of its speed.

Standard library only.
"""

import re

MAKERS = ("NVIDIA", "Tesla", "GeForce", "RTX")


def name(device, nodes, gpus, batch):
    """Return the row's name; `device` as its driver calls it, None for processors, `gpus` those of a node."""
    many = "%dx%d" % (nodes, gpus) if nodes > 1 else "%d" % gpus
    if device is None:
        return "CPU_%scpu_%d" % (many, batch)
    words = [word for word in re.findall(r"[A-Za-z0-9]+", device) if word not in MAKERS]
    return "%s_%sgpu_%d" % (words[0] if words else "GPU", many, batch)


def figures(dtype, batch, devices, accumulation, steps, trained, evaluated):
    """Return the row's columns by name, in the table's order.

    `trained` and `evaluated` are Trainer's metrics; its time of training holds the evaluations between.
    """
    row = {
        "fp16": {"fp16": "TRUE", "fp32": "FALSE"}.get(dtype, dtype),
        "train_bs": devices * batch,
        "total_train_bs": devices * batch * accumulation,
        "global_step": steps,
    }
    for what in ("steps_per_second", "samples_per_second", "runtime"):
        row["train_" + what] = "%.4f" % trained["train_" + what]
        row["eval_" + what] = "%.4f" % evaluated["eval_" + what]
    return row
