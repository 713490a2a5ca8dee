# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What DeepSpeed of 2020 runs on here: one JSON object.

Imports what its trainer imports. Python 3.6 or newer.
"""

import json
import platform

import apex.optimizers
import boto3  # noqa: F401 - the trainer imports it
import deepspeed
import h5py
import requests  # noqa: F401 - the trainer imports it
import torch
import tqdm  # noqa: F401 - the trainer imports it


def main():
    """Print what is installed."""
    found = {
        "deepspeed": deepspeed.__version__,
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "adam": "torch" if apex.optimizers.FusedAdam.__module__ == "sitecustomize" else "apex",
        "h5py": h5py.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
