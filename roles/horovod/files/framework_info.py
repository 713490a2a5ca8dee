# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print facts about the framework that Horovod is built for, without importing it: an import takes seconds.

    python -I framework_info.py torch|tensorflow|mxnet

Prints one JSON object: ``version`` of the framework, ``standard`` (the C++ of its headers: "14"), ``cuda``
("" for a build without), ``nccl`` (the directory of the NCCL that came with it, or ""), ``paths`` (of its
modules), ``abi`` (of a wheel's library), ``python`` and ``libc`` (their versions), ``headers`` (whether
Python's headers are installed). Runs on the framework's own Python, 3.6 or newer; standard library only.
"""

import glob
import importlib.util
import json
import os
import re
import sys
import sysconfig
from typing import Any, Dict


def read(*names: str) -> str:
    """Return the text of a file, "" where it does not exist."""
    try:
        with open(os.path.join(*names), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def first(pattern: str, text: str, default: str = "") -> str:
    """Return the first group of the first match."""
    match = re.search(pattern, text, re.M)
    return match.group(1) if match else default


def torch_info(folder: str) -> Dict[str, Any]:
    """Return version, C++ and CUDA of torch in `folder`; C++ is that of its extensions."""
    version_py = read(folder, "version.py")
    return {
        "version": first(r"^__version__ = '([^']+)'", version_py),
        "standard": first(r"-std=c\+\+(\d+)", read(folder, "utils", "cpp_extension.py"), "14"),
        "cuda": first(r"^cuda\b[^=]*= '([^']+)'", version_py),
    }


def tensorflow_info(folder: str) -> Dict[str, Any]:
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


def mxnet_info(folder: str) -> Dict[str, Any]:
    """Return version, C++ and CUDA of MXNet in `folder`; its wheels for GPUs are named after their CUDA."""
    pattern = os.path.join(os.path.dirname(folder), "mxnet*-*.dist-info")
    names = "\n".join(os.path.basename(path) for path in sorted(glob.glob(pattern)))
    return {
        "version": first(r"^mxnet(?:_cu\d+)?-(\d[^-]*)\.dist-info$", names),
        "standard": "14",
        "cuda": first(r"^mxnet_cu(\d+)-", names),
    }


def main() -> None:
    """Print the facts; exit with a message where the framework is missing."""
    name = sys.argv[1]
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit("%s has no %s" % (sys.executable, name))
    folder = list(spec.submodule_search_locations)[0]
    info = {"torch": torch_info, "tensorflow": tensorflow_info, "mxnet": mxnet_info}[name](folder)
    if not info["version"]:
        sys.exit("%s has no version" % folder)
    nccl = os.path.join(os.path.dirname(folder), "nvidia", "nccl")
    info["nccl"] = nccl if os.path.exists(os.path.join(nccl, "include", "nccl.h")) else ""
    ends = ("site-packages", "dist-packages")
    info["paths"] = [path for path in sys.path if path.rstrip("/").endswith(ends)]
    info["python"] = "%d.%d" % sys.version_info[:2]
    info["headers"] = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
    info["abi"] = sysconfig.get_config_var("EXT_SUFFIX")
    info["libc"] = os.confstr("CS_GNU_LIBC_VERSION")
    print(json.dumps(info))


if __name__ == "__main__":
    main()
