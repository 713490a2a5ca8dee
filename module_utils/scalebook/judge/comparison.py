# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Two campaigns side by side: the cases that both measured, and what differs between them.

Cases are paired by what is trained, how precise and on how many devices.  Of several with other settings
those are paired in which the fewest settings differ; what differs is named, hardware and versions too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook import hardware, network
from ansible.module_utils.scalebook.contracts import Row, Statement
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge import baseline, weak_scaling
from ansible.module_utils.scalebook.judge.campaign import Baseline
from ansible.module_utils.scalebook.judge.runs import binding_of
from ansible.module_utils.scalebook.judge.versions import version_of
from ansible.module_utils.scalebook.workload import Workloads

STEPS = ("warmup", "window", "epoch_samples")
SAME = tuple(field for field in baseline.IDENTITY if field not in (*STEPS, "settings"))
"""Fields in which paired cases agree."""
VERSIONS = ("framework", "build", "driver", "cuda", "cudnn", "nccl", "mpi", "horovod", "python")
"""Fields of the provenance that are compared."""


class Difference(TypedDict):
    """What is not the same in two campaigns, with its values; "" is one that was not recorded."""

    what: str
    before: Statement
    now: Statement


class Comparison(TypedDict):
    """Two campaigns: an entry of baseline.judged for each case of both, with its `row` and what `differs`.

    What differs in all cases is in `differs` of the comparison.  The counts are of measured cases.
    """

    before: str
    now: str
    rows: list[dict[str, Any]]
    differs: list[Difference]
    only_before: int
    only_now: int


def compare(now: Baseline, before: Baseline, declared: Workloads) -> Comparison:
    """Return how a campaign compares with one `before`; `declared` are the declarations of workloads."""
    measured = [[row for row in each.rows if weak_scaling.rates_of(row["runs"])] for each in (now, before)]
    pairs = _pairs(measured[0], measured[1], declared)
    differing = [_differences(now, row, before, other, declared) for row, other in pairs]
    common = [each for each in differing[0] if all(each in own for own in differing)] if pairs else []
    rows = [
        {**entry, "row": row, "differs": [each for each in own if each not in common]}
        for (row, _other), entry, own in zip(pairs, baseline.judged(pairs), differing, strict=True)
    ]
    only_now, only_before = (len(each) - len(pairs) for each in measured)
    return {
        "before": before.name,
        "now": now.name,
        "rows": rows,
        "differs": common,
        "only_before": only_before,
        "only_now": only_now,
    }


def _pairs(now: Sequence[Row], before: Sequence[Row], declared: Workloads) -> list[tuple[Row, Row]]:
    """Return the rows of both in the order of `now`, each of them at most once."""
    alike = grouped(range(len(before)), lambda place: _same(before[place], declared))
    candidates = sorted(
        (len(_changed(_settings(row, declared), _settings(before[other], declared))), place, other)
        for place, row in enumerate(now)
        for other in alike.get(_same(row, declared), ())
    )
    chosen: dict[int, int] = {}
    for _count, place, other in candidates:
        if place not in chosen and other not in chosen.values():
            chosen[place] = other
    return [(now[place], before[other]) for place, other in sorted(chosen.items())]


def _same(row: Row, declared: Workloads) -> str:
    return json.dumps([baseline.value(row, field, declared) for field in SAME])


def _settings(row: Row, declared: Workloads) -> dict[str, str]:
    """Return the steps and settings of a row as text, also settings that came after it was measured."""
    values = {**{field: row.get(field) for field in STEPS}, **baseline.value(row, "settings", declared)}
    return {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in values.items()
        if value is not None
    }


def _changed(now: Mapping[str, Statement], before: Mapping[str, Statement]) -> list[Difference]:
    names = [name for name in {**before, **now} if before.get(name, "") != now.get(name, "")]
    return [{"what": name, "before": before.get(name, ""), "now": now.get(name, "")} for name in names]


def _differences(
    now: Baseline, row: Row, before: Baseline, other: Row, declared: Workloads
) -> list[Difference]:
    mine, theirs = (_versions(side, row["workload"], own) for side, own in ((now, row), (before, other)))
    # A field that only one of them records is not a difference, unless the other one records none.
    common = set(mine) & set(theirs) or {"framework"}
    facts = (
        {**_machine(side, each), **{name: fields[name] for name in fields if name in common}}
        for side, each, fields in ((now, row, mine), (before, other, theirs))
    )
    return _changed(
        *({**each, **_settings(own, declared)} for each, own in zip(facts, (row, other), strict=True))
    )


def _machine(side: Baseline, row: Row) -> dict[str, str]:
    """Return the model, the cores of a case on processors, the link, how many machines, and the binding."""
    entries = hardware.used_of_nodes(side.hardware, row)
    on_cpu = row.get("device") == "cpu"
    cores = sorted({str(entry["cores"]) for entry in entries if on_cpu and entry.get("cores")})
    return {
        "hardware": hardware.model(side.hardware, row),
        "cores": ", ".join(cores),
        "link": hardware.link(side.hardware, {**row, "machines": None}),
        "machines": str(row.get("machines") or "") if row["nodes"] > 1 else "",
        "binding": binding_of(row),
    }


def _versions(side: Baseline, workload: str, row: Row) -> dict[str, Statement]:
    """Return what the first node had for a workload, and what connected the GPUs of a row.

    Early campaigns recorded the versions of their first workload only.
    """
    recorded = side.provenance.get("workloads") or {}
    nodes = recorded.get(workload) or (side.provenance.get("nodes") if not recorded else None) or {}
    about: Mapping[str, Any] = next(iter(nodes.values()), {})
    values = {**about, "transport": network.of_runs(row["runs"])}
    return {name: version_of(values[name]) for name in (*VERSIONS, "transport") if values.get(name)}
