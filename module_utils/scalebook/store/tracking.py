# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""results.json -> what experiment trackers (MLflow, W&B) keep: a run for each case.

The parameters are the labels of metrics.prom, the metrics its samples: `throughput_samples_per_second/median`
is the sample whose label `statistic` is median.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.store import openmetrics

ARTIFACTS = ("results.json", "report.html")
"""Files of the report that go with each run."""


class Tracked(NamedTuple):
    """A case as a run of a tracker; `id` is the same whenever the same results are pushed again."""

    id: str
    name: str
    params: dict[str, Any]
    metrics: dict[str, float]


def runs(document: Results) -> list[Tracked]:
    """Return a run for each case that has a valid run."""
    params = {row["case"]: openmetrics.labels_of(document, row) for row in document["rows"] if row["good"]}
    metrics: dict[str, dict[str, float]] = {case: {} for case in params}
    for metric, samples in openmetrics.families(document):
        for labels, value in samples:
            case = labels.get("case")
            if case in params:
                further = [str(each) for label, each in labels.items() if label not in params[case]]
                # MLflow allows no other characters.
                name = re.sub(r"[^\w. /-]", "_", "/".join([metric.name, *further]), flags=re.ASCII)
                metrics[case][name] = value
    return [Tracked(_id(params[case], metrics[case]), case, params[case], metrics[case]) for case in params]


def _id(params: dict[str, Any], metrics: dict[str, float]) -> str:
    return hashlib.sha256(json.dumps([params, metrics], sort_keys=True).encode()).hexdigest()[:16]
