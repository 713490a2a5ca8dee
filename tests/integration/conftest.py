# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What several files of tests share: installations of frameworks, and four hosts that see them."""

import os

import frameworks
import pytest
from xdist.scheduler import LoadFileScheduling

# xdist's own groups need a name of the test that pytest 9.2 does not let it change.
SHARING = (
    "test_deepspeed.py",
    "test_deepspeed_2020.py",
    "test_hf_mlm.py",
    "test_horovod_bert.py",
    "test_torch_bert_cluster.py",
)


class ByFile(LoadFileScheduling):
    """Tests of a file go to one worker, and those of all files that share something to the same one."""

    def _split_scope(self, nodeid):
        scope = super()._split_scope(nodeid)
        return "sharing" if scope.endswith(SHARING) else scope


def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


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
