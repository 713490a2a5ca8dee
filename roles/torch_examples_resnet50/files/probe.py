# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Import torchvision beside any torch; as a program, print what main.py of pytorch/examples runs with (JSON).

Python 3.7 or newer.
"""

import importlib
import json
import os
import sys
from typing import Any

import examples_flags
import torch

# Operators that torchvision describes when it is imported, and that its build for CUDA cannot load beside a
# torch for CPUs. Training uses none of them.
UNLOADED = ("nms", "qnms")


def torchvision() -> Any:
    """Return the module. Where its operators cannot be loaded they are declared, so that it is imported."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in UNLOADED:
            library.define("%s(Tensor dets, Tensor scores, float iou_threshold) -> Tensor" % name)
        module: Any = importlib.import_module("torchvision")
        module.scalebook_library = library  # the operators live as long as it does
        return module


def main() -> None:
    """Print the versions; end where main.py has no place for the line that it needs on CPUs."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), sys.argv[1], "main.py")
    try:
        with open(path, encoding="utf-8") as file:
            examples_flags.for_cpus(file.read(), path)
    except (OSError, examples_flags.FlagsError) as error:
        sys.exit(str(error))
    cuda = torch.version.cuda or ""
    versions = {"torch": torch.__version__, "torchvision": torchvision().__version__}
    facts = {
        **versions,
        "versions": ", ".join("%s %s" % pair for pair in versions.items()),
        "cuda": cuda,
        "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "fix": "Set pytorch_index_url to an index with a build for GPUs",
        "notes": {"build": "CUDA %s" % cuda if cuda else "CPU"},
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
