#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: cuda_lists
short_description: Leave one description of an apt repository
description:
  - apt stops with "Conflicting values set for option Signed-By" where two of its files describe one
    repository with different keys, as NVIDIA's package cuda-keyring does beside a description of one's own.
  - Disables the entries of the other files that name one of the repositories. An entry of a C(.list) file
    becomes a comment, one of a C(.sources) file gets C(Enabled) with the value no; all else stays as it is.
options:
  uris:
    description: The repositories.
    type: list
    elements: str
    required: true
  suite:
    description: Their suite; that of a flat repository ends in a slash.
    type: str
    required: true
  keep:
    description: The files whose descriptions stay, all of one key; the first one is named in the others.
    type: list
    elements: path
    required: true
  root:
    description: Directory of apt's configuration.
    type: path
    default: /etc/apt
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
  diff_mode: {support: none, description: Shows no difference.}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Disable other descriptions of NVIDIA's repository
  cuda_lists:
    uris: [https://developer.download.nvidia.com/compute/cuda/repos/ubuntu1804/x86_64]
    suite: /
    keep: [/etc/apt/sources.list.d/scalebook-nvidia.sources]
"""

RETURN = r"""
disabled:
  description: The files in which an entry was disabled, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import glob
import os
import re
from typing import Any, Dict, Iterable, List

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import write_whole

WHY = "# Disabled by scalebook, which describes this repository in"


def argument_spec() -> Dict[str, Any]:
    return {
        "uris": {"type": "list", "elements": "str", "required": True},
        "suite": {"type": "str", "required": True},
        "keep": {"type": "list", "elements": "path", "required": True},
        "root": {"type": "path", "default": "/etc/apt"},
    }


def _is_one(uri: str, suites: Iterable[str], uris: Iterable[str], suite: str) -> bool:
    """Return whether an entry is of one of the repositories; apt ignores a slash at the end of a URI."""
    return suite in suites and uri.rstrip("/") in [each.rstrip("/") for each in uris]


def without_entries(text: str, uris: List[str], suite: str, keep: str) -> str:
    """Return the text of a .list file in which the entries of the repositories are comments."""
    lines = []
    for line in text.splitlines(True):
        # deb [options] URI suite components
        entry = re.match(r"\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)", line)
        if entry and _is_one(entry.group(1), [entry.group(2)], uris, suite):
            lines.append("%s %s\n# " % (WHY, keep))
        lines.append(line)
    return "".join(lines)


def _off(stanza: str, keep: str) -> str:
    """Return a stanza of a .sources file with `Enabled: no`."""
    rest = re.sub(r"(?mi)^enabled:.*\n?", "", stanza)
    return "%s %s:\nEnabled: no\n%s" % (WHY, keep, rest)


def _field(stanza: str, name: str) -> List[str]:
    """Return the words of a field, which may go on in lines that begin with a space."""
    field = re.search(r"(?mi)^%s:((?:.*)(?:\n[ \t]+\S.*)*)" % name, stanza)
    return field.group(1).split() if field else []


def without_stanzas(text: str, uris: List[str], suite: str, keep: str) -> str:
    """Return the text of a .sources file in which the stanzas of the repositories are disabled."""
    parts = re.split(r"(\n[ \t]*\n)", text)
    for index, part in enumerate(parts):
        off = _field(part, "enabled")[:1] == ["no"]
        suites = _field(part, "suites")
        if not off and any(_is_one(uri, suites, uris, suite) for uri in _field(part, "uris")):
            parts[index] = _off(part, keep)
    return "".join(parts)


def lists(root: str, keep: List[str]) -> List[str]:
    """Return the files of apt but `keep`."""
    paths = [os.path.join(root, "sources.list")]
    for ending in ("list", "sources"):
        paths += sorted(glob.glob(os.path.join(glob.escape(root), "sources.list.d", "*." + ending)))
    return [path for path in paths if os.path.isfile(path) and path not in keep]


def disable(root: str, uris: List[str], suite: str, keep: List[str], write: bool) -> List[str]:
    """Disable other descriptions of the repositories and return the files in which there were some."""
    changed = []
    for path in lists(root, keep):
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            before = stream.read()
        change = without_stanzas if path.endswith(".sources") else without_entries
        after = change(before, uris, suite, keep[0])
        if after != before:
            write_whole(path, after.encode("utf-8", "surrogateescape"), write=write, mode=None)
            changed.append(path)
    return changed


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    what = (options["root"], options["uris"], options["suite"], options["keep"])
    try:
        files = disable(*what, write=not module.check_mode)
    except OSError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(files), disabled=files)


if __name__ == "__main__":
    main()
