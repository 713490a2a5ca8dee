#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Copy the BERT of Oneflow-Inc/models, and change what OneFlow 0.9 has under other names.

usage: bert_copy.py TRAINER COPY cpu|gpu

The trainer is for OneFlow 0.8, whose global tensors were called consistent. Runs on the nodes, Python 3.6 or
newer, standard library only.
"""

import functools
import os
import sys
from typing import Dict, List, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import oneflow_copy  # noqa: E402

DEVICE_FILES = ["run_pretraining.py", "utils/ofrecord_data_utils.py"]

Edit = Tuple[str, str, int]
"""A text, what takes its place, and how often it stands in the file."""

EDITS: Dict[str, List[Edit]] = {
    "run_pretraining.py": [
        ("bert_model.to_consistent(", "bert_model.to_global(", 1),
        # OneFlow has this schedule itself now; the trainer's own does not work with it.
        ("from utils.lr_scheduler import", "from oneflow.optim.lr_scheduler import", 1),
        ("PolynomialLR(optimizer, steps=steps,", "PolynomialLR(optimizer, decay_batch=steps,", 1),
    ],
    "utils/comm.py": [("tensor.is_consistent", "tensor.is_global", 2), (".to_consistent(", ".to_global(", 2)],
    "utils/lamb_optimizer.py": [("oneflow.nn.optimizer.optimizer", "oneflow.optim.optimizer", 1)],
    # Steps are counted from 1, as everywhere here.
    "utils/metric.py": [('self.metric_dict["step"] = step', 'self.metric_dict["step"] = step + 1', 1)],
    "utils/ofrecord_data_utils.py": [(".to_consistent(", ".to_global(", 7)],
}


def edited(edits: List[Edit], name: str, text: str) -> str:
    """Return the text of a file of the trainer with `edits` made; ValueError where it is not that file."""
    for old, new, count in edits:
        if text.count(old) != count:
            times = text.count(old)
            raise ValueError("%s has %d times %r, not %d: another commit" % (name, times, old, count))
        text = text.replace(old, new)
    return text


def main(argv: List[str]) -> int:
    """Copy and change; return 1 and say why where that is not possible."""
    trainer, target, device = argv[1:]
    try:
        oneflow_copy.copy(trainer, target, device, DEVICE_FILES)
        for name, edits in EDITS.items():
            oneflow_copy.edit(target, name, functools.partial(edited, edits))
    except (OSError, ValueError) as error:
        print("bert_copy.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
