# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The parameters of a playbook, read and checked; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

# Ansible packs module_utils for modules only; a plugin has to point at it.
ROOT = Path(__file__).resolve().parent.parent
ansible.module_utils.__path__.append(str(ROOT / "module_utils"))

from ansible.module_utils.scalebook.plan import declared, parameters  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_parameters
short_description: Read and check the parameters of a playbook
description:
  - Returns a dict with C(values), the parameters of the playbook by name as typed values, and C(problem),
    one text that names every mistake; it is empty where there is none.
  - A parameter may come from C(-e) or from the inventory. Names are checked for C(-e) only, since an
    inventory has variables of its own.
options:
  _terms:
    description:
      - Name of the playbook, such as C(bench), then of the playbooks that are part of the same command. The
        parameters of the first are returned.
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Check the parameters
  ansible.builtin.assert:
    that: __parameters.problem | length == 0
    fail_msg: "{{ __parameters.problem }}"
  vars:
    __parameters: "{{ lookup('scalebook_parameters', 'bench') }}"
"""

RETURN = r"""
_raw:
  description: One dict with C(values) and C(problem).
  type: list
  elements: dict
"""


def plain(value: Any) -> Any:
    """Return `value` in plain types: Ansible's containers fill themselves only while they are read."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


class LookupModule(LookupBase):
    """The lookup `scalebook_parameters`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the parameters of the playbook terms[0]."""
        unknown = [term for term in terms if term not in parameters.PLAYBOOKS]
        if not terms or unknown or kwargs:
            raise AnsibleError(f"scalebook_parameters takes names of {', '.join(parameters.PLAYBOOKS)}")
        variables = variables or {}
        names = {row.name for row in parameters.TABLE} & set(variables)
        values = {name: plain(self._templar.template(variables[name])) for name in names}
        paths = constants.DEFAULT_ROLES_PATH
        try:
            known = parameters.Known(
                load_workloads(paths),
                declared.stacks(str(ROOT / "playbooks/vars")),
                declared.role_variables(paths),
                len(variables.get("groups", {}).get("nodes", [])),
                declared.role_choices(paths),
            )
            given = plain(dict(load_extra_vars(self._loader)))
            return [{"values": parameters.read(terms, values, given, known), "problem": ""}]
        except parameters.ParameterError as error:
            return [{"values": {}, "problem": str(error)}]
        except ValueError as error:
            raise AnsibleError(str(error)) from error
