# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Patch sources of Horovod that today's compilers and headers reject.

    python patch_sources.py DIR c++20    0.28.1: C++ 20 in place of C++ 14
    python patch_sources.py DIR gloo     0.19.x: its gloo, for the kernel headers of today

From 2.1 on, torch's headers reject C++14. It has to be raised in both places: with torch's alone, the Gloo
library, compiled as C++14, duplicates definitions of the rest. The old gloo puts a member behind `struct
ethtool_link_settings`, whose last member is a flexible array in newer headers, which g++ rejects ("flexible
array member not at end"); a union of the same size replaces it.

All files are checked before any is changed: an unknown text is refused, a patched one stays.
"""

import os
import re
import sys

CMAKES = ("CMakeLists.txt", os.path.join("horovod", "torch", "CMakeLists.txt"))
# A whole line: the name also occurs in texts that CMake writes into other files.
LINE = r"(?m)^([ \t]*set\(CMAKE_CXX_STANDARD )%s(\)[ \t]*)$"

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


def main() -> None:
    """Change all files of the edit, or none."""
    root, edit = sys.argv[1:]
    texts = {}
    for name in GLOO if edit == "gloo" else CMAKES:
        path = os.path.join(root, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        texts[path] = (
            patch_gloo(text, path) if edit == "gloo" else raise_standard(text, edit[len("c++") :], path)
        )
    for path, text in texts.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    try:
        main()
    except (UnknownSourceError, OSError) as error:
        sys.exit(str(error))
