# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The nodes of the Slurm allocation that Ansible is started in; see DOCUMENTATION."""

from __future__ import annotations

import getpass
import os
import subprocess
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.plan import allocation  # noqa: E402

DOCUMENTATION = r"""
name: slurm_allocation
short_description: Take the nodes from the Slurm allocation that Ansible is started in
description:
  - The group C(nodes) has the nodes of the allocation, in Slurm's order, with their C(node_address) and, as
    C(slots), the GPUs that the allocation has on each. Steps belong to whoever has started Ansible, the
    C(ansible_user).
author: [Contributors to the scalebook project]
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [slurm_allocation, scalebook.scalebook.slurm_allocation]
"""

ANSWER = 60
"""Seconds that slurmctld has to answer."""

FIX = "Fix: start Ansible in an allocation, made with salloc --nodes=N --exclusive --no-kill"


class InventoryModule(BaseInventoryPlugin):
    """The inventory plugin `slurm_allocation`."""

    NAME = "slurm_allocation"

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Add the nodes of the allocation."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        job = os.environ.get("SLURM_JOB_ID", "")
        if not job:
            raise AnsibleParserError(f"SLURM_JOB_ID is not set. {FIX}")
        answer = self._show("--details", "show", "job", job)
        names = ",".join(allocation.given_gpus(answer))
        if not names:
            raise AnsibleParserError(allocation.without_nodes(answer, job, FIX))
        inventory.add_group("nodes")
        inventory.set_variable("nodes", "ansible_user", getpass.getuser())
        for name, variables in allocation.hosts(answer, self._show("show", "node", names)).items():
            inventory.add_host(name, group="nodes")
            for key, value in variables.items():
                inventory.set_variable(name, key, value)

    def _show(self, *words: str) -> str:
        """Return what scontrol prints."""
        try:
            finished = subprocess.run(
                ["scontrol", "--oneliner", *words], capture_output=True, text=True, check=True, timeout=ANSWER
            )
        except subprocess.CalledProcessError as error:
            reason = error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"]
            raise AnsibleParserError(f"scontrol {' '.join(words)}: {reason[-1]}. {FIX}") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AnsibleParserError(f"scontrol {' '.join(words)}: {error}. {FIX}") from None
        return finished.stdout
