# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What Horovod was built with, what must be there, and what a process says of its place.

As a program it prints what is installed as one JSON object.
"""

import json
import os
import platform
import socket

import horovod
import horovod.torch as hvd
import torch


class LackingError(RuntimeError):
    """Horovod was built without what a run needs; the message says how to see and mend it."""


def operations():
    """Return what Horovod was built with, in the words of `horovodrun --check-build`."""
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


def place():
    """Return this process' place: its node by the gang's word, and its host's own name."""
    return {"node_rank": os.environ["TASK_INDEX"], "host": socket.gethostname(), "rank": hvd.rank()}


def nodes():
    """Return how many nodes really take part: different ones among the processes, not what one was told."""
    seen = hvd.allgather_object((os.environ["TASK_INDEX"], socket.gethostname()))
    return len(set(seen))


def main():
    """Print what is installed."""
    found = {
        "horovod": horovod.__version__,
        "operations": operations(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "python": platform.python_version(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
