#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of a campaign -> whether they are what was reported; see DOCUMENTATION."""

from __future__ import annotations  # runs on the control node only

DOCUMENTATION = r"""
module: results_verify
short_description: Compare the files of a campaign, or of micro-benchmarks, with their manifest
description:
  - Compares the files below O(path) with C(manifest.json), which the first report wrote there.
  - Writes nothing. Files that differ do not fail the task; they are in RV(problems).
  - Runs on the control node.
options:
  path:
    description:
      - Directory of one campaign or import, which contains C(runs) or C(runs.tar.xz), or such an archive, or
        of micro-benchmarks, which contains C(microbench.json).
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Never writes anything.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Verify the files of a campaign
  results_verify:
    path: "{{ ansible_config_file | dirname }}/docs/results/h200x4-2026-11-21/scaling"
"""

RETURN = r"""
problems:
  description:
    - The files that differ, each with C(file), C(what) (changed, missing or added), C(run) and C(row).
  returned: success
  type: list
  elements: dict
display:
  description: A sentence for each of them, or that all files are what was reported.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.report import manifest
from ansible.module_utils.scalebook.report.load import check_files
from ansible.module_utils.scalebook.text import clean


def argument_spec() -> dict[str, Any]:
    return {"path": {"type": "path", "required": True}}


def verify(path: str) -> dict[str, Any]:
    """Return what the module returns for the campaign at `path`; raise ValueError without a manifest."""
    count, problems = check_files(path)
    named: list[dict[str, Any]] = []
    for problem in problems:
        case, _, repeat = problem["run"].removeprefix("runs/").partition("/")
        row = f"case {case}, repeat {repeat}" if case else "the whole directory"
        named.append({**problem, "row": row, "sentence": clean(f"{manifest.sentence(problem)} ({row})")})
    lines = [each.pop("sentence") for each in named]
    return {
        "changed": False,
        "problems": named,
        "display": "\n".join(lines) or f"All {count} files are what was reported.",
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = verify(module.params["path"])
    except (OSError, ValueError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
