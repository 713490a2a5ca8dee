# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The hosts that a play cannot do without; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = r"""
name: scalebook_hosts
short_description: Return the hosts of a play, and refuse a run that would leave them out
description:
  - For the C(hosts) of a play. Ansible skips a play without hosts, and ends with success.
  - An inventory that has no hosts in the group is refused.
options:
  _terms:
    description: Name of the group, or C(localhost).
    type: list
    elements: str
    required: true
  unlimited:
    description: Whether C(--limit) is refused. It leaves out C(localhost) too, on which reports are written.
    type: bool
    default: false
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Check the nodes
  hosts: "{{ lookup('scalebook_hosts', 'nodes', unlimited=true) }}"
"""

RETURN = r"""
_raw:
  description: The name of the group.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_hosts`."""

    def run(
        self,
        terms: Sequence[Any],
        variables: Mapping[str, Any] | None = None,
        unlimited: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Return the name of the group."""
        if kwargs:
            raise AnsibleError(f"scalebook_hosts has no option {', '.join(kwargs)}")
        variables, names = variables or {}, [str(term) for term in terms]
        for group in names:
            if group != "localhost" and not variables.get("groups", {}).get(group):
                sources = ", ".join(map(str, variables.get("ansible_inventory_sources") or ())) or "none"
                raise AnsibleError(
                    f"The inventory has no hosts in the group {group} (-i: {sources}). Fix: name one that "
                    f"has, such as -i inventory/local, or list machines under {group} as inventory/cluster "
                    "does"
                )
        if unlimited and variables.get("ansible_limit"):
            raise AnsibleError(
                f"--limit {variables['ansible_limit']}: this playbook needs all nodes of the inventory, and "
                "localhost for the report. Fix: leave out --limit; -e nodes=1 measures on the first node, "
                "-i takes an inventory of others"
            )
        return names
