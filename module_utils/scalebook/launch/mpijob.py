# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Case -> the values of the Kubernetes manifest that roles/campaign/templates/mpijob.yml.j2 is."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from ansible.module_utils.scalebook.contracts import IMPORT_FIELDS, Case, Node
from ansible.module_utils.scalebook.launch.jobs import make_jobs, processes_of, text_of, variables
from ansible.module_utils.scalebook.workload import Workload

STEM = 43
"""Characters of a case's name that the MPIJob keeps before the digest: a pod's has at most 63."""

OF_POD = ("NODE", "TASK_INDEX", "HOSTS", "WORKER_HOSTS", "MASTER_ADDR")
"""Variables of a node job that only pods know."""

WORK = "/tmp/scalebook"  # noqa: S108
"""Where a pod, which has its files for itself, keeps those of the run."""


class Manifest(TypedDict):
    """What the manifest of a case names: its MPIJob, pods, processes and log.

    `gpus` are those of a pod, 0 on CPUs; `environment` what all processes have; `log` the file that
    import.yml reads, and `parameters` those that say what its name does not.
    """

    name: str
    label: str
    workload: str
    nodes: int
    gpus: int
    processes: int
    port: int
    environment: dict[str, str]
    log: str
    parameters: str


def manifest(case: Case, workload: Workload, port: int) -> Manifest:
    """Return what the manifest of a case names; its processes listen on `port` and the ports after it."""
    stem, _, digest = re.sub("[^a-z0-9]+", "-", case["name"].lower()).rpartition("-")
    pods: list[Node] = [
        {"name": str(i), "host": str(i), "address": str(i), "machine": str(i), "work": WORK}
        for i in range(case["nodes"])
    ]
    environment = variables(make_jobs(case, 1, "mpijob", pods, port)[0], workload, case)
    values: dict[str, Any] = dict(case)
    return {
        "name": f"{stem[:STEM].rstrip('-')}-{digest}",
        "label": case["label"],
        "workload": case["workload"],
        "nodes": case["nodes"],
        "gpus": case["gpus"] if case["device"] == "gpu" else 0,
        "processes": processes_of(case, workload),
        "port": port,
        "environment": {
            **{name: value for name, value in environment.items() if name not in OF_POD},
            "JOB_DIR": WORK,
        },
        "log": f"{case['label']}/{case['model']}_b{case['bsz']}_{case['dtype']}_1.log",
        "parameters": " ".join(f"{name}={text_of(values[name])}" for name in IMPORT_FIELDS),
    }
