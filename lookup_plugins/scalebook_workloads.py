# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The declarations of the workloads, for playbooks and roles; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.places import roles_paths  # noqa: E402
from ansible.module_utils.scalebook.workload import WorkloadError  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_workloads
short_description: Return the declarations of all workloads, without the values of their variables
description:
  - Reads C(meta/workload.yml) of every role in Ansible's roles path. A role with this file is a workload.
  - Returns one dict, from the name of a workload to its declaration. Each declaration has C(name), C(path)
    (directory of the role) and C(setting_types) added.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Show the names of the workloads
  ansible.builtin.debug:
    msg: "{{ lookup('scalebook_workloads') | list }}"
"""

RETURN = r"""
_raw:
  description: The declarations by name.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_workloads`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the declarations; there is nothing to give."""
        del variables
        if terms or kwargs:
            raise AnsibleError("scalebook_workloads takes no arguments")
        try:
            workloads = load_workloads(roles_paths(constants.config))
        except WorkloadError as error:
            raise AnsibleError(str(error)) from error
        return [{name: each.as_data() for name, each in workloads.items()}]
