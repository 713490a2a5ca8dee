# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The versions of the software that workloads are installed with; see DOCUMENTATION."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.places import ROOT, roles_paths  # noqa: E402
from ansible.module_utils.scalebook.plan import declared  # noqa: E402
from ansible.module_utils.scalebook.workloads import load_workloads  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_stack
short_description: Return the versions of the software that workloads are installed with
description:
  - A stack is a file of versions, C(playbooks/vars/stack_<name>.yml). Each workload names one in its
    declaration.
  - The stack of several workloads serves what they share, such as Open MPI. The first workload's stack
    decides; later ones add what it has no versions for.
options:
  _terms:
    description: Names of the workloads.
    type: list
    elements: str
    required: true
  name:
    description: Name of a stack that is taken for all of them. Empty for their own.
    type: str
    default: ""
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Install a workload with the versions of its stack
  ansible.builtin.include_role:
    name: torch_bert
  vars:
    stack: "{{ lookup('scalebook_stack', 'torch_bert', name=stack_name | default('', true)) }}"
"""

RETURN = r"""
_raw:
  description: The stack.
  type: list
  elements: dict
"""


@functools.lru_cache(maxsize=64)
def stack_of(names: tuple[str, ...], override: str) -> dict[str, Any]:
    """Return the versions for the workloads `names`, read once per process."""
    stacks = declared.stacks(str(ROOT / "playbooks/vars"))
    return declared.stack_of(names, load_workloads(roles_paths(constants.config)), stacks, override)


class LookupModule(LookupBase):
    """The lookup `scalebook_stack`."""

    def run(
        self,
        terms: Sequence[Any],
        variables: Mapping[str, Any] | None = None,
        name: str = "",
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Return one dict, the versions for the workloads `terms`."""
        del variables
        if kwargs:
            raise AnsibleError(f"scalebook_stack has no option {', '.join(kwargs)}")
        try:
            return [copy.deepcopy(stack_of(tuple(map(str, terms)), str(name or "")))]
        except ValueError as error:
            raise AnsibleError(str(error)) from error
