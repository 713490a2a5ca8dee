# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The frameworks that took part: version, source of the model and features, from records and declarations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Group, Results, Statement
from ansible.module_utils.scalebook.evaluate.differences import OWN_DATA
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED, Option
from ansible.module_utils.scalebook.flops import UnknownNameError
from ansible.module_utils.scalebook.judge.versions import version_of
from ansible.module_utils.scalebook.pages.blocks import NONE
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads

KEYS = ("framework", "cuda", "cudnn", "nccl", "mpi", "horovod", "python", "commit")
"""The fields of a campaign's provenance that the tables show."""
MIXED = ("fp16", "bf16")


def of_campaigns(campaigns: Sequence[Results], workloads: Workloads) -> list[dict[str, Statement]]:
    """Return a line per workload and campaign: its versions, as the first node recorded them."""
    lines = []
    for results in campaigns:
        nodes = (results.get("provenance") or {}).get("workloads") or {}
        for workload in dict.fromkeys(group["workload"] for group in results["groups"]):
            group = next(each for each in results["groups"] if each["workload"] == workload)
            about: Mapping[str, Any] = next(iter((nodes.get(workload) or {}).values()), {})
            declared = workloads.get(workload, UNKNOWN)
            lines.append(
                {
                    "workload": workload,
                    "family": str(group.get("family", "")),
                    "title": group.get("workload_title", workload),
                    "campaign": results["campaign"],
                    "compiler": declared.compiler or NONE,
                    "name": declared.framework or workload,
                    "source": declared.source or NOT_RECORDED,
                    "features": features(declared, about),
                    **{key: version_of(about.get(key) or NOT_RECORDED) for key in KEYS},
                }
            )
    return lines


def features(declared: Workload, about: Mapping[str, Any]) -> str:
    """Return the features of a workload as DLPerf's tables have them: `Horovod+XLA+AMP`.

    Those of the declaration, and those that a node had: `about` is its entry in the provenance.
    """
    names = list(declared.features)
    if about.get("features"):
        names.append(str(about["features"]))
    if True in declared.xla:
        names.append(declared.compiler)
    if set(MIXED) & set(declared.dtypes.get("gpu", ())):
        names.append("AMP")
    return "+".join(names) or NONE


def matrix(campaigns: Sequence[Results], workloads: Workloads) -> list[dict[str, Any]]:
    """Return a line per measured workload: which of the usual features it has, by its declaration.

    `others` are what its trainer adds.
    """
    groups = {group["workload"]: group for results in campaigns for group in results["groups"]}
    return [_line(workloads[name], group) for name, group in groups.items() if name in workloads]


def _line(declared: Workload, group: Group) -> dict[str, Any]:
    """Return the line of a workload; `group` is one of its own, whose settings decide too."""
    return {
        "workload": group["workload"],
        "several-nodes": _takes_two_nodes(declared, group),
        "nccl": declared.nccl,
        "mixed-precision": bool(set(MIXED) & set(declared.dtypes.get("gpu", ()))),
        "compiled": True in declared.xla,
        "accumulation": declared.accumulation is not None,
        "checkpointing": any(name.endswith("_checkpointing") for name in declared.settings),
        "own-data": any(f"{declared.name}_{name}" in declared.settings for name in OWN_DATA),
        "others": "+".join(declared.features) or NONE,
    }


def _takes_two_nodes(declared: Workload, group: Group) -> bool:
    """Return whether two nodes of 8 devices could train a group; what no record has refuses none."""
    settings = {**declared.setting_defaults, **(group.get("settings") or {})}
    case: Any = {**group, "settings": settings, "nodes": 2, "gpus": 8}
    try:
        return declared.refusal(case) is None
    except UnknownNameError:
        return True


def of_published(options: Sequence[Option], workloads: Workloads) -> list[dict[str, Statement]]:
    """Return a line per published framework and the tables it is from.

    A published row of one of our workloads has the name of its framework.
    """
    lines: dict[tuple[str, str, str], dict[str, Statement]] = {}
    for option in options:
        name, version = _split(workloads.get(option["workload"], UNKNOWN).framework or option["workload"])
        lines[option["workload"], option["group"], option["family"]] = {
            "workload": option["workload"],
            "family": option["family"],
            "name": name,
            "framework": version,
            "source": option["group"] or option["source"],
            "features": NONE,
            "campaign": option["source"],
        }
    return list(lines.values())


def _split(workload: str) -> tuple[str, str]:
    """Return name and version of such as `NGC MXNet 1.6.0`; a name without a version has none."""
    match = re.fullmatch(r"(.+?) (\d.*)", workload)
    return (match[1], match[2]) if match else (workload, NONE)
