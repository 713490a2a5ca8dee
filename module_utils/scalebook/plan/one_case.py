# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Parameters -> the one case that a manifest of Kubernetes is for, whose nodes are in no inventory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Case, Node, Plan
from ansible.module_utils.scalebook.plan.matrix import plan
from ansible.module_utils.scalebook.plan.parameters import ParameterError, as_topology, parts
from ansible.module_utils.scalebook.workload import Workloads


def one_case(
    parameters: Mapping[str, Any],
    workloads: Workloads,
    topology: str,
    why_nothing_runs: Callable[[Plan], str],
) -> Case:
    """Return the only case of `parameters` at a topology, or raise ParameterError.

    Each node is a machine of its own. `why_nothing_runs` says why a plan has no case.
    """
    count, gpus = parts(as_topology("topology", topology))
    nodes: list[Node] = [
        {"name": f"worker-{i}", "address": f"worker-{i}", "slots": gpus, "machine": f"worker-{i}"}
        for i in range(count)
    ]
    of_pods = {**parameters, "topology": [topology], "nodes": None, "gpus": None}
    planned = plan(of_pods, workloads, nodes, parameters["device"])
    if planned["searches"]:
        raise ParameterError("bsz=max: a manifest is for one case. Fix: --bsz with a number")
    if not planned["cases"]:
        raise ParameterError(why_nothing_runs(planned))
    case, *more = planned["cases"]
    if more:
        names = ", ".join(each["name"] for each in planned["cases"])
        raise ParameterError(
            f"a manifest is for one case, and these parameters make {len(more) + 1} ({names}). "
            "Fix: one value each for --workload, --dtype, --xla and --bsz"
        )
    return case
