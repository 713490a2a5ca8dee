# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which packages a ready node of the test cluster has."""

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/cluster"))

from testcluster import ready, slurm  # noqa: E402


def test_a_ready_node_has_the_packages_of_role_node_and_venv():
    defaults = yaml.safe_load((ROOT / "roles/node/defaults/main.yml").read_text())
    assert ready.packages() == [*defaults["node_packages"], "python3-venv"]


def test_a_node_with_slurm_is_a_ready_one_with_its_packages_besides():
    assert ready.packages(ready.SLURM) == [*ready.packages(), *slurm.PACKAGES]
