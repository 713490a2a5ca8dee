#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: horovod_patch
short_description: Patch sources of Horovod that today's compilers and headers reject
description:
  - From 2.1 on, torch's headers reject C++14. Horovod 0.28.1 sets it in two places, and it has to be raised
    in both; with torch's alone, the Gloo library, compiled as C++14, duplicates definitions of the rest.
  - The Gloo library of Horovod 0.19 puts a member behind C(struct ethtool_link_settings), whose last member
    is a flexible array in newer headers, which g++ rejects ("flexible array member not at end"); a union of
    the same size replaces it.
  - All files are checked before any is changed. An unknown text is refused, a patched one stays.
options:
  path:
    description: The unpacked release.
    type: path
    required: true
  edit:
    description:
      - V(c++17), V(c++20) or V(c++23), for Horovod 0.28.1, sets this standard instead of C++14.
      - V(gloo), for Horovod 0.19, replaces the structure.
      - V(mxnet), for Horovod 0.19, includes C(stdexcept) into a source of its part for MXNet, which newer
        compilers no longer include implicitly; C(setup.py) does not pass C(CXXFLAGS) on there.
      - V(mxnet) also makes the symbols of MXNet visible to Horovod, which is not linked with MXNet 1.6; its
        library is packed with UPX, and the linker takes it for none.
    type: str
    choices: [c++17, c++20, c++23, gloo, mxnet]
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
  diff_mode:
    support: full
    description: Shows the files before and after.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Patch the sources for C++20
  horovod_patch:
    path: /tmp/horovod-0.28.1
    edit: c++20
"""

RETURN = r"""
files:
  description: The files that were changed, relative to O(path).
  returned: success
  type: list
"""

import os
import re
from typing import Any, Dict, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import replace_texts

CMAKES = ("CMakeLists.txt", os.path.join("horovod", "torch", "CMakeLists.txt"))
# A whole line: the name also occurs in texts that CMake writes into other files.
LINE = r"(?m)^([ \t]*set\(CMAKE_CXX_STANDARD )%s(\)[ \t]*)$"

MXNET = tuple(os.path.join("horovod", "mxnet", name) for name in ("cuda_util.cc", "mpi_ops.py"))
INCLUDE = "#include <stdexcept>\n"
IMPORT = "import mxnet as mx\n"
# Imported already, the library is found by its path.
VISIBLE = IMPORT + "ctypes.CDLL(mx.libinfo.find_lib_path()[0], ctypes.RTLD_GLOBAL)\n"
GLOO = (os.path.join("third_party", "gloo", "gloo", "common", "linux.cc"),)
STRUCT = """  struct {
    struct ethtool_link_settings req;
    __u32 link_mode_data[link_mode_data_nwords];
  } ecmd;
"""
UNION = """  union {
    struct ethtool_link_settings req;
    char room[sizeof(struct ethtool_link_settings) + 4 * link_mode_data_nwords];
  } ecmd;
"""


class UnknownSourceError(ValueError):
    """A source text that differs from the published one."""


def replace_once(text: str, old: str, new: str, after: str, what: str) -> str:
    """Return `text` with its one match of `old` as `after`; unchanged where `new` matches once instead."""
    counts = len(re.findall(old, text)), len(re.findall(new, text))
    if counts == (0, 1):
        return text
    if counts != (1, 0):
        raise UnknownSourceError("%s %d times, expected is once" % (what, counts[0]))
    return re.sub(old, after, text)


def raise_standard(text: str, standard: str, name: str = "CMakeLists.txt") -> str:
    """Return the text of a CMakeLists.txt with C++ `standard` ("20") in place of 14."""
    what = "%s is not the one of Horovod 0.28.1, which sets C++14" % name
    return replace_once(text, LINE % "14", LINE % standard, r"\g<1>%s\g<2>" % standard, what)


def patch_gloo(text: str, name: str = "linux.cc") -> str:
    """Return the text of gloo's linux.cc without a member behind the flexible array."""
    what = "%s is not the one of Horovod 0.19, which has a member behind ethtool_link_settings" % name
    return replace_once(text, re.escape(STRUCT), re.escape(UNION), UNION, what)


def patch_mxnet(text: str, name: str = "cuda_util.cc") -> str:
    """Return the text of cuda_util.cc with the header of std::logic_error, outside its #if."""
    if "std::logic_error" not in text:
        raise UnknownSourceError("%s is not the one of Horovod 0.19, which throws std::logic_error" % name)
    return text if text.startswith(INCLUDE) else INCLUDE + text


def patch_import(text: str, name: str = "mpi_ops.py") -> str:
    """Return the text of mpi_ops.py with the symbols of MXNet visible to the libraries that it loads."""
    what = "%s is not the one of Horovod 0.19, which imports mxnet as mx" % name
    missing = re.escape(IMPORT) + "(?!ctypes)"
    return replace_once(text, missing, re.escape(VISIBLE), VISIBLE, what)


def files_of(edit: str) -> Tuple[str, ...]:
    """Return the files that an edit changes."""
    return {"gloo": GLOO, "mxnet": MXNET}.get(edit, CMAKES)


def patched(edit: str, text: str, path: str) -> str:
    """Return the text of the file `path` after an edit."""
    if edit == "gloo":
        return patch_gloo(text, path)
    if edit == "mxnet":
        return patch_import(text, path) if path.endswith(".py") else patch_mxnet(text, path)
    return raise_standard(text, edit[len("c++") :], path)


def plan(root: str, edit: str) -> Dict[str, Tuple[str, str]]:
    """Return {file: (text, new text)} of the files that have to change.

    Raises UnknownSourceError, with the file, and OSError.
    """
    changes = {}
    for name in files_of(edit):
        path = os.path.join(root, name)
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        new = patched(edit, text, path)
        if new != text:
            changes[name] = (text, new)
    return changes


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "edit": {"type": "str", "choices": ["c++17", "c++20", "c++23", "gloo", "mxnet"], "required": True},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    replace_texts(module, lambda: plan(module.params["path"], module.params["edit"]))


if __name__ == "__main__":
    main()
