# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run the launcher of DeepSpeed 1afca8f for this node's ranks, and end them all when one fails.

    python upstream_launch.py NODES GPUS FIRST NODE_RANK ADDRESS PORT SCRIPT [ARGUMENT ...]

The launcher waits for its ranks one after the other and takes no notice of how they end: without this, a
rank that is gone leaves the others waiting for it, and at the end nobody knows. FIRST is the number of the
node's first GPU. Python 3.6 or newer.
"""

import base64
import json
import subprocess
import sys
import time

from deepspeed.launcher import launch

EVERY = 0.2
"""Seconds between two looks at the ranks."""


class Rank(subprocess.Popen):
    """A rank as the launcher starts it; to wait for one is to look after all."""

    ranks = []

    def __init__(self, *positional, **named):
        super().__init__(*positional, **named)
        self.ranks.append(self)

    def wait(self, timeout=None):
        """Return when this one has ended well; ends all and the launcher when any has not."""
        while self.poll() is None:
            time.sleep(EVERY)
            self.look()
        self.look()
        return 0

    @classmethod
    def look(cls):
        """End everything where a rank has failed."""
        for number, rank in enumerate(cls.ranks):
            code = rank.poll()
            if code:
                for other in cls.ranks:
                    other.kill()
                how = "signal %d" % -code if code < 0 else "exit code %d" % code
                sys.exit("deepspeed: rank %d of this node was ended by %s" % (number, how))


def world(nodes, gpus, first):
    """Return who has which GPUs, as the launcher wants it; names of nodes are of no matter here."""
    every = {"rank%d" % node: list(range(first, first + gpus)) for node in range(nodes)}
    return base64.urlsafe_b64encode(json.dumps(every).encode()).decode()


def main():
    """Start and wait."""
    nodes, gpus, first, node_rank = (int(word) for word in sys.argv[1:5])
    address, port = sys.argv[5:7]
    subprocess.Popen = Rank
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
