# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print as JSON: versions of torch, torchtitan and torchao, the CUDA of torch, and how many GPUs it sees."""

import json
import os
import sys

# What tasks/install.yml puts beside the environment: the programs lie in `code`, the packages in `packages`.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packages"))

import torch  # noqa: E402
import torchao  # noqa: E402
import torchtitan.models.llama3  # noqa: E402 - with all that the trainer imports

cuda = torch.version.cuda or ""
build = f"for CUDA {cuda}" if cuda else "for CPUs"
versions = f"torch {torch.__version__}, torchtitan {torchtitan.__version__}, torchao {torchao.__version__}"
facts = {
    "versions": versions,
    "torch": torch.__version__,
    "cuda": cuda,
    "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    "fix": f"Its build is {build}. Set pytorch_index_url to an index with a build for GPUs",
    "notes": {"build": f"CUDA {cuda}" if cuda else "CPU", "packages": versions},
}
print(json.dumps(facts))
