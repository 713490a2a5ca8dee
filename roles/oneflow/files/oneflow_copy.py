#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Copy a trainer of Oneflow-Inc/models, and let it use the CPU where the case is for CPUs.

usage: oneflow_copy.py TRAINER COPY cpu|gpu FILE ...

These trainers name their device in their text; FILE are the files that do. For GPUs the copy is the trainer
as it is.
Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import os
import shutil
import sys
from typing import Callable, List

GPU, CPU = '"cuda"', '"cpu"'


def for_cpu(name: str, text: str) -> str:
    """Return the text of a file of the trainer with its device replaced; ValueError where it names none."""
    if GPU not in text:
        raise ValueError("%s has no %s: it is not the trainer that this role is for" % (name, GPU))
    return text.replace(GPU, CPU)


def edit(folder: str, name: str, change: Callable[[str, str], str]) -> None:
    """Replace the text of the file `name` by `change(name, text)`."""
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(change(name, text))


def copy(trainer: str, target: str, device: str, files: List[str]) -> None:
    """Make `target` a copy of the directory `trainer` for a device, which `files` name."""
    shutil.copytree(trainer, target)
    if device == "cpu":
        for name in files:
            edit(target, name, for_cpu)


def main(argv: List[str]) -> int:
    """Copy; return 1 and say why where that is not possible."""
    trainer, target, device, *files = argv[1:]
    try:
        copy(trainer, target, device, files)
    except (OSError, ValueError) as error:
        print("oneflow_copy.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
