# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Compiles the stand-in for NVIDIA's library, fake_nvml.c."""

import functools
import os
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


@functools.cache
def compiled(*options):
    """Return the directory that has the library; its object removes it at the end of the process."""
    directory = tempfile.TemporaryDirectory()
    library = Path(directory.name, "libnvidia-ml.so.1")
    argv = ["gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", *options, "-o", library, SOURCE]
    subprocess.run(argv, check=True)
    return directory


def environment(fault="", *options):
    """Return the environment of this process, in which the driver is the stand-in with a fault."""
    return {**os.environ, "LD_LIBRARY_PATH": compiled(*options).name, "FAKE_NVML": fault}
