# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The declaration of a workload with the values of its variables, for roles; see DOCUMENTATION."""

from __future__ import annotations

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
from ansible.module_utils.scalebook.workload import WorkloadError  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_declaration
short_description: Return the declaration of a workload with the values of its variables
description:
  - Reads C(meta/workload.yml) of the role of this name in Ansible's roles path, and puts in the values of the
    variables which the declaration names, of the play or the role's defaults. The role need not be included.
  - A plugin, since a template that goes through a declaration takes ten times as long.
options:
  _terms:
    description: Name of the workload.
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Set the declaration of tf2_bert
  ansible.builtin.set_fact:
    declaration: "{{ lookup('scalebook_declaration', 'tf2_bert') }}"
"""

RETURN = r"""
_raw:
  description: The declaration, with the values of its variables in C(values).
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_declaration`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the resolved declaration of each workload in `terms`."""
        if kwargs:
            raise AnsibleError(f"scalebook_declaration has no option {', '.join(kwargs)}")
        role_variables = lookup_loader.get(
            "scalebook_role_variables", loader=self._loader, templar=self._templar
        )
        try:
            workloads = load_workloads(roles_paths(constants.config))
            declarations = []
            for name in map(str, terms):
                if name not in workloads:
                    raise AnsibleError(
                        f"there is no workload {name!r}: there are {', '.join(sorted(workloads))}"
                    )
                names = workloads[name].variables
                values = dict(zip(names, role_variables.run(names, variables), strict=True))
                declarations.append(workloads[name].resolve(values).as_data())
        except WorkloadError as error:
            raise AnsibleError(str(error)) from error
        return declarations
