# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The parameters that a directory of data was made with, in a file that is written last.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import json
import os
import shutil
from typing import Any, Callable, Dict

NAME = "made.json"


def read(directory: str) -> Any:
    """Return the parameters that a directory's files were made with, None where they are not complete."""
    try:
        with open(os.path.join(directory, NAME), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def write(directory: str, parameters: Any) -> None:
    """Note that the files of a directory are complete, and the parameters they were made with."""
    with open(os.path.join(directory, NAME), "w", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(parameters, sort_keys=True) + "\n")


def make(directory: str, parameters: Any, write_files: Callable[[], None]) -> str:
    """Have the files of a directory made, unless those of the same parameters are there.

    Return `made` or `unchanged`. Files of other parameters are removed.
    """
    if read(directory) == parameters:
        return "unchanged"
    if os.path.isdir(directory):
        shutil.rmtree(directory)
    os.makedirs(directory)
    write_files()
    write(directory, parameters)
    return "made"


def problem(workload: str, directory: str, expected: Dict[str, int]) -> str:
    """Return why what was made in a directory is not what variables of a workload ask for, "" where it is."""
    recorded = read(directory) or {}
    if all(recorded.get(name) == value for name, value in expected.items()):
        return ""
    actual = ", ".join("%s=%s" % (name, recorded.get(name, 0)) for name in expected)
    required = ", ".join("%s_%s=%d" % (workload, name, value) for name, value in expected.items())
    fix = "run ansible-playbook provision.yml with the same values first"
    return "%s was made with %s, required are %s: %s" % (directory, actual, required, fix)
