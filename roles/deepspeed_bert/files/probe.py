# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of DeepSpeed and torch, and how many GPUs torch sees, as JSON."""

import json
import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")  # DeepSpeed prints what it looks for otherwise

import deepspeed  # noqa: E402 - needs DS_ACCELERATOR
import torch  # noqa: E402

cuda = torch.version.cuda or ""
facts = {
    "versions": f"DeepSpeed {deepspeed.__version__}; torch {torch.__version__}",
    "deepspeed": deepspeed.__version__,
    "torch": torch.__version__,
    "cuda": cuda,
    "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    "fix": "Set pytorch_index_url to an index with a build for GPUs",
    "notes": {"build": f"CUDA {cuda}" if cuda else "CPU"},
}
print(json.dumps(facts))
