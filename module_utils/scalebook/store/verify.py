# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A record, and what the logs beside it show when they are read again -> how they differ."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import shapes, throughput
from ansible.module_utils.scalebook.contracts import Message, NodeTelemetry, Record, message
from ansible.module_utils.scalebook.store.source import ArchiveSource, Source

OF_LOGS = ("sha256", "bytes", "steps", "times", "received", "rates", "loss")
"""What a record has of each log, and what a reader of logs finds again."""


@contextmanager
def directory_of(source: Source, run: str) -> Iterator[Path]:
    """Yield a directory with the files of one run, unpacked where they are in an archive."""
    if not isinstance(source, ArchiveSource):
        yield source.top / run
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in source.covered():
            if name.startswith(f"{run}/"):
                Path(folder, name.rpartition("/")[2]).write_bytes(source.read(name))
        yield Path(folder)


def differences(record: Record, again: Record) -> list[Message]:
    """Return how a record differs from `again`, what its logs show, both values named."""
    if again["status"] != "ok":
        return [message("verify.status", status=again["status"], why=again["reason"] or "")]
    ours, theirs = (throughput.measure(each)["rate"] for each in (record, again))
    differ = [message("verify.rate", ours=ours, theirs=theirs)] if ours != theirs else []
    mean = record.get("printed_mean")
    if mean is not None and mean != again.get("printed_mean"):
        differ.append(message("verify.printed-mean", ours=mean, theirs=str(again.get("printed_mean"))))
    for before, now in zip(record["nodes"], again["nodes"], strict=True):
        differ += _of_node(before["node"], {**before}, {**now})
    return differ + _of_telemetry(record.get("telemetry") or [], again.get("telemetry") or [])


def _of_node(node: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Message]:
    """Return how the fields of one log differ; an earlier version did not read all of them."""
    differ = []
    for field in OF_LOGS:
        before, now = ours.get(field), theirs.get(field)
        if _is_empty(before) or before == now:
            continue
        code = "verify.field"
        if isinstance(before, list) and isinstance(now, list):
            place = next(
                (place for place, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), 0
            )
            if len(before) == len(now):
                field, before, now = f"{field}[{place}]", before[place], now[place]
            else:
                code, before, now = "verify.entries", len(before), len(now)
        differ.append(message(code, node=node, field=field, ours=str(before), theirs=str(now)))
    return differ


def _is_empty(value: Any) -> bool:
    """Return whether a field holds nothing; earlier versions wrote a list without values for it."""
    return value is None or (isinstance(value, list) and all(each is None for each in value))


def _of_telemetry(ours: Sequence[NodeTelemetry], theirs: Sequence[NodeTelemetry]) -> list[Message]:
    """Return how the quantities of a record differ from the readings beside its logs, one of each node."""
    try:
        shapes.check(list[NodeTelemetry], ours, "telemetry")
    except shapes.ShapeError as exc:
        return [message("text", text=str(exc))]
    if len(ours) > len(theirs):
        return [message("verify.nodes", ours=len(ours), theirs=len(theirs))]
    differ = []
    for before, now in zip(ours, theirs, strict=False):
        quantities, quantities_now = before.get("quantities") or {}, now.get("quantities") or {}
        for name in [name for name in quantities if quantities[name] != quantities_now.get(name)][:1]:
            values = {"ours": str(quantities[name]), "theirs": str(quantities_now.get(name))}
            differ.append(message("verify.quantity", node=str(before.get("node")), name=name, **values))
    return differ
