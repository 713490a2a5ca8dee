# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of torch and Horovod, Horovod's operations, and how many GPUs torch sees, as JSON."""

import json

import backend
import horovod.torch as hvd
import torch

facts = backend.facts("torch " + torch.__version__, hvd)
facts["gpus"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps(facts))
