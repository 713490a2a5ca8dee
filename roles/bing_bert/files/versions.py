# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of DeepSpeed of 2020 and of its dependencies as one JSON object.

Fails where a package that its trainer imports is missing. Python 3.6 or newer.
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


def main() -> None:
    """Print the versions."""
    versions = {
        "deepspeed": deepspeed.__version__,
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "adam": "torch" if apex.optimizers.FusedAdam.__module__ == "sitecustomize" else "apex",
        "h5py": h5py.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps(versions))


if __name__ == "__main__":
    main()
