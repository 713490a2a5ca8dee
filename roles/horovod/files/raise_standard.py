# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Let the sources of Horovod 0.28.1 be compiled as a newer C++ than the 14 that they ask for.

    python raise_standard.py DIR 20

Torch's headers refuse C++14 from 2.1 on. It has to be raised in both places: with torch's alone, the
library of Gloo, compiled as C++14, defines what the rest defines again. Both files are looked at before
either is changed; one that does not set C++14 exactly once is not the one that is known here, and is refused.
"""

import os
import re
import sys

FILES = ("CMakeLists.txt", os.path.join("horovod", "torch", "CMakeLists.txt"))
# A line of its own: the name also occurs within texts that CMake writes into other files.
LINE = r"(?m)^([ \t]*set\(CMAKE_CXX_STANDARD )%s(\)[ \t]*)$"


class UnknownSourceError(ValueError):
    """A source text that is not the known one."""


def raised(text, standard, name="CMakeLists.txt"):
    """Return the text of a CMakeLists.txt with C++ `standard` ("20") in place of 14; it may be so already."""
    old, new = (len(re.findall(LINE % number, text)) for number in ("14", standard))
    if (old, new) == (0, 1):
        return text
    if (old, new) != (1, 0):
        raise UnknownSourceError(
            "%s is not that of Horovod 0.28.1: it sets C++14 %d times, expected is once" % (name, old)
        )
    return re.sub(LINE % "14", r"\g<1>%s\g<2>" % standard, text)


def main():
    """Change both files, or neither."""
    root, standard = sys.argv[1:]
    texts = {}
    for name in FILES:
        path = os.path.join(root, name)
        with open(path, encoding="utf-8") as file:
            texts[path] = raised(file.read(), standard, path)
    for path, text in texts.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    try:
        main()
    except (UnknownSourceError, OSError) as error:
        sys.exit(str(error))
