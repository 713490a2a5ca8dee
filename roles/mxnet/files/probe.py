# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of MXNet and Horovod, Horovod's operations, and how many GPUs there are, as JSON.

Runs on Python 3.6 and 3.7.
"""

import json

import backend
import horovod.mxnet as hvd
import mxnet

facts = backend.facts("MXNet " + mxnet.__version__, hvd)
facts["gpus"] = mxnet.context.num_gpus()
print(json.dumps(facts))
