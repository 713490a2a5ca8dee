# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What several files of tests share: installations of frameworks, and four hosts that see them.

Tests of a file run one after the other, and so do those of all files marked with one xdist_group.
"""

import os

import frameworks
import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def installed(framework):
    """Return the fixture by which a test has a framework: minutes the first time, then half a minute."""

    @pytest.fixture(scope="session", name=framework.name)
    def install():
        framework.install()
        return framework

    return install


torch_bert, hf_mlm, deepspeed_bert, horovod_bert = map(installed, frameworks.ALL)


@pytest.fixture(scope="session")
def four_hosts(request):
    """Four hosts that see the frameworks of all tests of this session."""
    if os.geteuid():
        pytest.skip("containers with networks of their own need root")
    named = {name for item in request.session.items for name in item.fixturenames}
    wanted = [framework for framework in frameworks.ALL if framework.name in named]
    for framework in wanted:
        request.getfixturevalue(framework.name)
    frameworks.start_hosts(wanted)
    yield
    frameworks.NODES.down()
