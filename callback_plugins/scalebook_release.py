# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What an ansible-playbook that is interrupted still does: it stops its jobs and gives its locks back."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: scalebook_release
type: aggregate
short_description: Stop the jobs and release the machines of an interrupted ansible-playbook
description:
  - Knows from the results of the modules M(campaign_lock) and M(campaign_plan) which locks this
    ansible-playbook holds. Where it ends with some of them, because of Ctrl-C, SIGTERM, SIGHUP or a task that
    failed, it runs C(playbooks/release.yml), with the same inventory and connection, for these machines.
  - SIGTERM and SIGHUP end ansible-playbook as Ctrl-C does. A SIGKILL cannot be noticed; then the next start
    of the same command stops what is left.
"""

LOCK = "campaign_lock"
PLAN = "campaign_plan"
"""Modules, by names without that of a collection."""

LIMIT = 60
"""Seconds that the release may take: nodes that do not answer are given up."""

OPTIONS = (
    ("inventory", "--inventory"),
    ("extra_vars", "--extra-vars"),
    ("vault_ids", "--vault-id"),
    ("vault_password_files", "--vault-password-file"),
    ("remote_user", "--user"),
    ("private_key_file", "--private-key"),
    ("connection", "--connection"),
    ("become_password_file", "--become-password-file"),
    ("connection_password_file", "--connection-password-file"),
    ("ssh_common_args", "--ssh-common-args"),
    ("ssh_extra_args", "--ssh-extra-args"),
    ("sftp_extra_args", "--sftp-extra-args"),
    ("scp_extra_args", "--scp-extra-args"),
)
"""Options that say which hosts there are and how to reach them; by names in Ansible's context."""


def options(variables: Mapping[str, Any]) -> list[str]:
    """Return the OPTIONS of a command line as words."""
    words = []
    for name, option in OPTIONS:
        values = variables.get(name)
        for value in values if isinstance(values, (list, tuple)) else [values]:
            words += [f"{option}={value}"] if value else []
    return words


class Locks:
    """The locks that this ansible-playbook holds: of machines by their hosts, of results by their paths."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.paths: set[str] = set()
        self.language = "en"

    def note(self, action: str, host: str, delegated: str | None, values: Mapping[str, Any]) -> None:
        """Take note of the result of a task."""
        action = action.rpartition(".")[2]
        if action == PLAN and values.get("lock"):
            self.language = values.get("report_language") or "en"
            self.paths.add(str(values["lock"]))
        elif action == LOCK and delegated:
            self.paths.discard(str(values.get("path")))
        elif action == LOCK and values.get("held"):
            self.hosts.add(host)
        elif action == LOCK and not values.get("taken"):
            self.hosts.discard(host)


class CallbackModule(CallbackBase):
    """Gives back at the end what tasks have not given back."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "scalebook_release"

    def __init__(self) -> None:
        super().__init__()
        self._locks = Locks()
        self._process = os.getpid()
        atexit.register(self._release)
        self._handle_signals()

    def v2_runner_on_ok(self, result: Any) -> None:
        """Take note of a lock that was taken or given back."""
        delegated = result._result.get("_ansible_delegated_vars", {}).get("ansible_delegated_host")
        self._locks.note(result._task.action, result._host.get_name(), delegated, result._result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Give up the lock of a machine that is lost."""
        if result._task.action.rpartition(".")[2] == LOCK:
            self._locks.hosts.discard(result._host.get_name())

    def _handle_signals(self) -> None:
        """Have SIGTERM and SIGHUP do what Ctrl-C does; locks are given back before the last line is said."""
        interrupt = signal.getsignal(signal.SIGINT)
        if not callable(interrupt):
            return

        def stop(_number: int, frame: Any) -> None:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)  # while it stops: it ends by itself
            try:
                interrupt(signal.SIGINT, frame)
            finally:
                atexit.register(self._release)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
                signal.signal(number, stop)

    def _release(self) -> None:
        """Stop the jobs and give the locks back. Ansible's workers are copies of this process: not they."""
        locks, self._locks = self._locks, Locks()
        if os.getpid() != self._process or not (locks.hosts or locks.paths):
            return
        ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))
        from ansible.module_utils.scalebook.launch import lock_file, lock_holder
        from ansible.module_utils.scalebook.pages.wording import Wording

        holder = lock_holder.identity()
        # Who has started jobs holds a directory of results.
        released = {"id": holder["id"], "jobs": bool(locks.paths)}
        problem = self._release_hosts(sorted(locks.hosts), released) if locks.hosts else ""
        for path in sorted(locks.paths):
            try:
                lock_file.turn(path, holder, None, "absent", True)
            except OSError as error:
                problem = problem or f"{path}: {error}"
        if problem:
            self._display.display(Wording(locks.language)("console.still-in-use", why=problem))

    def _release_hosts(self, hosts: list[str], released: Mapping[str, Any]) -> str:
        """Run playbooks/release.yml for the hosts; return what went wrong."""
        from ansible.context import CLIARGS  # set again once Ansible has read its command line
        from ansible.module_utils.scalebook.places import ROOT

        with tempfile.NamedTemporaryFile("w", prefix="scalebook-", suffix=".hosts") as file:
            file.write("".join(f"{host}\n" for host in hosts))
            file.flush()
            argv = [sys.executable, sys.argv[0], *options(CLIARGS), f"--limit=@{file.name}"]
            argv += [
                f"--extra-vars={json.dumps({'scalebook_released': released})}",
                str(ROOT / "playbooks/release.yml"),
            ]
            try:
                process = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    timeout=LIMIT,
                    start_new_session=True,  # a second Ctrl-C is not for it
                    env={**os.environ, "ANSIBLE_CONFIG": constants.CONFIG_FILE or "", "ANSIBLE_NOCOLOR": "1"},
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return str(error)
        if not process.returncode:
            return ""
        lines = process.stdout.splitlines()
        wrong = [line for line in lines if "fatal:" in line or "ERROR" in line]
        return (wrong or lines or [f"status {process.returncode}"])[0]
