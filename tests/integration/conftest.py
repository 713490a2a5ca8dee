# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What several files of tests share: installations of frameworks, and hosts that see them."""

import os
from fnmatch import fnmatch
from pathlib import PurePath

import bare_hosts
import frameworks
import local_nodes
import pytest
from xdist.scheduler import LoadFileScheduling

# The files of a unit share hosts, or the local nodes of the checkout: one worker runs them in turn.
# Units are started in this order, longest first; a file that no unit names is a unit of its own, after these.
UNITS = [
    # Two hosts that see the workloads of today.
    (
        "test_several_workloads.py",
        "test_deepspeed_bert.py",
        "test_horovod*bert*.py",
        "test_torch_bert_cluster.py",
        "test_torch_gpt2_modes.py",
        "test_torch_wide_deep.py",
        "test_torch_insightface.py",
        "test_hf_mlm_wandb.py",
        "test_genuine_acceptance_programs.py",
        "test_bing*.py",
        "test_containers.py",
    ),
    # Four hosts that were bare, then the checkout's own installation and local nodes.
    (
        "test_tf2_bert_cluster.py",
        "test_faults.py",
        "test_demo.py",
        "test_bench_playbook.py",
        "test_legacy.py",
    ),
    ("test_bare_node.py",),
    ("test_molecule.py",),
    ("test_openmpi_role.py",),
    ("test_mirror_cluster.py",),
    ("test_interrupted.py",),
    ("test_secrets.py",),
    ("test_preflight.py",),
    ("test_cluster.py",),
    ("test_horovod_role.py",),
    ("test_report_playbook.py",),
    ("test_hostile_input.py",),
    ("test_mirror.py",),
]
# Each worker of pytest has this machine for itself; containers are machines of their own.
os.environ["SCALEBOOK_LOCK_DIRECTORY"] = str(
    local_nodes.HOME / f"test-lock-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
)
# Fixtures that two workers must not have at the same time.
SHARED = ("two_hosts", "provisioned_hosts", *frameworks.PARTS)


def unit_of(path):
    """Return the place of a file's unit in UNITS."""
    name = PurePath(path).name
    places = (i for i, patterns in enumerate(UNITS) if any(fnmatch(name, pattern) for pattern in patterns))
    return next(places, len(UNITS))


def place_of(path):
    """Return what files are sorted by: the unit, then the file's place in it."""
    name, unit = PurePath(path).name, unit_of(path)
    patterns = UNITS[unit] if unit < len(UNITS) else ()
    return unit, next((i for i, pattern in enumerate(patterns) if fnmatch(name, pattern)), 0), name


def pytest_collection_modifyitems(items):
    """Start the units that take longest first. The tests of a file keep their order."""
    ours = [item for item in items if "tests/integration/" in item.nodeid]
    ours.sort(key=lambda item: place_of(item.nodeid.split("::")[0]))
    rest = [item for item in items if "tests/integration/" not in item.nodeid]
    items[:] = rest + ours
    for name in SHARED:
        paths = sorted({item.nodeid.split("::")[0] for item in ours if name in item.fixturenames})
        if len({unit_of(path) for path in paths}) > 1 or (
            paths and unit_of(paths[0]) == len(UNITS) < len(paths)
        ):
            raise pytest.UsageError(
                f"fixture {name} is shared by {', '.join(paths)}: put them into one unit of UNITS"
            )


class ByUnit(LoadFileScheduling):
    """Give the tests of a unit to one worker.

    xdist's own groups need names of tests that pytest 9.2 does not let it change.
    """

    def _split_scope(self, nodeid):
        path = super()._split_scope(nodeid)
        unit = unit_of(path)
        return str(unit) if unit < len(UNITS) else path

    def _reschedule(self, node):
        """Take a further unit at the last test only: it has to wait for the tests before it."""
        if self.workqueue and self._pending_of(self.assigned_work[node]) > 1:
            return
        super()._reschedule(node)


def pytest_xdist_make_scheduler(config, log):
    return ByUnit(config, log)


@pytest.fixture(scope="session")
def frameworks_here(request):
    """Install the workloads that tests of this session name: minutes the first time, then half a minute.

    Returns what provision.yml printed when it found all in place.
    """
    return frameworks.install(named(request))


def named(request):
    """Return the workloads that tests of this session name as fixtures."""
    names = {name for item in request.session.items for name in item.fixturenames}
    return [name for name in frameworks.PARTS if name in names]


def installed(workload):
    """Return the fixture by which a test names a workload that it needs on this machine."""

    @pytest.fixture(scope="session", name=workload)
    def home(frameworks_here):
        return frameworks.HOME

    return home


tf2_bert, torch_bert, hf_mlm, deepspeed_bert, horovod_bert = map(installed, list(frameworks.PARTS)[:5])
torch_resnet50, torch_gpt2, torch_wide_deep, torch_insightface = map(installed, list(frameworks.PARTS)[5:9])
hf_llama, torchtitan_llama = map(installed, list(frameworks.PARTS)[9:])


@pytest.fixture(scope="session")
def two_hosts(request, frameworks_here):
    """Two hosts, provisioned for the workloads that tests of this session name. Takes two minutes."""
    if os.geteuid():
        pytest.skip("containers with networks of their own need root")
    request.addfinalizer(frameworks.NODES.down)
    frameworks.start_hosts(named(request))


@pytest.fixture(scope="session")
def provisioned_hosts(request):
    """Four hosts that were bare (see bare_hosts), and what provisioning them printed."""
    if os.geteuid():
        pytest.skip("containers with networks of their own need root")
    request.addfinalizer(bare_hosts.NODES.down)
    return bare_hosts.start()
