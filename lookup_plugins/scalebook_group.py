# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A group of hosts that a play cannot do without; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = r"""
name: scalebook_group
short_description: Return the name of a group, and refuse an inventory that has no hosts in it
description:
  - For the C(hosts) of a play. Ansible skips a play without hosts, and ends with success.
options:
  _terms:
    description: Name of the group.
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Check the nodes
  hosts: "{{ lookup('scalebook_group', 'nodes') }}"
"""

RETURN = r"""
_raw:
  description: The name of the group.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_group`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        """Return the name of the group."""
        if kwargs:
            raise AnsibleError(f"scalebook_group has no option {', '.join(kwargs)}")
        variables = variables or {}
        for group in map(str, terms):
            if not variables.get("groups", {}).get(group):
                sources = ", ".join(map(str, variables.get("ansible_inventory_sources") or ())) or "none"
                raise AnsibleError(
                    f"The inventory has no hosts in the group {group} (-i: {sources}). Fix: name one that "
                    f"has, such as -i inventory/local, or list machines under {group} as inventory/cluster "
                    "does"
                )
        return [str(term) for term in terms]
