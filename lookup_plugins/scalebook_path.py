# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Paths that users give, from the directory where they stand; see DOCUMENTATION."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = r"""
name: scalebook_path
short_description: Return a path that a user gave as an absolute one
description:
  - A relative path counts from the directory in which ansible-playbook was started; the directory of the
    playbook is another. C(~) is the home of the user.
options:
  _terms:
    description: The paths; an empty one is the directory itself.
    type: list
    elements: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Show where the report goes
  ansible.builtin.debug:
    msg: "{{ lookup('scalebook_path', 'results/night1') }}"
"""

RETURN = r"""
_raw:
  description: Absolute paths without C(..) and links as they are.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_path`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        """Return the paths."""
        del variables
        if kwargs:
            raise AnsibleError(f"scalebook_path has no option {', '.join(kwargs)}")
        here = os.getcwd()  # noqa: PTH109 - joined with text
        return [os.path.normpath(os.path.join(here, os.path.expanduser(str(term)))) for term in terms]  # noqa: PTH111, PTH118
