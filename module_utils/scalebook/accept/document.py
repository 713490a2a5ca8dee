# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""acceptance.json: the verdict on each part of a cluster, from what its nodes measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import network
from ansible.module_utils.scalebook.accept import triage, verdict, whole
from ansible.module_utils.scalebook.accept.contracts import (
    ALL_NODES,
    CRITERIA,
    EQUALS,
    HALF,
    HOST,
    LAUNCH,
    LINK,
    OLDEST_SCHEMA,
    PAIR,
    RAIL,
    SCHEMA,
    TOGETHER,
    TRACE,
    WORST,
    Acceptance,
    Connection,
    CriteriaUsed,
    Fault,
    Measurement,
    PartFinding,
    Problem,
)
from ansible.module_utils.scalebook.accept.criteria import Wanted
from ansible.module_utils.scalebook.accept.expected import Expected, expected
from ansible.module_utils.scalebook.accept.reasons import failed_together, reasons
from ansible.module_utils.scalebook.accept.verdict import BAD, GOOD, NO_REFERENCE, OPEN, UNCLEAR, Criteria
from ansible.module_utils.scalebook.contracts import Hardware, Network, as_message

FEW_NODES = 7
"""So many nodes are measured again together as long as one of them is open."""


class Group(NamedTuple):
    """Equal parts: the rates of one quantity by part, and the nodes of each part.

    Pairs of GPUs are equal where they are in the same `place` of their nodes, as what lies between them is.
    """

    quantity: str
    device: str
    devices: int
    place: str
    rates: dict[str, list[float]]
    nodes: dict[str, list[str]]


def _is_of_group(measurement: Measurement) -> bool:
    """Return whether it is of a group of nodes, or of all of them."""
    return "group" in measurement or len(measurement["nodes"]) > 2


def _is_link(measurement: Measurement) -> bool:
    return len(measurement["nodes"]) == 2 and "group" not in measurement


def is_of_group(row: PartFinding) -> bool:
    """Return whether a finding is on a group of nodes, or on all of them."""
    return len(row["nodes"]) > 1 and row["quantity"] not in (LINK, RAIL)


def link_name(source: str, target: str) -> str:
    """Return the name of one direction of a link."""
    return f"{source} → {target}"


def values(measurement: Measurement) -> Iterator[tuple[str, list[str], str, float]]:
    """Yield (part, its nodes, quantity, rate) of one measurement."""
    nodes = measurement["nodes"]
    if _is_link(measurement):
        for quantity, ends in (("forward", nodes), ("backward", nodes[::-1])):
            if quantity in measurement["rates"]:
                yield link_name(*ends), [*ends], LINK, measurement["rates"][quantity]
        return
    if _is_of_group(measurement):
        return  # `of_groups` judges them
    for part, rates in measurement["rates"].items():
        for quantity, rate in rates.items():
            yield f"{nodes[0]} {part}", nodes, quantity, rate
    for pair in measurement.get("pairs", ()):
        ends = [f"GPU{pair[end]}" for end in ("source", "target")]
        yield f"{nodes[0]} {link_name(*ends)}", nodes, PAIR, pair["gb_per_second"]


def rail_values(measurement: Measurement) -> Iterator[tuple[str, list[str], str, float]]:
    """Yield the rates of the rails of one measurement as `values` does those of its parts."""
    nodes, of_ways = measurement["nodes"], measurement.get("rails", {})
    for way, ends in (("forward", nodes), ("backward", nodes[::-1])):
        for rail, rate in enumerate(of_ways.get(way, ())):
            yield f"{link_name(*ends)} {RAIL} {rail}", [*ends], RAIL, rate


def groups(measurements: Iterable[Measurement]) -> list[Group]:
    """Return the groups of equal parts: of one device, and of one quantity."""
    by_key: dict[tuple[str, str, int, str], Group] = {}
    names: dict[str, str] = {}
    devices: dict[str, set[str]] = {}
    for measurement in measurements:
        first = measurement["nodes"][0]
        # What is measured again without the devices has those of before.
        names[first] = measurement["name"] or names.get(first, "")
        devices.setdefault(first, set()).update(filter(_is_gpu, measurement["rates"]))
        for part, nodes, quantity, rate in (*values(measurement), *rail_values(measurement)):
            count = len(devices[first]) if part.endswith(" GPUs") else 1
            of_host = part.endswith(f" {HOST}")
            device = measurement.get("processor", "") if of_host else names[first] if len(nodes) == 1 else ""
            key = (quantity, device, count, part.partition(" ")[2] if quantity == PAIR else "")
            group = by_key.setdefault(key, Group(*key, {}, {}))
            group.rates.setdefault(part, []).append(rate)
            group.nodes[part] = nodes
    return list(by_key.values())


def findings(
    measurements: Sequence[Measurement], listed: Sequence[Expected], criteria: Criteria | Wanted
) -> list[PartFinding]:
    """Return the verdict on each quantity of each part: by its equals or a published value, the worse one.

    `of_groups` judges all nodes together and groups of them, once each part is good.
    """
    thresholds = criteria if isinstance(criteria, Wanted) else Wanted(criteria)
    equal_parts = groups(measurements)
    published = [expected(listed, group.device, group.quantity, group.devices) for group in equal_parts]
    required = [group.quantity in thresholds.rates for group in equal_parts]
    tests = sum(
        len(group.rates) * (1 + (value is not None) + has_rate)
        for group, value, has_rate in zip(equal_parts, published, required, strict=True)
    )
    rows: list[PartFinding] = []
    for group, value, has_rate in zip(equal_parts, published, required, strict=True):
        by_source = _by_source(group, value, has_rate, thresholds, tests)
        for part, rates in group.rates.items():
            source = min(by_source, key=lambda name: WORST.index(by_source[name][part].verdict))  # noqa: B023
            finding = by_source[source][part]
            if group.quantity == RAIL and finding.verdict in (GOOD, NO_REFERENCE):
                continue  # there are as many times more than links as a node has GPUs
            rows.append(_row(part, group.nodes[part], group.quantity, source, finding, rates))
    return rows + _of_traces(measurements)


def _by_source(
    group: Group, value: Expected | None, has_rate: bool, thresholds: Wanted, tests: int
) -> dict[str, dict[str, verdict.Finding]]:
    """Return the finding on each part of a group, by what it is compared with."""
    by_source = {EQUALS: verdict.against_equals(group.rates, thresholds.for_quantity(group.quantity), tests)}
    if value:
        tolerant = thresholds.common._replace(least=1 - value.tolerance)
        by_source[value.source] = verdict.against_value(group.rates, value.value, tolerant, tests)
    if has_rate:
        rate = thresholds.rates[group.quantity]
        by_source[CRITERIA] = verdict.against_rate(group.rates, rate, thresholds.common, tests)
    return by_source


def _is_gpu(part: str) -> bool:
    return part.startswith("GPU") and part != "GPUs"


def unit_of(quantity: str) -> str:
    """Return the unit of the rates of a quantity; that of launches is how many there are in a second."""
    return "TFLOP/s" if quantity.startswith(("matmul_", "best_")) else "1/s" if quantity == LAUNCH else "GB/s"


def _of_traces(measurements: Iterable[Measurement]) -> list[PartFinding]:
    """Return the verdict on the training of each part; parts with another torch are not compared."""
    by_device: dict[tuple[str, str], dict[str, list[str]]] = {}
    for measurement in measurements:
        for part, trace in measurement["traces"].items():
            digest, _, software = trace.partition(" torch ")
            equals = by_device.setdefault((measurement["name"] or "", software), {})
            equals.setdefault(f"{measurement['nodes'][0]} {part}", []).append(digest)
    return [
        {
            "part": part,
            "nodes": [part.rpartition(" ")[0]],
            "quantity": TRACE,
            "verdict": each,
            "against": None if each == NO_REFERENCE else EQUALS,
            "rate": None,
            "unit": "",
            "ratio": None,
            "measurements": len(traces[part]),
        }
        for traces in by_device.values()
        for part, each in verdict.of_traces(traces).items()
    ]


def measured_alone(nodes: Sequence[str], failed: Iterable[Problem]) -> list[str]:
    """Return the nodes that could be measured alone."""
    unmeasured = {each["nodes"][0] for each in failed if len(each["nodes"]) == 1}
    return [node for node in nodes if node not in unmeasured]


def still_open(
    nodes: Sequence[str], rows: Iterable[PartFinding], failed: Sequence[Problem]
) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """Return the nodes, and the pairs in rounds of disjoint ones, that have to be measured, or again.

    What could not be measured is not tried again, nor are the links of a node that could not.  Of few nodes
    all are measured again, or all links: what changes for all of them from one time to the next is then no
    fault of one, and the nodes take no longer.
    """
    present = measured_alone(nodes, failed)
    failures = {frozenset(each["nodes"]) for each in failed if not failed_together(each)}
    ended = set(failures)
    waiting: set[frozenset[str]] = set()
    for row in rows:
        if is_of_group(row):
            continue
        part = frozenset(row["nodes"] if row["quantity"] in (LINK, RAIL) else row["nodes"][:1])
        (waiting if row["verdict"] == OPEN else ended).add(part)
    open_nodes = [node for node in present if frozenset([node]) in waiting or frozenset([node]) not in ended]
    every = list(triage.rounds(present))
    pairs = [
        [pair for pair in each if frozenset(pair) in waiting or frozenset(pair) not in ended]
        for each in every
    ]
    if len(present) <= FEW_NODES:
        open_nodes = present if open_nodes else []
        measurable = [[pair for pair in each if frozenset(pair) not in failures] for each in every]
        pairs = measurable if any(pairs) else []
    return open_nodes, list(filter(None, pairs))


def wanted_together(
    nodes: Sequence[str],
    measurements: Sequence[Measurement],
    rows: Sequence[PartFinding],
    failed: Iterable[Problem],
    thresholds: Wanted,
) -> list[whole.Round]:
    """Return the groups that measure next, and all nodes that could be measured alone, at first and again."""
    present = measured_alone(nodes, failed)
    if not any(len(each["nodes"]) > 2 and "group" not in each for each in measurements):
        return whole.first(present, len(present) == len(nodes))
    missed = any((row["part"], row["verdict"], row["against"]) == (ALL_NODES, OPEN, CRITERIA) for row in rows)
    next_rounds = of_groups(nodes, measurements, rows, thresholds).wanted
    return next_rounds or ([(tuple(present),)] if missed else [])


def of_groups(
    nodes: Sequence[str],
    measurements: Sequence[Measurement],
    rows: Iterable[PartFinding],
    thresholds: Wanted,
) -> whole.Whole:
    """Return the verdict on all nodes together; nothing is said of it before each node and link is good."""
    wrong = any(row["verdict"] in (BAD, UNCLEAR, OPEN) for row in rows if not is_of_group(row))
    if wrong or any(each["problems"] for each in measurements):
        return whole.Whole(NO_REFERENCE, [], [], [])
    devices = max((len([*filter(_is_gpu, each["rates"])]) for each in measurements), default=0)
    return whole.judged(nodes, max(1, devices), measurements, thresholds.for_quantity(TOGETHER))


def _rows_of(
    together: whole.Whole, measurements: Iterable[Measurement], thresholds: Wanted
) -> list[PartFinding]:
    """Return the findings on all nodes together, and on the groups that were measured to judge them."""
    rates: dict[str, list[float]] = {}
    nodes: list[str] = []
    for each in measurements:
        if len(each["nodes"]) > 2 and "group" not in each:
            nodes = each["nodes"]
            for quantity, rate in each["rates"].items():
                rates.setdefault(quantity, []).append(rate)
    rows = []
    for group in together.groups:
        if len(group.nodes) < len(nodes):
            rows += [
                _row(
                    whole.group_name(group.nodes, group.alone),
                    [*group.nodes],
                    quantity,
                    HALF,
                    group.verdicts[quantity],
                    values,
                )
                for quantity, values in group.rates.items()
            ]
    [of_all] = [each.verdicts for each in together.groups if len(each.nodes) == len(nodes)] or [{}]
    for quantity, values in rates.items():
        finding = of_all.get(quantity, verdict.Finding(NO_REFERENCE, None, len(values)))
        if of_all and finding.verdict != GOOD:
            finding = finding._replace(verdict=together.verdict)
        source = HALF
        if quantity == "all_reduce" and TOGETHER in thresholds.rates:
            by_criteria = verdict.against_rate(
                {ALL_NODES: values}, thresholds.rates[TOGETHER], thresholds.common, 1
            )
            if WORST.index(by_criteria[ALL_NODES].verdict) <= WORST.index(finding.verdict):
                finding, source = by_criteria[ALL_NODES], CRITERIA
        rows.append(_row(ALL_NODES, nodes, quantity, source, finding, values))
    return rows


def _row(
    part: str,
    nodes: list[str],
    quantity: str,
    source: str,
    finding: verdict.Finding,
    rates: Sequence[float],
) -> PartFinding:
    """Return the finding on a quantity of a part as acceptance.json has it."""
    return {
        "part": part,
        "nodes": nodes,
        "quantity": quantity,
        "verdict": finding.verdict,
        "against": None if finding.verdict == NO_REFERENCE else source,
        "rate": median(rates),
        "unit": unit_of(quantity),
        "ratio": finding.ratio,
        "measurements": len(rates),
    }


def faults(
    rows: Iterable[PartFinding], measurements: Iterable[Measurement], wrong: Iterable[Problem] = ()
) -> list[Fault]:
    """Return what explains the links that are slow, could not be measured or went wrong in the burn-in."""
    pairs = [each for each in measurements if _is_link(each)]
    count = max((len(each) for pair in pairs for each in pair.get("rails", {}).values()), default=1)

    def whole(source: str, target: str) -> set[triage.Link]:
        return {triage.Link(source, target, rail) for rail in range(count)}

    measured: set[triage.Link] = set()
    slow: set[triage.Link] = set()
    slow_links: list[tuple[str, str]] = []
    for row in rows:
        if row["quantity"] == LINK:
            source, target = row["nodes"]
            measured |= whole(source, target)
            slow_links += [(source, target)] if row["verdict"] == BAD else []
        elif row["quantity"] == RAIL and row["verdict"] == BAD:
            source, target = row["nodes"]
            slow.add(triage.Link(source, target, int(row["part"].rpartition(" ")[2])))
    # Which rail makes a link slow is known where one of its rails is.
    explained = {(link.source, link.target) for link in slow}
    for source, target in slow_links:
        slow |= whole(source, target) if (source, target) not in explained else set()
    for one, other in (each["nodes"] for each in pairs if each["problems"]):
        slow |= whole(one, other) | whole(other, one)
    for one, other in (each["nodes"] for each in wrong if each["nodes"][1:]):
        slow |= whole(one, other)
    return [_fault(cause) for cause in triage.explain(slow, measured)]


def _fault(cause: triage.Cause) -> Fault:
    fault: Fault = {"kind": cause.kind, "nodes": [*cause.nodes]}
    if cause.rail is not None:
        fault["rail"] = cause.rail
    return fault


def problems(measurements: Iterable[Measurement]) -> list[Problem]:
    """Return what could not be measured, each thing once."""
    by_name: dict[str, Problem] = {}
    for measurement in measurements:
        nodes = measurement["nodes"]
        for part, reason in measurement["problems"].items():
            where = whole.group_name(nodes)
            if _is_link(measurement):
                where = link_name(*nodes)
            elif len(nodes) > 2 and "group" not in measurement:
                where = ALL_NODES
            name = where if part == "node" else f"{where} {part}"
            by_name[name] = {"part": name, "nodes": nodes, "reason": reason}
    return list(by_name.values())


def document(
    nodes: Sequence[str],
    measurements: Sequence[Measurement],
    listed: Sequence[Expected],
    criteria: Criteria | Wanted,
    wrong: Sequence[Problem] = (),
) -> Acceptance:
    """Return acceptance.json, but for its time, origin and burn-in and the addresses of the nodes.

    `wrong` is what drifted or failed in the burn-in.
    """
    thresholds = criteria if isinstance(criteria, Wanted) else Wanted(criteria)
    rows, failed = findings(measurements, listed, thresholds), [*problems(measurements), *wrong]
    causes = faults(rows, measurements, wrong)
    together = of_groups(nodes, measurements, rows, thresholds)
    rows += _rows_of(together, measurements, thresholds)
    causes += [{"kind": each.kind, "nodes": [*each.nodes]} for each in together.causes]
    bad_nodes = reasons(rows, causes, failed)
    bad = [node for node in nodes if node in bad_nodes]
    # That all nodes together are good says nothing of one that could not be compared alone.
    of_nodes = [row for row in rows if not is_of_group(row)]
    unclear = {node for row in of_nodes if row["verdict"] in (UNCLEAR, OPEN) for node in row["nodes"]}
    judged = {node for row in of_nodes if row["verdict"] != NO_REFERENCE for node in row["nodes"]}
    good = [node for node in nodes if node in judged - unclear - set(bad)]
    acceptance: Acceptance = {
        "schema": SCHEMA,
        "time": "",
        "machines": {node: {"address": "", "gpus": _gpus(node, measurements)} for node in nodes},
        "accepted": good == [*nodes],
        "criteria": _criteria_used(thresholds, criteria_of(rows)),
        "nodes": [*nodes],
        "findings": rows,
        "faults": causes,
        "problems": failed,
        "good": good,
        "bad": bad,
        "unclear": [node for node in nodes if node not in (*good, *bad)],
        "reasons": {node: bad_nodes[node] for node in bad},
        "limit": ",".join(["all", *(f"!{node}" for node in bad)]) if bad else "",
        "burnin": None,
        "scalebook": {},
        "command": "",
    }
    connected = connections(nodes, measurements)
    if connected:
        acceptance["connections"] = connected
    return acceptance


def refuse_sockets(measurements: Iterable[Measurement], networks: Mapping[str, Sequence[Network]]) -> None:
    """Make measurements over sockets where InfiniBand or RoCE is up problems: their rates say nothing of it.

    `networks` are those that are up on each node.
    """
    for measurement in measurements:
        nodes = measurement["nodes"]
        up: list[Hardware] = [{"nodes": [node], "networks": [*networks.get(node, ())]} for node in nodes]
        why = network.refusal(measurement.get("nccl"), up)
        if why:
            measurement["rates"], measurement["problems"] = {}, {"node": why}


def connections(nodes: Sequence[str], measurements: Iterable[Measurement]) -> list[Connection]:
    """Return what NCCL connected the GPUs by, what is alike together; `nodes` is their order."""
    alike: dict[str, Connection] = {}
    for measurement in measurements:
        if "nccl" not in measurement or "group" in measurement:
            continue
        nccl = measurement["nccl"]
        between = ("node", LINK, ALL_NODES)[min(len(measurement["nodes"]), 3) - 1]
        key = json.dumps([between, network.described(nccl)])
        new: Connection = {"between": between, "nodes": [], "measurements": 0, "nccl": {**nccl, "far": []}}
        connection = alike.setdefault(key, new)
        connection["measurements"] += 1
        named = {*connection["nodes"], *measurement["nodes"]}
        connection["nodes"] = [node for node in nodes if node in named]
        far_adapters = connection["nccl"]["far"]
        far_adapters += [each for each in nccl["far"] if each not in far_adapters]
    return list(alike.values())


def criteria_of(rows: Iterable[PartFinding]) -> set[str]:
    """Return the names of the criteria that the findings follow from; a trace has none."""
    return {
        TOGETHER if is_of_group(row) else row["quantity"]
        for row in rows
        if row["rate"] is not None and (row["against"] or not is_of_group(row))
    }


def _criteria_used(thresholds: Wanted, quantities: set[str]) -> CriteriaUsed:
    """Return the criteria as acceptance.json has them, of the quantities that were measured."""
    common = thresholds.common
    by_quantity: dict[str, dict[str, float]] = {}
    for name in sorted(quantities):
        if thresholds.for_quantity(name).least != common.least:
            by_quantity[name] = {"least": thresholds.for_quantity(name).least}
        if name in thresholds.rates:
            by_quantity.setdefault(name, {})["at_least"] = thresholds.rates[name]
    return {
        "title": thresholds.title,
        "by_quantity": by_quantity,
        "least": common.least,
        "false_alarms": common.false_alarms,
        "misses": common.misses,
        "most": common.most,
    }


def _gpus(node: str, measurements: Iterable[Measurement]) -> list[str]:
    """Return the UUIDs of the GPUs that a node had when it was measured last."""
    listed = [each.get("gpus", []) for each in measurements if each["nodes"] == [node]]
    return next((uuids for uuids in reversed(listed) if uuids), [])


def upgrade(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return acceptance.json of an earlier schema that is read, its sentences as texts."""
    if content.get("schema") != OLDEST_SCHEMA:
        return dict(content)
    failed = [{**each, "reason": as_message(each["reason"])} for each in content["problems"]]
    why = reasons(content["findings"], content["faults"], failed)  # type: ignore[arg-type]
    burnin = content["burnin"] and {
        **content["burnin"],
        "before": [as_message(text) for text in content["burnin"]["before"]],
    }
    upgraded = {
        **content,
        "schema": SCHEMA,
        "problems": failed,
        "burnin": burnin,
        "reasons": {node: why[node] for node in content["bad"]},
    }
    del upgraded["drain"]
    return upgraded
