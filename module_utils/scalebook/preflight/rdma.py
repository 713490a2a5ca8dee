# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Checks of InfiniBand and RoCE (preflight.judge runs them)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Finding, Message, as_message, message
from ansible.module_utils.scalebook.preflight.site import Check, Site, finding

ERRORS = 10
"""Physical errors since the counters were reset that a port may have: the threshold in ibqueryerrors(8)."""

Port = Mapping[str, Any]


def rdma(site: Site) -> Iterator[Finding]:
    """Every machine has as many active ports as the others, as fast, without errors, and with a GID."""
    most: dict[str, int] = {}
    rates: dict[str, float] = {}
    for _, ports in site.facts("infiniband"):
        for layer in ("InfiniBand", "Ethernet"):
            most[layer] = max(most.get(layer, 0), len(_active(ports, layer)))
        for name, port in ports.items():
            rates[name] = max(rates.get(name, 0), _rate(port) if _is_active(port) else 0)
    for machine, ports in site.facts("infiniband"):
        for layer, usual in most.items():
            active = _active(ports, layer)
            if len(active) < usual:
                others = [_state(name, port) for name, port in ports.items() if port["link_layer"] == layer]
                code = "preflight.ports-active" if others else "preflight.no-ports"
                values = {"ports": others} if others else {}
                observed = message(code, active=len(active), usual=usual, layer=layer, **values)
                fix = message("fix.port-state")
                yield finding(
                    "rdma",
                    "refuse",
                    machine["nodes"],
                    observed=observed,
                    expected=message("expected.active", count=usual),
                    fix=fix,
                )
        for name, port in ports.items():
            if _is_active(port):
                yield from _slow(machine, name, port, rates[name])
                yield from _gid(site, machine, name, port)


def _slow(machine: Mapping[str, Any], name: str, port: Port, usual: float) -> Iterator[Finding]:
    """Yield what makes an active port slow: its rate, and errors that are repaired by repetition."""
    if _rate(port) < usual:
        yield finding(
            "rdma",
            "refuse",
            machine["nodes"],
            observed=message("preflight.port-rate", name=name, rate=port["rate"]),
            expected=message("expected.port-rate", rate=usual),
            fix=message("fix.cable"),
        )
    errors = [
        f"{kind} {count}" for kind, count in port["errors"].items() if count.isdigit() and int(count) > ERRORS
    ]
    if errors:
        yield finding(
            "rdma",
            "warn",
            machine["nodes"],
            observed=message("preflight.port-errors", name=name, errors=", ".join(errors)),
            expected=message("expected.most", count=ERRORS),
            fix=message("fix.port-errors"),
        )


def _gid(site: Site, machine: Mapping[str, Any], name: str, port: Port) -> Iterator[Finding]:
    """Yield what is wrong with the GIDs of a port for RoCE, from which NCCL takes one."""
    settings = [line for line in site.fact(machine, "nccl") or () if line.startswith("NCCL_IB_GID_INDEX=")]
    index = settings[0].partition("=")[2].strip() if settings else ""
    if port["link_layer"] != "Ethernet":
        return
    usable = [
        number
        for number, (gid, kind) in sorted(port["gids"].items(), key=lambda item: int(item[0]))
        if kind == "RoCE v2" and re.match(r"(0000:){5}ffff:", gid)
    ]
    indices = as_message(", ".join(usable)) if usable else message("expected.none")
    if index.isdigit() and index not in port["gids"]:
        observed = message("preflight.no-gid", name=name, index=index)
        fix = message("fix.gid", indices=indices)
        yield finding("rdma", "refuse", machine["nodes"], observed=observed, expected=indices, fix=fix)
    elif not usable:
        observed = message("preflight.no-roce-gid", name=name)
        fix = message("fix.no-gid")
        yield finding(
            "rdma", "warn", machine["nodes"], observed=observed, expected=message("expected.gid"), fix=fix
        )


def _active(ports: Mapping[str, Port], layer: str) -> list[str]:
    return [name for name, port in ports.items() if port["link_layer"] == layer and _is_active(port)]


def _is_active(port: Port) -> bool:
    return str(port["state"]).endswith("ACTIVE")


def _state(name: str, port: Port) -> Message:
    """Return the states of a port, `4: ACTIVE` and `5: LinkUp`, as words."""
    states = [str(port[key]).partition(": ")[2] or "?" for key in ("state", "phys_state")]
    return message("preflight.port-states", name=name, states=states)


def _rate(port: Port) -> float:
    match = re.match(r"[\d.]+", port["rate"])
    return float(match.group()) if match else 0.0


CHECKS = (Check("rdma", rdma, lambda site: site.with_gpus and site.connected),)
