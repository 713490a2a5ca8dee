# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Imports of single logs, of recordings below tests/data/<workload>/imports and of made ones."""

import json
import tempfile
from functools import cache
from pathlib import Path

from ansible.module_utils.scalebook.read.import_dlperf import import_tree
from ansible.module_utils.scalebook.throughput import measure
from ansible.module_utils.scalebook.workloads import load_workloads
from in_english import in_english

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


@cache
def workloads():
    """Return the declarations of all workloads."""
    return load_workloads([ROOT / "roles"])


def import_log(name, text, file="1n1g/base_b64_fp16_1.log", **overrides):
    """Return the record of a log of the workload `name` with this text, below this path of the tree."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, "logs", file)
        log.parent.mkdir(parents=True)
        log.write_bytes(text if isinstance(text, bytes) else text.encode())
        out = Path(directory, "out")
        import_tree(log.parents[1], out, name, workloads()[name], overrides, others=workloads())
        return in_english(json.loads(next(out.glob("runs/*/*/result.json")).read_text()))


def import_case(path, name=None, **overrides):
    """Return the record of the only log below tests/data/`path`, read as one of `name` or of its folder's."""
    log = next((DATA / path).glob("*/*.log"))
    workload = name or path.partition("/")[0]
    return import_log(workload, log.read_bytes(), f"{log.parent.name}/{log.name}", **overrides)


def rate(record):
    """Return the samples per second of a record that counts."""
    assert (record["status"], record["reason"]) == ("ok", None)
    return measure(record)["rate"]
