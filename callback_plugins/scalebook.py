# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The terminal: Ansible's own output, and the progress of a campaign in place of its many tasks."""

from __future__ import annotations

import os
import sys
import threading
import time

from ansible import constants as C  # noqa: N812 - Ansible's own name for it
from ansible.plugins.callback.default import CallbackModule as Default

DOCUMENTATION = r"""
name: scalebook
type: stdout
short_description: Ansible's default output with the progress of a campaign
description:
  - Shows what C(ansible.builtin.default) shows, and prints the text a task returns as C(display) as it is.
  - The tasks that every run of a campaign repeats become one line a run, with its number, its repeat, what it
    measured, the time since the start and an estimate of what is left. With C(-v) the tasks are shown too.
  - On a terminal the line of the run that is going on counts the seconds.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

QUIET = "/roles/campaign/tasks/run_one.yml"


def clock(seconds):
    """Return `seconds` as people write a duration: 0:42, 12:05, 1:02:03."""
    minutes, seconds = divmod(round(max(0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Progress:
    """Where a campaign stands, from what its tasks return."""

    def __init__(self, now):
        self.began = now
        self.run = None
        self.run_began = None
        self.ended = None
        self.pending = []
        self.seconds = {}
        self.overheads = []

    def plan(self, pending, now):
        """Take over the runs that are still to be measured."""
        self.pending, self.began, self.ended = list(pending), now, None

    def start(self, run, now):
        """A run begins: `run` is {"case", "repeat", "number", "total"}."""
        self.run, self.run_began = run, now

    def end(self, gang_seconds, now):
        """The run has its record; `gang_seconds` is how long mpirun ran."""
        if self.ended is not None:
            self.overheads.append(now - self.ended - gang_seconds)
        self.seconds.setdefault(self.run["case"]["name"], []).append(now - self.run_began)
        self.pending = [entry for entry in self.pending if entry["number"] != self.run["number"]]
        self.ended = now

    def left(self):
        """Return the seconds that the runs still pending will take: as long as those of their case."""
        measured = [value for values in self.seconds.values() for value in values]
        if not measured:
            return None
        usual = sum(measured) / len(measured)
        known = {name: sum(values) / len(values) for name, values in self.seconds.items()}
        return sum(known.get(entry["case"]["name"], usual) for entry in self.pending)

    def title(self):
        """Return the words that name the run going on."""
        case = self.run["case"]
        return "[{}/{}] {} b{} {}{} repeat {}".format(
            self.run["number"],
            self.run["total"],
            case["label"],
            case["bsz"],
            case["dtype"],
            " xla" if case["xla"] else "",
            self.run["repeat"],
        )


class Ticker:
    """Counts the seconds in the last line of a terminal while a run goes on.

    Writes to the descriptor alone and takes no lock, so that Ansible can fork at any time.
    """

    def __init__(self):
        self.on = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.text = None
        self.thread = None

    def start(self, text):
        """Show `text()` each second until stop."""
        if not self.on:
            return
        self.stop()
        self.text = text
        if self.thread is None:
            self.thread = threading.Thread(target=self._tick, daemon=True)
            self.thread.start()

    def stop(self):
        """Leave the line to others."""
        if self.text is not None:
            self.text = None
            os.write(1, b"\r\033[K")

    def _tick(self):
        while True:
            text = self.text
            if text is not None:
                width = os.get_terminal_size(1).columns - 1
                os.write(1, b"\r\033[K" + text()[:width].encode())
            time.sleep(1)


class CallbackModule(Default):
    """Ansible's default output with the progress of a campaign."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "scalebook"

    def __init__(self):
        super().__init__()
        self._progress = Progress(time.monotonic())
        self._ticker = Ticker()
        self._quiet = False
        self._banner = None
        self._attempt = None

    def _say(self, text, color=None):
        self._ticker.stop()
        self._display.display(text, color=color)

    def v2_playbook_on_play_start(self, play):
        self._ticker.stop()
        self._quiet = False
        super().v2_playbook_on_play_start(play)

    def v2_playbook_on_include(self, included_file):
        if not self._is_quiet(str(included_file._filename)):
            super().v2_playbook_on_include(included_file)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._quiet = self._is_quiet(task.get_path() or "")
        if not self._quiet:
            self._ticker.stop()
            super().v2_playbook_on_task_start(task, is_conditional)
            return
        self._banner = (task, is_conditional)
        given = task.get_vars()
        run = given.get("__campaign_run")
        attempt = run and (run["number"], given.get("__campaign_try"))
        if run and attempt != self._attempt:
            self._attempt = attempt
            self._progress.start(run, time.monotonic())
            began = self._progress.run_began
            title = self._progress.title()
            self._say(f"{title}: started, {clock(began - self._progress.began)} elapsed{self._left()}")
            self._ticker.start(lambda: f"{title}: {clock(time.monotonic() - began)}")

    def v2_runner_on_ok(self, result):
        values = result._result
        if values.get("display") and result._task.action == "campaign_plan":
            self._progress.plan(values.get("pending", []), time.monotonic())
        if self._quiet:
            if result._task.action == "bench_result" and "status" in values:
                self._measured(values)
        else:
            self._ticker.stop()
            super().v2_runner_on_ok(result)
        if values.get("display"):
            self._say(values["display"])

    def v2_runner_on_skipped(self, result):
        if not self._quiet:
            super().v2_runner_on_skipped(result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._loud()
        super().v2_runner_on_failed(result, ignore_errors)

    def v2_runner_on_unreachable(self, result):
        # Where the campaign goes on without the node, the run's record says so.
        if not (self._quiet and result._task.ignore_unreachable):
            self._loud()
            super().v2_runner_on_unreachable(result)

    def v2_playbook_on_stats(self, stats):
        self._ticker.stop()
        overheads = sorted(self._progress.overheads)
        if overheads:
            self._say(
                f"Overhead of a run, its time without mpirun: median {overheads[len(overheads) // 2]:.1f} s, "
                f"at most {overheads[-1]:.1f} s, over {len(overheads)} runs after the first"
            )
        super().v2_playbook_on_stats(stats)

    def _is_quiet(self, path):
        return QUIET in path and self._display.verbosity == 0

    def _loud(self):
        """A task of the quiet part went wrong: show which one it was."""
        self._ticker.stop()
        if self._quiet and self._banner:
            super().v2_playbook_on_task_start(*self._banner)
            self._banner = None

    def _measured(self, values):
        progress = self._progress
        gang = (values.get("record") or {}).get("gang") or {}
        progress.end(gang.get("seconds") or 0, time.monotonic())
        if values["status"] == "ok":
            said, color = f"{values['rate']:.2f} samples/s", C.COLOR_OK
        else:
            said, color = f"{values['status']}: {values.get('reason')}", C.COLOR_ERROR
            said += "; once more in the end" if values.get("again") else ""
        elapsed = clock(time.monotonic() - progress.began)
        self._say(f"{progress.title()}: {said}, {elapsed} elapsed{self._left()}", color)

    def _left(self):
        left = self._progress.left()
        return "" if not left else f", about {clock(left)} left"
