# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How the processes of a run ended -> why it does not count, in one sentence that names the culprit.

What is known comes from run_node's closing line in each node's log, from run_job (`job`), and
from the control node (which nodes no longer answer).  None of it needs the framework.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import JobReport
from ansible.module_utils.scalebook.read.step_log import Log, find_word, plain_lines
from ansible.module_utils.scalebook.read.workload import Workload

TIMED_OUT = 124
"""What timeout(1) ends with when it had to end mpirun."""

DISK_FULL = (b"No space left on device",)

_STATUS = {"hung": "hung", "timeout": "hung", "refused": "refused"}
_CONTACT = re.compile(
    r"lost communication with a remote daemon|unable to reliably start one or more daemons"
    r"|daemon on the following node|connection to .* (was closed|timed out)|No route to host",
    re.IGNORECASE,
)
_LOST_DAEMON = re.compile(r"Remote daemon: \S+ on node (\S+)")
_KILLED = re.compile(r"process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+)")


class Verdict(NamedTuple):
    """Why a run does not count: a status, a sentence, and the lines that show it."""

    status: str
    reason: str
    last_lines: list[str]


class Node(NamedTuple):
    """One node's log: read, or the reason why not."""

    name: str
    task_index: int
    file: str
    path: Path
    log: Log | None
    problem: str | None
    workload: Workload


def lost_contact(job: JobReport) -> bool:
    """Return whether nodes lost each other, or the control node lost one: a retry may succeed."""
    return bool(job.get("lost") or job.get("unreachable")) or bool(
        _CONTACT.search(str(job.get("stderr") or ""))
    )


def judge_ending(nodes: Sequence[Node], job: JobReport) -> Verdict | None:
    """Return what went wrong with the processes, None when all ended well.

    A node that no longer answers comes first, then what run_node itself stopped or saw.  The first
    node to go wrong is the culprit; those that the job then terminated are its victims.
    """
    stderr = plain_lines(str(job.get("stderr") or "").encode())
    # mpirun rules its messages off, and warns of a race of its own that it then ignores.
    stderr = [line for line in stderr if line.strip("-") and "plm:rsh: Warning: setpgid" not in line]
    for failed, text in (
        (job.get("lost"), "was lost"),
        (job.get("unwritten"), "could not be given its job"),
    ):
        for name, why in (failed or {}).items():
            return Verdict("failed", one_line(f"{name} {text}" + (f": {why}" if why else "")), stderr)
    exits = [(node, node.log.exit) for node in nodes if node.log and node.log.exit]
    silent = [node for node in nodes if node.log is None or node.log.exit is None]
    verdict = _rendezvous(nodes, exits, job, stderr) or _hung(exits)
    if verdict:
        return verdict
    wrong = [(node, said) for node, said in exits if not _ended_well(said) and said["status"] != "terminated"]
    killed = _KILLED.search(" ".join(stderr))
    # mpirun ends as the first rank did; where it was ended otherwise, SIGTERM is what the ranks then got.
    if _signal({"status": "exited", "rc": int(job.get("rc") or 0)}) not in (0, signal.SIGTERM):
        wrong = [(node, said) for node, said in wrong if _signal(said) != signal.SIGTERM]
    if wrong:
        # A rank whose peer died may fail too, a moment earlier by its clock: a signal is nearer the cause.
        culprit, said = min(wrong, key=lambda pair: (not _signal(pair[1]), _number(pair[1].get("ended"))))
        verdict = _culprit(culprit, said)
        if silent:
            reason = f"{verdict.reason}; {names(silent)} left no closing line"
            verdict = verdict._replace(reason=reason)
        return verdict
    return _job(nodes, exits, silent, job, stderr, killed)


def names(nodes: Sequence[Node]) -> str:
    """Return the names of `nodes` for a sentence."""
    return ", ".join(node.name for node in nodes)


def one_line(text: str) -> str:
    """Return `text` as one line fit for a record."""
    return " ".join(plain_lines(text.encode()))


def last_lines(node: Node) -> list[str]:
    """Return the last lines of a node's log."""
    return node.log.last_lines if node.log else []


def _rendezvous(
    nodes: Sequence[Node],
    exits: Sequence[tuple[Node, Mapping[str, Any]]],
    job: JobReport,
    stderr: list[str],
) -> Verdict | None:
    """Return the verdict on a job that did not come together in time, naming who was missing."""
    late = [(node, said) for node, said in exits if said["status"] == "rendezvous"]
    if job.get("unstarted"):
        hosts = ", ".join(job["unstarted"])
        return Verdict("failed", one_line(f"rendezvous timeout: no login to {hosts}"), stderr)
    if not late:
        return None
    began = {node.name for node, said in exits if said.get("said")}
    missing = [node for node in nodes if node.name not in began]
    who = f"{names(missing)} never began" if missing else "all nodes began"
    limit = str(late[0][1].get("reason") or "").partition(",")[0]
    return Verdict(
        "failed", one_line(f"rendezvous timeout: {who}; {limit}"), last_lines((missing or nodes)[0])
    )


def _hung(exits: Sequence[tuple[Node, Mapping[str, Any]]]) -> Verdict | None:
    """Return the verdict on a job that fell silent.

    All ranks of a synchronised job do; one whose processes are stopped is the reason for the others.
    """
    hung = [pair for pair in exits if pair[1]["status"] == "hung"]
    if not hung:
        return None
    stopped = [pair for pair in exits if pair[1].get("stopped")]
    node, said = min(stopped or hung, key=lambda pair: _number(pair[1].get("ended")))
    why = str(hung[0][1].get("reason") or "")
    reason = f"{_who(node, said)} hung" + (f": {why}" if why else "")
    if stopped:
        reason += f"; {said['stopped']} of its processes stopped (SIGSTOP)"
    else:
        reason += "".join(f": {rule.why}" for rule in node.workload.failures if f'"{rule.text}"' in why)
    return Verdict("hung", one_line(reason), last_lines(node))


def _known_failure(node: Node) -> str:
    """Return what the workload's declaration says of a failure that the log tells, else ""."""
    rules = {rule.text: rule.why for rule in node.workload.failures if not rule.hangs}
    word = find_word(node.path, tuple(text.encode() for text in rules))
    return f': its log says "{word}": {rules[word]}' if word else ""


def _culprit(node: Node, said: Mapping[str, Any]) -> Verdict:
    who = _who(node, said)
    status = str(said.get("status"))
    why = str(said.get("reason") or "")
    full = memory = None
    if status in ("exited", "signaled"):
        memory = find_word(node.path, node.workload.oom)
        full = find_word(node.path, DISK_FULL)
    if memory:
        return _oom(node, f'{who} ran out of memory: its log says "{memory}"; it {_exit(said)}')
    if status in ("exited", "signaled") and said.get("oom_kills"):
        return _oom(node, f"{who} ran out of memory: the kernel killed a process of its; it {_exit(said)}")
    if full:
        reason = f'{who} ran out of disk: its log says "{full}"; it {_exit(said)}'
    elif status in ("exited", "signaled"):
        reason = f"{who} {_exit(said)}" + (f": {why}" if why else _known_failure(node))
    elif status == "timeout":
        reason = f"{who} ran past its time limit" + (f": {why}" if why else "")
    elif status == "failed":
        reason = f"{who} failed" + (f": {why}" if why else "")
    else:
        reason = f"{who} was {status}" + (f": {why}" if why else "")
    return Verdict(_STATUS.get(status, "failed"), one_line(reason), last_lines(node))


def _oom(node: Node, reason: str) -> Verdict:
    return Verdict("oom", one_line(reason), last_lines(node))


def _job(
    nodes: Sequence[Node],
    exits: Sequence[tuple[Node, Mapping[str, Any]]],
    silent: Sequence[Node],
    job: JobReport,
    stderr: list[str],
    killed: re.Match[str] | None,
) -> Verdict | None:
    """Return the verdict where no node's closing line tells: from mpirun, and from what is missing."""
    rc = job.get("rc")
    rc = None if rc is None else int(rc)
    ours = [line for line in stderr if line.startswith("scalebook: ")]
    ended = ""
    lost = _LOST_DAEMON.search(" ".join(stderr))
    if rc and lost:
        ended = f"mpirun lost contact with {lost.group(1)}"
    elif rc:
        said = (ours or stderr)[-1:]
        ended = f"mpirun {_exit({'status': 'exited', 'rc': rc})}" + (f": {said[0]}" if said else "")
    if silent and killed:
        rank, host, number = killed.groups()
        reason = f"run_node of rank {rank} on {host} {_exit({'signal': int(number)})}"
        return Verdict("failed", one_line(f"{silent[0].name}: {reason}"), last_lines(silent[0]) or stderr)
    if ours and "No space left on device" in ours[-1]:
        return Verdict("failed", one_line(ours[-1].partition(": failed: ")[2] or ours[-1]), stderr)
    unread = [node for node in nodes if node.problem]
    if unread:
        reason = f"{unread[0].file} {unread[0].problem}" + (f"; {ended}" if ended else "")
        return Verdict("failed", reason, stderr)
    if rc == TIMED_OUT or job.get("timed_out"):
        return Verdict("hung", f"mpirun ran past its time limit after {job.get('seconds')} s", stderr)
    if silent:
        reason = f"{silent[0].file} ends without run_node's closing line: its machine or run_node died"
        return Verdict("failed", reason + (f"; {ended}" if ended else ""), last_lines(silent[0]) or stderr)
    if rc:
        return Verdict("failed", ended, stderr)
    terminated = [node for node, said in exits if said["status"] == "terminated"]
    if terminated:
        return Verdict("failed", f"{names(terminated)} was terminated", last_lines(terminated[0]))
    return None


def _who(node: Node, said: Mapping[str, Any]) -> str:
    rank, host = said.get("rank", node.task_index), said.get("host")
    return f"{node.name} (rank {rank})" if host == node.name else f"{node.name} (rank {rank}, host {host})"


def _signal(said: Mapping[str, Any]) -> int:
    """Return the signal that ended the workload, also as a shell passes it on (128 + signal); 0 for none."""
    number, rc = said.get("signal"), said.get("rc")
    if isinstance(number, int) and number:
        return number
    if said.get("status") == "exited" and isinstance(rc, int) and 128 < rc < 128 + 65:
        return rc - 128
    return 0


def _exit(said: Mapping[str, Any]) -> str:
    number = _signal(said)
    if number:
        try:
            return f"was ended by signal {number} ({signal.Signals(number).name})"
        except ValueError:
            return f"was ended by signal {number}"
    return f"ended with exit code {said.get('rc')}"


def _ended_well(said: Mapping[str, Any]) -> bool:
    return said.get("status") == "exited" and said.get("rc") == 0 and not said.get("signal")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else math.inf
