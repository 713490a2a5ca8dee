# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The identity of the running ansible-playbook; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.launch import lock_holder  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_lock_holder
short_description: Return the identity of the running ansible-playbook
description:
  - The identity is what a node's lock file says of its holder. Its C(id) tells this process from every
    other one, of this host and of other hosts.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Lock the node
  campaign_lock:
    path: /opt/scalebook/work/lock.json
    holder: "{{ lookup('scalebook_lock_holder') }}"
"""

RETURN = r"""
_raw:
  description: One dict with C(id), C(host), C(pid), C(user), C(since) and more.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_lock_holder`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the identity; the lookup takes no arguments."""
        del variables
        if terms or kwargs:
            raise AnsibleError("scalebook_lock_holder takes no arguments")
        return [lock_holder.identity()]
