# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""An imported log that does not count -> what would read it: another workload, or another window.

Whatever is proposed was tried on the log.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ansible.module_utils.scalebook.contracts import (
    Case,
    Message,
    Record,
    as_message,
    because,
    message,
    messages_in,
)
from ansible.module_utils.scalebook.files import NotRegularError, open_regular
from ansible.module_utils.scalebook.read import sanity
from ansible.module_utils.scalebook.read.blocks import Blocks
from ansible.module_utils.scalebook.read.ranks import read_any_log
from ansible.module_utils.scalebook.read.record import log_record
from ansible.module_utils.scalebook.read.step_log import LogError, plain_lines, read_lines
from ansible.module_utils.scalebook.workload import Unread, Workload, Workloads

HEAD = 1 << 20
"""Bytes of a log in which steps are looked for."""

INTERVALS, FEWEST = 5, 3
"""Steps that a proposed window holds where they are logged, and lines that look alike, at least."""

QUOTED, KNOWN_QUOTED = 120, 50
"""Characters of a line that are quoted; few where more follows, since a terminal cuts long reasons."""

_BAR = re.compile(rb"\|[^|A-Za-z\d]*\|")
_NUMBER = re.compile(rb"\d[\d.,:]*(?:e[+-]?\d+)?")
_STEP = re.compile(
    rb"\b(?:global_)?(?:steps?|iter(?:ation)?s?|batch(?:es)?|epochs?)\b.{0,20}?\d"
    rb"|(?<![A-Za-z])(?:samples?|images?|imgs?|seqs?|sequences|sentences|examples|tokens|steps|it)"
    rb"[ _]?(?:/|per)[ _]?s"
    rb"|SamplesPerSec|(?:\b|_)(?:tps|ips)\b",
    re.IGNORECASE,
)


def hint(path: str, record: Record, workload: Workload, others: Workloads) -> Message | None:
    """Return what would read a log that does not count, None where nothing is known.

    `others` are the workloads by name.
    """
    case = record["case"]
    first_node = record["nodes"][0] if record["nodes"] else None
    if record["status"] == "ok" or first_node is None or not first_node["bytes"]:
        return None
    if record["status"] == "incomplete" and first_node["steps"]:
        return _window_hint(path, case, workload)
    if record["status"] != "incomplete" and not _foreign(record):
        return None
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
    except (OSError, NotRegularError):
        return None
    readers = [
        f"workload={name}{_needed(path, case, name, other)}"
        for name, other in others.items()
        if name != case["workload"] and _reads(head, case, name, other)
    ]
    if readers:
        return message("reason.reads-it", parameters=" / ".join(readers))
    return None if first_node["steps"] else _unread(head, case, others)


def _foreign(record: Record) -> bool:
    """Say whether the log is one of another workload: it shows that, or nothing of the program."""
    if record["status"] != "refused" or record["reason"] is None:
        return False
    parts = [part["values"] for part in messages_in(record["reason"])]
    return any(part.get("field") == "workload" or part.get("name") == "program" for part in parts)


# Another workload


def _reads(head: bytes, case: Case, name: str, workload: Workload) -> bool:
    """Return whether a workload reads steps from the beginning of a log, which its program wrote."""
    as_its_own: Case = {**case, "workload": name, "warmup": 0, "window": 1}
    rules = sanity.rules_for(workload.of_case(as_its_own), as_its_own, 0)
    return any(_shows(head, as_its_own, form) for form in rules.in_forms())


def _shows(head: bytes, case: Case, workload: Workload) -> bool:
    log = read_lines([head], workload)
    if log.last_step is None:
        return False
    required = [rule for rule in workload.sanity if rule.program]
    wrong = sanity.contradictions(workload.sanity, log.found, case, 0)
    foreign = any(each["values"]["field"] == "workload" for each in wrong)
    return not foreign and not sanity.missing(required, log.found, log.excused)


def _needed(path: str, case: Case, name: str, workload: Workload) -> str:
    """Return the window that another workload needs for the log, as parameters; "" for that of the case."""
    as_its_own: Case = {**case, "workload": name}
    if log_record(path, as_its_own, 1, workload, "log")["status"] == "ok":
        return ""
    window = _fitting_window(path, as_its_own, workload)
    return f" {window}" if window else ""


# Another window


def _window_hint(path: str, case: Case, workload: Workload) -> Message | None:
    window = _fitting_window(path, case, workload)
    return message("reason.window-fits", parameters=window) if window else None


def _fitting_window(path: str, case: Case, workload: Workload) -> str:
    """Return a window with which the log counts, as parameters; "" where there is none."""
    try:
        everything = sanity.rules_for(replace(workload, warmup=0, window=1 << 62, global_batch=1), case, 0)
        logs = (read_any_log(path, form) for form in everything.in_forms())
        steps: Sequence[int] = next((log.steps for log in logs if log.steps), [])
    except (OSError, LogError, NotRegularError):
        return ""
    window = fitting_window(steps, case["warmup"], case["window"])
    if window is None:
        return ""
    warmup, length = window
    fitting: Case = {**case, "warmup": warmup, "window": length}
    if log_record(path, fitting, 1, workload, "log")["status"] != "ok":
        return ""
    return f"warmup={warmup} window={length}"


def fitting_window(steps: Sequence[int], warmup: int, window: int) -> tuple[int, int] | None:
    """Return warm-up and window that begin and end with logged steps, None where the log is just too short.

    The warm-up is about as long as `warmup` or longer, and the window as `window`, or five lines where those
    are further apart.
    """
    after = [step for step in steps if step >= 0.9 * warmup]
    if len(after) < 2:
        return None
    begin, apart = after[0], min(b - a for a, b in zip(after, after[1:], strict=False))
    begin = warmup if warmup in after else begin
    if begin == warmup and apart == 1:
        return None
    end = max(step for step in after if step <= begin + max(window, INTERVALS * apart))
    return (begin, end - begin) if end > begin else None


# Lines that nothing reads


def _unread(head: bytes, case: Case, others: Workloads) -> Message | None:
    """Return the lines that look like steps, and which program prints them."""
    lines = [line for data in Blocks(io.BytesIO(head)) for line in data.splitlines()]
    for name, workload in others.items():
        for unread in workload.log.unread:
            messages = [
                line for line in lines if unread.line.literal in line and unread.line.pattern.search(line)
            ]
            if messages:
                return _of_program(unread, messages, name, case)
    likely = [line for line in lines if _STEP.search(line)]
    shapes = Counter(map(_shape, likely))
    shape, count = shapes.most_common(1)[0] if shapes else (b"", 0)
    if count < FEWEST:
        return None
    line = next(line for line in likely if _shape(line) == shape)
    return message("reason.like-steps", count=count, line=_shortened(line, QUOTED))


def _shape(line: bytes) -> bytes:
    """Return what lines have in common that differ in their numbers and progress bars."""
    return _NUMBER.sub(b"#", b" ".join(_BAR.sub(b"||", line).split()))


def _shortened(line: bytes, most: int) -> str:
    text = " ".join(" ".join(plain_lines(line, 1)).split())
    return f"{text[:most].rstrip()}..." if len(text) > most else text


def _of_program(unread: Unread, lines: Sequence[bytes], name: str, case: Case) -> Message:
    """Return what lines of a known program are, and with which parameters its workload reads them."""
    workload = {} if case["workload"] == name else {"workload": name}
    parameters = " ".join(f"{key}={value}" for key, value in {**workload, **dict(unread.parameters)}.items())
    reader = message("reason.reads-them", parameters=parameters) if unread.parameters else None
    values: dict[str, Any] = {"count": len(lines), "line": _shortened(lines[0], KNOWN_QUOTED)}
    # Words of a declaration.
    values |= {"program": as_message(unread.program), "why": as_message(unread.why)}
    return because(message("reason.known-steps", **values), reader)
