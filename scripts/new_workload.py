# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a new workload, with a pattern of its steps that is proposed from a log.

scripts/bench new-workload starts it.  The line of a step is the one that the log repeats with a whole number
that grows.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ansible.module_utils.scalebook.read.step_log import Log, read_log
from ansible.module_utils.scalebook.workloads import load_workloads

ROOT = Path(__file__).resolve().parent.parent
STAMPS = {
    "datetime": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d+",
    "absl": r"\d{4} \d\d:\d\d:\d\d\.\d+",
    "clock": r"\d\d:\d\d:\d\d[.,]\d+",
    "unix": r"\d{10}\.\d+",
}
STAMP = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in STAMPS.items()))
NUMBER = re.compile(r"(?<![A-Za-z_\d.])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?")
STEP = re.compile(r"step|iter|batch|update", re.I)
RATE = re.compile(r"(samples|images|imgs?|sequences|examples)\s*(/|_?per_?| per )\s*s", re.I)
MILLISECONDS = re.compile(r"(time|latency|step|iter).*\bms\b|latency.*ms|_ms\b", re.I)
FEWEST = 4


class Line(NamedTuple):
    """A line of a log: its time stamp, its other numbers, and where each is."""

    text: str
    stamp: re.Match[str] | None
    numbers: tuple[re.Match[str], ...]

    @classmethod
    def parse(cls, text: str) -> Line:
        """Return the parts of a line."""
        masked = STAMP.sub(lambda match: " " * len(match[0]), text)
        return cls(text, STAMP.search(text), tuple(NUMBER.finditer(masked)))

    def shape(self) -> str:
        """Return what lines of one kind have in common."""
        return " ".join(NUMBER.sub("0", STAMP.sub("T", self.text, count=1)).split())

    def before(self, column: int) -> str:
        """Return the text between a number and the one before it, or the time stamp."""
        start = self.numbers[column].start()
        ends = [number.end() for number in self.numbers[:column]]
        ends += [self.stamp.end()] if self.stamp and self.stamp.end() <= start else []
        return self.text[max(ends, default=0) : start]

    def after(self, column: int) -> str:
        """Return the text between a number and the next one."""
        following = [number.start() for number in self.numbers[column + 1 : column + 2]]
        return self.text[self.numbers[column].end() : min(following, default=len(self.text))]


def propose(text: str) -> dict[str, str]:
    """Return the keys of a declaration's `log` that read the steps of this one.  Raises ValueError."""
    groups: dict[str, list[Line]] = defaultdict(list)
    for line in map(Line.parse, text.splitlines()):
        groups[line.shape()].append(line)
    candidates = list(_candidates(groups.values()))
    if not candidates:
        raise ValueError(f"it has no line that is there {FEWEST} times with a whole number that grows")
    _, group, column = max(candidates, key=lambda each: each[0])
    names = _names(group, column)
    step = next((pattern for pattern in _patterns(group[0], names) if _reads(pattern, group, names)), None)
    if step is None:
        raise ValueError(f"no pattern reads all lines such as: {group[0].text.strip()[:200]}")
    time = {"time": str(group[0].stamp.lastgroup)} if group[0].stamp else {}
    return {"literal": _literal(group, text.splitlines()), "step": step, **time}


def _candidates(groups: Iterable[list[Line]]) -> Iterator[tuple[tuple[int, ...], list[Line], int]]:
    """Yield (how likely it is, lines, column) of the columns that hold growing whole numbers.

    What counts is first the name of the number, then whether the line has a time or a rate.
    """
    for group in groups:
        line = group[0]
        texts = " ".join(line.before(column) + line.after(column) for column in range(len(line.numbers)))
        tells = bool(line.stamp or RATE.search(texts) or MILLISECONDS.search(texts))
        for column in range(len(line.numbers) if len(group) >= FEWEST else 0):
            values = [each.numbers[column][0] for each in group]
            numbers = [int(value) for value in values if value.isdecimal()]
            if len(numbers) == len(values) and numbers == sorted({*numbers}):
                yield (bool(STEP.search(line.before(column))), tells, len(group), -column), group, column


def _names(group: Sequence[Line], step: int) -> dict[int, str]:
    """Return {column: group of the pattern} of what a line of a step tells."""
    names, line = {step: "step"}, group[0]
    for column in range(len(line.numbers)):
        values = {each.numbers[column][0] for each in group}
        before, after = line.before(column), line.after(column).split()
        own = " ".join(before.split()[-2:])
        unit = after[0] if after and after[0][-1] not in "=:" else ""
        name = ""
        if column == step + 1 and before.strip() == "/" and len(values) == 1:
            name = "last"
        elif re.search("loss(?![ _-]?scale)", own, re.I):
            name = "loss"
        elif RATE.search(own.rpartition(" ")[2]) or RATE.match(unit):
            name = "rate"
        elif MILLISECONDS.search(before):
            name = "latency"
        # A comma before three digits is ambiguous.
        if name and name not in names.values() and column != step and not any("," in each for each in values):
            names[column] = name
    return names


def _patterns(line: Line, names: dict[int, str]) -> Iterator[str]:
    """Yield patterns with the named groups, that with the least text between them first."""
    for words in (1, 2, 100):
        parts = [(line.numbers[each].start(), _part(line.before(each), words, names[each])) for each in names]
        if line.stamp:
            parts.append((line.stamp.start(), f"(?P<time>{STAMPS[str(line.stamp.lastgroup)]})"))
        yield ".*?".join(part for _, part in sorted(parts)).replace(".*?/", "/")


def _part(before: str, words: int, name: str) -> str:
    """Return the pattern of a number with the last `words` of the text before it, of signs alone more."""
    value = {"loss": r"[^\s,;|]+", "step": r"\d+", "last": r"\d+"}.get(name, r"[\d.]+")
    texts = before.split()
    words += next((place for place, text in enumerate(reversed(texts)) if re.search(r"\w|\[|/", text)), 0)
    context = r"\s+".join(re.escape(text).replace(r"\-", "-") for text in texts[-words:])
    space = r"\s*" if texts and before[-1:].isspace() else ""
    return f"{context}{space}(?P<{name}>{value})"


def _reads(pattern: str, group: Sequence[Line], names: dict[int, str]) -> bool:
    """Return whether the pattern reads what each line has."""
    matches = [(re.search(pattern, line.text), line) for line in group]
    return all(match and match[name] == line.numbers[column][0]
               for match, line in matches for column, name in names.items())  # fmt: skip


def _literal(group: Sequence[Line], lines: Sequence[str]) -> str:
    """Return a text that all lines of steps have, and the fewest others."""
    line = group[0]
    texts = [line.before(column).strip() for column in range(len(line.numbers))]
    shared = [text for text in texts if text and all(text in each.text for each in group)]
    return min(shared, key=lambda text: (sum(text in each for each in lines), -len(text)))


def files(name: str, framework: str, log: dict[str, str], window: tuple[int, int]) -> dict[str, str]:
    """Return the files of the role, by their paths in it; `window` is from one step to another."""
    filled = {
        "meta/workload.yml": DECLARATION,
        "meta/argument_specs.yml": SPECS,
        "defaults/main.yml": '---\nNAME_device: auto\nNAME_home: "{{ scalebook_home }}/NAME"\n',
        "templates/run.sh.j2": SCRIPT,
        "files/train.py": PROGRAM % "Start the trainer as templates/run.sh.j2 asks.",
    }
    if not framework:
        filled["files/probe.py"] = PROBE
    quoted = {key: text.replace("'", "''") for key, text in log.items()}
    values = {
        "FRAMEWORK": framework or name,
        "INSTALL": f"framework: {framework}" if framework else "",
        "  LOG": "\n".join(f"  {key}: '{text}'" for key, text in quoted.items()),
        "WARMUP": str(window[0]),
        "WINDOW": str(window[1] - window[0]),
    }
    for key, value in values.items():
        filled["meta/workload.yml"] = filled["meta/workload.yml"].replace(key, value)
    return {path: text.replace("NAME", name) for path, text in filled.items()}


DECLARATION = """---
# The declaration of this workload: static data, read for planning, running, reading logs and reporting.
title: NAME
family: NAME
framework: FRAMEWORK
task: training
unit: samples
stack: modern
processes_per_node: 1
models: {cpu: NAME, gpu: NAME}
model_names: [NAME]
dtypes: {cpu: [fp32], gpu: [fp32]}
xla: [false]
warmup: WARMUP
window: WINDOW
settings: []
install: {INSTALL}
log:
  LOG
# To do: what a log must show, or the run does not count: devices, node, batch, dtype, equal weights.
sanity: []
"""
SPECS = """---
argument_specs:
  main:
    short_description: Install NAME
    options:
      NAME_device:
        type: str
        choices: [auto, cpu, gpu]
        default: auto
        description: The device that it is installed for; C(auto) is gpu where nvidia-smi lists one.
      NAME_home:
        type: str
        description: Directory of the installation. Default is C(NAME) below scalebook_home.
"""
SCRIPT = """#!/bin/sh
# Written by Ansible: changes made here are lost.
set -u
WORKLOAD=NAME
INSTALLED_DEVICE={{ NAME_install.device }}
. {{ NAME_install.code | quote }}/run_head.sh

exec {{ NAME_install.python | quote }} {{ NAME_install.code | quote }}/train.py \\
  --device "$DEVICE" --model "$MODEL" --dtype "$DTYPE" --batch "$BSZ" --steps "$STEPS" 2>&1
"""
PROGRAM = """# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
\"\"\"%s\"\"\"

raise SystemExit("to be written")
"""
PROBE = """# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
\"\"\"Print what the node's own Python is, as JSON, and how many GPUs the trainer sees.\"\"\"

import json
import platform

print(json.dumps({"versions": "Python " + platform.python_version(), "gpus": 0}))
"""


def window_of(steps: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last step of the window: 20 and 120 where the log has them, else all."""
    return (20, 120) if {20, 120} <= set(steps) else (steps[0], steps[-1])


def speed(log: Log, batch: int) -> str:
    """Return the rate that follows from a log with `batch` samples a step, and from how many steps."""
    begin, end = window_of(log.steps)
    first, last = log.steps.index(begin), log.steps.index(end)
    if log.times:
        rate, source = batch * (end - begin) * 1e6 / (log.times[last] - log.times[first]), "the time stamps"
    elif log.rates:
        printed = log.rates[first + 1 : last + 1]
        rate, source = len(printed) / sum(1 / each for each in printed), "the printed rates"
    else:
        return "no time and no rate in the log: bench.yml takes the times at which the lines come"
    return f"{rate:.2f} samples/s over {end - begin} steps, from {begin} to {end}, by {source}"


def write(role: Path, framework: str, log: Path, batch: int) -> list[str]:
    """Write the files of a workload into the new directory `role`; return what the log tells."""
    proposal = propose(log.read_text(errors="replace"))
    steps: Sequence[int] = (20, 120)
    for _ in range(2):  # the window follows from the steps that the first declaration reads
        for path, text in files(role.name, framework, proposal, window_of(steps)).items():
            (role / path).parent.mkdir(parents=True, exist_ok=True)
            (role / path).write_text(text)
        workload = load_workloads([str(role.parent)])[role.name]
        steps = (trial := read_log(log, replace(workload, global_batch=batch))).steps
        if not steps:
            raise ValueError(f"no step is read by {proposal['step']}")
    lines = f"{len(steps)} lines of steps, from {steps[0]} to {steps[-1]}"
    return [*(f"{key}: {value}" for key, value in proposal.items()), lines, speed(trial, batch)]


def main(argv: Sequence[str]) -> None:
    """Write the files and print what was read from the log."""
    roles = ROOT / "roles"
    installs = [each.install for each in load_workloads([str(roles)]).values()]
    frameworks = sorted({each["framework"] for each in installs if "framework" in each})
    parser = argparse.ArgumentParser(prog="scripts/bench new-workload", description=str(__doc__))
    parser.add_argument("name", help="name of the role, such as jax_mnist")
    parser.add_argument("--from", dest="log", type=Path, required=True, help="log of a run of the trainer")
    parser.add_argument(
        "--framework",
        default="",
        choices=frameworks,
        help="role that installs it; else the node's own Python",
    )
    parser.add_argument("--batch", type=int, default=1, help="samples of a step, of all devices together")
    options = parser.parse_args(argv)
    role = roles / options.name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", options.name) or role.exists():
        parser.error(f"{options.name}: it must be a new name of small letters, digits and underscores")
    try:
        lines = write(role, options.framework, options.log, options.batch)
    except (OSError, ValueError) as error:
        parser.exit(1, f"scripts/bench new-workload: {options.log}: {error}\n")
    print(*lines, f"roles/{role.name} is written. Next: docs/how-to/add-a-workload.md", sep="\n")
