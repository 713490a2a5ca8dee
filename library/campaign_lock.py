#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: campaign_lock
short_description: Let one control node at a time use a node
description:
  - Takes or gives back the lock of a node, a file that says who holds it.
  - A lock of another holder is left alone and returned. The control node finds out whether that holder still
    runs, and if not, names it in O(over).
options:
  path:
    description: The lock file. Its directory is made.
    type: path
    required: true
  holder:
    description: Who takes it or gives it back. The key C(id) tells one holder from another.
    type: dict
    required: true
  over:
    description: The C(id) of a holder that is gone, whose lock is taken over.
    type: str
  state:
    description: Whether O(holder) shall hold the lock. What another one holds is not given back.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode: {support: full}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Take the node
  campaign_lock:
    path: /opt/scalebook/work/lock.json
    holder: {id: "bench1:4711:12345", host: bench1, pid: 4711}
"""

RETURN = r"""
held:
  description: Whether O(holder) holds the lock now.
  returned: success
  type: bool
taken:
  description: The other holder; empty when there is none.
  returned: success
  type: dict
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "holder": {"type": "dict", "required": True},
        "over": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }


def read(path: Path) -> Dict[str, Any]:
    """Return the holder that the lock file names; {} without one. An unreadable lock counts as free."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) and held.get("id") else {}


def turn(
    path: Path, holder: Mapping[str, Any], over: Optional[str], state: str, write: bool
) -> Tuple[bool, bool, Dict[str, Any]]:
    """Return (changed, held, other holder) after taking or giving back the lock."""
    there = read(path)
    if there and there["id"] not in (holder["id"], over):
        return False, False, there
    if state == "absent":
        if there and write:
            path.unlink()
        return bool(there), False, {}
    changed = there.get("id") != holder["id"]
    if changed and write:
        new = path.with_name(path.name + ".new")
        new.write_text(json.dumps(holder) + "\n", encoding="utf-8")
        new.replace(path)
    return changed, True, {}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    given = module.params
    path = Path(given["path"])
    if not given["holder"].get("id"):
        module.fail_json(msg="holder: has no id")
    try:
        if not path.parent.is_dir():
            if given["state"] == "absent" or module.check_mode:
                module.exit_json(changed=given["state"] == "present", held=False, taken={})
            path.parent.mkdir(parents=True, exist_ok=True)
        # Two control nodes that come at the same moment read and write one after the other.
        directory = os.open(str(path.parent), os.O_RDONLY)
        fcntl.flock(directory, fcntl.LOCK_EX)
        changed, held, taken = turn(
            path, given["holder"], given["over"], given["state"], not module.check_mode
        )
        os.close(directory)
    except OSError as error:
        module.fail_json(msg="cannot write the lock %s: %s" % (path, error))
    module.exit_json(changed=changed, held=held, taken=taken)


if __name__ == "__main__":
    main()
