# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Where Open MPI comes from by default: a package, or its source where glibc is too old for that."""

from pathlib import Path

import pytest
import yaml
from rendering import rendered

ROLE = Path(__file__).resolve().parents[3] / "roles/openmpi"
VARIABLES = yaml.safe_load((ROLE / "vars/main.yml").read_text())
DEFAULTS = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
STACKS = sorted(ROLE.parents[1].glob("playbooks/vars/stack_*.yml"))


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("scalebook-libc glibc 2.17", "build"),  # CentOS 7, on a node of Slurm
        ("scalebook-libc glibc 2.27\r\n", "build"),  # Ubuntu 18.04
        ("scalebook-libc glibc 2.28", "registry"),  # Debian 10, release 8 of the RHEL family
        ("scalebook-libc glibc 2.36", "registry"),
        ("scalebook-libc ", "registry"),
        ("", "registry"),
    ],
)
def test_a_system_that_is_too_old_for_the_package_compiles_the_release(said, source):
    values = {**VARIABLES, "preflight_system": {"stdout": said}}
    for name in ("__openmpi_answer", "__openmpi_glibc", "__openmpi_too_old"):
        values[name] = rendered(VARIABLES[name], values)
    assert rendered(DEFAULTS["openmpi_source"], values) == source


@pytest.mark.parametrize("stack", STACKS, ids=lambda file: file.stem)
def test_the_release_of_each_stack_can_be_compiled_with_its_checksum_known(stack):
    version = yaml.safe_load(stack.read_text())["stack"]["openmpi"]["version"]
    assert version in VARIABLES["__openmpi_releases"]
