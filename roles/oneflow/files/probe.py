# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the version of OneFlow and how many GPUs it sees, as JSON."""

import json

import oneflow

print(json.dumps({"versions": "OneFlow " + oneflow.__version__, "gpus": oneflow.cuda.device_count()}))
