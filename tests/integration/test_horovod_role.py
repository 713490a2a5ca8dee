# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Role horovod on two local nodes, built from a source that takes a second instead of minutes.

The role's own tasks build, copy, check and start the stand-in, with a real pip and a real mpirun; the
variables of the build decide what it supports. `molecule test -s horovod` builds the real release.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile

import pytest
from local_nodes import HOME, ROOT, provision

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"

# A framework's environment in which torch is a version and an array.
TORCH = {
    "version.py": "__version__ = '2.13.0+cpu'\ncuda: str | None = None\n",
    "__init__.py": "def full(shape, value):\n    return [value] * shape[0]\n",
    "utils/cpp_extension.py": "FLAGS = ['-std=c++20']\n",
}

# The release: STAND_IN_BREAKS is an error of its compiler, STAND_IN_WRONG is added to every sum.
RELEASE = {
    "setup.py": """\
import os, pathlib, re, sys
from setuptools import setup
if "STAND_IN_BREAKS" in os.environ:
    sys.exit(os.environ["STAND_IN_BREAKS"])
given = {name: value for name, value in os.environ.items() if name.startswith(("HOROVOD_", "STAND_IN_"))}
for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
    given[name] = re.search(r"CMAKE_CXX_STANDARD (\\d+)", pathlib.Path(name).read_text())[1]
pathlib.Path("horovod/given.py").write_text("GIVEN = %r" % given)
setup(name="horovod", version="0.28.1", packages=["horovod", "horovod.torch"], scripts=["bin/horovodrun"])
""",
    "CMakeLists.txt": "set(CMAKE_CXX_STANDARD 14)\n",
    "horovod/torch/CMakeLists.txt": "    set(CMAKE_CXX_STANDARD 14)\n",
    "horovod/__init__.py": "",
    "horovod/torch/__init__.py": """\
import os
from horovod.given import GIVEN
Sum = "sum"
def init(): pass
def rank(): return int(os.environ["OMPI_COMM_WORLD_RANK"])
def size(): return int(os.environ["OMPI_COMM_WORLD_SIZE"])
def allreduce(value, op, name):
    return [size() * (size() + 1) // 2 + int(GIVEN.get("STAND_IN_WRONG", 0))] * len(value)
""",
    # NCCL is never found, as where its headers are not installed.
    "bin/horovodrun": """\
#!python
from horovod.given import GIVEN
def line(name):
    return "    [%s] %s" % ("X" if "HOROVOD_WITH_" + name.upper() in GIVEN else " ", name)

print("Horovod v0.28.1:", "", "Available Frameworks:", line("PyTorch"), line("TensorFlow"), "",
      "Available Controllers:", line("MPI"), line("Gloo"), "",
      "Available Tensor Operations:", line("NCCL"), line("MPI"), line("Gloo"), sep="\\n")
""",
}

PLAY = """\
- hosts: nodes
  gather_facts: false
  vars_files: ["{{ ansible_config_file | dirname }}/playbooks/vars/stack_modern.yml"]
  tasks:
    - ansible.builtin.include_role: {name: horovod}
"""

pytestmark = pytest.mark.slow


def write(files, folder):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Nodes:
    """NODE1 and NODE2, two directories of this machine; mpirun is the local nodes' own."""

    def __init__(self, folder):
        self.folder = folder
        self.version_file = folder / f"framework/lib/python{VERSION}/site-packages/torch/version.py"
        subprocess.run([sys.executable, "-m", "venv", folder / "framework"], check=True)
        write(TORCH, self.version_file.parent)
        write(RELEASE, folder / "horovod-0.28.1")
        (folder / "play.yml").write_text(PLAY)
        hosts = {
            name: {"ansible_connection": "local", "scalebook_home": str(folder / name)}
            for name in ("NODE1", "NODE2")
        }
        (folder / "hosts.json").write_text(json.dumps({"nodes": {"hosts": hosts}}))
        sdist = folder / "horovod-0.28.1.tar.gz"
        with tarfile.open(sdist, "w:gz") as tar:
            tar.add(folder / "horovod-0.28.1", "horovod-0.28.1")
        self.variables = {
            "ansible_python_interpreter": sys.executable,
            "openmpi_home": str(HOME / "openmpi"),
            "horovod_framework": "pytorch",
            "horovod_device": "cpu",
            "horovod_venv": str(folder / "framework"),
            "horovod_wheels": str(folder / "wheels"),
            "horovod_sdist": str(sdist),
            "horovod_sdist_sha256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
        }

    def run(self, *options, path="", **variables):
        argv = ["ansible-playbook", "-i", self.folder / "hosts.json", self.folder / "play.yml", *options]
        env = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        return subprocess.run(
            [*argv, "-e", json.dumps({**self.variables, **variables})],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900, cwd=ROOT,
            env={**os.environ, **env, "PATH": f"{path}{ROOT / '.venv/bin'}:{os.environ['PATH']}"},
        )  # fmt: skip

    def refused(self, **variables):
        """Run the role on NODE1, which must refuse; return its output as one line."""
        done = self.run("--limit", "NODE1", **variables)
        assert done.returncode == 2, done.stdout[-3000:] + done.stderr
        return re.sub(r"\s+", " ", done.stdout.replace("\\n", " ") + done.stderr)

    def home(self, node):
        return self.folder / node / "horovod/pytorch"

    def kept(self):
        return [json.loads(path.read_text()) for path in self.folder.glob("wheels/*/wheel.json")]


def changes(done):
    """Return {node: changed} of a play that must have ended well."""
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return {node: int(count) for node, count in re.findall(r"^(NODE\d) .*changed=(\d+)", done.stdout, re.M)}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Have mpirun on this machine, and nodes without Horovod."""
    provision("scripted")
    return Nodes(tmp_path_factory.mktemp("horovod"))


@pytest.fixture(scope="module")
def first(nodes):
    """What the first start changed."""
    return changes(nodes.run())


# -- one wheel is built, verified and copied ----------------------------------------------------------------


def test_a_wheel_is_built_on_one_node_and_is_the_same_on_both(nodes, first):
    assert all(count > 0 for count in first.values())
    assert sorted(path.name for path in nodes.home("NODE1").iterdir()) == ["build.log", "venv"]
    assert sorted(path.name for path in nodes.home("NODE2").iterdir()) == ["venv"]
    records = [(nodes.home(node) / "venv/horovod.json").read_text() for node in ("NODE1", "NODE2")]
    assert records[0] == records[1]
    assert json.loads(records[0])["operations"] == ["MPI", "Gloo"]


def test_the_build_gets_everything_by_name_and_the_standard_of_the_framework(nodes, first):
    script = "import json; from horovod.given import GIVEN; print(json.dumps(GIVEN))"
    python = nodes.home("NODE2") / "venv/bin/python"
    given = json.loads(subprocess.run([python, "-c", script], check=True, capture_output=True).stdout)
    assert sorted(name for name in given if "WITH" in name) == [
        "HOROVOD_WITHOUT_MXNET", "HOROVOD_WITHOUT_TENSORFLOW",
        "HOROVOD_WITH_GLOO", "HOROVOD_WITH_MPI", "HOROVOD_WITH_PYTORCH",
    ]  # fmt: skip
    assert [given["CMakeLists.txt"], given["horovod/torch/CMakeLists.txt"]] == ["20", "20"]


def test_a_second_start_changes_nothing(nodes, first):
    assert changes(nodes.run()) == {"NODE1": 0, "NODE2": 0}


# -- refusals -----------------------------------------------------------------------------------------------


def test_another_source_than_the_known_one_is_refused(nodes, first):
    heard = nodes.refused(horovod_sdist_sha256="")
    assert "expected is 92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0" in heard


def test_nccl_is_refused_for_a_framework_without_gpus(nodes, first):
    heard = nodes.refused(horovod_operations=["NCCL", "MPI"])
    assert f"torch 2.13.0+cpu in {nodes.folder}/framework is a build for CPUs" in heard


def test_a_build_that_lacks_nccl_is_refused_with_a_fix_and_removed(nodes, first):
    text = nodes.version_file.read_text()
    nodes.version_file.write_text(text.replace("= None", "= '13.0'"))
    try:
        heard = nodes.refused(horovod_operations=["NCCL", "MPI"])
    finally:
        nodes.version_file.write_text(text)
    assert "lacks NCCL; required is PyTorch with NCCL, MPI" in heard
    assert "Fix for NCCL: install NCCL with its headers" in heard
    assert ["HOROVOD_GPU_OPERATIONS" in wheel["recipe"]["environment"] for wheel in nodes.kept()] == [False]


def test_a_build_that_fails_is_refused_with_its_error_and_a_fix(nodes, first):
    error = "CMake Error at CMakeLists.txt:9: Could NOT find MPI_CXX"
    heard = nodes.refused(horovod_environment={"STAND_IN_BREAKS": error})
    assert error in heard
    assert "Fix: install an Open MPI with mpicxx and headers" in heard
    assert f"The whole log is {nodes.home('NODE1')}/build.log there" in heard


def test_an_old_compiler_is_refused(nodes, first):
    compiler = nodes.folder / "old/g++"
    write({"g++": "#!/bin/sh\necho 9.4.0\n"}, compiler.parent)
    compiler.chmod(0o755)
    heard = nodes.refused(path=f"{compiler.parent}:", horovod_environment={"STAND_IN_OTHER": "1"})
    assert "NODE1 has g++ 9.4.0; Horovod 0.28.1 for pytorch 2.13.0+cpu needs g++ 10 or newer" in heard


def test_a_horovod_that_adds_wrongly_is_refused_and_not_recorded(nodes, first):
    heard = nodes.refused(horovod_environment={"STAND_IN_WRONG": "1"})
    assert "0 2 4, 1 2 4; expected are 0 2 3, 1 2 3" in heard
    record = json.loads((nodes.home("NODE1") / "venv/horovod.json").read_text())
    assert record["environment"].get("STAND_IN_WRONG") is None
