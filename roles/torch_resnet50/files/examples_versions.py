# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Import torchvision beside any torch; as a program, print what main.py of pytorch/examples runs with (JSON).

Python 3.7 or newer.
"""

import importlib
import json
from typing import Any

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
    """Print the versions."""
    versions = {
        "torch": torch.__version__,
        "torchvision": torchvision().__version__,
        "cuda": torch.version.cuda or "",
        "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    }
    print(json.dumps(versions))


if __name__ == "__main__":
    main()
