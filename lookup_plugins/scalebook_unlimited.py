# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Hosts of a play that --limit must not make fewer; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = r"""
name: scalebook_unlimited
short_description: Return the hosts of a play, and refuse C(--limit)
description:
  - For the C(hosts) of a play that needs all of them. C(--limit) leaves out C(localhost) too, on which
    reports are written, and Ansible skips such a play without an error.
options:
  _terms:
    description: The pattern of the hosts.
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Report on measurements
  hosts: "{{ lookup('scalebook_unlimited', 'localhost') }}"
"""

RETURN = r"""
_raw:
  description: The pattern.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_unlimited`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        """Return the pattern."""
        if kwargs:
            raise AnsibleError(f"scalebook_unlimited has no option {', '.join(kwargs)}")
        limit = (variables or {}).get("ansible_limit")
        if limit:
            raise AnsibleError(
                f"--limit {limit}: this playbook needs all nodes of the inventory, and localhost for the "
                "report. Fix: leave out --limit; -e nodes=1 measures on the first node, -i takes an "
                "inventory of others"
            )
        return [str(term) for term in terms]
