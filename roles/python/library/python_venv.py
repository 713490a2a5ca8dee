#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: python_venv
short_description: Create a virtual environment from a lock file with hashes
description:
  - Creates the environment, installs the pinned pip, and with it the packages of the lock.
  - Only wheels are installed, except for packages that the lock names in lines C(--no-binary NAME), which
    are built in the environment, with the packages of O(build_lock).
  - A directory that it has not made is not replaced.
  - The environment's last file is C(scalebook.lock), its interpreter and its lock. An environment without it,
    or with another one, is incomplete or out of date, and is created again.
options:
  path:
    description: Directory of the environment.
    type: path
    required: true
  python:
    description: Interpreter to create it from. May be empty in check mode, where none is installed yet.
    type: str
    required: true
  lock:
    description: Content of the lock file, requirements with hashes.
    type: str
    required: true
  pip_lock:
    description: Content of the lock file of pip itself.
    type: str
    required: true
  build_lock:
    description: Content of the lock file of what builds source distributions.
    type: str
    default: ""
  index:
    description: Lines before a lock, the source of its packages. Default is the configuration of pip.
    type: str
    default: ""
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
- name: Create the environment
  python_venv:
    path: /opt/scalebook/example/venv
    python: /usr/bin/python3.11
    lock: "{{ lookup('ansible.builtin.file', 'example.txt') }}"
    pip_lock: "{{ lookup('ansible.builtin.file', 'pip.txt') }}"
"""

RETURN = r"""
lacking:
  description: Whether the interpreter has no venv or ensurepip.
  returned: failure
  type: bool
"""

import glob
import os
import re
import shutil
import subprocess
from typing import Any, Dict, List

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import write_whole

# Unpacks the wheels of ensurepip (pip, before Python 3.12 setuptools too) into the first argument. ensurepip
# itself would start pip for that and compile all of it, which takes ten times as long; the pinned pip
# replaces it at once. A Python whose ensurepip has no _run_pip does it in its own way.
UNPACK = r"""
import ensurepip, sys, zipfile
def unpack(args, wheels):
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(sys.argv[1])
ensurepip._run_pip = unpack
ensurepip.bootstrap(upgrade=True)
"""

# Compiling all modules of torch takes more than twice as long as unpacking them; the verification of a role
# that imports them compiles the ones that are used.
PIP = ["-I", "-m", "pip", "install", "--quiet", "--no-input", "--no-deps", "--no-compile"]
PIP += ["--require-hashes", "--requirement", "/dev/stdin"]
# In a build environment of its own, pip would install the newest setuptools, whose hash nobody checks.
PIP += ["--only-binary", ":all:", "--no-build-isolation"]
SOURCE = re.compile(r"^--no-binary[ =]", re.MULTILINE)


# The last file of an environment, and the first one.
RECORD = "scalebook.lock"
BEGUN = "scalebook.begun"


class FailedError(Exception):
    """The environment was not created; the message is what the failed command says."""

    def __init__(self, message: str, lacking: bool = False) -> None:
        super().__init__(message)
        self.lacking = lacking


def argument_spec() -> Dict[str, Any]:
    text = {"type": "str", "required": True}
    return {
        "path": {"type": "path", "required": True},
        "python": text,
        "lock": text,
        "pip_lock": text,
        "build_lock": {"type": "str", "default": ""},
        # It may hold a token.
        "index": {"type": "str", "default": "", "no_log": True},
    }


def run(argv: List[str], stdin: str = "") -> None:
    """Run a command. Raises FailedError with its standard error, or OSError where it does not start."""
    # Bytes: Python 3.6 would decode them as ASCII where the locale is C.
    process = subprocess.run(
        argv, input=stdin.encode("utf-8"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if process.returncode != 0:
        error_text = process.stderr.decode("utf-8", "replace").strip()
        raise FailedError(error_text or "%s: exit status %d" % (" ".join(argv), process.returncode))


def read(path: str) -> str:
    """Return the text of a file, an empty one where it cannot be read: the environment is made again then."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError):
        return ""


def remove(path: str) -> None:
    """Remove a directory, or the link or file in its place."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def begin(path: str) -> None:
    """Make room for an environment, and mark the place. Raises FailedError for what is not scalebook's."""
    ours = [os.path.join(path, name) for name in (RECORD, BEGUN)]
    if os.path.isdir(path) and os.listdir(path) and not any(map(os.path.exists, ours)):
        text = "%s exists, and is not an environment of scalebook. Fix: remove it, or name another"
        raise FailedError(text % path)
    remove(path)
    os.makedirs(path)
    write_whole(ours[1], b"", mode=0o644)


def create(path: str, python: str, pip_lock: str, locks: List[str], index: str) -> None:
    """Create the environment from scratch and install the locks in turn. Raises FailedError and OSError."""
    try:
        run([python, "-I", "-c", "import ensurepip, venv"])
    except FailedError as error:
        raise FailedError(str(error), lacking=True) from error
    begin(path)
    run([python, "-I", "-m", "venv", "--without-pip", path])
    own = os.path.join(path, "bin", "python")
    packages = glob.glob(os.path.join(path, "lib", "python3*", "site-packages"))
    run([own, "-I", "-c", UNPACK] + packages)
    # The pip of an old interpreter does not know the tags of current wheels. -B: it starts only this once.
    # The index is part of the standard input, since every user of the node can read command lines.
    run([own, "-B"] + PIP, index + pip_lock)
    for lock in locks:
        run([own] + PIP, index + lock)


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    record = os.path.join(options["path"], RECORD)
    before, after = read(record), "# interpreter: %s\n%s\n" % (options["python"], options["lock"].strip("\n"))
    if before != after and not module.check_mode:
        os.umask(0o022)  # root's own may hide what it installs from the user of the runs
        try:
            locks = [options["build_lock"]] if SOURCE.search(options["lock"]) else []
            create(
                options["path"],
                options["python"],
                options["pip_lock"],
                locks + [options["lock"]],
                options["index"],
            )
            write_whole(record, after.encode("utf-8"), mode=0o644)
        except FailedError as error:
            module.fail_json(msg=str(error), lacking=error.lacking)
        except OSError as error:
            module.fail_json(msg=str(error), lacking=False)
    result: Dict[str, Any] = {"changed": before != after}
    if module._diff:  # the attribute that Ansible's own modules use
        result["diff"] = {"before_header": record, "after_header": record, "before": before, "after": after}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
