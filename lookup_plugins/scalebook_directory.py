# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Directories of scalebook on the control node; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook import places  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_directory
short_description: Return directories of scalebook on the control node
description:
  - C(own) is the directory with C(data/) and C(templates/), C(work) the one that has C(results/) and
    C(.scalebook/). In a checkout both are the checkout; of an installed collection, C(work) is the directory
    in which ansible-playbook was started.
  - C(roles) are the directories whose roles count.
options:
  _terms:
    description: Which of them, C(own), C(work) or C(roles).
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Show where the results are
  ansible.builtin.debug:
    msg: "{{ lookup('scalebook_directory', 'work') }}/results"
"""

RETURN = r"""
_raw:
  description: The directories.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_directory`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        """Return the directories that `terms` name."""
        del variables
        directories = {
            "own": [str(places.ROOT)],
            "work": [str(places.working_directory())],
            "roles": places.roles_paths(constants.config),
        }
        if kwargs or not set(terms) <= directories.keys():
            raise AnsibleError(f"scalebook_directory takes {', '.join(directories)}")
        return [directory for term in terms for directory in directories[term]]
