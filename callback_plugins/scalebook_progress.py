# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The progress of a campaign: one line per run, whatever prints the rest of the terminal."""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ansible.module_utils
from ansible import constants as C  # noqa: N812 - Ansible's own name for it
from ansible.plugins.callback import CallbackBase

if TYPE_CHECKING:  # Ansible finds module_utils of a project only after it has loaded its callbacks
    from ansible.module_utils.scalebook.contracts import PendingRun
    from ansible.module_utils.scalebook.pages.wording import Wording

DOCUMENTATION = r"""
name: scalebook_progress
type: aggregate
short_description: One line per run of a campaign
description:
  - Prints what each run measured, or why it does not count, with the time since the start and an estimate of
    the time left. It reads the results of the modules M(campaign_plan) and M(bench_result).
  - With C(-v) the beginning of a run is a line too (the task with the tag C(campaign_run)), and so is the
    overhead of the runs at the end.
  - Its language is that of the campaign's plan.
  - It works with any stdout callback, that of ansible-runner included.
"""


def clock(seconds: float) -> str:
    """Return `seconds` as people write a duration: 0:42, 12:05, 1:02:03."""
    minutes, seconds = divmod(round(max(0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@functools.cache
def wording(language: str = "en") -> Wording:
    """Return what says a text by its code; Ansible does not know yet where the catalogues are."""
    ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))
    from ansible.module_utils.scalebook.pages.wording import Wording

    return Wording(language)


RUN_TAG = "campaign_run"


class Progress:
    """Where a campaign stands, from the results of its tasks."""

    def __init__(self, now: float) -> None:
        self.began = now
        self.ended: float | None = None
        self.pending: list[PendingRun] = []
        self.models: set[tuple[str, str]] = set()
        self.seconds: dict[str, list[float]] = {}
        self.overheads: list[float] = []

    def plan(self, pending: Iterable[PendingRun], now: float) -> None:
        """Take over the runs that are still to be made, each {"case", "repeat", "number", "total", "folder"}.

        After runs of a search for the largest batch the campaign is planned again; its time goes on.
        """
        if not self.seconds:
            self.began = now
        self.pending, self.ended = list(pending), None
        self.models |= {(run["case"]["workload"], run["case"]["model"]) for run in self.pending}

    def end(self, case: str, repeat: int, job_seconds: float, now: float) -> PendingRun | None:
        """Note that a run has its record and return the run; `job_seconds` is how long mpirun ran."""
        run = next((r for r in self.pending if (r["case"]["name"], r["repeat"]) == (case, repeat)), None)
        seconds = job_seconds
        if self.ended is not None:
            seconds = now - self.ended
            self.overheads.append(seconds - job_seconds)
        self.seconds.setdefault(case, []).append(seconds)
        self.ended = now
        self.pending = [entry for entry in self.pending if entry is not run]
        return run

    def again(self, run: PendingRun) -> None:
        """Note that a run is to be measured once more at the end."""
        self.pending.append(run)

    def seconds_left(self) -> float | None:
        """Return the seconds that the pending runs will take: as long as those of the same case."""
        measured = [value for values in self.seconds.values() for value in values]
        if not measured:
            return None
        mean = sum(measured) / len(measured)
        by_case = {name: sum(values) / len(values) for name, values in self.seconds.items()}
        return sum(by_case.get(entry["case"]["name"], mean) for entry in self.pending)


def title(run: PendingRun, models: Collection[tuple[str, str]] = (), language: str = "en") -> str:
    """Return the words that name a run, with its workload and model where the campaign has several.

    `models` are the campaign's, each a pair of workload and model.
    """
    case, workloads = run["case"], {workload for workload, _ in models}
    names = f"{case['workload']} " if len(workloads) > 1 else ""
    names += f"{case['model']} " if len(models) > len(workloads) else ""
    compiled = " xla" if case["xla"] else ""
    words = f"{names}{case['label']} b{case['bsz']} {case['dtype']}{compiled}"
    values = {"words": words, "number": run["number"], "total": run["total"], "repeat": run["repeat"]}
    return wording(language)("progress.search" if run["folder"] == "search" else "progress.run", **values)


class CallbackModule(CallbackBase):
    """Prints one line per run."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "scalebook_progress"

    def __init__(self) -> None:
        super().__init__()
        self._progress = Progress(time.monotonic())
        self._language = "en"

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        pending = self._progress.pending
        if self._display.verbosity > 0 and RUN_TAG in task.tags and pending:
            started = self._in_words("started", title=self._title(pending[0]), times=self._times())
            self._display.display(started)

    def v2_runner_on_ok(self, result: Any) -> None:
        # Without the name of a collection.
        action, values = result._task.action.rpartition(".")[2], result._result
        if action == "campaign_plan" and "pending" in values:
            self._language = values["report_language"]
            self._progress.plan(values["search"] or values["pending"], time.monotonic())
        elif action == "bench_result" and "status" in values:
            self._measured(values)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        overheads = sorted(self._progress.overheads)
        if overheads and self._display.verbosity > 0:
            median, most = overheads[len(overheads) // 2], overheads[-1]
            line = self._in_words("overhead", median=median, most=most, count=len(overheads))
            self._display.display(line)

    def _measured(self, values: Mapping[str, Any]) -> None:
        _, progress, record = wording(self._language), self._progress, values["record"]
        case, repeat = record["case"]["name"], record["repeat"]
        run = progress.end(case, repeat, (record["job"] or {}).get("seconds") or 0, time.monotonic())
        if run is None:
            return
        if values["status"] == "ok":
            unit, color = _.name("unit", record.get("unit", "samples")), C.COLOR_OK
            outcome = self._in_words("rate", rate=values["rate"], unit=unit)
        else:
            outcome = _.about(_.name("status", values["status"]), _.tell(record["reason"]))
            # A search goes on until a run is out of memory: that does not need attention.
            expected = run["folder"] == "search" and values["status"] == "oom"
            color = C.COLOR_SKIP if expected else C.COLOR_ERROR
        if values.get("again"):
            progress.again(run)
            outcome = self._in_words("again", outcome=outcome)
        line = self._in_words("ended", title=self._title(run), outcome=outcome, times=self._times())
        self._display.display(line, color=color)

    def _times(self) -> str:
        seconds_left = self._progress.seconds_left()
        values = {"elapsed": clock(time.monotonic() - self._progress.began)}
        if seconds_left:
            return self._in_words("left", **values, left=clock(seconds_left))
        return self._in_words("elapsed", **values)

    def _title(self, run: PendingRun) -> str:
        return title(run, self._progress.models, self._language)

    def _in_words(self, code: str, **values: Any) -> str:
        return wording(self._language)(f"progress.{code}", **values)
