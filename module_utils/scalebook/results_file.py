# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The results.json of a report, as its readers need it: its contract, and that its parts name each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ansible.module_utils.scalebook import shapes
from ansible.module_utils.scalebook.contracts import (
    GROUP_FIELDS,
    RESULTS_SCHEMA,
    ProvenanceFile,
    Results,
    upgrade,
)

PARTS = ("campaign", "counts", "started", "groups", "rows", "hardware", "simulated", "plan")
TABLES = ("utilisation", "mfu")
ROW = (*GROUP_FIELDS, "case", "group", "label", "nodes", "gpus", "devices", "unit", "status", "good")
MEASURED = ("planned", "runs", "median", "mean", "min", "max", "speedup", "efficiency", "spread", "flags")
GROUP = (*GROUP_FIELDS, "id", "rows", "unit", "title", "short", "family", "compiler")
RUN = ("repeat", "rate")
"""What every results.json of today's schema has had from the first on."""


class ResultsError(ValueError):
    """A results.json that no report has written."""


def check_results(document: Mapping[str, Any]) -> Results:
    """Return the document if it is a results.json of today's schema, else raise ResultsError."""
    document = upgrade(document)
    if document.get("schema") != RESULTS_SCHEMA or "rows" not in document:
        raise ResultsError(f"is not a results.json of schema {RESULTS_SCHEMA}. Fix: run report.yml again")
    shapes.check(Results, document, error=ResultsError)
    shapes.check(ProvenanceFile, document.get("provenance") or {}, "provenance", ResultsError)
    _check_keys("", document, (*PARTS, *TABLES))
    _check_keys("counts", document["counts"], ("good", "planned"))
    for index, group in enumerate(document["groups"]):
        _check_keys(f"groups[{index}]", group, GROUP)
    for index, row in enumerate(document["rows"]):
        _check_keys(f"rows[{index}]", row, (*ROW, *MEASURED))
        for run in row["runs"]:
            _check_keys(f"rows[{index}].runs", run, RUN)
            if run["rate"] is None or run["rate"] <= 0:
                raise ResultsError(f"rows[{index}].runs has the rate {run['rate']}")
        if (
            any(row[name] is not None and row[name] <= 0 for name in ("median", "min", "max"))
            or row["devices"] < 1
        ):
            raise ResultsError(f"rows[{index}] has a rate or a number of devices that is not above 0")
    _check_names(document)
    return cast(Results, document)


def _check_keys(place: str, value: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    lacking = [key for key in keys if key not in value]
    if lacking:
        raise ResultsError(f"{place or 'the file'} has no {lacking[0]}")


def _check_names(document: Mapping[str, Any]) -> None:
    """Raise ResultsError where a part of the document names another that is not there, or is there twice."""
    groups = [group["id"] for group in document["groups"]]
    cases = [row["case"] for row in document["rows"]]
    for what, names in (("group", groups), ("case", cases)):
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ResultsError(f"it has the {what} {min(twice)!r} twice")
    for names_given, allowed in (
        *((row["group"], groups) for row in document["rows"]),
        *((case, cases) for group in document["groups"] for case in group["rows"]),
        *((line["case"], cases) for key in TABLES for line in document[key]),
    ):
        if names_given not in allowed:
            raise ResultsError(f"it names {names_given!r}, which it does not have")
