# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Tell what Horovod would be built against, without importing it: that takes seconds.

    python -I about.py torch|tensorflow

Prints one JSON object: ``version`` of the framework, ``standard`` (the C++ of its headers: "14"), ``cuda``
("" for a build without), ``nccl`` (the directory of the NCCL that came with it, or ""), ``paths`` (where its
modules lie), ``abi`` (what a wheel's library must fit), ``python`` and ``libc`` (their versions), ``headers``
(whether Python's own are there).
Runs on the framework's own Python, 3.6 or newer; standard library only.
"""

import glob
import importlib.util
import json
import os
import re
import sys
import sysconfig


def read(*names):
    """Return the text of a file, or an empty one where it is not there."""
    try:
        with open(os.path.join(*names), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def first(pattern, text, otherwise=""):
    """Return the first group of the first match."""
    found = re.search(pattern, text, re.M)
    return found.group(1) if found else otherwise


def about_torch(folder):
    """Return version, C++ and CUDA of torch in `folder`; its own extensions are compiled as the flag says."""
    said = read(folder, "version.py")
    return {
        "version": first(r"^__version__ = '([^']+)'", said),
        "standard": first(r"-std=c\+\+(\d+)", read(folder, "utils", "cpp_extension.py"), "14"),
        "cuda": first(r"^cuda\b[^=]*= '([^']+)'", said),
    }


def about_tensorflow(folder):
    """Return version, C++ and CUDA of TensorFlow in `folder`."""
    pattern = os.path.join(os.path.dirname(folder), "tensorflow*-*.dist-info")
    names = "\n".join(os.path.basename(path) for path in sorted(glob.glob(pattern)))
    version = first(r"^tensorflow(?:_cpu|_gpu|_intel)?-(\d[^-]*)\.dist-info$", names)
    release = [int(number) for number in re.findall(r"\d+", version)[:2]]
    info = read(folder, "python", "platform", "build_info.py")
    return {
        "version": version,
        "standard": "17" if release >= [2, 10] else "14",
        "cuda": first(r"""['"]cuda_version['"]: *['"]([^'"]+)""", info),
    }


def main():
    """Print the answer, or say what is missing."""
    name = sys.argv[1]
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit("%s has no %s" % (sys.executable, name))
    folder = list(spec.submodule_search_locations)[0]
    answer = {"torch": about_torch, "tensorflow": about_tensorflow}[name](folder)
    if not answer["version"]:
        sys.exit("%s does not tell its version" % folder)
    nccl = os.path.join(os.path.dirname(folder), "nvidia", "nccl")
    answer["nccl"] = nccl if os.path.exists(os.path.join(nccl, "include", "nccl.h")) else ""
    ends = ("site-packages", "dist-packages")
    answer["paths"] = [path for path in sys.path if path.rstrip("/").endswith(ends)]
    answer["python"] = "%d.%d" % sys.version_info[:2]
    answer["headers"] = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
    answer["abi"] = sysconfig.get_config_var("EXT_SUFFIX")
    answer["libc"] = os.confstr("CS_GNU_LIBC_VERSION")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
