# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The operations that Horovod was built with, and the one that sums the gradients. Python 3.6 or newer."""

from typing import Any, Dict, List

import horovod


class MissingOperationError(RuntimeError):
    """Horovod was built without an operation that a run needs; the message names the check and the fix."""


def operations(hvd: Any) -> List[str]:
    """Return the operations of `hvd` (horovod.torch, horovod.tensorflow), as --check-build names them."""
    is_built_of = (("NCCL", hvd.nccl_built()), ("MPI", hvd.mpi_built()), ("Gloo", hvd.gloo_built()))
    return [name for name, is_built in is_built_of if is_built]


def facts(framework: str, hvd: Any) -> Dict[str, Any]:
    """Return what a record of an installation says of `framework`, a name and version, and of Horovod."""
    names = operations(hvd)
    versions = "%s; Horovod %s with %s" % (framework, horovod.__version__, ", ".join(names))
    device = "gpu" if "NCCL" in names else "cpu"
    return {"versions": versions, "operations": names, "device": device, "notes": {"software": versions}}


def backend(device: str, operations: List[str]) -> str:
    """Return the operation that sums gradients of `device` (cpu or gpu), or raise MissingOperationError.

    Without NCCL, gradients of GPUs go through the hosts' memory, and two GPUs are slower than one.
    """
    suitable = ["NCCL"] if device == "gpu" else ["MPI", "Gloo"]
    usable = [name for name in suitable if name in operations]
    if not usable:
        raise MissingOperationError(
            "Horovod %s was built with %s, a run on a %s needs %s: see `horovodrun --check-build`, "
            "and build it again with ansible-playbook provision.yml"
            % (horovod.__version__, ", ".join(operations) or "nothing", device, " or ".join(suitable))
        )
    return usable[0].lower()
