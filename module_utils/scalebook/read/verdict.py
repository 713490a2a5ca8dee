# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How the processes of a run ended -> why it does not count, in one message that names the culprit.

What is known comes from run_node's closing line in each node's log, from run_job (`job`), and
from the control node (which nodes no longer answer).  None of it needs the framework.
"""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import (
    JobReport,
    Message,
    as_message,
    because,
    message,
    together,
)
from ansible.module_utils.scalebook.failure_causes import EFFECT, MEMORY, ROOT, SIGNALS, Cause
from ansible.module_utils.scalebook.failure_search import Hit, advice, first_cause
from ansible.module_utils.scalebook.files import open_regular
from ansible.module_utils.scalebook.read import collectives, stacks
from ansible.module_utils.scalebook.read.blocks import Blocks
from ansible.module_utils.scalebook.read.step_log import Log, plain_lines
from ansible.module_utils.scalebook.workload import Workload

TIMED_OUT = 124
"""What timeout(1) ends with when it had to end mpirun."""

SEARCHED = 32 << 20
"""Bytes of the end of a log in which a cause is searched."""

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals by which a job is ended from outside."""

_ENDS = {
    "timeout": "reason.time-limit",
    "failed": "reason.failed",
    "terminated": "reason.terminated",
    "refused": "reason.refused",
}
"""What a node's closing line says besides how its processes ended, and the code for it."""
_STATUS = {"hung": "hung", "timeout": "hung", "refused": "refused"}
_CONTACT = re.compile(
    r"lost communication with a remote daemon|unable to reliably start one or more daemons"
    r"|daemon on the following node|connection to .* (was closed|timed out)|No route to host"
    r"|srun: error: (Node failure on|Task launch for .* failed on node)|Unable to contact slurm",
    re.IGNORECASE,
)
_LOST_DAEMON = re.compile(r"Remote daemon: \S+ on node (\S+)")
_LOST_NODE = re.compile(r"srun: error: (?:Node failure on|Task launch for \S+ failed on node) ([^\s:]+)(.*)")
_KILLED = re.compile(r"process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+)")
# mpirun on a job in which a rank failed, and which one was the first: [[12345,1],2], [prterun-n1-7@1,2]
_FIRST = re.compile(r"exited with non-zero status|exited on signal|srun: error: \S+ task \d+: [EKT]")
_FIRST_RANK = re.compile(r"Process name:\s+\[\S*,(\d+)\]|srun: error: \S+ task (\d+): [EKT]")
# Slurm says so of a step that somebody cancels, and of one that it ends after a task that went wrong.
_CANCELLED, _TASK_ENDED = re.compile(r"CANCELLED AT \S+ \*\*\*"), re.compile(r"srun: error: \S+ task \d+: ")
_CANCEL = Cause("cancelled", ("CANCELLED AT … ***",), why=message("reason.cancelled"))
_NOISE = (
    *("plm:rsh: Warning: setpgid", "srun: cluster configuration lacks support for cpu binding"),
    *("srun: Force Terminated", "srun: Job step aborted: Waiting up to"),
)
# What run_node says of a further rank of a node, whose log stays there.
_RANK = re.compile(
    r"scalebook: failed: (?P<node>\S+) \(rank (?P<rank>\d+), host (?P<host>\S+)\) "
    r"(?:ended with exit code (?P<rc>\d+)|was ended by signal (?P<signal>\d+))"
)


class Verdict(NamedTuple):
    """Why a run does not count: a status, the reason, and the lines that show it."""

    status: str
    reason: Message
    last_lines: list[str]


class Node(NamedTuple):
    """One node's log: read, or the reason why not."""

    name: str
    task_index: int
    file: str
    path: Path
    log: Log | None
    problem: Message | None
    workload: Workload


class Suspect(NamedTuple):
    """A node whose processes did not end well: run_node's closing line, and the cause that its log tells."""

    node: Node
    said: Mapping[str, Any]
    hit: Hit | None

    @property
    def has_root(self) -> bool:
        """Whether the log tells a cause of its own, not what another node's failure did to it."""
        return self.hit is not None and self.hit.cause.kind == ROOT

    @property
    def is_victim(self) -> bool:
        """Whether the log tells what another node's failure did to this one."""
        return self.hit is not None and self.hit.cause.kind == EFFECT

    @property
    def moment(self) -> float:
        """The time of day of the line that tells the cause, of the node's end where it has no stamp."""
        hit_moment = self.hit.moment if self.hit else None
        return _number(self.said.get("ended") if hit_moment is None else hit_moment)

    @property
    def order(self) -> tuple[bool, bool, float]:
        """What sorts the nodes: those that surely failed by themselves first, victims last, then by time.

        A rank whose peer died may fail too, a moment earlier by its clock: a signal is nearer the cause.
        """
        ended = _number(self.said.get("ended"))
        if self.has_root:
            ended = min(ended, self.moment)
        number = _signal(self.said)
        killed = bool(number) and number not in _ENDING and not self.is_victim
        sure = self.has_root or killed or bool(self.said.get("oom_kills"))
        sure = sure or self.said.get("status") in ("refused", "failed", "timeout")
        return not sure, self.is_victim, ended


def lost_contact(job: JobReport) -> bool:
    """Return whether nodes lost each other, or the control node lost one: a retry may succeed."""
    return bool(job.get("lost") or job.get("unreachable") or job.get("ended_by") == "lost") or bool(
        _CONTACT.search(str(job.get("stderr") or ""))
    )


def judge_ending(nodes: Sequence[Node], job: JobReport) -> Verdict | None:
    """Return what went wrong with the processes, None when all ended well.

    A node that no longer answers comes first, then what run_node itself stopped or saw.  The first
    node to go wrong is the culprit; those that the job then terminated are its victims.
    """
    stderr = _without_noise(plain_lines(str(job.get("stderr") or "").encode()))
    for failed, code in ((_lost_or_silent(job), "reason.lost"), (job.get("unwritten"), "reason.no-job")):
        for name, why in (failed or {}).items():
            return Verdict("failed", because(message(code, node=name), one_line(why)), stderr)
    exits = [(node, node.log.exit) for node in nodes if node.log and node.log.exit]
    silent = [node for node in nodes if node.log is None or node.log.exit is None]
    suspects = [
        Suspect(node, node_end, _cause(node, node_end))
        for node, node_end in exits
        if not _ended_well(node_end)
    ]
    verdict = _rendezvous(nodes, exits, job, stderr) or _hung(exits)
    if verdict:
        paths = [node.path for node in nodes]
        where = [*collectives.waits(paths), *stacks.places(paths)]
        return _explained(verdict._replace(reason=together(verdict.reason, *where)), suspects)
    wrong = _failed_first(suspects, job)
    rank = _rank(stderr)
    if wrong and (wrong.has_root or rank is None):
        verdict = _culprit(wrong)
        if silent:
            verdict = verdict._replace(reason=together(verdict.reason, _unclosed(silent)))
        return verdict
    return rank or _job(nodes, exits, silent, job, stderr, suspects)


def lost_nodes(job: JobReport) -> dict[str, str]:
    """Return {node: why} of the nodes that the control node or Slurm has lost."""
    unreachable = job.get("lost") or {}
    failure = _LOST_NODE.search(str(job.get("stderr") or "")) if job.get("rc") else None
    return unreachable or ({failure[1]: failure[2].strip(" :")} if failure else {})


def _lost_or_silent(job: JobReport) -> dict[str, str]:
    """Return those of lost_nodes, and those that did not answer run_job, but may be back."""
    if job.get("ended_by") == "lost":
        return {**dict.fromkeys(job.get("hosts") or (), ""), **(job.get("lost") or {})}
    return lost_nodes(job)


def names(nodes: Sequence[Node]) -> list[str]:
    """Return the names of `nodes` for a message."""
    return [node.name for node in nodes]


def one_line(text: Any) -> str:
    """Return what a program said as one line fit for a record, "" for nothing."""
    return " ".join(plain_lines(str(text or "").encode()))


def last_lines(node: Node) -> list[str]:
    """Return the last lines of a node's log."""
    return node.log.last_lines if node.log else []


def _unclosed(silent: Sequence[Node]) -> Message:
    return message("reason.unclosed", nodes=names(silent))


def _without_noise(lines: Iterable[str]) -> list[str]:
    """Return lines of a launcher without the rules around its messages and what tells no cause."""
    return [line for line in lines if line.strip("-") and not any(text in line for text in _NOISE)]


def _rendezvous(
    nodes: Sequence[Node],
    exits: Sequence[tuple[Node, Mapping[str, Any]]],
    job: JobReport,
    stderr: list[str],
) -> Verdict | None:
    """Return the verdict on a job that did not come together in time, naming who was missing."""
    late = [(node, node_end) for node, node_end in exits if node_end["status"] == "rendezvous"]
    if job.get("unstarted"):
        why = message("reason.no-login", hosts=list(job["unstarted"]))
        return Verdict("failed", message("reason.rendezvous", why=why), stderr)
    if not late:
        return None
    began = {node.name for node, node_end in exits if node_end.get("said")}
    missing = [node for node in nodes if node.name not in began]
    who = message("reason.never-began", nodes=names(missing)) if missing else message("reason.all-began")
    limit = _passed(late[0][1])
    why = together(who, limit) if limit else who
    return Verdict("failed", message("reason.rendezvous", why=why), last_lines((missing or nodes)[0]))


def _passed(node_end: Mapping[str, Any]) -> Message | None:
    """Return which limit a node passed; nodes of an earlier version said it in a sentence alone."""
    limit, late = node_end.get("limit"), node_end["status"] == "rendezvous"
    seconds = _number(limit.get("seconds")) if isinstance(limit, Mapping) else math.inf
    if not isinstance(limit, Mapping) or not math.isfinite(seconds):
        why = _why(node_end)
        if late and why and why["code"] == "text":
            return as_message(str(why["values"]["text"]).partition(",")[0])
        return why
    after = one_line(limit.get("after"))
    code = "reason.late" if late else "reason.silent-after" if after else "reason.silent"
    return message(code, seconds=seconds, **({"after": after} if after else {}))


def _why(node_end: Mapping[str, Any]) -> Message | None:
    """Return why a node's processes were ended; nodes of an earlier version said it in a sentence."""
    reason = node_end.get("reason")
    if not isinstance(reason, Mapping):
        return as_message(one_line(reason)) if reason else None
    values = reason.get("values")
    parts = values if isinstance(values, Mapping) else {}
    return message(
        str(reason.get("code")),
        **{str(key): one_line(each) if isinstance(each, str) else each for key, each in parts.items()},
    )


def _hung(exits: Sequence[tuple[Node, Mapping[str, Any]]]) -> Verdict | None:
    """Return the verdict on a job that fell silent.

    All ranks of a synchronised job do; one whose processes are stopped is the reason for the others.
    """
    hung = [pair for pair in exits if pair[1]["status"] == "hung"]
    if not hung:
        return None
    stopped = [pair for pair in exits if pair[1].get("stopped")]
    node, node_end = min(stopped or hung, key=lambda pair: _number(pair[1].get("ended")))
    reason = because(message("reason.hung", who=_who(node, node_end)), _passed(hung[0][1]))
    if stopped:
        reason = together(reason, message("reason.stopped", count=node_end["stopped"]))
    for rule in () if stopped else node.workload.failures:
        reason = because(reason, rule.why) if _was_after(rule.text, hung[0][1]) else reason
    return Verdict("hung", reason, last_lines(node))


def _cause(node: Node, node_end: Mapping[str, Any]) -> Hit | None:
    """Return the first cause that a node's log tells.

    Texts of the workload's own count where it ended by itself: what it prints when it is ended may have them.
    """
    workload = node.workload
    own = [Cause("memory", tuple(word.decode() for word in workload.oom), status="oom", ended=MEMORY)]
    own += [Cause("own", (rule.text,), why=rule.why) for rule in workload.failures if not rule.hangs]
    if node_end["status"] == "terminated":
        own = []
    with open_regular(node.path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - SEARCHED))
        return first_cause(Blocks(file), own, workload.log.step.literal)


def _failed_first(suspects: Sequence[Suspect], job: JobReport) -> Suspect | None:
    """Return the node that failed by itself before the others, None where the job's end ended all.

    A node that was ended with the job may have been the first one: its log says so, before others failed.
    """
    own = [one for one in suspects if one.said["status"] != "terminated" and not _ended_with(one, job)]
    late = job.get("timed_out") or job.get("rc") == TIMED_OUT
    first = min((_number(one.said.get("ended")) for one in own if not one.is_victim), default=math.inf)
    if own or not late:
        others = [one for one in suspects if one not in own]
        own += [one for one in others if one.said.get("oom_kills") or (one.has_root and one.moment <= first)]
    return min(own, key=lambda one: one.order, default=None)


def _ended_with(suspect: Suspect, job: JobReport) -> bool:
    """Return whether a signal ended the node because the job was ended, not because of the node.

    Where a rank failed, mpirun says so, and which; where it was ended otherwise, all ranks get SIGTERM.
    """
    number = _signal(suspect.said)
    if suspect.has_root or suspect.said.get("oom_kills"):
        return False
    if job.get("unreported"):
        return number in (*_ENDING, signal.SIGKILL)
    if number not in _ENDING or not int(job.get("rc") or 0):
        return False
    text = str(job.get("stderr") or "")
    first = _FIRST_RANK.search(text)
    if job.get("ended_by") or not _FIRST.search(text):
        return True
    return first is not None and int(first[1] or first[2]) != suspect.said.get(
        "rank", suspect.node.task_index
    )


def _explained(verdict: Verdict, suspects: Sequence[Suspect]) -> Verdict:
    """Return the verdict on a job that got stuck, with the first cause that a log tells."""
    first = min((one for one in suspects if one.has_root), key=lambda one: one.order, default=None)
    if first is None or first.hit is None:
        return verdict
    cause, text = first.hit.cause, first.hit.text
    if cause.ended:
        who = _who(first.node, first.said)
        reason = message(f"reason.{cause.ended}", who=who, line=text, then=verdict.reason)
        status = cause.status if cause.status == "oom" else verdict.status
        return Verdict(status, reason, last_lines(first.node))
    says = because(message("reason.log-of-says", node=first.node.name, line=text), advice(cause))
    return verdict._replace(reason=together(verdict.reason, says))


def _rank(stderr: Sequence[str]) -> Verdict | None:
    """Return the verdict on a further rank of a node that tells a cause of its own, None for none."""
    for line in stderr:
        match = _RANK.match(line)
        hit = first_cause([line.encode()]) if match else None
        if match and hit and hit.cause.kind == ROOT:
            who = message("reason.rank-of-host", **{key: match[key] for key in ("node", "rank", "host")})
            rc, number = match["rc"], match["signal"]
            end = message("reason.exit", rc=rc) if rc else message("reason.signal-number", number=number)
            return _of_hit(who, end, hit, list(stderr))
    return None


def _was_after(text: str, node_end: Mapping[str, Any]) -> bool:
    """Return whether a node fell silent after a line with this text."""
    reason = node_end.get("reason")
    if isinstance(reason, Mapping):
        return bool((reason.get("values") or {}).get("after") == text)
    return f'"{text}"' in one_line(reason)


def _culprit(suspect: Suspect) -> Verdict:
    node, node_end, hit = suspect
    who, status = _who(node, node_end), str(node_end.get("status"))
    why = _why(node_end)
    killed = node_end.get("oom_kills") and not suspect.has_root
    if killed and status in ("exited", "signaled", "terminated"):
        return Verdict(
            "oom", message("reason.killed-for-memory", who=who, end=_exit(node_end)), last_lines(node)
        )
    if hit and status in ("exited", "signaled", "terminated"):
        return _of_hit(who, _exit(node_end), hit, last_lines(node))
    if status in ("exited", "signaled"):
        reason, cause = message("reason.ended", who=who, end=_exit(node_end)), SIGNALS.get(_signal(node_end))
        why = why or (message(f"failure.{cause}") if cause else None)
    elif status in _ENDS:
        reason = message(_ENDS[status], who=who)
    else:
        reason = message("reason.was", who=who, status=status)
    return Verdict(_STATUS.get(status, "failed"), because(reason, why), last_lines(node))


def _of_hit(who: Message, end: Message, hit: Hit, lines: list[str]) -> Verdict:
    """Return the verdict on who ended so, where its output tells the cause."""
    if hit.cause.ended:
        then = message("reason.it", end=end)
        reason = message(f"reason.{hit.cause.ended}", who=who, line=hit.text, then=then)
    else:
        says = because(message("reason.log-says", line=hit.text), advice(hit.cause))
        reason = because(message("reason.ended", who=who, end=end), says)
    return Verdict(hit.cause.status, reason, lines)


def _job(
    nodes: Sequence[Node],
    exits: Sequence[tuple[Node, Mapping[str, Any]]],
    silent: Sequence[Node],
    job: JobReport,
    stderr: list[str],
    suspects: Sequence[Suspect],
) -> Verdict | None:
    """Return the verdict where no node's closing line tells: from the launcher, and from what is missing."""
    rc = job.get("rc")
    rc = None if rc is None else int(rc)
    ours = [line for line in stderr if line.startswith("scalebook: ")]
    ended, cause = _of_launcher(nodes, job, stderr, ours) if rc else (None, None)
    killed = _KILLED.search(" ".join(stderr))
    if silent and killed:
        rank, host, number = killed.groups()
        who = message("reason.run-node", node=silent[0].name, rank=rank, host=host)
        reason = message("reason.ended", who=who, end=_exit({"signal": int(number)}))
        return Verdict("failed", reason, last_lines(silent[0]) or stderr)
    if ours and "No space left on device" in ours[-1]:
        return Verdict("failed", as_message(ours[-1].partition(": failed: ")[2] or ours[-1]), stderr)
    if ended and cause and cause.kind == ROOT:
        return Verdict(cause.status, ended, stderr)
    if job.get("unreported") and ended:
        with_log = [node for node in silent if node.log]
        return Verdict("failed", together(ended, *([_unclosed(with_log)] if with_log else [])), stderr)
    then = [ended] if ended else []
    unread = [node.problem for node in nodes if node.problem]
    if unread:
        return Verdict("failed", together(unread[0], *then), stderr)
    if rc == TIMED_OUT or job.get("timed_out"):
        code = "reason.srun-time-limit" if _launcher(job) == "srun" else "reason.mpirun-time-limit"
        late = Verdict("hung", message(code, seconds=job.get("seconds")), stderr)
        return _explained(late, suspects)
    if silent:
        reason = together(message("reason.log-unclosed", file=silent[0].file), *then)
        return Verdict("failed", reason, last_lines(silent[0]) or stderr)
    if ended:
        return Verdict("failed", ended, stderr)
    terminated = [node for node, node_end in exits if node_end["status"] == "terminated"]
    if terminated:
        reason = message("reason.terminated", who=names(terminated))
        return Verdict("failed", reason, last_lines(terminated[0]))
    return None


def _launcher(job: JobReport) -> str:
    return job.get("launcher") or "mpirun"


def _is_cancelled(job: JobReport) -> bool:
    """Return whether somebody other than run_job cancelled the step of a job, or the whole allocation."""
    before = _TASK_ENDED.split(str(job.get("stderr") or ""), maxsplit=1)[0]
    return _launcher(job) == "srun" and not job.get("ended_by") and bool(_CANCELLED.search(before))


def _of_launcher(
    nodes: Sequence[Node], job: JobReport, stderr: list[str], ours: list[str]
) -> tuple[Message, Cause | None]:
    """Return how the launcher ended, or what watches it, and the cause that its output tells."""
    lost_daemon = _LOST_DAEMON.search(" ".join(stderr))
    end = _exit({"status": "exited", "rc": int(job.get("rc") or 0)})
    text = "\n".join(_without_noise(str(job.get("stderr") or "").splitlines()))
    hit = first_cause([text.encode()], [_CANCEL] if _is_cancelled(job) else [])
    if hit and not (lost_daemon and hit.cause.kind != ROOT):
        says = because(message("reason.it-says", line=one_line(hit.line[:160])), advice(hit.cause))
        return because(message("reason.ended", who=_launcher(job), end=end), says), hit.cause
    if lost_daemon:
        return message("reason.lost-contact", host=lost_daemon.group(1)), None
    run_job = message("reason.run-job", node=nodes[0].name)
    if job.get("unreachable"):
        ended = message("reason.connection-broke", node=nodes[0].name)
    elif job.get("unreported"):
        ended = message("reason.ended", who=run_job, end=end)
    elif job.get("ended_by") == "signal":
        ended = message("reason.signalled", who=run_job)
    else:
        ended = message("reason.ended", who=_launcher(job), end=end)
    return because(ended, "".join((ours or stderr)[-1:])), None


def _who(node: Node, node_end: Mapping[str, Any]) -> Message:
    rank, host = node_end.get("rank", node.task_index), node_end.get("host")
    if host == node.name:
        return message("reason.rank", node=node.name, rank=rank)
    return message("reason.rank-of-host", node=node.name, rank=rank, host=host)


def _signal(node_end: Mapping[str, Any]) -> int:
    """Return the signal that ended the workload, also as a shell passes it on (128 + signal); 0 for none."""
    number, rc = node_end.get("signal"), node_end.get("rc")
    if isinstance(number, int) and number:
        return number
    if node_end.get("status") == "exited" and isinstance(rc, int) and 128 < rc < 128 + 65:
        return rc - 128
    return 0


def _exit(node_end: Mapping[str, Any]) -> Message:
    number = _signal(node_end)
    if not number:
        return message("reason.exit", rc=node_end.get("rc"))
    try:
        return message("reason.signal", number=number, name=signal.Signals(number).name)
    except ValueError:
        return message("reason.signal-number", number=number)


def _ended_well(node_end: Mapping[str, Any]) -> bool:
    return node_end.get("status") == "exited" and node_end.get("rc") == 0 and not node_end.get("signal")


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else math.inf
