# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a campaign ran on, the content of provenance.json."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from ansible.module_utils.scalebook.contracts import Message, Node, message
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.places import ROOT

Versions = Mapping[str, str]
"""What one node has for one workload, as role stack_check finds it."""


class Provenance(TypedDict, total=False):
    """provenance.json: what the nodes have for each of `workloads`; `nodes` is that of the first one.

    `launcher` is there unless it is mpirun.
    """

    launcher: str

    scalebook: dict[str, str | Message]
    preflight: Any
    nodes: dict[str, Versions]
    workloads: dict[str, dict[str, Versions]]


def write_provenance(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write provenance.json of a campaign; module campaign_provenance describes its options and result."""
    path = Path(params["path"]) / "provenance.json"
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    nodes, versions, preflight = (params[name] for name in ("nodes", "versions", "preflight"))
    facts = provenance(nodes, versions, preflight, earlier, commit(str(ROOT)), params["launcher"])
    check_containers(earlier, facts)
    return {"changed": write_json(path, facts, write=write), "file": str(path)}


def provenance(
    nodes: Sequence[Node],
    versions: Sequence[Mapping[str, Versions]],
    preflight: Any,
    earlier: Mapping[str, Any],
    commit: str | Message,
    launcher: str = "mpirun",
) -> Provenance:
    """Return the provenance of a campaign with the result of its preflight.

    `versions` are {workload: versions} of each node. `earlier` is what the campaign had at an earlier start:
    it keeps the workloads that this one does not prepare.
    """
    names = [node["name"] for node in nodes]
    prepared = {
        workload: dict(zip(names, [version[workload] for version in versions], strict=True))
        for workload in versions[0]
    }
    workloads = {**earlier.get("workloads", {}), **prepared}
    return {
        "scalebook": {"commit": commit},
        **({} if launcher == "mpirun" else {"launcher": launcher}),
        "preflight": preflight,
        "nodes": next(iter(workloads.values())),
        "workloads": workloads,
    }


def check_containers(earlier: Mapping[str, Any], now: Provenance) -> None:
    """Raise ValueError where a campaign that goes on has another image than it had, or now has one."""
    for workload, nodes in now["workloads"].items():
        for node, versions in earlier.get("workloads", {}).get(workload, {}).items():
            had, has = (
                each.get("container", "no container") for each in (versions, nodes.get(node, versions))
            )
            if had != has:
                raise ValueError(
                    f"{workload} on {node}: earlier runs of the campaign were in {had}, these would be in "
                    f"{has}. Fix: use that image again, or begin another campaign with -e campaign=NAME"
                )


def commit(top: str) -> str | Message:
    """Return the commit of the checkout in `top`, with `-dirty` after it if files differ from it, or why not.

    A collection has that of the checkout that it was made of.
    """
    recorded = Path(top, "meta/commit")
    if recorded.is_file():
        return recorded.read_text(encoding="utf-8").strip()
    describe = ["git", "-C", top, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        described = subprocess.run(describe, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return message("commit.no-git")
    return described.stdout.strip() or message("commit.no-checkout")
