# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads whose real trainers no test starts are installed on a bare host; again, that changes nothing."""

import os

import bare_node
import pytest

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


def test_every_other_workload_passes_the_scenario_on_a_bare_host(request, tmp_path):
    request.addfinalizer(bare_node.NODES.down)
    bare_node.play(tmp_path)
