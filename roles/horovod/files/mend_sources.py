# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Change sources of Horovod that today's compilers and headers refuse.

    python mend_sources.py DIR c++20    of 0.28.1: C++ 20 in place of the 14 that they ask for
    python mend_sources.py DIR gloo     of 0.19.x: the gloo in them, for the kernel headers of today

Torch's headers refuse C++14 from 2.1 on. It has to be raised in both places: with torch's alone, the
library of Gloo, compiled as C++14, defines what the rest defines again. The old gloo puts a member behind
`struct ethtool_link_settings`, whose last one is a flexible array in newer headers: g++ refuses that
("flexible array member not at end"); a union of the same size holds the same.

All files are looked at before any is changed: a text that is not the known one is refused, one that is
mended already is left.
"""

import os
import re
import sys

CMAKES = ("CMakeLists.txt", os.path.join("horovod", "torch", "CMakeLists.txt"))
# A line of its own: the name also occurs within texts that CMake writes into other files.
LINE = r"(?m)^([ \t]*set\(CMAKE_CXX_STANDARD )%s(\)[ \t]*)$"

GLOO = (os.path.join("third_party", "gloo", "gloo", "common", "linux.cc"),)
BEHIND = """  struct {
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
    """A source text that is not the known one."""


def replaced(text, old, new, after, what):
    """Return `text` with pattern `old`, which has to be there once, as `after`; `new`: it is so already."""
    counts = len(re.findall(old, text)), len(re.findall(new, text))
    if counts == (0, 1):
        return text
    if counts != (1, 0):
        raise UnknownSourceError("%s %d times, expected is once" % (what, counts[0]))
    return re.sub(old, after, text)


def raised(text, standard, name="CMakeLists.txt"):
    """Return the text of a CMakeLists.txt with C++ `standard` ("20") in place of 14."""
    what = "%s is not that of Horovod 0.28.1: it sets C++14" % name
    return replaced(text, LINE % "14", LINE % standard, r"\g<1>%s\g<2>" % standard, what)


def without_behind(text, name="linux.cc"):
    """Return the text of gloo's linux.cc without a member behind the flexible array."""
    what = "%s is not that of Horovod 0.19: it has a member behind ethtool_link_settings" % name
    return replaced(text, re.escape(BEHIND), re.escape(UNION), UNION, what)


def main():
    """Change all files of the edit, or none."""
    root, edit = sys.argv[1:]
    texts = {}
    for name in GLOO if edit == "gloo" else CMAKES:
        path = os.path.join(root, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        texts[path] = without_behind(text, path) if edit == "gloo" else raised(text, edit[len("c++") :], path)
    for path, text in texts.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    try:
        main()
    except (UnknownSourceError, OSError) as error:
        sys.exit(str(error))
