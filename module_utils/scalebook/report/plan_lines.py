# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The plan of a campaign -> the lines of the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    BatchSearch,
    Case,
    Hardware,
    Message,
    Node,
    Plan,
    message,
)
from ansible.module_utils.scalebook.pages.terminal import padded
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.plan.largest_batch import STEP
from ansible.module_utils.scalebook.plan.parameters import MAX

DONE = 6
"""Columns of the terminal for what is done with a case, with the blank behind it."""


def describe(
    plan: Plan,
    finished_runs: Iterable[tuple[str, int]] = (),
    seconds: Mapping[str, float] | None = None,
    devices: str = "",
    notes: Sequence[Message] = (),
    wording: Wording = ENGLISH,
) -> str:
    """Return the plan as plain text.

    `finished_runs` are the (case, repeat) pairs already measured, `seconds` how long runs of a case took
    before, `devices` what describe_devices returns.
    """
    _, finished = wording, set(finished_runs)
    pending = [run for run in plan["runs"] if (run["case"], run["repeat"]) not in finished]
    entries = [*plan["cases"], *plan["searches"], *(entry["case"] for entry in plan["skipped"])]
    named = _names_shown(entries)
    lines = [_head(plan, len(plan["runs"]) - len(pending), _)]
    if devices and entries:
        models = dict.fromkeys(each["model"] for each in entries)
        lines.append(_("plan.devices", devices=devices, models=", ".join(models)))
    for search in plan["searches"]:
        row = _row(search, ",".join(search["points"]), named)
        lines.append(_columns("plan.search", row, _standing(search, _), _))
    lines += [_run(case, plan["repeats"], finished, named, _) for case in plan["cases"]]
    lines += _skipped(plan, named, _)
    lines += [_("plan.note", note=_.tell(note)) for note in [*_without_baseline(plan), *notes]]
    if pending and seconds is not None:
        lines.append("  " + _estimate([run["case"] for run in pending], seconds, _))
    return "\n".join(lines)


def describe_devices(
    device: str, nodes: Sequence[Node], hardware: Sequence[Hardware] = (), wording: Wording = ENGLISH
) -> str:
    """Return what the nodes compute with, such as `device gpu (4 × NVIDIA H200 per node)`.

    `hardware` is that of the nodes, none where nobody asked them.
    """
    _ = wording
    counts = [*dict.fromkeys(str(node["slots"]) for node in nodes)]
    if device == "cpu":
        code = "plan.worker" if counts == ["1"] else "plan.workers"
        return _(code, count=_.join(counts, "or"))
    names = dict.fromkeys(gpu["name"] for entry in hardware for gpu in entry.get("gpus") or ())
    shared = len(nodes) > len({node["machine"] for node in nodes})
    code = "plan.of-a-machine" if shared else "plan.of-a-node"
    return _(code, device=device, count=_.join(counts, "or"), names=_.join(names, "or") or "GPU")


def why_nothing_runs(plan: Plan, wording: Wording = ENGLISH) -> str:
    """Return why a plan has no runs."""
    _ = wording
    reasons = dict.fromkeys(
        _.about(entry["case"]["workload"], _.tell(entry["reason"])) for entry in plan["skipped"]
    )
    return _("plan.nothing", reasons=_.join(reasons, "after"))


def _head(plan: Plan, measured: int, wording: Wording) -> str:
    _, repeats = wording, plan["repeats"]
    count = len(plan["cases"]) + sum(len(search["points"]) for search in _going_on(plan))
    counts = {"cases": _.count(count, "case"), "repeats": _.count(repeats, "repeat")}
    values = {"name": plan["campaign"], **counts, "runs": _.count(count * repeats, "run")}
    return _("plan.partly-measured", **values, count=measured) if measured else _("plan.head", **values)


def _going_on(plan: Plan) -> list[BatchSearch]:
    return [search for search in plan["searches"] if search["next"]]


def _run(
    case: Case, repeats: int, finished: Collection[tuple[str, int]], named: Collection[str], wording: Wording
) -> str:
    have = sum((case["name"], repeat) in finished for repeat in range(1, repeats + 1))
    batch = case["global_batch"]
    what = (
        wording("plan.begun", batch=batch, count=have, of=repeats)
        if have
        else wording("plan.batch", batch=batch)
    )
    return _columns("plan.run", _row(case, case["label"], named), what, wording)


def _columns(code: str, row: str, what: str, wording: Wording) -> str:
    """Return a line of the plan: what is done with a case, the case, and what is said of it."""
    return f"  {padded(f'{wording(code)} ', DONE)}{row}  {what}"


def _skipped(plan: Plan, named: Collection[str], wording: Wording) -> list[str]:
    """Return a line for each reason, with all cases that it keeps from running."""
    cases_of: dict[tuple[str, str], list[Case]] = {}
    for entry in plan["skipped"]:
        key = (_row(entry["case"], "", named), wording.tell(entry["reason"]))
        cases_of.setdefault(key, []).append(entry["case"])
    return [
        _columns("plan.skip", _row(same[0], ",".join(case["label"] for case in same), named), reason, wording)
        for (_, reason), same in cases_of.items()
    ]


def _without_baseline(plan: Plan) -> list[Message]:
    labels = {case["label"] for case in plan["cases"]}
    labels |= {label for each in _going_on(plan) for label in each["points"]}
    return [message("plan.no-baseline", label=BASELINE)] if labels and BASELINE not in labels else []


def _estimate(pending: Sequence[str], seconds: Mapping[str, float], wording: Wording) -> str:
    _, known_seconds = wording, [seconds[name] for name in pending if name in seconds]
    if not known_seconds:
        return _("plan.no-estimate")
    minutes = sum(known_seconds) / 60
    length = _("plan.minutes", minutes=minutes) if minutes >= 1 else _("plan.less-than-a-minute")
    values = {"length": length, "runs": _.count(len(known_seconds), "run")}
    rest = len(pending) - len(known_seconds)
    if rest:
        return _("plan.estimate-of-some", **values, rest=_.count(rest, "more run"))
    return _("plan.estimate", **values)


def _names_shown(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return which of `workload` and `model` tell these cases apart: models are those of one workload."""
    models = {(each["workload"], each["model"]) for each in entries}
    workloads = {workload for workload, _ in models}
    return ("workload",) * (len(workloads) > 1) + ("model",) * (len(models) > len(workloads))


def _row(case: Case | BatchSearch, label: str, named: Collection[str]) -> str:
    name = f"{case['workload']:<12} " if "workload" in named else ""
    name += f"{case['model']:<5} " if "model" in named else ""
    return f"{name}{label:>7}  b{case.get('bsz', MAX):<4} {case['dtype']}{' xla' if case['xla'] else ''}"


def _standing(search: BatchSearch, wording: Wording) -> str:
    """Return where a search stands."""
    _ = wording
    trials = _.count(len(search["trials"]), "short run")
    if search["next"]:
        return _(
            "plan.searched-at-each" if len(search["points"]) > 1 else "plan.searched",
            first=search["first"],
            step=STEP,
            limit=_.count(search["limit"], "short run"),
            trials=trials,
        )
    if not search["largest"]:
        return _("plan.no-answer", trials=trials)
    failed = {"failed": search["failed"], "point": search["failed_at"]}
    largest = _("plan.largest-below", largest=search["largest"], **failed)
    largest = largest if search["failed"] else _("plan.largest", largest=search["largest"])
    parts = [largest, _("plan.trials", trials=trials), _.tell(search["reason"] or "")]
    return _.join(filter(None, parts), "list")
