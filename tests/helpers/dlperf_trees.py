# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Trees of logs laid out as DLPerf does."""

import json

from ansible.module_utils.scalebook.judge.runs import check_record
from ansible.module_utils.scalebook.read.import_dlperf import import_tree
from dlperf_logs import WORKLOAD, log_of_speed
from in_english import in_english


def place(root, *names, text=None):
    """Write a log to each of the names: `text`, by default a good log of 128 samples/s."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = log_of_speed(128.0) if text is None else text
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def read(root, out=None, **options):
    """Import `root` and return the module's result and the records by their source."""
    out = out or root.parent / "out"
    result = import_tree(root, out, "tf2_bert", WORKLOAD, **options)
    records = {}
    for path in sorted(out.glob("runs/*/*/result.json")):
        record = json.loads(path.read_text())
        check_record(record)
        assert path.parts[-3:-1] == (record["case"]["name"], str(record["repeat"]))
        records[record["source"]] = in_english(record)
    return in_english(result), records
