#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Copy the ResNet-50 of Oneflow-Inc/models, and let it use the CPU where the case is for CPUs.

usage: trainer_copy.py TRAINER COPY cpu|gpu

The trainer names its device in the text of three files. For GPUs the copy is the trainer as it is.
Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import os
import shutil
import sys
from typing import List

FILES = ("train.py", "graph.py", "models/data.py")
GPU, CPU = '"cuda"', '"cpu"'


def for_cpu(name: str, text: str) -> str:
    """Return the text of a file of the trainer with its device replaced; ValueError where it names none."""
    if GPU not in text:
        raise ValueError("%s has no %s: it is not the trainer that this role is for" % (name, GPU))
    return text.replace(GPU, CPU)


def copy(trainer: str, target: str, device: str) -> None:
    """Make `target` a copy of the directory `trainer` for a device."""
    shutil.copytree(trainer, target)
    if device == "gpu":
        return
    for name in FILES:
        path = os.path.join(target, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(for_cpu(name, text))


def main(argv: List[str]) -> int:
    """Copy; return 1 and say why where that is not possible."""
    try:
        copy(*argv[1:])
    except (OSError, ValueError) as error:
        print("trainer_copy.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
