# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Import horovod.mxnet, which is not linked with MXNet: the library of MXNet 1.6 is packed with UPX.

Python 3.6 or newer. `from mxnet_horovod import hvd`
"""

import ctypes
import os

import mxnet

# Loaded already; its symbols become visible to Horovod's library.
ctypes.CDLL(os.path.join(os.path.dirname(mxnet.__file__), "libmxnet.so"), mode=ctypes.RTLD_GLOBAL)

import horovod.mxnet as hvd  # noqa: E402

__all__ = ["hvd"]
