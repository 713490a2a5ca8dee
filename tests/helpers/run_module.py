# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run an Ansible module: as a program of its own, as a node does, or here, which is much faster."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from ansible.errors import AnsibleActionFail
from ansible.module_utils.testing import patch_module_args
from ansible.plugins.loader import module_loader

ROOT = Path(__file__).resolve().parents[2]
# Last: a link there has the name of its module.
sys.path.append(str(ROOT / "action_plugins"))

import control_node  # noqa: E402

module_loader.add_directory(str(ROOT / "library"))

START = (
    "import runpy, sys, ansible.module_utils as utils; utils.__path__.append(sys.argv[1]); "
    "path = sys.argv[2]; del sys.argv[1:]; runpy.run_path(path, run_name='__main__')"
)


def module_path(name):
    """Return the file of a module, of a role's own or of library/."""
    [path] = [*ROOT.glob(f"roles/*/library/{name}.py"), *ROOT.glob(f"library/{name}.py")]
    return path


def run_module(name, env=None, timeout=60, **options):
    """Return the result of a module that runs as a program; the result of one that fails has `failed`."""
    done = subprocess.run(
        [sys.executable, "-c", START, str(ROOT / "module_utils"), str(module_path(name))],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": options}),
        capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})},
    )  # fmt: skip
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"{name} printed no result: {done.stdout}{done.stderr}") from None


def call_module(module, check=False, diff=False, **options):
    """Return the result of an imported module that runs here, with the packages that are loaded."""
    if not hasattr(module, "main"):
        return call_action(module.__name__, check, **options)
    printed = io.StringIO()
    arguments = {**options, "_ansible_check_mode": check, "_ansible_diff": diff}
    with patch_module_args(arguments), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        module.main()
    return json.loads(printed.getvalue())


def call_action(name, /, check=False, **options):
    """Return the result of a module that runs in the process of ansible-playbook."""
    task = SimpleNamespace(action=name, args=options, check_mode=check, async_val=0, collections=None)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
    unused = dict.fromkeys(["play_context", "loader", "templar", "shared_loader_obj"])
    try:
        return control_node.ActionModule(task=task, connection=connection, **unused).run()
    except AnsibleActionFail as error:  # of options that the module does not have
        return {"failed": True, "msg": error.message}
