# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of a campaign -> what a record says of where its run comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.command import command
from ansible.module_utils.scalebook.contracts import Plan, Record
from ansible.module_utils.scalebook.files import read_small
from ansible.module_utils.scalebook.json_file import decode


def origin(campaign: Path, workload: str, nodes: Sequence[str], launched_by: str = "") -> Record:
    """Return `software`, `scalebook` and `command` of a record; without what the files do not have.

    `software` is grouped as hardware is.  The command is the one that the process which made the run was
    `launched_by`, else that of the plan, which another process may have written since.
    """
    provenance = _read(campaign / "provenance.json")
    plan = cast(Plan, _read(campaign / "plan.json"))
    facts = provenance.get("workloads", {}).get(workload, {})
    facts_of_run: dict[str, Any] = {
        "software": hardware.group({node: facts[node] for node in nodes if node in facts}),
        "scalebook": provenance.get("scalebook"),
        "command": launched_by or command(plan),
    }
    return cast(Record, {key: value for key, value in facts_of_run.items() if value})


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return decode(read_small(path))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
