# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign of the scripted trainer on the nodes, started and observed from outside."""

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from . import workloads
from .base import CHECKOUT, ClusterError
from .nodes import Cluster
from .processes import NodeView, scan

WORK = "/opt/scalebook/work"
_STEP = re.compile(rb"SCRIPTED step=(\d+)/")
_LAUNCHES = re.compile(r": started, .* elapsed")
"""The line before a run, printed with -v (callback_plugins/scalebook_progress.py)."""


def wait_for(what: str, true: Callable[[], Any], limit: float, every: float = 0.2) -> Any:
    """Return the first true value of `true()`; raise ClusterError naming `what` after `limit` seconds."""
    deadline = time.monotonic() + limit
    while True:
        value = true()
        if value:
            return value
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {limit:g} s")
        time.sleep(every)


class Campaign:
    """bench.yml on the cluster, with results in `results`/`name` and `variables` as extra variables.

    `workload` is one of workloads.NAMES; variables are given as those of `scripted`.
    """

    def __init__(
        self, cluster: Cluster, results: Path, name: str, workload: str = workloads.SCRIPTED, **variables: Any
    ) -> None:
        self.cluster = cluster
        self.workload = workload
        self.results = results
        self.directory = results / name
        self.nodes = [NodeView(cluster, number) for number in range(1, 5)]
        self.variables = {
            "workload": workload,
            "campaign": name,
            "campaign_results": str(results),
            "campaign_space": 0,
            "preflight": False,  # it would refuse nodes with disks as small as these
            **variables,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.orphaned: set[int] = set()
        self.launches = False
        self.preloaded: list[Path] = []
        """Libraries that the programs of this control node preload."""
        self.by_slurm: dict[str, str] = {}
        """Variables of the environment that name the allocation and where Slurm's commands are."""

    # -- ansible-playbook --------------------------------------------------------------------------

    def popen(
        self,
        log: Path,
        inventory: Path | None = None,
        before: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> subprocess.Popen[bytes]:
        """Start ansible-playbook bench.yml with its output in `log`.

        `before` are words before the command, `environment` are further variables of its environment.
        """
        variables = {**self.variables, **more}
        argv = [
            *before,
            "ansible-playbook",
            "-i",
            str(inventory or self.cluster.access.inventory),
            "bench.yml",
        ]
        argv += ["-v", "-e", json.dumps(workloads.variables(self.workload, variables))]
        preloaded = {"LD_PRELOAD": ":".join(map(str, self.preloaded))} if self.preloaded else {}
        with log.open("wb") as file:
            return subprocess.Popen(
                argv,
                cwd=CHECKOUT,
                env={**self.environment(), **self.by_slurm, **preloaded, **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @staticmethod
    def environment() -> dict[str, str]:
        """Return the environment of Ansible's commands: this checkout's, with the tests' roles."""
        return {
            **os.environ,
            "PATH": f"{CHECKOUT}/.venv/bin:{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_ROLES_PATH": workloads.roles_path(),
            "ANSIBLE_NOCOLOR": "1",
        }

    def start(self, **more: Any) -> None:
        """Start ansible-playbook."""
        self.starts += 1
        self.orphaned, self.launches = set(), False
        self.results.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.results.parent / f"{self.directory.name}-{self.starts}.log"
        self.process = self.popen(self.log, **more)
        self.own_processes()  # those that exist now belong to an earlier start

    def running(self) -> bool:
        """Return whether ansible-playbook is running."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill ansible-playbook without warning."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def interrupt(self, number: int, limit: float) -> float:
        """Send ansible-playbook a signal; return the seconds until it has ended."""
        began = time.monotonic()
        if self.process:
            self.process.send_signal(number)
            self.process.wait(limit)
        return time.monotonic() - began

    def locks(self) -> list[str]:
        """Return the nodes that are locked."""
        return [node.name for node in self.nodes if node.path("/run/lock/scalebook.lock").exists()]

    def said(self) -> str:
        """Return the output of ansible-playbook since its last start."""
        return self.log.read_text(errors="replace")

    def refresh(self) -> None:
        """Look the nodes up again: a restarted node is another process."""
        for node in self.nodes:
            node.refresh()

    # -- the current run ---------------------------------------------------------------------------

    def current(self) -> str | None:
        """Return `<case>/<repeat>` of the run whose trainers are running, None between two runs."""
        for processes in self.own_processes().values():
            for env in processes.values():
                if env.get("JOB_DIR"):
                    return "/".join(env["JOB_DIR"].split("/")[-2:])
        return None

    def marked(self) -> dict[str, dict[int, dict[str, str]]]:
        """Return {node: {pid: environment}} of the processes that belong to a job."""
        return scan(self.nodes, "SCALEBOOK_JOB")

    def own_processes(self) -> dict[str, dict[int, dict[str, str]]]:
        """Return {node: {pid: environment}} of the processes of jobs that this ansible-playbook launched.

        Processes of an earlier start run on for a while, and those that it was launching may appear late,
        under the same names: processes seen before the first launch of this start are not its own.
        """
        marked = self.marked()
        self.launches = self.launches or bool(_LAUNCHES.search(self.said()))
        if not self.launches:
            self.orphaned |= {pid for processes in marked.values() for pid in processes}
        return {
            name: {pid: env for pid, env in processes.items() if pid not in self.orphaned}
            for name, processes in marked.items()
        }

    def members(self, run: str) -> list[str]:
        """Return the names of the nodes on which a trainer of `<case>/<repeat>` is running."""
        return [
            name
            for name, processes in self.own_processes().items()
            if any(env.get("JOB_DIR", "").endswith(f"/{run}") for env in processes.values())
        ]

    def step(self, node: NodeView, run: str) -> int:
        """Return the last step that the node has logged of `<case>/<repeat>`."""
        path = node.path(f"{WORK}/{node.name}/{self.directory.name}/{run}/{node.name}.log")
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            found = _STEP.findall(file.read())
            return int(found[-1]) if found else 0
        return 0

    def wait_for_step(self, step: int, limit: float = 60, but: str | None = None) -> str:
        """Wait until a run other than `but` has logged `step` and is still running; return the run."""

        def there() -> str | None:
            if not self.running():
                raise ClusterError(f"ansible-playbook has ended: {self.said()[-1500:]}")
            run = self.current()
            if run and run != but:
                # Until the trainer of a node has started, the log is still that of an earlier attempt.
                begun = [node for node in self.nodes if node.name in self.members(run)]
                if any(step <= self.step(node, run) < 110 for node in begun):
                    return run
            return None

        return str(wait_for(f"step {step} of a run", there, limit))

    # -- records -----------------------------------------------------------------------------------

    def records(self) -> dict[str, dict[str, Any]]:
        """Return {`<case>/<repeat>`: record} of the campaign."""
        return self._records("runs")

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return {`<case>/<repeat>-<n>`: record} of the attempts that were set aside."""
        return self._records("failed")

    def _records(self, below: str) -> dict[str, dict[str, Any]]:
        found = {}
        for path in sorted(self.directory.glob(f"{below}/*/*/result.json")):
            with contextlib.suppress(FileNotFoundError):  # set aside just now
                found["/".join(path.parts[-3:-1])] = json.loads(path.read_bytes())
        return found

    def finished(self) -> dict[str, str]:
        """Return {`<case>/<repeat>`: sha256 of the record} of the runs that count."""
        return {
            run: hashlib.sha256((self.directory / "runs" / run / "result.json").read_bytes()).hexdigest()
            for run, record in self.records().items()
            if record["status"] == "ok"
        }

    def verdict(self, run: str, before: int, limit: float) -> dict[str, Any]:
        """Return the record of the attempt at `run` after `before` that were set aside, once it is there."""

        def there() -> dict[str, Any] | None:
            aside = [record for name, record in self.failures().items() if name.startswith(f"{run}-")]
            if len(aside) > before:
                return {**aside[-1], "again": True}
            return self.records().get(run)

        return dict(wait_for(f"a record of {run}", there, limit))

    def attempts(self, run: str) -> int:
        """Return how many attempts at a run were set aside."""
        return sum(name.startswith(f"{run}-") for name in self.failures())

    # -- what must not be --------------------------------------------------------------------------

    def orphans(self, but: str | None = None) -> list[str]:
        """Return the processes on the nodes that belong to a job other than that of the run `but`."""
        return [
            f"{name}: {pid} of {env['SCALEBOOK_JOB']}"
            for name, processes in self.marked().items()
            for pid, env in processes.items()
            if pid in self.orphaned or but is None or not env["SCALEBOOK_JOB"].endswith(f"/{but}")
        ]
