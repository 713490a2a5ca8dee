# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Debian 13 is provisioned by the command that a user types, and the second time nothing changes."""

import os

import pytest
from container_nodes import Nodes, changes
from nets import free_net

NODES = Nodes(free_net("10.11.30", "10.12.30", "10.13.30", "10.14.30"), count=1)

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


def test_the_second_run_on_a_host_that_was_bare_changes_nothing(request):
    request.addfinalizer(NODES.down)
    NODES.up("--systems", "debian13")
    given = {"provision_components": ["openmpi"], "stack_name": "modern", "provision_force": True}
    first, second = [changes(NODES.playbook("provision.yml", "/opt/scalebook", **given)) for _ in range(2)]
    assert first["NODE1"] > 0
    assert second == {"NODE1": 0}
