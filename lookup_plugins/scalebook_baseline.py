# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the parameter baseline names, checked before anything is measured; see DOCUMENTATION."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible.errors import AnsibleError
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook.store.chosen import find_baseline  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_baseline
short_description: Return the path of the campaign or results.json that C(baseline) names
description:
  - The name of a campaign that has runs, else a path. A relative path counts from the directory in which
    ansible-playbook was started.
  - It is read whole, so that a file which cannot be compared with is refused before anything is measured.
options:
  _terms:
    description: The value of C(baseline); nothing is looked for where it is empty.
    type: list
    elements: str
    required: true
  results:
    description: Directory of all campaigns.
    type: str
    required: true
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Check the baseline
  ansible.builtin.assert:
    that: __baseline.problem | length == 0
    fail_msg: "{{ __baseline.problem }}"
  vars:
    __baseline: "{{ lookup('scalebook_baseline', 'night1', results='/srv/results') }}"
"""

RETURN = r"""
_raw:
  description: One dict with C(path), and C(problem), which is empty where there is none.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):
    """The lookup `scalebook_baseline`."""

    def run(
        self,
        terms: Sequence[Any],
        variables: Mapping[str, Any] | None = None,
        results: str = "",
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Return the path of terms[0], or what is wrong with it."""
        del variables
        if kwargs or not results or len(terms) != 1:
            raise AnsibleError("scalebook_baseline takes a baseline, and results, their directory")
        baseline = str(terms[0] or "").strip()
        if not baseline:
            return [{"path": "", "problem": ""}]
        [path] = lookup_loader.get("scalebook_path").run([baseline])
        try:
            return [{"path": str(find_baseline(baseline, Path(path), Path(results))), "problem": ""}]
        except (OSError, ValueError) as error:
            return [{"path": "", "problem": str(error)}]
