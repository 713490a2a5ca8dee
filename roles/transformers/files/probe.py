# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of Transformers, Accelerate and torch, and how many GPUs torch sees, as JSON.

The arguments are programs of the workload; the function `check` of each is called first.
"""

import importlib
import json
import sys

import accelerate
import torch
import torch.distributed.run  # noqa: F401 - starts the trainers
import transformers

for name in sys.argv[1:]:
    importlib.import_module(name).check()

cuda = torch.version.cuda or ""
parts = [f"{each.__name__} {each.__version__}" for each in (transformers, accelerate, torch)]
versions = ", ".join(parts + [f"CUDA {cuda}"] * bool(cuda))
facts = {
    "versions": versions,
    "torch": torch.__version__,
    "cuda": cuda,
    "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    "fix": f"Its build of torch is {f'for CUDA {cuda}' if cuda else 'for CPUs'}. "
    "Set transformers_index_url to an index with a build for GPUs",
    "notes": {"software": versions},
}
print(json.dumps(facts))
