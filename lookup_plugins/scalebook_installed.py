# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What each workload has below scalebook_home; see DOCUMENTATION."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.places import roles_paths  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads, owner_of  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_installed
short_description: Return where each workload is installed on a host, and what it shares with others
description:
  - Returns one dict for the module C(remove_workload), from the name of a workload to C(home), C(uses) and
    C(names). Whether a workload is installed is not known here.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Show the directory of torch_bert
  ansible.builtin.debug:
    msg: "{{ lookup('scalebook_installed').torch_bert.home }}"
"""

RETURN = r"""
_raw:
  description: The directories by workload.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_installed`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return one dict, the directories of all workloads."""
        if terms or kwargs:
            raise AnsibleError("scalebook_installed takes neither terms nor options")
        workloads = load_workloads(roles_paths(constants.config))
        shared = {
            # A framework's role without this variable makes an environment for each workload.
            name: [] if each.install.get("separate") else [f"{each.install.get('framework', name)}_venv"]
            for name, each in workloads.items()
        }
        every = sorted({variable for each in shared.values() for variable in each})
        paths = self._paths([*every, *(f"{name}_home" for name in workloads)], variables or {})
        named = {name: value for name, value in (variables or {}).items() if owner_of(name, workloads)}
        own = self._paths(list(named), variables or {})
        return [
            {
                name: {
                    "home": paths[f"{name}_home"],
                    "uses": [paths[each] for each in shared[name] if each in paths],
                    "names": [
                        path for variable, path in own.items() if owner_of(variable, workloads) == name
                    ],
                }
                for name in workloads
            }
        ]

    def _paths(self, names: Sequence[str], variables: Mapping[str, Any]) -> dict[str, str]:
        """Return the values of variables that are absolute paths."""
        lookup = lookup_loader.get("scalebook_role_variables", loader=self._loader, templar=self._templar)
        values = lookup.values(names, variables)
        wrong = [value for value in values.values() if isinstance(value, Exception)]
        if wrong:
            raise wrong[0]
        return {
            name: os.path.normpath(value)
            for name, value in values.items()
            if isinstance(value, str) and value.startswith("/")
        }
