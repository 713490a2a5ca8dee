# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run the launcher of DeepSpeed 1afca8f for this node's ranks, and stop them all when one fails.

    python launch_node.py NODES GPUS FIRST NODE_RANK ADDRESS PORT SCRIPT [ARGUMENT ...]

The launcher waits for its ranks one after the other and ignores their exit status: a rank that has failed
leaves the others waiting for it, and nothing reports the failure. FIRST is the number of the node's first
GPU. Python 3.6 or newer.
"""

import base64
import json
import subprocess
import sys
import time
from typing import Any, List, Optional

from deepspeed.launcher import launch

INTERVAL = 0.2
"""Seconds between two checks of the ranks."""


class Rank(subprocess.Popen):  # type: ignore[type-arg]
    """A rank as the launcher starts it; waiting for one monitors all of them."""

    ranks: "List[Rank]" = []

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        self.ranks.append(self)

    def wait(self, timeout: Optional[float] = None) -> int:
        """Return when this rank has succeeded; stop all ranks and the launcher when any has failed."""
        while self.poll() is None:
            time.sleep(INTERVAL)
            self.check_all()
        self.check_all()
        return 0

    @classmethod
    def check_all(cls) -> None:
        """Stop all ranks and the launcher when a rank has failed."""
        for number, rank in enumerate(cls.ranks):
            code = rank.poll()
            if code:
                for other in cls.ranks:
                    other.kill()
                reason = "signal %d" % -code if code < 0 else "exit code %d" % code
                sys.exit("deepspeed: rank %d of this node was ended by %s" % (number, reason))


def world(nodes: int, gpus: int, first: int) -> str:
    """Return the launcher's --world_info, which GPUs each node has; the names of the nodes are not used."""
    gpus_of = {"rank%d" % node: list(range(first, first + gpus)) for node in range(nodes)}
    return base64.urlsafe_b64encode(json.dumps(gpus_of).encode()).decode()


def main() -> None:
    """Start the ranks and wait for them."""
    nodes, gpus, first, node_rank = (int(word) for word in sys.argv[1:5])
    address, port = sys.argv[5:7]
    subprocess.Popen = Rank  # type: ignore[misc]
    sys.argv = [
        "launch",
        "--world_info=" + world(nodes, gpus, first),
        "--node_rank=%d" % node_rank,
        "--master_addr=" + address,
        "--master_port=" + port,
    ] + sys.argv[7:]
    launch.main()


if __name__ == "__main__":
    main()
