# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the version of PaddlePaddle, how many GPUs it sees, and whether it finds cuDNN, as JSON.

Runs on Python 3.7, with 1.8 and 2.6.
"""

import json
import os
import sys
from typing import Any, Dict

import paddle


def facts() -> Dict[str, Any]:
    """Return what the record of an installation has of Paddle."""
    old = paddle.__version__.startswith("1.")
    core = paddle.fluid.core if old else paddle.base.core
    record = {"versions": "PaddlePaddle " + paddle.__version__, "gpus": 0}
    if not core.is_compiled_with_cuda():
        return record
    record["versions"] += " for CUDA " + ("10.0" if old else str(paddle.version.cuda()))
    record["gpus"] = core.get_cuda_device_count()
    # 1.8 does not tell. Where the loader does not find it, Paddle is imported and no model trains.
    if record["gpus"] and not old and paddle.device.get_cudnn_version() is None:
        record["problem"] = "does not find cuDNN in " + os.environ.get("LD_LIBRARY_PATH", "")
        record["fix"] = "Remove %s and run provision.yml again" % sys.prefix
    return record


if __name__ == "__main__":
    print(json.dumps(facts()))
