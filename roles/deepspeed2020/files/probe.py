# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of DeepSpeed of 2020 and torch, and how many GPUs torch sees, as JSON.

Fails where a package that DeepSpeed or its trainer imports is missing. Python 3.6 or newer.
"""

import json
import os

import apex.optimizers
import boto3  # noqa: F401 - the trainer imports it
import deepspeed
import h5py  # noqa: F401 - the trainer imports it
import requests  # noqa: F401 - the trainer imports it
import torch
import tqdm  # noqa: F401 - the trainer imports it

# A checkout of a commit has its number as the content of HEAD.
with open(os.path.join(os.path.dirname(os.path.dirname(deepspeed.__file__)), ".git/HEAD")) as head:
    commit = head.read()[:12]
cuda = torch.version.cuda or ""
adam = "torch" if apex.optimizers.FusedAdam.__module__ == "sitecustomize" else "apex"
facts = {
    "versions": "DeepSpeed %s at %s; torch %s; Adam of %s"
    % (deepspeed.__version__, commit, torch.__version__, adam),
    "torch": torch.__version__,
    "cuda": cuda,
    "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
    "fix": "Set bing_bert_python to an interpreter whose torch has code for them",
    "notes": {"build": "CUDA " + cuda if cuda else "CPU"},
}
print(json.dumps(facts))
