# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What Horovod was built with, and what of it carries the gradients. Python 3.6 or newer."""

import horovod


class LackingError(RuntimeError):
    """Horovod was built without what a run needs; the message says how to see and mend it."""


def operations(hvd):
    """Return what `hvd` (horovod.torch, horovod.tensorflow) was built with, in the words of --check-build."""
    built = (("NCCL", hvd.nccl_built()), ("MPI", hvd.mpi_built()), ("Gloo", hvd.gloo_built()))
    return [name for name, there in built if there]


def backend(device, built):
    """Return what carries the gradients of `device` (cpu or gpu), or raise LackingError.

    Without NCCL gradients of GPUs go through the hosts' memory, and two GPUs are slower than one.
    """
    wanted = ["NCCL"] if device == "gpu" else ["MPI", "Gloo"]
    found = [name for name in wanted if name in built]
    if not found:
        raise LackingError(
            "Horovod %s was built with %s, a run on a %s needs %s: see `horovodrun --check-build`, "
            "and build it anew with ansible-playbook provision.yml"
            % (horovod.__version__, ", ".join(built) or "nothing", device, " or ".join(wanted))
        )
    return found[0].lower()
