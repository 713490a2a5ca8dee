# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A run as a row of the published table: its name (`V100_4gpu_8`), batch sizes, and the speed from Trainer.

Standard library only.
"""

import re
from typing import Any, Dict, Optional

MAKERS = ("NVIDIA", "Tesla", "GeForce", "RTX")


def name(device: Optional[str], nodes: int, gpus: int, batch: int) -> str:
    """Return the name of the row.

    `device` is the name from the driver, or None for CPUs. `gpus` is the number per node.
    """
    many = "%dx%d" % (nodes, gpus) if nodes > 1 else "%d" % gpus
    if device is None:
        return "CPU_%scpu_%d" % (many, batch)
    words = [word for word in re.findall(r"[A-Za-z0-9]+", device) if word not in MAKERS]
    return "%s_%sgpu_%d" % (words[0] if words else "GPU", many, batch)


def figures(
    dtype: str,
    batch: int,
    devices: int,
    accumulation: int,
    steps: int,
    trained: Dict[str, float],
    evaluated: Dict[str, float],
) -> Dict[str, Any]:
    """Return the columns of the row by name, in the order of the table.

    `trained` and `evaluated` are the metrics of Trainer. Its training time includes the evaluations in
    between.
    """
    row: Dict[str, Any] = {
        "fp16": {"fp16": "TRUE", "fp32": "FALSE"}.get(dtype, dtype),
        "train_bs": devices * batch,
        "total_train_bs": devices * batch * accumulation,
        "global_step": steps,
    }
    for what in ("steps_per_second", "samples_per_second", "runtime"):
        row["train_" + what] = "%.4f" % trained["train_" + what]
        row["eval_" + what] = "%.4f" % evaluated["eval_" + what]
    return row
