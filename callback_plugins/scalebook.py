# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The terminal: one line per phase, messages as they are, every error once."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ansible.module_utils
from ansible import constants as C  # noqa: N812 - Ansible's own name for it
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils.color import ANSIBLE_COLOR

DOCUMENTATION = r"""
name: scalebook
type: stdout
short_description: One line per phase instead of one per task
description:
  - A phase is what a playbook includes (C(include_role), C(include_tasks)), or a play that includes nothing.
    Each phase is one line with its duration and the number of changes, unless it took less than a second and
    changed nothing.
  - The messages of M(ansible.builtin.debug) are printed as they are, once if several hosts have the same one.
  - An error is one line with the host, the task and the message. A failure that a C(rescue) section handles
    is not printed.
  - In check mode each task that would change a host is a line. With C(--diff) differences are printed.
  - With C(-v) the output is that of C(ansible.builtin.default).
  - On a terminal the last line counts the seconds of the current phase and names the current task.
  - Control characters but newlines and tabs are shown as text, such as C(\x1b), whoever prints
    them. What nodes, logs and archives say cannot move the cursor, hide text or set the terminal's title.
  - The user, password and query of a URL and tokens of known services are shown as C(***), with C(-vvv) too.
  - After Ctrl-C or SIGTERM a last line says how to go on.
  - What it says itself has the language of the parameter C(report_language) once a playbook has read it; the
    names of tasks, the word C(fatal) and the last line of a host are Ansible's.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

DEBUG = ("ansible.builtin.debug", "debug")
# Above this number of hosts the closing lines are those of the hosts that failed, and one for all others.
MAX_HOSTS = 8
# Seconds: a phase that is shorter and changes nothing, such as a check of parameters, is not a line.
SHORTEST = 1.0
# What ssh prints at the end of a connection with a terminal, whatever ended it.
CLOSED = re.compile(r"(Shared connection|Connection) to \S+ closed\.?")

# Control characters but newline and tab, C1 and delete included; what changes the direction of text or
# has no width; separators of lines; halves of surrogate pairs, which cannot be printed.
_UNSAFE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
)
_CONTROL = re.compile(f"[{_UNSAFE}]")
# The colours that Ansible prints where it prints some; the second alternative is what is replaced.
_CONTROL_OR_COLOR = re.compile(rf"(\x1b\[(?:0|[01];[34][0-7]|[34]8;5;\d+)m)|[{_UNSAFE}]")


def harmless(text: Any, colors: bool = False) -> str:
    r"""Return `text` with control characters as text; with `colors` those of Ansible stay.

    >>> harmless("\x1b[31mred\r\n\x07")
    '\\x1b[31mred\n\\x07'
    """

    def as_text(match: re.Match[str]) -> str:
        if colors and match[1]:
            return match[1]
        return match[0].encode("unicode_escape", "surrogatepass").decode()

    return (_CONTROL_OR_COLOR if colors else _CONTROL).sub(as_text, str(text).replace("\r\n", "\n"))


def secrets_module() -> Any:
    """Return module_utils/scalebook/secrets.py; callbacks are loaded before Ansible knows where it is."""
    path = Path(__file__).resolve().parent.parent / "module_utils/scalebook/secrets.py"
    spec = importlib.util.spec_from_file_location("scalebook_secrets", path)
    assert spec and spec.loader, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def guard(display: Any) -> None:
    """Make everything that `display` prints harmless and free of secrets: Ansible's own errors, too."""
    if getattr(display.display, "guarded", False):
        return
    plain, without_secrets = display.display, secrets_module().without_secrets

    def guarded(msg: Any, *args: Any, **kwargs: Any) -> Any:
        return plain(without_secrets(harmless(msg, colors=bool(ANSIBLE_COLOR))), *args, **kwargs)

    guarded.guarded = True  # type: ignore[attr-defined]
    display.display = guarded


@functools.cache
def wording(language: str = "en") -> Any:
    """Return what says a text by its code; Ansible does not know yet where the catalogues are."""
    ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))
    from ansible.module_utils.scalebook.pages.wording import Wording

    return Wording(language)


def language_of(values: Mapping[str, Any]) -> str | None:
    """Return the language that a task has read with the parameters of its playbook, None of another task."""
    facts = values.get("ansible_facts") or {}
    read = facts.get("__parameters") or facts.get("__report_parameters") or {}
    return read.get("report_language")


def duration(seconds: float, language: str = "en") -> str:
    """Return `seconds` as people write a duration: 0.3 s, 42 s, 12 min 5 s, 1 h 2 min."""
    _ = wording(language)
    if seconds < 10:
        return str(_("console.tenths", seconds=max(0, seconds)))
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return str(_("duration.h-min", large=hours, small=minutes))
    if minutes:
        return str(_("duration.min-s", large=minutes, small=seconds))
    return str(_("duration.s", seconds=seconds))


def phase_of(task: Any) -> Any:
    """Return the outermost include that `task` belongs to, None for a task of the play itself."""
    phase, parent = None, task
    while parent is not None:
        if isinstance(parent, TaskInclude) and parent is not task:
            phase = parent
        parent = getattr(parent, "_parent", None)
    return phase


def can_be_rescued(task: Any) -> bool:
    """Return whether a failure of `task` leads to a rescue section."""
    child, parent = task, getattr(task, "_parent", None)
    while parent is not None:
        rescue = getattr(parent, "rescue", None)
        if rescue and any(child._uuid == entry._uuid for entry in parent.block):
            return True
        child, parent = parent, getattr(parent, "_parent", None)
    return False


def message_of(values: Mapping[str, Any], language: str = "en") -> str:
    """Return the message of a failed result in one line, unless it is a text of several lines."""
    message = str(values.get("msg") or values.get("reason") or "").strip()
    if "rc" in values and message in ("", "non-zero return code"):
        printed = [str(values.get(stream) or "") for stream in ("stdout", "stderr")]
        lines = [line.strip() for text in printed for line in text.splitlines()]
        reasons = [line for line in lines if line and not CLOSED.fullmatch(line)]
        message = f"rc {values['rc']}" + (f": {reasons[-1]}" if reasons else "")
    elif values.get("module_stderr"):
        message += f": {str(values['module_stderr']).strip().splitlines()[-1]}"
    return message or str(wording(language)("console.without-message"))


def tell_when_stopped(say: Callable[[], None], quiet: Callable[[], None]) -> None:
    """Call `say` for the last line where a user or a system ends this process; call `quiet` at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)

        def stop(number: int, frame: Any, before: Any = before) -> None:
            quiet()
            # Ansible reports the interruption and exits; a termination ends the process where it is.
            if number == signal.SIGINT:
                atexit.register(say)
            else:
                say()
            before(number, frame)

        if callable(before):
            signal.signal(number, stop)


GUIDE = "docs/how-to/users-and-keys.md"
FIXES = {
    # what the message of a failure holds: what to do, in the catalogue
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "host-changed",
    "Host key verification failed": "host-unknown",
    "Permission denied (": "denied",
    "Could not resolve hostname": "no-name",
    "Connection refused": "no-sshd",
    "Connection timed out": "network",
    "No route to host": "network",
    "Missing sudo password": "sudo-asks",
    "Incorrect sudo password": "sudo-password",
    "a password is required": "sudo-asks",
    "is not in the sudoers file": "no-sudo",
    "cannot take or give back the lock": "lock",
    "cannot write the program into": "not-provisioned",
}
"""The fixes of failures that Ansible and ssh report, which know nothing of inventories and provision.yml."""


def with_fix(message: str, language: str = "en") -> str:
    """Return `message` with what to do about it, unless it says that itself."""
    fix = next((FIXES[sign] for sign in FIXES if sign in message), "")
    if not fix or "Fix:" in message:
        return message
    _ = wording(language)
    return str(_("console.with-fix", what=message.rstrip(". "), fix=_(f"console-fix.{fix}", guide=GUIDE)))


class Phase:
    """One line of the terminal: what it is called, since when it runs, what it did."""

    def __init__(self, key: str | None, name: str, now: float, closing: bool) -> None:
        self.key, self.name, self.began = key, name, now
        self.closing = closing  # whether it is printed at all
        self.changes = 0
        self.failed: list[str] = []

    def matters(self, now: float) -> bool:
        """Return whether the phase is worth a line."""
        return bool(self.changes or self.failed or now - self.began >= SHORTEST)

    def line(self, now: float, language: str = "en") -> str:
        """Return the line that closes the phase."""
        _, parts = wording(language), [duration(now - self.began, language)]
        if self.changes:
            parts.append(_("console.changed", count=self.changes))
        if self.failed:
            parts.append(_("console.failed-on", hosts=", ".join(self.failed)))
        return str(_.about(self.name, _.join(parts)))


class Ticker:
    """Counts the seconds in the last line of a terminal.

    Writes to the descriptor alone and takes no lock, so that Ansible can fork at any time.
    """

    def __init__(self) -> None:
        self.on = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.text: Callable[[], str] | None = None
        self.thread: threading.Thread | None = None

    def start(self, text: Callable[[], str]) -> None:
        """Show `text()` each second until stop."""
        if not self.on:
            return
        self.text = text
        if self.thread is None:
            self.thread = threading.Thread(target=self._tick, daemon=True)
            self.thread.start()

    def stop(self) -> None:
        """Clear the line for other output."""
        if self.text is not None:
            self.text = None
            os.write(1, b"\r\033[K")

    def _tick(self) -> None:
        while True:
            text = self.text
            if text is not None:
                width = os.get_terminal_size(1).columns - 1
                os.write(1, b"\r\033[K" + harmless(text())[:width].encode())
            time.sleep(1)


class CallbackModule(Default):
    """One line per phase; Ansible's default output with -v."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "scalebook"

    def __init__(self) -> None:
        super().__init__()
        guard(self._display)
        self._ticker = Ticker()
        self._language = "en"  # until the parameters are read
        tell_when_stopped(lambda: self._say(self._in_words("stopped")), self._ticker.stop)
        self._phase: Phase | None = None
        self._play_name = ""
        self._own_tasks: Phase | None = None
        self._play_has_phases = False
        self._task: str | None = None
        self._shown: dict[str, list[str] | None] = {}

    # The order of a run: play, task, results, statistics.

    def v2_playbook_on_play_start(self, play: Any) -> None:
        if self._verbose():
            super().v2_playbook_on_play_start(play)
            return
        self._close_play()
        self._play_name = play.get_name().strip()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        if self._verbose():
            super().v2_playbook_on_task_start(task, is_conditional)
        else:
            self._start(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        if self._verbose():
            super().v2_playbook_on_handler_task_start(task)
        else:
            self._start(task)

    def v2_playbook_on_include(self, included_file: Any) -> None:
        if self._verbose():
            super().v2_playbook_on_include(included_file)

    def v2_runner_on_ok(self, result: Any) -> None:
        if self._verbose():
            super().v2_runner_on_ok(result)
            return
        task, values = result._task, result._result
        self._language = language_of(values) or self._language
        if isinstance(task, TaskInclude):
            return
        if self._phase:
            self._phase.closing = True
            self._phase.changes += bool(values.get("changed"))
        self._warn(values)
        if values.get("changed") and task.check_mode and task.action not in DEBUG:
            text = self._in_words("would-change", host=result._host.get_name(), task=self._task)
            self._say(text, C.COLOR_CHANGED)
        if task.action in DEBUG and "results" not in values:
            self._message(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        if self._verbose():
            super().v2_runner_item_on_ok(result)
        elif result._task.action in DEBUG:
            self._message(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        if self._verbose():
            super().v2_runner_on_skipped(result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        if self._verbose():
            super().v2_runner_item_on_skipped(result)

    def v2_runner_retry(self, result: Any) -> None:
        if self._verbose():
            super().v2_runner_retry(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if self._verbose():
            super().v2_runner_on_failed(result, ignore_errors)
        # Of a loop, the items that failed are printed.
        elif not (ignore_errors or can_be_rescued(result._task) or result._result.get("results")):
            self._error(result, "")

    def v2_runner_item_on_failed(self, result: Any) -> None:
        if self._verbose():
            super().v2_runner_item_on_failed(result)
        elif not (result._task.ignore_errors or can_be_rescued(result._task)):
            self._error(result, "")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if self._verbose():
            super().v2_runner_on_unreachable(result)
        # Where the play goes on without the host, what it writes says so.
        elif not result._task.ignore_unreachable:
            self._error(result, self._in_words("unreachable"))

    def v2_on_file_diff(self, result: Any) -> None:
        self._ticker.stop()
        super().v2_on_file_diff(result)

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        if self._verbose():
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if self._verbose():
            super().v2_playbook_on_stats(stats)
            return
        self._close_play()
        counts = {host: stats.summarize(host) for host in sorted(stats.processed)}
        # localhost does what is done once for all hosts; a host that did nothing has nothing to say.
        hosts = [host for host in counts if host != "localhost" and any(counts[host].values())]
        wrong = [host for host in hosts if counts[host]["failures"] or counts[host]["unreachable"]]
        for host in hosts if len(hosts) <= MAX_HOSTS else wrong:
            self._say(self._closing(host, counts[host]))
        if len(hosts) > MAX_HOSTS:
            changed = sum(counts[host]["changed"] > 0 for host in hosts)
            self._say(self._in_words("hosts", count=len(hosts), changed=changed, wrong=len(wrong)))

    # What these have in common.

    def _verbose(self) -> bool:
        return bool(self._display.verbosity > 0)

    def _in_words(self, code: str, **values: Any) -> str:
        return str(wording(self._language)(f"console.{code}", **values))

    def _say(self, text: str, color: str | None = None, stderr: bool = False) -> None:
        self._ticker.stop()
        self._display.display(harmless(text), color=color, stderr=stderr)

    def _start(self, task: Any) -> None:
        self._repeat_hosts()
        self._last_task_name = task.get_name().strip()
        self._task = (task.name or self._last_task_name).strip()
        # An include that is skipped runs no task and is not printed.
        if not isinstance(task, TaskInclude):
            phase = phase_of(task)
            key = phase._uuid if phase is not None else None
            if self._phase is None or key != self._phase.key:
                self._close_phase()
                name = phase.get_name().strip() if phase is not None else self._play_name
                self._phase = Phase(key, name, time.monotonic(), closing=False)
        phase, name = self._phase, self._task
        if phase is not None:
            language = self._language
            self._ticker.start(
                lambda: f"{phase.name}: {duration(time.monotonic() - phase.began, language)}, {name}"
            )

    def _close_phase(self) -> None:
        self._repeat_hosts()
        self._ticker.stop()
        phase, self._phase = self._phase, None
        if phase is None or not phase.closing:
            return
        if phase.key is None and not phase.failed:
            self._own_tasks = self._own_tasks or phase
            return
        self._play_has_phases = True
        if not phase.matters(time.monotonic()):
            return
        self._say(phase.line(time.monotonic(), self._language), C.COLOR_ERROR if phase.failed else None)

    def _close_play(self) -> None:
        """A play's own tasks are a phase only if it includes nothing."""
        self._close_phase()
        if self._own_tasks and not self._play_has_phases and self._own_tasks.matters(time.monotonic()):
            self._say(self._own_tasks.line(time.monotonic(), self._language))
        self._own_tasks, self._play_has_phases = None, False

    def _message(self, result: Any) -> None:
        values = result._result
        if "msg" not in values:
            value = {key: values[key] for key in values if not key.startswith("_") and key != "changed"}
            text = self._dump_results(value)
        else:
            text = values["msg"]
            if isinstance(text, (list, tuple)):
                text = "\n".join(str(line) for line in text)
        if str(text) not in self._shown:
            self._shown[str(text)] = None
            self._say(str(text))

    def _error(self, result: Any, kind: str) -> None:
        values, host = result._result, result._host.get_name()
        self._warn(values)
        if self._phase:
            self._phase.closing = True
            self._phase.failed += [host] if host not in self._phase.failed else []
        # Of several lines, only the first may look like one of ours: the others may be foreign text.
        message = with_fix(message_of(values, self._language), self._language)
        text = f"{self._task}: {kind}{message}".replace("\n", "\n    ")
        others = self._shown.get(text)
        if isinstance(others, list):
            others.append(host)
            return
        self._shown[text] = []
        self._say(f"fatal: [{host}]: {text}", C.COLOR_ERROR, stderr=self.get_option("display_failed_stderr"))

    def _repeat_hosts(self) -> None:
        """Name the other hosts that failed with the error that was printed."""
        for hosts in self._shown.values():
            if hosts:
                text = self._in_words("same-on", hosts=", ".join(hosts))
                self._say(f"fatal: {text}", C.COLOR_ERROR)
        self._shown = {}

    def _warn(self, values: Mapping[str, Any]) -> None:
        if values.get("warnings") or values.get("deprecations"):
            self._ticker.stop()
            self._handle_warnings(values)

    def _closing(self, host: str, counts: Mapping[str, int]) -> str:
        words = {"failures": "failed"}
        kinds = ("ok", "changed", "unreachable", "failures")
        return f"{host} : " + " ".join(f"{words.get(kind, kind)}={counts[kind]}" for kind in kinds)
