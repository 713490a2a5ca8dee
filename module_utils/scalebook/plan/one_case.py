# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Parameters -> the one case that a manifest of Kubernetes is for, whose nodes are in no inventory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Case, Node
from ansible.module_utils.scalebook.plan.matrix import plan, why_nothing_runs
from ansible.module_utils.scalebook.plan.parameters import ParameterError, as_topology, parts
from ansible.module_utils.scalebook.workload import Workloads


def one_case(
    parameters: Mapping[str, Any],
    workloads: Workloads,
    topology: str,
    in_words: Callable[[Any], Any] = lambda planned: planned,
) -> Case:
    """Return the only case of `parameters` at a topology, or raise ParameterError.

    Each node is a machine of its own. `in_words` puts the reasons why there is no case into words.
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
        raise ParameterError(why_nothing_runs(in_words(planned)))
    case, *more = planned["cases"]
    if more:
        names = ", ".join(each["name"] for each in planned["cases"])
        raise ParameterError(
            f"a manifest is for one case, and these parameters make {len(more) + 1} ({names}). "
            "Fix: one value each for --workload, --dtype, --xla and --bsz"
        )
    return case
