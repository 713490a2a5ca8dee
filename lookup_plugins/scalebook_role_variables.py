# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The values of a workload's variables where its role is not included; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
import ansible.template
from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.places import roles_paths  # noqa: E402
from ansible.module_utils.scalebook.plan.declared import role_defaults  # noqa: E402
from ansible.module_utils.scalebook.workload import Workloads  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads, owner_of  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_role_variables
short_description: Return the values of variables of a role that need not be included
description:
  - The role is that of a workload, or of the framework of one.
  - A value is that of the play, from C(-e) or the inventory, else the default of the role.
  - To include a role only for its defaults would run its tasks.
options:
  _terms:
    description: Names of the variables.
    type: list
    elements: str
    required: true
  stack:
    description: Versions of the software, where the play has none that fit this workload.
    type: dict
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Show where torch_bert is installed
  ansible.builtin.debug:
    msg: "{{ lookup('scalebook_role_variables', 'torch_bert_home') }}"
"""

RETURN = r"""
_raw:
  description: The values.
  type: list
  elements: raw
"""

# Since ansible-core 2.19 a text is a template only where it is marked as one.
_as_template = getattr(ansible.template, "trust_as_template", str)


def _paths(workloads: Workloads) -> dict[str, str]:
    """Return the directories of the roles of workloads and of their frameworks, by name."""
    paths = {}
    for name, workload in workloads.items():
        framework = workload.install.get("framework", name)
        paths[framework] = str(Path(workload.path).with_name(framework))
        paths[name] = workload.path
    return paths


class LookupModule(LookupBase):
    """The lookup `scalebook_role_variables`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Return the values of the variables `terms`."""
        if set(kwargs) - {"stack"}:
            raise AnsibleError(f"scalebook_role_variables has no option {', '.join(kwargs)}")
        values = self.values(list(map(str, terms)), variables or {}, kwargs.get("stack"))
        for name in map(str, terms):
            if name not in values:
                raise AnsibleError(f"{name} is not set")
            if isinstance(values[name], Exception):
                raise values[name]
        return [values[str(name)] for name in terms]

    def values(
        self, names: Sequence[str], variables: Mapping[str, Any], stack: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the values by name, without variables that have none; of a wrong template, the error."""
        try:
            workloads = load_workloads(roles_paths(constants.config))
            paths = _paths(workloads)
            owners = {owner_of(name, paths) for name in names} - {""}
            defaults = {
                name: _as_template(value) if isinstance(value, str) else value
                for owner in owners
                for name, value in role_defaults(paths[owner]).items()
            }
        except ValueError as error:
            raise AnsibleError(str(error)) from error
        available = {**defaults, **variables}
        if stack is not None and "stack" not in load_extra_vars(self._loader):
            available["stack"] = stack
        templar = self._templar.copy_with_new_env(available_variables=available)
        values: dict[str, Any] = {}
        for name in names:
            try:
                if name in available:
                    values[name] = templar.template(available[name])
            except AnsibleError as error:
                values[name] = error
        return values
