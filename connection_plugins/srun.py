# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The connection to a node of a Slurm allocation; see DOCUMENTATION."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import IO

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = r"""
name: srun
short_description: Run on a node of a Slurm allocation, where nodes cannot be reached by ssh
description:
  - Each command is an overlapping job step of one task on the node. Files go through its standard input and
    output. Its environment is as after a login by ssh, without what Slurm says of the step.
author: [Contributors to the scalebook project]
extends_documentation_fragment: [connection_pipelining]
options:
  host:
    description: Slurm's name of the node.
    type: str
    vars: [{name: inventory_hostname}]
  job:
    description: The allocation.
    type: str
    required: true
    env: [{name: SLURM_JOB_ID}]
    vars: [{name: ansible_srun_job}]
  passed_on:
    description: >-
      Names of variables, such as those of a proxy, that commands get from the control node's environment.
    type: list
    elements: str
    default: []
    vars: [{name: ansible_srun_passed_on}]
  remote_user:
    description: The user of the allocation. Other variables take the name from it.
    type: str
    vars: [{name: ansible_user}]
"""

PASSED_ON = ("HOME", "USER", "LOGNAME", "LANG", "SLURM_CONF")
"""Variables that commands always get from the control node, which has the same user and home."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of a node. The directory of srun comes after it: runs are steps that a node starts."""

SETTLE = 5.0
"""Seconds that a command gets to end when nobody waits for it any more."""

MARK = b"scalebook-srun"
"""Begins the lines on standard error that say that the command has begun, and that it has ended."""

SCRIPT = rf"""
unset $(env | sed -n -e /^SLURM_CONF=/d -e 's/^\(S\(LURM\|RUN\)[A-Za-z0-9_]*\)=.*/\1/p')
exec 3<&0
echo {MARK.decode()} begun >&2
/bin/sh -c "$1" <&3 3<&- &
trap 'trap "" USR1; kill -USR1 0' USR1
wait $!
status=$?
test $status -ne 138 || {{ wait $!; status=$?; }}
echo >&2
echo {MARK.decode()} ended >&2
exit $status
"""
"""Runs a command as ssh would: mpirun and frameworks would change their ways for the variables of Slurm.

The first process of a task is all that Slurm may send a signal to: it passes SIGUSR1 on to the others.
"""

WHAT_SRUN_ADDS = re.compile(
    rb"^srun: error: [^\n]*: task 0: (Exited with exit code|Terminated|Killed|User defined signal)[^\n]*\n",
    re.M,
)


def end_with_parent() -> None:
    """Have this process, an srun, end with Ansible's worker; it passes SIGUSR1 on, and kills for others."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGUSR1, 0, 0, 0)


def answer(code: int, text: bytes, host: str) -> bytes:
    """Return what the command itself wrote to its standard error.

    Raise AnsibleConnectionFailure where it has not begun, or was lost.  Only the lines of SCRIPT tell: srun
    has no exit code or sentence that a command could not have.
    """
    before, begun, rest = text.partition(MARK + b" begun\n")
    # What srun adds may come at any moment, also between the last two lines of SCRIPT.
    error, ended, after = WHAT_SRUN_ADDS.sub(b"", rest).rpartition(b"\n" + MARK + b" ended\n")
    if not begun or not ended:
        what = "was lost" if begun else "did not start"
        lines = [line for line in (rest or before).decode(errors="replace").splitlines() if line.strip()]
        reason = "; ".join([line for line in lines if "error:" in line] or lines) or f"srun ended with {code}"
        raise AnsibleConnectionFailure(f"a step of Slurm on {host} {what}: {reason}")
    return error + after


class Connection(ConnectionBase):
    """The connection `srun`."""

    transport = "srun"
    has_pipelining = True

    def _connect(self) -> Connection:
        """Connect to nothing: every command is a step of its own."""
        self._connected = True
        return self

    def close(self) -> None:
        """Close nothing."""
        self._connected = False

    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command on the node."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return self._run(cmd, in_data)

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file to the node."""
        super().put_file(in_path, out_path)
        self._copy(f"cat >{shlex.quote(out_path)}", Path(in_path).read_bytes())

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file from the node."""
        super().fetch_file(in_path, out_path)
        with Path(out_path).open("wb") as file:
            self._copy(f"cat {shlex.quote(in_path)}", None, file)

    def _copy(self, command: str, data: bytes | None, to: IO[bytes] | int = subprocess.PIPE) -> None:
        code, _, error = self._run(command, data, to)
        if code:
            reason = error.decode(errors="replace").strip()
            raise AnsibleError(f"{self.get_option('host')}: {command}: {reason}")

    def _run(
        self, command: str, data: bytes | None, to: IO[bytes] | int = subprocess.PIPE
    ) -> tuple[int, bytes, bytes]:
        """Return (status, output, errors) of a command on the node."""
        with subprocess.Popen(
            [*self._step(data is not None), "/bin/sh", "-c", SCRIPT, "sh", command],
            stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
            stdout=to,
            stderr=subprocess.PIPE,
            # The options of the allocation's own command are not for this one.
            env={name: value for name, value in os.environ.items() if not _is_option(name)},
            start_new_session=True,  # a Ctrl-C is for Ansible, which then ends this
            preexec_fn=end_with_parent,
        ) as process:
            try:
                output, error = process.communicate(data)
            except BaseException:
                process.send_signal(signal.SIGUSR1)
                try:
                    process.communicate(timeout=SETTLE)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        return process.returncode, output or b"", answer(process.returncode, error, self.get_option("host"))

    def _step(self, with_input: bool) -> list[str]:
        """Return the command line of srun up to the command."""
        srun = shutil.which("srun")
        if not srun:
            raise AnsibleConnectionFailure("there is no srun here. Fix: start Ansible on a login node")
        names = (*PASSED_ON, *self.get_option("passed_on"))
        return [
            srun,
            f"--jobid={self.get_option('job')}",
            f"--nodelist={self.get_option('host')}",
            "--nodes=1",
            "--ntasks=1",
            "--overlap",
            "--cpu-bind=none",
            "--mpi=none",
            "--quiet",
            "--chdir=/",
            f"--export={','.join(names)},PATH={PATH}:{Path(srun).parent}",
            *([] if with_input else ["--input=none"]),
        ]


def _is_option(name: str) -> bool:
    return name.startswith(("SLURM_", "SBATCH_", "SALLOC_", "SRUN_")) and name != "SLURM_CONF"
