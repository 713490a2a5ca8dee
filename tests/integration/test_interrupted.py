# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""provision.yml, interrupted on a bare container node and started again, converges.

The points are drawn from one seed here; tests/cluster/converge draws others, on as many nodes as one likes.
"""

import os

import pytest
from container_nodes import TOOLS, Nodes
from nets import free_net

NODES = Nodes(free_net("10.11.16", "10.12.16", "10.13.16", "10.14.16"), count=1)

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


@pytest.fixture
def cluster():
    yield NODES
    NODES.down()


def test_three_interruptions_of_three_kinds_are_overcome(cluster):
    argv = ["--net", cluster.net, "--nodes", cluster.count, "--kills", "3", "--together", "--seed", "7"]
    done = cluster.run(TOOLS / "converge", *argv, timeout=1500)
    assert done.stdout.endswith("3 of 3 converged\n"), done.stdout
