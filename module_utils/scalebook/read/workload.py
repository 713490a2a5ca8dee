# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How the logs of a workload are read: the part of its declaration (workloads.py) that does, compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible.module_utils.scalebook.contracts import LOGGED_FIELDS, Case, global_batch
from ansible.module_utils.scalebook.read.timestamps import FORMATS
from ansible.module_utils.scalebook.workloads import WorkloadError

OTHER_NODES = "other_nodes"

EXPECTED = LOGGED_FIELDS | {"task_index", "steps", OTHER_NODES}
"""What a sanity value can be compared with: a key of the case, the node's index, warmup + window, or the
value in the logs of the other nodes."""

SETTINGS = "settings."
"""Before the name of a setting of the workload, as `settings.checkpointing`, that the log must agree with."""

_FORM_KEYS = {"literal", "step", "time", "rate", "mean_after"}
_LOG_KEYS = _FORM_KEYS | {"nodes", "unread", "forms", "own"}
_SELF_REPORTED_KEYS = {"literal", "rate"}
_RATE_KEYS = {"literal", "pattern", "scope"}
_SANITY_KEYS = {"name", "literal", "pattern", "expect", "min_nodes", "where", "nodes"}
_SANITY_KEYS |= {"device", "min_devices", "unless", "means", "program"}
_UNREAD_KEYS = {"literal", "pattern", "program", "why", "parameters"}
_FAILURE_KEYS = {"literal", "why", "silence"}


@dataclass(frozen=True)
class LinePattern:
    """Bytes that all lines of one type contain, and the pattern that reads such a line."""

    literal: bytes
    pattern: re.Pattern[bytes]


@dataclass(frozen=True)
class Sanity:
    """One thing that a log must show, or the run does not count.

    It need not where the log has the text `unless`.  `means` are pairs of a value that a log shows and what a
    case has for it, such as `float32` and `fp32`.  `program` says that no other program prints the line: an
    imported log must show it too.
    """

    name: str
    line: LinePattern
    expect: str | None
    min_nodes: int
    at_end: bool
    first_node: bool
    device: str | None = None
    min_devices: int = 1
    unless: bytes | None = None
    means: tuple[tuple[str, str], ...] = ()
    program: bool = False


@dataclass(frozen=True)
class Unread:
    """A line of a step that a `program` prints, and why its steps cannot be read from its own log.

    With `parameters`, pairs of a name and a value, the workload runs this program and reads its steps.
    """

    line: LinePattern
    program: str
    why: str
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Failure:
    """A text that tells in a log why its run failed, or after which a run `hangs`."""

    text: str
    why: str
    hangs: bool


@dataclass(frozen=True)
class Own:
    """Lines with a rate of the program's own: the mean of the steps since the one before.

    The speed by the steps is compared with it.  The rate is that of all devices, or of one `rank`.  Without a
    group `step` such a line belongs to the last step before it.
    """

    line: LinePattern
    scope: str


@dataclass(frozen=True)
class Form:
    """The lines of steps of one version of the program; the fields are those of Workload."""

    step: LinePattern
    time: str | None
    rate: LinePattern | None
    rate_scope: str
    mean_after: int


@dataclass(frozen=True)
class Workload:
    """A checked declaration.

    `time` is the format of the step line's group `time`.  `rate` reads lines of their own; without
    it the step line's group `rate` counts, or its group `latency`: the milliseconds of a step of
    `global_batch` samples.  Its group `mean` is the mean rate of the steps after `mean_after`.
    `first_node` says that only task_index 0 logs steps.  `reported` is the text of the closing line and the
    name of the rate in it.
    """

    unit: str
    warmup: int
    window: int
    step: LinePattern
    time: str | None
    rate: LinePattern | None
    rate_scope: str
    first_node: bool
    sanity: tuple[Sanity, ...]
    oom: tuple[bytes, ...]
    failures: tuple[Failure, ...] = ()
    global_batch: int = 0
    mean_after: int = 0
    unread: tuple[Unread, ...] = ()
    reported: tuple[str, str] | None = None
    own: Own | None = None
    forms: tuple[Form, ...] = ()

    def in_forms(self) -> Iterator[Workload]:
        """Return the workload itself, and as it reads logs of each other form."""
        yield self
        for form in self.forms:
            yield replace(
                self,
                step=form.step,
                time=form.time,
                rate=form.rate,
                rate_scope=form.rate_scope,
                mean_after=form.mean_after,
            )

    @property
    def need(self) -> int:
        """The last step of the window."""
        return self.warmup + self.window

    def of_case(self, case: Case) -> Workload:
        """Return the workload with the window and the batch that `case` was made with."""
        batch = global_batch(case)
        return replace(self, warmup=case["warmup"], window=case["window"], global_batch=batch)


def compile_workload(workload: Mapping[str, Any]) -> Workload:
    """Return the workload's declaration ready for reading, or raise WorkloadError."""
    log = _mapping(workload, "log")
    _known(log, _LOG_KEYS, "log")
    form = _form(log, "log")
    first_node = _first_node(log, "log", False)
    names = []
    sanity = []
    for index, rule in enumerate(workload.get("sanity") or ()):
        sanity.append(_sanity(rule, f"sanity[{index}]", first_node))
        names.append(sanity[-1].name)
    if len(set(names)) != len(names):
        raise WorkloadError("sanity: a name is used twice")
    return Workload(
        unit=str(workload.get("unit", "samples")),
        warmup=_count(workload, "warmup", 20, 0),
        window=_count(workload, "window", 100, 1),
        step=form.step,
        time=form.time,
        rate=form.rate,
        rate_scope=form.rate_scope,
        first_node=first_node,
        sanity=tuple(sanity),
        oom=tuple(_text(word, "oom").encode() for word in workload.get("oom") or ()),
        failures=tuple(
            _failure(rule, f"failures[{index}]") for index, rule in enumerate(workload.get("failures") or ())
        ),
        reported=_reported(workload),
        own=_own(log),
        mean_after=form.mean_after,
        forms=tuple(
            _other_form(form, f"log.forms[{index}]") for index, form in enumerate(log.get("forms") or ())
        ),
        unread=tuple(
            _unread(rule, f"log.unread[{index}]") for index, rule in enumerate(log.get("unread") or ())
        ),
    )


def _other_form(values: Any, place: str) -> Form:
    if not isinstance(values, Mapping):
        raise WorkloadError(f"{place}: is not a dict")
    _known(values, _FORM_KEYS, place)
    return _form(values, place)


def _form(values: Mapping[str, Any], place: str) -> Form:
    """Return how the lines of steps are read that `values` describe."""
    step = LinePattern(_literal(values, place), _pattern(values, "step", place))
    groups = step.pattern.groupindex
    if "step" not in groups:
        raise WorkloadError(f"{place}.step: the pattern has no group `step`")
    kind = values.get("time")
    if kind is not None and kind not in FORMATS:
        raise WorkloadError(f"{place}.time: unknown format {kind!r}; allowed are {', '.join(FORMATS)}")
    if ("time" in groups) != (kind is not None):
        raise WorkloadError(f"{place}.time: give the format if and only if {place}.step has a group `time`")
    if ("mean" in groups) != ("mean_after" in values):
        raise WorkloadError(f"{place}.mean_after: give it if and only if {place}.step has a group `mean`")
    rate, scope = _rate(values, groups)
    after = _count(values, "mean_after", 0, 0, f"{place}.")
    return Form(step, None if kind is None else str(kind), rate, scope, after)


def _reported(workload: Mapping[str, Any]) -> tuple[str, str] | None:
    if "self_reported" not in workload:
        return None
    own = _mapping(workload, "self_reported")
    _known(own, _SELF_REPORTED_KEYS, "self_reported")
    literal = _literal(own, "self_reported").decode()
    return (literal, _text(own["rate"], "self_reported.rate")) if "rate" in own else None


def _rate(values: Mapping[str, Any], groups: Mapping[str, int]) -> tuple[LinePattern | None, str]:
    if "latency" in groups and ("rate" in groups or "rate" in values):
        raise WorkloadError("log.step: a group `latency` stands for the rate, which is given too")
    if "rate" not in values:
        return None, "global"
    rate = _mapping(values, "rate", "log.")
    _known(rate, _RATE_KEYS, "log.rate")
    scope = _scope(rate, "log.rate")
    if "pattern" not in rate and "literal" not in rate:
        if "rate" not in groups:
            raise WorkloadError("log.rate: give literal and pattern, or a group `rate` in log.step")
        return None, scope
    line = LinePattern(_literal(rate, "log.rate"), _pattern(rate, "pattern", "log.rate"))
    if "rate" not in line.pattern.groupindex:
        raise WorkloadError("log.rate.pattern: the pattern has no group `rate`")
    return line, scope


def _own(values: Mapping[str, Any]) -> Own | None:
    if "own" not in values:
        return None
    own = _mapping(values, "own", "log.")
    _known(own, _RATE_KEYS, "log.own")
    line = LinePattern(_literal(own, "log.own"), _pattern(own, "pattern", "log.own"))
    if "rate" not in line.pattern.groupindex:
        raise WorkloadError("log.own.pattern: the pattern has no group `rate`")
    return Own(line, _scope(own, "log.own"))


def _scope(values: Mapping[str, Any], place: str) -> str:
    scope = values.get("scope", "global")
    if scope not in ("global", "rank"):
        raise WorkloadError(f"{place}.scope: {scope!r}; allowed are global, rank")
    return str(scope)


def _sanity(rule: Any, place: str, first_node: bool) -> Sanity:
    if not isinstance(rule, Mapping):
        raise WorkloadError(f"{place}: is not a dict")
    _known(rule, _SANITY_KEYS, place)
    line = LinePattern(_literal(rule, place), _pattern(rule, "pattern", place))
    expect = rule.get("expect")
    if expect is not None:
        if expect not in EXPECTED and not str(expect).startswith(SETTINGS):
            raise WorkloadError(
                f"{place}.expect: unknown {expect!r}; allowed are {', '.join(sorted(EXPECTED))}, "
                f"and {SETTINGS}NAME"
            )
        if "value" not in line.pattern.groupindex:
            raise WorkloadError(f"{place}.pattern: the pattern has no group `value`")
    if rule.get("where", "any") not in ("any", "end"):
        raise WorkloadError(f"{place}.where: {rule['where']!r}; allowed are any, end")
    return Sanity(
        name=_text(rule.get("name"), f"{place}.name"),
        line=line,
        expect=None if expect is None else str(expect),
        min_nodes=_count(rule, "min_nodes", 1, 1, f"{place}."),
        at_end=rule.get("where") == "end",
        first_node=_first_node(rule, place, first_node),
        device=_device(rule, place),
        min_devices=_count(rule, "min_devices", 1, 1, f"{place}."),
        unless=_text(rule["unless"], f"{place}.unless").encode() if "unless" in rule else None,
        means=_texts(rule, "means", place),
        program=_flag(rule, "program", place),
    )


def _unread(rule: Any, place: str) -> Unread:
    if not isinstance(rule, Mapping):
        raise WorkloadError(f"{place}: is not a dict")
    _known(rule, _UNREAD_KEYS, place)
    line = LinePattern(_literal(rule, place), _pattern(rule, "pattern", place))
    return Unread(
        line,
        _text(rule.get("program"), f"{place}.program"),
        _text(rule.get("why"), f"{place}.why"),
        _texts(rule, "parameters", place),
    )


def _flag(values: Mapping[str, Any], key: str, place: str) -> bool:
    flag = str(values.get(key, False)).lower()  # as numbers, text on ansible-core 2.16
    if flag not in ("true", "false"):
        raise WorkloadError(f"{place}.{key}: {values[key]!r}; allowed are true, false")
    return flag == "true"


def _texts(rule: Mapping[str, Any], key: str, place: str) -> tuple[tuple[str, str], ...]:
    texts = rule.get(key, {})
    if not isinstance(texts, Mapping) or not all(isinstance(word, str) for word in (*texts, *texts.values())):
        raise WorkloadError(f"{place}.{key}: {texts!r} is not a dict of texts")
    return tuple(texts.items())


def _device(rule: Mapping[str, Any], place: str) -> str | None:
    device = rule.get("device")
    if device not in (None, "cpu", "gpu"):
        raise WorkloadError(f"{place}.device: {device!r}; allowed are cpu, gpu")
    return None if device is None else str(device)


def _failure(rule: Any, place: str) -> Failure:
    if not isinstance(rule, Mapping):
        raise WorkloadError(f"{place}: is not a dict")
    _known(rule, _FAILURE_KEYS, place)
    hangs = "silence" in rule
    if hangs:
        _count(rule, "silence", 0, 1, f"{place}.")
    return Failure(_literal(rule, place).decode(), _text(rule.get("why"), f"{place}.why"), hangs)


def _first_node(values: Mapping[str, Any], place: str, default: bool) -> bool:
    choice = values.get("nodes", "first" if default else "all")
    if choice not in ("all", "first"):
        raise WorkloadError(f"{place}.nodes: {choice!r}; allowed are all, first")
    return bool(choice == "first")


def _mapping(values: Mapping[str, Any], key: str, place: str = "") -> Mapping[str, Any]:
    value = values.get(key)
    if not isinstance(value, Mapping):
        raise WorkloadError(f"{place}{key}: is not a dict")
    return value


def _known(values: Mapping[str, Any], allowed: set[str], place: str) -> None:
    unknown = sorted(str(key) for key in values if key not in allowed)
    if unknown:
        raise WorkloadError(f"{place}: unknown key {unknown[0]!r}; allowed are {', '.join(sorted(allowed))}")


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise WorkloadError(f"{place}: is not a text")
    return str(value)


def _literal(values: Mapping[str, Any], place: str) -> bytes:
    literal = _text(values.get("literal"), f"{place}.literal").encode()
    if b"\n" in literal:
        raise WorkloadError(f"{place}.literal: must lie within one line")
    return literal


def _pattern(values: Mapping[str, Any], key: str, place: str) -> re.Pattern[bytes]:
    text = _text(values.get(key), f"{place}.{key}")
    try:
        return re.compile(text.encode())
    except re.error as exc:
        raise WorkloadError(f"{place}.{key}: {text!r} is not a regular expression: {exc}") from None


def _count(values: Mapping[str, Any], key: str, default: int, least: int, place: str = "") -> int:
    value = values.get(key, default)
    try:
        # Numbers that went through a template are text on ansible-core 2.16.
        count = int(str(value))
    except ValueError:
        count = -1
    if count < least:
        raise WorkloadError(f"{place}{key}: {value!r} is not a whole number from {least} on")
    return count
