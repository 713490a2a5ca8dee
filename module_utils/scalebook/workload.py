# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The declaration of a workload, typed and checked: `Workload.from_data` is the only reader of one.

Whatever can be wrong in it is found here, when a campaign is planned and not when its logs are read:
unknown keys, wrong patterns, formulas that lack names of some case.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from string import Formatter
from typing import Any

from ansible.module_utils.scalebook import flops, kit_log
from ansible.module_utils.scalebook.contracts import LOGGED_FIELDS, Case, Message, global_batch, message
from ansible.module_utils.scalebook.flops import Flops
from ansible.module_utils.scalebook.limits import Limit, LimitError, limits_of

REQUIRED = {
    "title": "What the workload trains, in words. Reports have it as the name of the workload.",
    "family": "The model family, such as `bert`. Reports show the workloads of a family together.",
    "framework": "The name of the framework in the evaluation and in the list of roles.",
    "task": "What is trained for, such as `pretraining`. The evaluation says where workloads differ in it.",
    "unit": "What a step counts, in the plural: `samples`, `images` or `sequences`.",
    "stack": "The stack that the workload is installed with where `stack_name` is not given: `<name>` of "
    "`playbooks/vars/stack_<name>.yml`.",
    "processes_per_node": "How many processes of the node script start on a node: a number, or `gpus`, one "
    "for each device. `{setting: {value: number}}` where a setting, such as the launcher, decides "
    "(`roles/horovod_tf1_bert`).",
    "models": "The model that a case has where `model` is not given, for each device: "
    "`{cpu: tiny, gpu: base}`.",
    "model_names": "All models: the allowed values of `model`.",
    "dtypes": "The values of `dtype` that run on each device: `{cpu: [fp32], gpu: [fp32, fp16]}`. With "
    "`force=true` a case may also have one of the other device.",
    "xla": "The allowed values of `xla`: `[false]`, `[false, true]`, or `[true]` where the model is always "
    "compiled.",
    "settings": "The settings: names of variables of the role. Two runs that differ in one of them are "
    "different cases. Their types are those of `meta/argument_specs.yml`. Elsewhere in the declaration and "
    "in results, a setting has the name of the variable without the role's prefix.",
    "log": "How the lines of steps are read: see [log](#log).",
}
"""The keys that every declaration has, and what each is: docs/reference/workload.md is made from it."""

OPTIONAL = {
    "install": "What role `workload` installs for the workload: see [install](#install). Left out where the "
    "trainer needs the Python of the node alone.",
    "source": "Where the model or the trainer is from, for the evaluation.",
    "features": "The list of what the trainer adds to the framework, such as `Horovod`, for the evaluation. "
    "A note `features` of the provenance adds what a node had.",
    "compiler": "The name of what `xla=true` switches on, such as `torch.compile`.",
    "dtype_hints": "Why a dtype does not run on a device, `{cpu: {fp16: reason}}`: the reason of skipped "
    "cases.",
    "bsz": "The batch per device where `bsz` is not given, for each device: `{cpu: 16, gpu: 64}`. "
    "Default is 32.",
    "accumulation": "The value of `accumulation` where it is not given. Left out where the trainer "
    "accumulates no gradients: only 1 is allowed then.",
    "warmup": "The steps before the window where `warmup` is not given. Required with `window`, unless "
    "there is `epoch`.",
    "window": "The steps of the window where `window` is not given.",
    "epoch": "In place of `warmup` and `window` where the window is the last epoch: `epochs` and `samples`, "
    "the names of the variables with the number of epochs and the samples of one (`roles/hf_mlm`).",
    "settings_before": "`{setting: value}`: what a setting that was added later would have been before, so "
    "that earlier campaigns can be baselines.",
    "was": "What earlier campaigns call its cases: `{workload: NAME, settings: {setting: value}}`. It does "
    "not have these settings. A variable that this other workload no longer has either is refused with what "
    "to write today.",
    "xla_settings": "The settings that only count with one value of `xla`, and the value that all other "
    'cases have: `{"true": {compile_mode: default}}`. A campaign without that `xla` refuses another value.',
    "reads": "The variables of other workloads that this one reads too, such as the version of a framework "
    "that one role installs for several. Others of a workload that is not measured are refused.",
    "limits": "The values that variables may have, by their names without the role's prefix: see "
    "[limits](#limits). Variables with a list of allowed values have it in `meta/argument_specs.yml`.",
    "size": "How large a sample is, the tokens of a sequence or the width and height of an image: a "
    "number, or the name of the setting that has it. Reports compare samples of one size.",
    "drives_all_devices": "`true` where one process of a node trains on all its devices "
    "(`roles/tf2_bert`). The report then counts busy processors per process, not per device.",
    "nccl": "`true` where GPUs exchange by NCCL, for the features in the evaluation.",
    "reserves_gpu_memory": "`true` where the framework reserves the memory of a GPU when it starts, as "
    "TensorFlow does. How much is in use then does not tell the report whether a larger batch fits.",
    "sanity": "The list of what a log must show, or the run does not count: see [sanity](#sanity). Required "
    "without `log.kit`.",
    "oom": "Texts by which a trainer of its own says that memory ran out. Those of frameworks, CUDA and the "
    "system are known for all workloads: `module_utils/scalebook/failure_causes.py`.",
    "failures": "The list of what a log tells of why its run failed, besides what is known for all "
    "workloads: see [failures](#failures).",
    "refuses": "The list of cases that cannot run, which are skipped: see [refuses](#refuses).",
    "slower": "What to look at where several GPUs are slower than one: a hint of the report.",
    "self_reported": "The line with the trainer's own results, which the report shows as a table: see "
    "[self_reported](#self_reported).",
    "latency": "`true`: the report shows the milliseconds of a step beside the rate.",
    "flops": "The operations of a sample, from which the report computes TFLOP/s and MFU: see "
    "[flops](#flops).",
    "dlperf": "What DLPerf published of the same model, for comparison: see [dlperf](#dlperf).",
    "containers": "The list of images with the framework that the workload may run in instead of its own "
    "installation, by `container=declared`, which takes the first: see [containers](#containers).",
    "published": "A family of `data/models.yml` whose models this workload trains by the same names: reports "
    "compare with their published rates (`data/llm-published.csv`).",
}
"""The keys that a declaration may have; see REQUIRED."""

ADDED = {"name", "path", "own_environment", "setting_types", "setting_defaults", "values"}
"""What a loaded declaration has besides, see Workload."""

OTHER_NODES = "other_nodes"

EXPECTED = LOGGED_FIELDS | {"task_index", "steps", OTHER_NODES}
"""What a sanity value can be compared with: a key of the case, the node's index, warmup + window, or the
value in the logs of the other nodes."""

SETTINGS = "settings."
"""Before the name of a setting of the workload, as `settings.checkpointing`, that the log must agree with."""

TIME_FORMATS = ("absl", "datetime", "clock", "unix")
"""What `log.time` may be: `MMDD HH:MM:SS.f`, `YYYY-MM-DD HH:MM:SS[.,]f`, `HH:MM:SS.f`, and seconds."""

DEVICES = ("cpu", "gpu")
SCOPES = ("global", "rank")
_FORM_KEYS = {"literal", "step", "time", "rate", "mean_after"}
_KIT_KEYS = {"kit", "witnesses", "without"}
_LOG_KEYS = _FORM_KEYS | _KIT_KEYS | {"nodes", "unread", "forms", "own", "tensorflow", "falling_loss"}
_RATE_KEYS = {"literal", "pattern", "scope"}
_SANITY_KEYS = {"name", "literal", "pattern", "expect", "equals", "min_nodes", "where", "nodes"}
_SANITY_KEYS |= {"device", "min_devices", "if", "unless", "means", "program"}
_UNREAD_KEYS = {"literal", "pattern", "program", "why", "parameters"}
_INSTALL_KEYS = {"framework", "separate", "checkout", "kit", "locks", "packages", "launcher"}
_INSTALL_KEYS |= {"horovod", "probe", "dataset", "data", "tasks", "versions"}
_INSTALL_PARTS = {
    # the key: (the keys that it must have, all its keys)
    "checkout": ({"into"}, {"into", "trainer", "package", "submodules"}),
    "horovod": ({"framework"}, {"framework", "version"}),
    "dataset": (set(), {"make", "check", "files", "note", "variable", "into"}),
}
_TASKS = ("install", "prepare", "mirror")
_FAILURE_KEYS = {"literal", "why", "silence"}
_CONTAINER_KEYS = {"image", "python", "source"}
_DLPERF_KEYS = {"frameworks", "models", "others", "differs", "variants"}


class WorkloadError(ValueError):
    """A workload declaration that cannot be used; the message names its key."""


@dataclass(frozen=True)
class LinePattern:
    """Bytes that all lines of one type contain, and the pattern that reads such a line."""

    literal: bytes
    pattern: re.Pattern[bytes]


@dataclass(frozen=True)
class Sanity:
    """One thing that a log must show, or the run does not count.

    It need not where the log has the text `unless`, or not the text `only_if` near its beginning: it is of an
    earlier version.  `means` are pairs of a value that a log shows and what a case has for it, such as
    `float32` and `fp32`.  `program` says that no other program prints the line: an imported log must show it
    too.  With `formula`, `expect` is one, and `wanted` its value for the case whose logs are read.
    """

    name: str
    line: LinePattern
    expect: str | None
    min_nodes: int
    at_end: bool
    first_node: bool
    device: str | None = None
    min_devices: int = 1
    only_if: bytes | None = None
    unless: bytes | None = None
    means: tuple[tuple[str, str], ...] = ()
    program: bool = False
    formula: bool = False
    wanted: int | None = None


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
    """A text that tells in a log why its run failed, or after which `silence` seconds are a hang."""

    text: str
    why: str
    silence: int | None = None

    @property
    def hangs(self) -> bool:
        """Whether a run hangs after this text."""
        return self.silence is not None


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
    """The lines of steps of one version of the program.

    `time` is the format of the step line's group `time`.  `rate` reads lines of their own; without it the
    step line's group `rate` counts, or its group `latency`: the milliseconds of a step of `global_batch`
    samples.  Its group `mean` is the mean rate of the steps after `mean_after`.
    """

    step: LinePattern
    time: str | None = None
    rate: LinePattern | None = None
    rate_scope: str = "global"
    mean_after: int = 0


@dataclass(frozen=True)
class Log(Form):
    """How the lines of steps are read; `first_node` says that only task_index 0 logs steps.

    `falling_loss` is by how many per cent the loss must fall at least, 0 where it need not.
    """

    first_node: bool = False
    falling_loss: int = 0
    own: Own | None = None
    forms: tuple[Form, ...] = ()
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A case for which the formula `when` is not zero is refused, and why."""

    when: str
    why: str


@dataclass(frozen=True)
class Container:
    """An image with the framework, its interpreter, and where it is named as the workload's."""

    image: str
    python: str
    source: str


@dataclass(frozen=True)
class SelfReported:
    """A text of the line with the trainer's own results, and the name of the rate in it."""

    literal: str
    rate: str | None = None


@dataclass(frozen=True)
class Dlperf:
    """The published frameworks and models that are counterparts; see the key `dlperf`."""

    frameworks: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    differs: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def all_models(self) -> list[str]:
        """Return the published models of the workload, and the others of its family."""
        return list(dict.fromkeys([*self.models.values(), *self.others]))

    def fits(self, variant: str, settings: Mapping[str, Any]) -> bool:
        """Return whether a published table of this variant was measured with `settings`."""
        if not self.variants:
            return True
        theirs = self.variants.get(variant)
        return theirs is not None and all(settings.get(name) == value for name, value in theirs.items())


@dataclass(frozen=True)
class Was:
    """What earlier campaigns call cases of a workload; see the key `was`."""

    workload: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Workload:
    """A checked declaration; REQUIRED and OPTIONAL describe its keys.

    One without a name is UNKNOWN.  `path` is the directory of the role, `own_environment` the variable that
    names an environment of the user's own, "" where the role takes none.  `setting_types` are the types of
    the variables that the declaration names, `setting_defaults` their defaults unless those are templates,
    and `values`, by their names too, what a play sets them to.  `global_batch` is that of the case whose logs
    are read.
    """

    name: str = ""
    path: str = ""
    title: str = ""
    family: str = ""
    framework: str = ""
    source: str = ""
    features: tuple[str, ...] = ()
    task: str = ""
    unit: str = "samples"
    stack: str = "modern"
    compiler: str = ""
    processes_per_node: Any = 1
    models: Mapping[str, str] = field(default_factory=dict)
    model_names: tuple[str, ...] = ()
    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dtype_hints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    xla: tuple[bool, ...] = ()
    bsz: Mapping[str, int] = field(default_factory=dict)
    accumulation: int | None = None
    warmup: int = 0
    window: int = 0
    epoch: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    settings_before: Mapping[str, Any] = field(default_factory=dict)
    was: Was | None = None
    xla_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    size: int | str | None = None
    install: Mapping[str, Any] = field(default_factory=dict)
    drives_all_devices: bool = False
    nccl: bool = False
    reserves_gpu_memory: bool = False
    latency: bool = False
    log: Log = Log(LinePattern(b"", re.compile(b"(?!)")))
    sanity: tuple[Sanity, ...] = ()
    oom: tuple[bytes, ...] = ()
    failures: tuple[Failure, ...] = ()
    refuses: tuple[Rule, ...] = ()
    slower: str = ""
    self_reported: SelfReported | None = None
    flops: Flops | None = None
    dlperf: Dlperf | None = None
    published: str = ""
    containers: tuple[Container, ...] = ()
    own_environment: str = ""
    setting_types: Mapping[str, str] = field(default_factory=dict)
    setting_defaults: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    global_batch: int = 0
    data: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Workload:
        """Return the workload of a loaded declaration, plain data; raise WorkloadError."""
        part = _Part(data, "", {*REQUIRED, *OPTIONAL, *ADDED})
        of_kit = isinstance(data.get("log"), Mapping) and "kit" in data["log"]
        missing = sorted({*REQUIRED, *(() if of_kit else ("sanity",))} - set(data))
        if missing:
            raise WorkloadError(f"the key {missing[0]} is missing")
        log_part = part.part("log", _LOG_KEYS)
        log = _log(log_part)
        keys: dict[str, Any] = {
            **{key: data[key] for key in ADDED if key in data},
            **{key: part.text(key) for key in (*_TEXTS, *(key for key in _OTHER_TEXTS if key in data))},
            **{key: part.flag(key) for key in _FLAGS},
            **_of_cases(part),
            "install": _install(part) if "install" in data else {},
        }
        workload = cls(
            **keys,
            log=log,
            sanity=_rules(part, log_part, log.first_node),
            oom=tuple(word.encode() for word in part.words("oom")),
            failures=tuple(_failure(rule) for rule in part.parts("failures", _FAILURE_KEYS)),
            refuses=tuple(Rule(each.text("when"), each.text("why")) for each in part.parts("refuses", _RULE)),
            self_reported=_self_reported(part) if "self_reported" in data else None,
            flops=_flops(part) if "flops" in data else None,
            dlperf=_dlperf(part) if "dlperf" in data else None,
            containers=tuple(_container(each) for each in part.parts("containers", _CONTAINER_KEYS)),
            was=_was(part) if "was" in data else None,
            limits=_limits(part),
            data=data,
        )
        _check_names(workload)
        _check_values(workload)
        _check_formulas(workload)
        return workload

    def as_data(self) -> dict[str, Any]:
        """Return the plain data that this was made from; `of` makes the same of it."""
        return dict(self.data)

    @property
    def variables(self) -> list[str]:
        """The names of the role variables that `resolve` needs the values of."""
        return list(dict.fromkeys([*self.settings, *self.epoch.values(), *self.dataset_variables]))

    @property
    def dataset_variables(self) -> list[str]:
        """The names of the role variables that decide which data set is made or checked on the nodes."""
        return [name for name in dataset_variables(self.name, self.install) if name in self.setting_types]

    @property
    def variables_to_repeat(self) -> dict[str, Any]:
        """What a command has to give again, without the prefix of the role; none before `resolve`."""
        own = {name: self.values[name] for name in self.dataset_variables if name in self.values}
        return {**self.setting_values, **{name.removeprefix(f"{self.name}_"): own[name] for name in own}}

    def resolve(self, values: Mapping[str, Any]) -> Workload:
        """Return the workload with the values of its variables; `values` holds them by name.

        Raises WorkloadError that names the variable and its value.
        """
        typed = {name: _typed(self, name, values) for name in self.variables}
        return replace(self, values=typed, data={**self.data, "values": typed})

    @property
    def setting_names(self) -> list[str]:
        """The settings without the prefix of the role."""
        return [name.removeprefix(f"{self.name}_") for name in self.settings]

    @property
    def setting_values(self) -> dict[str, Any]:
        """The settings, without the prefix of the role, and their values; none before `resolve`."""
        pairs = zip(self.setting_names, self.settings, strict=True)
        return {name: self.values[variable] for name, variable in pairs if variable in self.values}

    def settings_of(self, settings: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the settings of a case, also those that did not exist when it was measured."""
        return {**self.settings_before, **(settings or {})}

    def idle_settings(self, xla: bool) -> dict[str, Any]:
        """Return the settings that have no effect in a case by `xla_settings`, and their values in it."""
        return dict(self.xla_settings.get("false" if xla else "true", {}))

    def sample_size(self, settings: Mapping[str, Any]) -> int | None:
        """Return how large a sample is: the tokens of a sequence, or the pixels of a side of an image.

        None where neither the declaration nor the settings, which logs that were imported lack, tell it.
        """
        return settings.get(self.size) if isinstance(self.size, str) else self.size

    def refusal(self, case: Case, simulated: bool = False) -> Message | None:
        """Return why the case cannot run by the key `refuses`, else None."""
        names = self.names_of(case, simulated)
        for rule in self.refuses:
            if flops.evaluate(rule.when, names):
                places = [place for _text, place, *_ in Formatter().parse(rule.why) if place]
                return message("text", text=rule.why, **{place: names[place] for place in places})
        return None

    def names_of(self, case: Case, simulated: bool) -> dict[str, Any]:
        """Return what formulas of `refuses` can name; `simulated`: nodes of the case share a machine."""
        sizes = self.flops.models.get(case["model"], {}) if self.flops else {}
        own = {name: case[name] for name in ("model", "nodes", "gpus", "device", "dtype", "warmup", "window")}
        own |= {
            "accumulation": case.get("accumulation", 1),
            "xla": int(case["xla"]),
            "simulated": int(simulated),
        }
        return {**sizes, **(case.get("settings") or {}), **own}

    @property
    def need(self) -> int:
        """The last step of the window."""
        return self.warmup + self.window

    def of_case(self, case: Case) -> Workload:
        """Return the workload with the window and the batch that `case` was made with."""
        batch = global_batch(case)
        return replace(self, warmup=case["warmup"], window=case["window"], global_batch=batch)

    def in_forms(self) -> Iterator[Workload]:
        """Return the workload itself, and as it reads logs of each other form."""
        yield self
        for form in self.log.forms:
            own = {each.name: getattr(form, each.name) for each in fields(Form)}
            yield replace(self, log=replace(self.log, **own))


UNKNOWN = Workload()
"""The workload of a report whose role is gone."""

Workloads = Mapping[str, Workload]
"""Workloads by name."""

_TEXTS = ("title", "family", "framework", "task", "unit", "stack")
_OTHER_TEXTS = ("source", "compiler", "slower", "published")
_FLAGS = ("drives_all_devices", "nccl", "reserves_gpu_memory", "latency")
_RULE = {"when", "why"}


class _Part:
    """A part of a declaration: its values, and its place, by which complaints name it."""

    def __init__(self, values: Any, place: str, allowed: Collection[str]) -> None:
        self.values: Mapping[str, Any] = values
        self.place = place
        if not isinstance(values, Mapping):
            raise WorkloadError(f"{place}: is not a dict")
        unknown = sorted(str(key) for key in values if key not in allowed)
        if unknown:
            problem = f"unknown key {unknown[0]!r}; allowed are {', '.join(sorted(allowed))}"
            raise WorkloadError(f"{place}: {problem}" if place else problem)

    def wrong(self, key: str, problem: str) -> WorkloadError:
        """Return the complaint about a key."""
        return WorkloadError(f"{self.place}.{key}: {problem}" if self.place else f"{key}: {problem}")

    def text(self, key: str) -> str:
        """Return a text that must be there."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, "is not a text")
        return str(value)

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        words = self.values.get(key) or ()
        if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) and word for word in words):
            raise self.wrong(key, f"{words!r} is not a list of texts")
        return tuple(words)

    def mapping(self, key: str, depth: int = 1) -> dict[str, Any]:
        """Return a dict, with a greater `depth` one of dicts."""
        values = [self.values.get(key, {})]
        for _ in range(depth):
            if not all(isinstance(value, Mapping) for value in values):
                raise self.wrong(
                    key, "is not a dict" if depth == 1 else f"is not a dict of dicts, {depth} deep"
                )
            values = [each for value in values for each in value.values()]
        return dict(self.values.get(key, {}))

    def texts(self, key: str) -> dict[str, str]:
        """Return a dict of texts."""
        texts = self.values.get(key, {})
        if not isinstance(texts, Mapping) or not all(isinstance(w, str) for w in (*texts, *texts.values())):
            raise self.wrong(key, f"{texts!r} is not a dict of texts")
        return dict(texts)

    def part(self, key: str, allowed: Collection[str]) -> _Part:
        """Return a part of this part."""
        return _Part(self.values.get(key), f"{self.place}.{key}" if self.place else key, allowed)

    def parts(self, key: str, allowed: Collection[str]) -> list[_Part]:
        """Return the parts of a list."""
        place, values = f"{self.place}.{key}" if self.place else key, self.values.get(key) or ()
        if not isinstance(values, (list, tuple)):
            raise self.wrong(key, "is not a list")
        return [_Part(each, f"{place}[{index}]", allowed) for index, each in enumerate(values)]

    def flag(self, key: str) -> bool:
        """Return a truth value; text on ansible-core 2.16, as numbers."""
        value = self.values.get(key, getattr(UNKNOWN, key, False))
        if str(value).lower() not in ("true", "false"):
            raise self.wrong(key, f"{value!r}; allowed are true, false")
        return str(value).lower() == "true"

    def count(self, key: str, default: int, least: int) -> int:
        """Return a whole number; those that went through a template are text on ansible-core 2.16."""
        value = self.values.get(key, default)
        try:
            count = int(str(value))
        except ValueError:
            count = least - 1
        if count < least:
            raise self.wrong(key, f"{value!r} is not a whole number from {least} on")
        return count

    def choice(self, key: str, default: Any, allowed: Collection[str]) -> Any:
        """Return one of the allowed values, or the default."""
        value = self.values.get(key, default)
        if value != default and value not in allowed:
            raise self.wrong(key, f"{value!r}; allowed are {', '.join(allowed)}")
        return value

    def line(self, key: str = "pattern", group: str = "") -> LinePattern:
        """Return the literal, and the pattern that must have the group."""
        text = self.text(key)
        try:
            pattern = re.compile(text.encode())
        except re.error as exc:
            raise self.wrong(key, f"{text!r} is not a regular expression: {exc}") from None
        if group and group not in pattern.groupindex:
            raise self.wrong(key, f"the pattern has no group `{group}`")
        return LinePattern(self.literal(), pattern)

    def literal(self) -> bytes:
        """Return the text by which lines are found."""
        literal = self.text("literal")
        if "\n" in literal:
            raise self.wrong("literal", "must lie within one line")
        return literal.encode()


def _of_cases(part: _Part) -> dict[str, Any]:
    """Return the fields that decide what cases there are."""
    data = part.values
    if ("epoch" in data) == ("window" in data and "warmup" in data):
        raise WorkloadError("give either warmup and window, or epoch")
    if "epoch" in data and set(part.texts("epoch")) != {"epochs", "samples"}:
        raise part.wrong("epoch", "give epochs and samples, names of variables of the role")
    models, dtypes = part.part("models", DEVICES), part.part("dtypes", DEVICES)
    batches = _Part(part.mapping("bsz"), "bsz", DEVICES)
    names = part.words("model_names")
    return {
        "model_names": names,
        "models": {device: models.choice(device, None, names) for device in models.values},
        "dtypes": {device: dtypes.words(device) for device in dtypes.values},
        "dtype_hints": part.mapping("dtype_hints", 2),
        "bsz": {device: batches.count(device, 0, 1) for device in batches.values},
        "xla": _xla(part),
        "accumulation": part.count("accumulation", 1, 1) if "accumulation" in data else None,
        "warmup": part.count("warmup", 20, 0),
        "window": part.count("window", 100, 1),
        "epoch": part.texts("epoch"),
        "features": part.words("features"),
        "processes_per_node": _processes(part, "processes_per_node"),
        "settings": part.words("settings"),
        "reads": part.words("reads"),
        "settings_before": part.mapping("settings_before"),
        "xla_settings": part.mapping("xla_settings", 2),
        "size": data.get("size"),
    }


_INSTALL_FORMS: dict[str, Callable[[_Part, str], object]] = {
    "make": _Part.words,
    "check": _Part.words,
    "submodules": _Part.texts,
}


def dataset_variables(workload: str, install: Mapping[str, Any]) -> list[str]:
    """Return what the programs of a data set are given, and the variable that names another data set.

    Names that meta/argument_specs.yml does not have are the role's own.
    """
    dataset = install.get("dataset")
    if not isinstance(dataset, Mapping):
        return []
    programs = [dataset.get(key) for key in ("make", "check")]
    names = [name for words in programs if isinstance(words, list) for name in words[1:]]
    return [f"{workload}_{name}" for name in dict.fromkeys(map(str, [*names, dataset.get("variable")]))]


def _install(part: _Part) -> Mapping[str, Any]:
    """Return what role `workload` installs; raise WorkloadError for what it could not do."""
    install = part.part("install", _INSTALL_KEYS)
    for key, (needed, keys) in _INSTALL_PARTS.items():
        if key in install.values:
            part = install.part(key, keys)
            for name in {*needed, *part.values}:
                _INSTALL_FORMS.get(name, _Part.text)(part, name)
    for name in ("kit", "locks", "packages", "probe", "versions"):
        install.words(name)
    for name in ("framework", "launcher", "data"):
        install.text(name) if name in install.values else None
    for name in install.words("tasks"):
        if name not in _TASKS:
            raise install.wrong("tasks", f"{name!r}; allowed are {', '.join(_TASKS)}")
    return install.values


def _processes(part: _Part, key: str) -> Any:
    """Return how many processes a node starts, or one setting and how many for each value of it."""
    value = part.values[key]
    by_setting = part.mapping(key, 2) if isinstance(value, Mapping) else {"": {"": value}}
    if len(by_setting) != 1:
        raise part.wrong(key, f"{value!r}; allowed is one setting")
    for processes in next(iter(by_setting.values())).values():
        if processes != "gpus" and not re.fullmatch("[1-9][0-9]*", str(processes)):
            raise part.wrong(key, f"{processes!r}; allowed are gpus and whole numbers above 0")
    return value


def _xla(part: _Part) -> tuple[bool, ...]:
    values = part.values["xla"]
    if not isinstance(values, Sequence) or not all(isinstance(value, bool) for value in values):
        raise part.wrong("xla", f"{values!r} is not a list of true and false")
    return tuple(values)


def _log(part: _Part) -> Log:
    if "kit" in part.values:
        form = {} if {"literal", "step"} & set(part.values) else kit_log.form(_prefix(part))
        part = _Part({"nodes": "first", **form, **part.values}, part.place, _LOG_KEYS)
    elif _KIT_KEYS & set(part.values):
        raise part.wrong("kit", "witnesses and without are of a trainer of the kit: give its prefix")
    first_node = part.choice("nodes", "all", ("all", "first")) == "first"
    own = part.part("own", _RATE_KEYS) if "own" in part.values else None
    return Log(
        **vars(_form(part)),
        first_node=first_node,
        falling_loss=_falling_loss(part),
        own=Own(own.line(group="rate"), own.choice("scope", "global", SCOPES)) if own else None,
        forms=tuple(_form(each) for each in part.parts("forms", _FORM_KEYS)),
        unread=tuple(
            Unread(each.line(), each.text("program"), each.text("why"), _pairs(each, "parameters"))
            for each in part.parts("unread", _UNREAD_KEYS)
        ),
    )


def _falling_loss(part: _Part) -> int:
    """Return by how many per cent the loss of the steps must fall, 0 where it need not."""
    if "falling_loss" not in part.values:
        return 0
    if b"(?P<loss>" not in part.line("step", "step").pattern.pattern:
        raise part.wrong("falling_loss", f"{part.place}.step has no group `loss`")
    return part.count("falling_loss", 0, 1)


def _form(part: _Part) -> Form:
    """Return how the lines of steps are read that a part describes."""
    step, kind = part.line("step", "step"), part.choice("time", None, TIME_FORMATS)
    groups = step.pattern.groupindex
    if ("time" in groups) != (kind is not None):
        raise part.wrong("time", f"give the format if and only if {part.place}.step has a group `time`")
    if ("mean" in groups) != ("mean_after" in part.values):
        raise part.wrong("mean_after", f"give it if and only if {part.place}.step has a group `mean`")
    if "latency" in groups and ("rate" in groups or "rate" in part.values):
        raise part.wrong("step", "a group `latency` stands for the rate, which is given too")
    line, scope = None, "global"
    if "rate" in part.values:
        rate = part.part("rate", _RATE_KEYS)
        scope = rate.choice("scope", "global", SCOPES)
        if "pattern" in rate.values or "literal" in rate.values:
            line = rate.line(group="rate")
        elif "rate" not in groups:
            raise part.wrong("rate", "give literal and pattern, or a group `rate` in log.step")
    return Form(step, kind, line, scope, part.count("mean_after", 0, 0))


def _pairs(part: _Part, key: str) -> tuple[tuple[str, str], ...]:
    return tuple(part.texts(key).items())


def _prefix(log: _Part) -> str:
    """Return what the lines of a trainer of the kit begin with."""
    prefix = log.text("kit")
    if not re.fullmatch("[A-Z][A-Z0-9_]*", prefix):
        raise log.wrong("kit", f"{prefix!r}; allowed are capital letters, digits and _")
    return prefix


def _rules(part: _Part, log: _Part, first_node: bool) -> tuple[Sanity, ...]:
    """Return the sanity rules: the kit's, unless the workload has one of that name, those of
    `tensorflow_run.py`, and the workload's own.

    A trainer that accumulates no gradients need not print `accumulation`.
    """
    shared = kit_log.TENSORFLOW if log.flag("tensorflow") else ()
    parts = [_Part(rule, "log.tensorflow", _SANITY_KEYS) for rule in shared]
    own = tuple(_sanity(rule, first_node) for rule in [*parts, *part.parts("sanity", _SANITY_KEYS)])
    if "kit" not in log.values:
        return own
    left_out = set(log.words("without"))
    nodes = log.choice("witnesses", "all", ("all", "first"))
    of_kit = {rule["name"]: rule for rule in kit_log.sanity(_prefix(log), nodes)}
    unknown = left_out - set(of_kit)
    if unknown:
        raise log.wrong("without", f"the kit has no rule {min(unknown)}")
    left_out |= {rule.name for rule in own} | ({"accumulation"} - set(part.values))
    parts = [_Part(rule, "log.kit", _SANITY_KEYS) for name, rule in of_kit.items() if name not in left_out]
    return (*(_sanity(each, first_node) for each in parts), *own)


def _sanity(part: _Part, first_node: bool) -> Sanity:
    expect = part.values.get("expect")
    if expect is not None and str(expect) not in EXPECTED and not str(expect).startswith(SETTINGS):
        allowed = f"{', '.join(sorted(EXPECTED))}, and {SETTINGS}NAME"
        raise part.wrong("expect", f"unknown {expect!r}; allowed are {allowed}")
    formula = "equals" in part.values
    if formula and expect is not None:
        raise part.wrong("equals", "give it or expect")
    expect = part.text("equals") if formula else expect
    nodes = part.choice("nodes", "first" if first_node else "all", ("all", "first"))
    return Sanity(
        name=part.text("name"),
        line=part.line(group="" if expect is None else "value"),
        expect=None if expect is None else str(expect),
        min_nodes=part.count("min_nodes", 1, 1),
        at_end=part.choice("where", "any", ("any", "end")) == "end",
        first_node=nodes == "first",
        device=part.choice("device", None, DEVICES),
        min_devices=part.count("min_devices", 1, 1),
        only_if=part.text("if").encode() if "if" in part.values else None,
        unless=part.text("unless").encode() if "unless" in part.values else None,
        means=_pairs(part, "means"),
        program=part.flag("program"),
        formula=formula,
    )


def _container(part: _Part) -> Container:
    container = Container(*(part.text(key) for key in ("image", "python", "source")))
    if not re.fullmatch(r"[a-z0-9][\w./:-]*[:@][\w.:-]+", container.image):
        raise part.wrong("image", f"{container.image!r}; allowed are names with a tag or a digest")
    return container


def _failure(part: _Part) -> Failure:
    silence = part.count("silence", 0, 1) if "silence" in part.values else None
    return Failure(part.literal().decode(), part.text("why"), silence)


def _self_reported(part: _Part) -> SelfReported:
    own = part.part("self_reported", {"literal", "rate"})
    return SelfReported(own.literal().decode(), own.text("rate") if "rate" in own.values else None)


def _flops(part: _Part) -> Flops:
    keys = {each.name for each in fields(Flops)}
    own = part.part("flops", keys)
    if set(own.values) != keys:
        raise part.wrong("flops", f"give exactly the keys {', '.join(sorted(keys))}, or model and tf32")
    return Flops(own.text("sample"), own.text("source"), own.mapping("models", 2), own.values["tf32"])


def _limits(part: _Part) -> tuple[Limit, ...]:
    try:
        return limits_of(part.mapping("limits"), f"{part.values.get('name')}_")
    except LimitError as error:
        raise WorkloadError(f"limits: {error}") from None


def _dlperf(part: _Part) -> Dlperf:
    own = part.part("dlperf", _DLPERF_KEYS)
    if not {"frameworks", "models"} <= set(own.values):
        raise part.wrong("dlperf", "give frameworks and models, and others, differs and variants if needed")
    return Dlperf(
        own.words("frameworks"),
        own.texts("models"),
        own.words("others"),
        own.text("differs") if "differs" in own.values else "",
        own.mapping("variants", 2) if "variants" in own.values else {},
    )


def _was(part: _Part) -> Was:
    own = part.part("was", {"workload", "settings"})
    if not own.values.get("settings"):
        raise part.wrong("was", "give workload and settings")
    return Was(own.text("workload"), own.mapping("settings"))


def _check_names(workload: Workload) -> None:
    """Raise WorkloadError for a name that is not a variable of the role, or not a setting."""
    for name in workload.variables:
        if not name.startswith(f"{workload.name}_"):
            raise WorkloadError(f"{name}: a setting is a variable of the role {workload.name}")
        if name not in workload.setting_types:
            raise WorkloadError(f"{name}: meta/argument_specs.yml has no such variable")
    by_xla = [name for values in workload.xla_settings.values() for name in values]
    by_log = [
        rule.expect.removeprefix(SETTINGS)
        for rule in workload.sanity
        if rule.expect and rule.expect.startswith(SETTINGS)
    ]
    places = {
        "settings_before": workload.settings_before,
        "xla_settings": by_xla,
        "sanity": by_log,
        "processes_per_node": workload.processes_per_node
        if isinstance(workload.processes_per_node, Mapping)
        else (),
    }
    for place, names in places.items():
        unknown = [name for name in names if name not in workload.setting_names]
        if unknown:
            raise WorkloadError(f"{place}: {unknown[0]} is not a setting")
    rules = [rule.name for rule in workload.sanity]
    if len(set(rules)) != len(rules):
        raise WorkloadError("sanity: a name is used twice")


def _check_values(workload: Workload) -> None:
    """Raise WorkloadError for a value that no case could be made with."""
    size = workload.size
    number = size is None or (isinstance(size, int) and not isinstance(size, bool) and size > 0)
    if not number and size not in workload.setting_names:
        raise WorkloadError(f"size: {size!r} is neither a setting nor a whole number above 0")
    for xla in workload.xla_settings:
        if xla not in ("true", "false"):
            raise WorkloadError(f'xla_settings: {xla!r} is neither "true" nor "false"')


def _check_formulas(workload: Workload) -> None:
    """Raise WorkloadError for a formula that some case could not be judged by."""
    settings = dict.fromkeys(workload.setting_names, 1)
    try:
        if workload.flops:
            flops.check(workload.flops, workload.model_names, workload.setting_names)
    except flops.FlopsError as error:
        raise WorkloadError(f"flops: {error}") from None
    by_log = [Rule(rule.expect, "") for rule in workload.sanity if rule.formula and rule.expect]
    for rule, model in itertools.product((*workload.refuses, *by_log), workload.model_names):
        case: Case = {"model": model, "settings": settings, "nodes": 1, "gpus": 1, "warmup": 1, "window": 1}
        case |= {"device": "cpu", "dtype": "fp32", "xla": False, "accumulation": 1}
        names = workload.names_of(case, simulated=False)
        try:
            flops.evaluate(rule.when, names)
            rule.why.format_map(names)
        except (KeyError, ValueError) as error:
            place = "sanity" if rule in by_log else "refuses"
            raise WorkloadError(f"{place}: {rule.when}, model {model}: {error}") from None


def called_today(
    name: str, settings: Mapping[str, Any] | None, declared: Workloads
) -> tuple[str, dict[str, Any]]:
    """Return what the workload and the settings of a case are called today, whenever it was measured."""
    settings = settings or {}
    for today, workload in declared.items():
        was = workload.was
        if was and was.workload == name and was.settings.items() <= settings.items():
            return today, workload.settings_of(
                {setting: value for setting, value in settings.items() if setting not in was.settings}
            )
    return name, declared.get(name, UNKNOWN).settings_of(settings)


def _typed(workload: Workload, name: str, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise WorkloadError(f"{workload.name}: the variable {name} is not set")
    try:
        return coerce(workload.setting_types[name], values[name])
    except ValueError as error:
        raise WorkloadError(f"{name}={values[name]}: {error}") from None


def coerce(kind: str, value: Any) -> Any:
    """Return `value` as Ansible's type `kind` has it; -e gives text. Raises ValueError."""
    text = str(value).strip()
    if kind == "bool":
        truths = {"true": True, "yes": True, "on": True, "1": True}
        truths.update({"false": False, "no": False, "off": False, "0": False})
        if text.lower() not in truths:
            raise ValueError("allowed are true and false")
        return truths[text.lower()]
    if kind == "int":
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError("it must be a whole number")
        try:
            return int(value) if isinstance(value, float) else int(text)
        except ValueError:
            raise ValueError("it must be a whole number") from None
    if kind == "float":
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if isinstance(value, bool) or not math.isfinite(number):
            raise ValueError("it must be a number")
        return number
    if kind == "str":
        return "" if value is None else str(value)
    return value


def size_name(unit: str) -> str:
    """Return what people call the size of a sample that is counted in `unit`."""
    return "image size" if unit == "images" else "sequence length"


def workloads_of(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Workload]:
    """Return the workloads of declarations by name, as modules are given them."""
    return {name: Workload.from_data(each) for name, each in data.items()}
