# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The names of the campaigns in a directory; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.store.chosen import campaigns  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_campaigns
short_description: Return the names of the campaigns and imports in a directory
description:
  - Newest first by their plan, those that have runs apart from those that only have a plan.
options:
  _terms:
    description: Directory of all campaigns.
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Show the newest campaign
  ansible.builtin.debug:
    msg: "{{ lookup('scalebook_campaigns', '/srv/results').measured | first }}"
"""

RETURN = r"""
_raw:
  description: One dict with the lists C(measured), of campaigns that have runs, and C(planned).
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_campaigns`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the names of the campaigns in terms[0]."""
        del variables
        if kwargs or len(terms) != 1:
            raise AnsibleError("scalebook_campaigns takes one directory")
        return [campaigns(Path(str(terms[0])))._asdict()]
