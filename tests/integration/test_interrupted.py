# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""provision.yml, interrupted at random points on bare container nodes and started again, converges."""

import os

import pytest
from container_nodes import TOOLS, Nodes
from nets import free_net

NODES = Nodes(free_net("10.11.16", "10.12.16", "10.13.16", "10.14.16"), count=2)

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
    argv = ["--net", cluster.net, "--nodes", cluster.count, "--kills", "3", "--together"]
    done = cluster.run(TOOLS / "converge", *argv, timeout=1500)
    assert done.stdout.endswith("3 of 3 converged\n"), done.stdout
