# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the version of torch, the CUDA that it is built for, and how many GPUs it sees, as JSON.

With the argument `horovod` also the version of Horovod and its operations.
"""

import json
import sys

import numpy  # noqa: F401 - the trainers need it
import torch
import torch.distributed.run  # noqa: F401 - starts them

cuda = torch.version.cuda or ""
build = f"for CUDA {cuda}" if cuda else "for CPUs"
facts = {
    "versions": f"torch {torch.__version__}",
    "torch": torch.__version__,
    "cuda": cuda,
    "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    "fix": f"Its build is {build}. Set pytorch_index_url to an index with a build for GPUs",
    "notes": {"build": f"CUDA {cuda}" if cuda else "CPU"},
}
if "horovod" in sys.argv[1:]:
    import backend
    import horovod.torch as hvd

    facts.update(backend.facts(f"torch {torch.__version__}", hvd))
print(json.dumps(facts))
