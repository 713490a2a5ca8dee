# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The names of the extra variables; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

DOCUMENTATION = r"""
name: scalebook_extra_variables
short_description: Return the names of the variables that were given with -e
description:
  - Returns one sorted list of the names, without their values.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Show what was given with -e
  ansible.builtin.debug:
    msg: "{{ lookup('scalebook_extra_variables') }}"
"""

RETURN = r"""
_raw:
  description: One list of names.
  type: list
  elements: list
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_extra_variables`."""

    def run(
        self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[list[str]]:
        """Return the names; the lookup takes no arguments."""
        del variables
        if terms or kwargs:
            raise AnsibleError("scalebook_extra_variables takes no arguments")
        return [sorted(load_extra_vars(self._loader))]
