# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The wandb of PyPI for a Python of this machine, which then has no server of W&B in reach."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="wandb.txt has the wheels for x86-64 alone"),
]


def environment(packages, python, *places):
    """Install wandb into `packages` and return an environment for `python` that imports it and `places`."""
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes"]
    install += ["--python", python, "--target", packages, "-r", HERE / "wandb.txt"]
    subprocess.run(install, check=True, timeout=300)
    env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    path = ":".join(map(str, [packages, *places]))
    return env | {"PYTHONPATH": path, "WANDB_BASE_URL": "http://127.0.0.1:9"}
