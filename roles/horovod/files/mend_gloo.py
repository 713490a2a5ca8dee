# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Let the gloo in Horovod 0.19.x be compiled with the kernel headers of today.

    python mend_gloo.py DIR

It puts a member behind `struct ethtool_link_settings`, whose last one is a flexible array in newer headers:
g++ refuses that ("flexible array member not at end"). A union of the same size holds the same. A text that
is not the known one is refused, one that is mended already is left.
"""

import os
import sys

FILE = os.path.join("third_party", "gloo", "gloo", "common", "linux.cc")
OLD = """  struct {
    struct ethtool_link_settings req;
    __u32 link_mode_data[link_mode_data_nwords];
  } ecmd;
"""
NEW = """  union {
    struct ethtool_link_settings req;
    char room[sizeof(struct ethtool_link_settings) + 4 * link_mode_data_nwords];
  } ecmd;
"""


class UnknownSourceError(ValueError):
    """A source text that is not the known one."""


def mended(text, name=FILE):
    """Return the text of gloo's linux.cc without a member behind the flexible array."""
    if (text.count(OLD), text.count(NEW)) == (0, 1):
        return text
    if (text.count(OLD), text.count(NEW)) != (1, 0):
        raise UnknownSourceError(
            "%s is not that of Horovod 0.19: it has no known ethtool_link_settings" % name
        )
    return text.replace(OLD, NEW)


def main():
    """Change the file below the directory that is given."""
    path = os.path.join(sys.argv[1], FILE)
    with open(path, encoding="utf-8") as file:
        text = mended(file.read(), path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    try:
        main()
    except (UnknownSourceError, OSError) as error:
        sys.exit(str(error))
