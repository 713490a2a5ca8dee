# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Prints what offline runs of W&B have, one in JSON each, read with the messages of the real package.

usage: wandb_records.py RUN.wandb ...
"""

import json
import struct
import sys
from pathlib import Path

from wandb.proto import wandb_internal_pb2

HEADER, BLOCK, PREFIX = 7, 32768, 7
LAST_PARTS = (1, 4)
"""Kinds of a part after which a record is whole: the only one of its record, or the last of several."""


def records(content):
    """Yield the records of a file, which is a log of LevelDB behind a header of W&B's own."""
    at, record = HEADER, b""
    while at + PREFIX <= len(content):
        left = BLOCK - at % BLOCK
        if left < PREFIX:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", content, at + 4)
        at += PREFIX + size
        record += content[at - size : at]
        if kind in LAST_PARTS:
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


def contents(path):
    """Return the run of a file: its names, config, metrics and files."""
    found = {"config": {}, "metrics": {}, "files": [], "ended": False}
    for record in records(path.read_bytes()):
        run = record.run
        if record.HasField("run"):
            found.update({key: getattr(run, key) for key in ("project", "run_group", "display_name", "host")})
        found["config"].update({each.key: json.loads(each.value_json) for each in run.config.update})
        found["metrics"].update(
            {each.nested_key[0]: json.loads(each.value_json) for each in record.history.item}
        )
        found["files"] += [each.path for each in record.files.files]
        found["ended"] |= record.HasField("exit")
    return found


for name in sys.argv[1:]:
    print(json.dumps(contents(Path(name))))
