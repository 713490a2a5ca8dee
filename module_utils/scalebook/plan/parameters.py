# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The public parameters of the playbooks: one table, and the only reader of their values.

`ansible-playbook -e "bsz=64 dtype=fp16"` passes text, `-e '{"bsz": [32, 64]}'` passes typed values, and
ansible-runner either: `bsz=32,64`, `bsz=[32,64]` and `{"bsz": [32, 64]}` mean the same.  The command
line of scripts/bench and docs/reference/parameters.md are made from the same table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import limits
from ansible.module_utils.scalebook.plan import declared
from ansible.module_utils.scalebook.secrets import has_secret, hidden, without_secrets
from ansible.module_utils.scalebook.workload import Workload, Workloads, coerce
from ansible.module_utils.scalebook.workloads import owner_of

PLAYBOOKS = (
    *("bench", "provision", "remove", "report", "import", "verify", "index", "share"),
    *("microbench", "acceptance", "preflight", "mirror", "evaluation", "uninstall", "claim"),
)

TAKES_ALL = ("provision", "preflight", "mirror", "uninstall")
"""Playbooks that accept the parameters of bench.yml, so that one file of variables serves them all."""

CHECKS_VALUES = ("bench", "provision", "mirror")
"""Playbooks that use the variables of the chosen workloads."""


class Parameter(NamedTuple):
    """One public variable.

    `kind` is count, batch, bool, choice, name, topology, percent, share, seconds, number, mapping, text or
    uri, a text that may hold a secret; of `choice`, `choices` are the values, or empty where they follow from
    the workloads or stacks.  `lists` are the playbooks in which it takes several values.  `default` is the
    value where none is given; None where it follows from something else, which `otherwise` describes.
    """

    name: str
    kind: str
    playbooks: tuple[str, ...]
    help: str
    default: Any = None
    otherwise: str = ""
    lists: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    largest: int = 0
    example: str = ""


_BENCH = ("bench",)
_REPORT = ("bench", "report", "import")

LARGEST_BATCH = 1_000_000
LARGEST_PORT = 65535
MICROBENCH = "microbench"
"""Installed as a workload is, and measured by a playbook of its own."""
MAX = "max"
"""The value of bsz that stands for the largest batch that does not run out of memory."""

TABLE = (
    Parameter(
        "workload",
        "choice",
        ("bench", "provision", "mirror"),
        "workloads to measure, to install or to collect files for",
        default=["tf2_bert"],
        lists=("bench", "provision", "mirror"),
        example="tf2_bert,torch_bert",
    ),
    Parameter("workload", "choice", ("import",), "workload that wrote the logs"),
    Parameter("workload", "choice", ("remove",), "workloads to remove from the nodes", lists=("remove",)),
    Parameter(
        "stack_name",
        "choice",
        ("bench", "microbench", "acceptance", *TAKES_ALL),
        "versions of the software, for all workloads: playbooks/vars/stack_<name>.yml",
        otherwise="the stack that each workload names",
        example="modern",
    ),
    Parameter(
        "model",
        "choice",
        _BENCH,
        "model of the workload",
        otherwise="base on GPUs, tiny on CPUs",
        lists=_BENCH,
        example="base,large",
    ),
    Parameter(
        "dtype",
        "choice",
        _BENCH,
        "number format: fp32, fp16, bf16, fp8, whichever the workload has on the device",
        default=["fp32"],
        lists=_BENCH,
        example="fp32,fp16",
    ),
    Parameter(
        "xla",
        "bool",
        _BENCH,
        "compile the model: XLA for TensorFlow, torch.compile for PyTorch",
        default=[False],
        lists=_BENCH,
        example="false,true",
    ),
    Parameter("xla", "bool", ("import",), "whether the logs are of a compiled model"),
    Parameter(
        "bsz",
        "batch",
        _BENCH,
        "batch size per device; max searches for the largest that does not run out of memory",
        otherwise="the workload's own",
        lists=_BENCH,
        largest=LARGEST_BATCH,
        example="32,64",
    ),
    Parameter(
        "bsz_max_runs",
        "count",
        _BENCH,
        "short runs that the search of bsz=max may make for each workload, dtype, xla and topology",
        default=16,
        largest=64,
        example="16",
    ),
    # Far above any cluster, far below what would fill memory when a matrix is expanded.
    Parameter(
        "nodes",
        "count",
        _BENCH,
        "number of nodes",
        otherwise="1, 2, 4 … all nodes of the inventory",
        lists=_BENCH,
        largest=100_000,
        example="1,2,4",
    ),
    Parameter(
        "gpus",
        "count",
        _BENCH,
        "devices per node",
        otherwise="1, 2, 4 … all on one node; all on several nodes",
        lists=_BENCH,
        largest=1024,
        example="1,8",
    ),
    Parameter("nodes", "count", ("microbench",), "number of nodes", default=1, largest=100_000),
    Parameter("gpus", "count", ("microbench",), "devices per node", otherwise="all", largest=1024),
    Parameter(
        "topology",
        "topology",
        _BENCH,
        "exactly these numbers of nodes and devices, instead of nodes and gpus",
        lists=_BENCH,
        example="1n1g,1n8g,4n8g",
    ),
    Parameter(
        "repeats", "count", _BENCH, "runs of each case; fewer than 3 are provisional", default=5, largest=1000
    ),
    Parameter(
        "accumulation",
        "count",
        _BENCH,
        "gradient accumulation steps",
        otherwise="the workload's own, mostly 1",
        largest=1_000_000,
        example="4",
    ),
    Parameter("accumulation", "count", ("import",), "gradient accumulation of the logs", largest=1_000_000),
    Parameter(
        "warmup",
        "count",
        _BENCH,
        "steps dropped before the window",
        otherwise="the workload's own, mostly 20",
        largest=1_000_000,
        example="20",
    ),
    Parameter(
        "window",
        "count",
        _BENCH,
        "steps that count",
        otherwise="the workload's own, mostly 100",
        largest=1_000_000,
        example="100",
    ),
    Parameter("warmup", "count", ("import",), "warm-up steps of the logs", largest=1_000_000),
    Parameter("window", "count", ("import",), "steps that count in the logs", largest=1_000_000),
    Parameter(
        "corpus",
        "text",
        ("bench", "provision"),
        "directory on the nodes with the texts (text/) and the vocabulary (vocab.txt) that all workloads of "
        "BERT train on",
        otherwise="invented data, or those of the variables of each workload",
        example="/datasets/wiki",
    ),
    Parameter(
        "device",
        "choice",
        ("bench", "microbench", "acceptance", "preflight"),
        "what the nodes compute with",
        default="auto",
        otherwise="gpu where every machine has GPUs, cpu where none has",
        choices=("auto", "cpu", "gpu"),
        example="gpu",
    ),
    Parameter("device", "choice", ("import",), "device of the logs", choices=("cpu", "gpu")),
    Parameter(
        "campaign",
        "name",
        _BENCH,
        "directory below results/",
        otherwise="a name made from matrix and machines",
        example="night1",
    ),
    Parameter(
        "campaign",
        "name",
        ("report", "verify", "share"),
        "directory below results/",
        otherwise="the newest that has runs",
    ),
    Parameter("plan_only", "bool", _BENCH, "print the plan and launch nothing", default=False),
    Parameter(
        "force",
        "bool",
        _BENCH,
        "also run what is skipped as impractical, such as fp16 on CPUs, and what ran out of memory",
        default=False,
    ),
    Parameter("preflight", "bool", _BENCH, "check the nodes before the first run", default=True),
    Parameter(
        "telemetry_interval",
        "seconds",
        _BENCH,
        "seconds between two readings of how busy the nodes are; 0 takes none",
        default=1.0,
        largest=60,
        example="1",
    ),
    Parameter(
        "telemetry_export",
        "text",
        _BENCH,
        "directory of node_exporter's textfile collector, which gets the metrics after each run",
        otherwise="none: nothing is exported",
        example="/var/lib/prometheus/node-exporter",
    ),
    Parameter(
        "launcher",
        "choice",
        _BENCH,
        "what starts a run on all nodes: mpirun over ssh, or srun in the Slurm allocation that bench.yml "
        "is started in",
        otherwise="mpirun",
        choices=("mpirun", "srun"),
        example="srun",
    ),
    Parameter(
        "network",
        "choice",
        ("bench", "microbench", "acceptance"),
        "which network NCCL may use between nodes: with fastest, a run over sockets is refused where "
        "InfiniBand or RoCE is up",
        default="fastest",
        choices=("fastest", "any"),
        example="any",
    ),
    Parameter(
        "container",
        "text",
        _BENCH,
        "image that the node script runs in: a name, a file on the nodes (enroot, apptainer, pyxis), or "
        "declared, the one that the workload declares",
        otherwise="none: the nodes' own software",
        example="nvcr.io/nvidia/pytorch:24.10-py3",
    ),
    Parameter(
        "container_engine",
        "choice",
        _BENCH,
        "what starts the container",
        otherwise="podman",
        choices=("podman", "docker", "enroot", "apptainer", "pyxis"),
        example="docker",
    ),
    Parameter(
        "binding",
        "choice",
        _BENCH,
        "processors of each rank: those of the NUMA node of its GPU, where a machine has several, or all",
        default="numa",
        choices=("numa", "none"),
        example="none",
    ),
    Parameter("baseline", "text", _REPORT, "campaign or results.json to compare with"),
    Parameter(
        "max_regression",
        "percent",
        (*_REPORT, "index"),
        "slowdown that fails the comparison",
        default="3%",
    ),
    Parameter(
        "min_utilisation",
        "share",
        _REPORT,
        "mean utilisation that the report judges GPUs, processors, memory, disks and network by",
        default=80.0,
        example="80%",
    ),
    Parameter(
        "campaigns",
        "text",
        ("index",),
        "names of campaigns to show side by side, each compared with the first",
        lists=("index",),
        example="before,after",
    ),
    Parameter(
        "compare", "choice", _REPORT, "published results to compare with", choices=("dlperf", "published")
    ),
    Parameter(
        "report_language",
        "choice",
        (*_REPORT, "verify", "index", "microbench", "acceptance", "claim"),
        "language of report.html, report.md, the charts and what the terminal shows",
        default="en",
        choices=("en", "zh"),
    ),
    Parameter(
        "evaluation",
        "mapping",
        ("evaluation",),
        "what is evaluated and how; playbooks/vars/evaluation.yml is an example",
    ),
    Parameter(
        "reading",
        "choice",
        ("report", "import"),
        "time source that counts: time stamps of steps, or the rates that the workload prints",
        choices=("stamps", "printed"),
        default="stamps",
    ),
    Parameter(
        "campaign_dir", "text", ("report", "verify", "share"), "directory of the campaign, or its runs.tar.xz"
    ),
    Parameter("logs", "text", ("import",), "directory of logs in DLPerf's layout"),
    Parameter("out", "text", ("import",), "directory for the records and the report"),
    Parameter(
        "allowed_signers", "text", ("verify",), "file of keys of which one must have signed the archive"
    ),
    Parameter(
        "archive", "bool", ("share",), "pack the campaign into results/<campaign>.tar.xz", default=True
    ),
    Parameter("sign_key", "text", ("share",), "private SSH key that signs the archive"),
    Parameter(
        "push",
        "choice",
        ("share",),
        "experiment tracker that also gets the results, MLflow or Weights & Biases (offline)",
        choices=("mlflow", "wandb"),
    ),
    Parameter("push_to", "uri", ("share",), "directory for push, or the URI of an MLflow server"),
    Parameter("measured", "text", ("microbench",), "directory of earlier results to report on"),
    Parameter(
        "least",
        "share",
        ("acceptance",),
        "rate at which a part has to be found, in per cent of that of its equals; below 100",
        default=95.0,
        example="90",
    ),
    Parameter(
        "measurements",
        "count",
        ("acceptance",),
        "measurements of a part after which it has no verdict",
        default=20,
        largest=1000,
    ),
    Parameter(
        "hours",
        "number",
        ("acceptance",),
        "hours of the burn-in, in which all measurements are repeated; an interrupted one goes on",
        otherwise="no burn-in",
        largest=1000,
        example="24",
    ),
    Parameter(
        "criteria",
        "text",
        ("acceptance",),
        "YAML file with thresholds by quantity, such as a tender's; they count instead of the defaults",
        otherwise="none",
        example="tender.yml",
    ),
    Parameter("model", "text", ("claim",), "language model of data/models.yml", example="llama3-8b"),
    Parameter("seq", "count", ("claim",), "tokens of a sequence", largest=10_000_000, example="8192"),
    Parameter("gpu", "text", ("claim",), "GPU of data/gpus.csv", example="H100"),
    Parameter("gpus", "count", ("claim",), "GPUs altogether", default=1, largest=1_000_000, example="8"),
    Parameter(
        "dtype",
        "choice",
        ("claim",),
        "precision of the products",
        choices=("fp32", "tf32", "fp16", "bf16", "fp8"),
        example="fp8",
    ),
    Parameter("tokens_per_second", "number", ("claim",), "rate per GPU", largest=10**9, example="14451"),
    Parameter("out", "text", ("preflight",), "file for the findings, as JSON"),
    Parameter(
        "reap", "bool", ("preflight",), "stop the jobs that have lost their control node", default=False
    ),
    Parameter(
        "mirror", "text", ("provision", "mirror"), "directory of fetched files, for hosts without internet"
    ),
    Parameter(
        "remove_home",
        "bool",
        ("uninstall",),
        "also remove scalebook_home, with the data and the work of runs in it",
        default=False,
    ),
    Parameter(
        "provision_force", "bool", ("provision",), "install again although nothing changed", default=False
    ),
    Parameter(
        "provision_cuda",
        "bool",
        ("provision", "mirror"),
        "install CUDA and NCCL",
        otherwise="where a host has NVIDIA devices and a system that they are made for",
    ),
    Parameter(
        "provision_slurm",
        "bool",
        ("provision",),
        "install Slurm on the hosts, as one cluster",
        default=False,
    ),
    Parameter(
        "provision_driver",
        "bool",
        ("provision",),
        "install NVIDIA's driver on the hosts, before CUDA",
        default=False,
    ),
    Parameter(
        "driver_reboot",
        "bool",
        ("provision",),
        "reboot hosts that need it for their new driver, one after another; provision_driver installs it",
        default=False,
    ),
    Parameter(
        "provision_components",
        "choice",
        ("provision",),
        "install these with the versions of stack_name, and no workload",
        default=[],
        otherwise="what the workloads need",
        lists=("provision",),
        choices=("cuda", "nccl", "openmpi", "horovod"),
        example="cuda,nccl",
    ),
)
"""Every public parameter; one that means something else in another playbook has a row of its own."""

MOVED = {"logs": "import", "verify": "verify", "index": "index", "archive": "share", "push": "share"}
"""What report.yml did before -> the playbook that does it."""

NAMES = tuple(dict.fromkeys(row.name for row in TABLE if "bench" in row.playbooks))
"""The parameters of bench.yml."""

OF_THE_INVENTORY = ("scalebook_home", "slots", "node_address", "stack")
"""Variables of hosts and of a stack file that -e may override."""

SPLIT_LISTS = ("horovod_operations", "preflight_accept", "stack_check_may_differ")
"""Lists of roles that may be text too, names with commas between."""

_DEVICES = {"cpu": "CPUs", "gpu": "GPUs"}

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TOPOLOGY = re.compile(r"([1-9][0-9]{0,5})n([1-9][0-9]{0,3})g")
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_PERCENT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})? ?%?")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class ParameterError(ValueError):
    """One or more parameters are wrong; the text names each one, its value and what is allowed."""


class Context(NamedTuple):
    """What values are checked with: the workloads' declarations, the stacks by name, the roles' variables.

    `variables` maps each public variable of a role to its type, `choices` those with a list of allowed values
    to it.  `nodes` is the number of nodes in the inventory, `slots` the smallest number of devices that it
    gives one of them; 0 where that is not known.  `sources` tells where in the inventory a value is from,
    `uneven` which nodes have another value of a parameter than the others.  `role_values` returns the values
    that variables of workloads have with a stack, given or by default, by name; an error in place of one
    that cannot be evaluated.  Without it no limits are checked.
    """

    workloads: Workloads
    stacks: Mapping[str, Mapping[str, Any]]
    variables: Mapping[str, str]
    nodes: int = 0
    choices: Mapping[str, Sequence[str]] = {}
    slots: int = 0
    sources: Mapping[str, str] = {}
    uneven: Mapping[str, str] = {}
    role_values: Callable[[Sequence[str], Mapping[str, Any]], Mapping[str, Any]] | None = None


def rows_of(playbooks: Iterable[str]) -> dict[str, Parameter]:
    """Return the parameters of the playbooks by name; the first playbook that has one decides."""
    rows: dict[str, Parameter] = {}
    for playbook in playbooks:
        for row in TABLE:
            if playbook in row.playbooks:
                rows.setdefault(row.name, row)
    return rows


def read(
    playbooks: Sequence[str], values: Mapping[str, Any], extra: Mapping[str, Any], context: Context
) -> dict[str, Any]:
    """Return the parameters of the first of `playbooks` as typed values, None where nothing was given.

    `values` are the raw values by name, from anywhere; `extra` are the extra variables, of which each name
    must be known to one of the playbooks.  A parameter that means something else in another of them was
    given to that one, and keeps its default.  Raises ParameterError that lists every mistake.
    """
    first, extra = playbooks[0], hidden(extra)
    rows = rows_of((*playbooks, *(("bench",) if first in TAKES_ALL else ())))
    meant_for_others = {
        name for name, row in rows_of(playbooks[1:]).items() if name in rows and rows[name] is not row
    }
    problems = _unknown(extra, rows, first, context) + _of_former(values, context)
    read: dict[str, Any] = {}
    for row in rows.values():
        value = None if row.name in meant_for_others else values.get(row.name)
        read[row.name] = row.default
        try:
            if value is not None and value != "":
                read[row.name] = _value(row, value, playbooks, read, context)
        except ParameterError as error:
            problems.append(str(error))
    problems += [
        f"{name}: {context.uneven[name]}, and all nodes have one: set it for all of them, or with -e"
        for name in rows
        if name in context.uneven and name not in extra
    ]
    problems += _of_the_report(first, values, extra, read, context)
    problems += _conflicts(read, context)
    problems += _of_reports(read, extra)
    if read.get("provision_components"):
        problems += _of_components(read, extra, context)
        read["workload"] = []
    if first == "bench" and not any(problem.startswith("workload") for problem in problems):
        problems += _of_other_workloads(extra, read["workload"], context)
        problems += _settings_of_another_xla(extra, read, context.workloads)
    if first in CHECKS_VALUES:
        problems = list(dict.fromkeys([*problems, *_of_roles(read, context)]))
    problems += _without_effect(read, extra)
    if first == "remove" and "workload" not in extra:
        # One of the inventory is meant for provision.yml.
        problems.append("workload: give what is to be removed with -e, for example -e workload=torch_bert")
    if problems and read.get("device") == "auto":
        # Alone it is not a mistake, since the nodes may have GPUs.
        problems += _too_many_devices(read, context)
    if problems:
        raise ParameterError(_with_sources(problems, extra, context))
    return read


def taken_from(
    playbooks: Sequence[str], read: Mapping[str, Any], extra: Mapping[str, Any], context: Context
) -> str:
    """Return what the inventory says in place of -e, and where; "" where it says nothing."""
    names = [
        row.name
        for row in rows_of(playbooks[:1]).values()
        if row.name in context.sources and row.name not in extra and read.get(row.name) != row.default
    ]
    places: dict[str, list[str]] = {}
    for name in names:
        places.setdefault(context.sources[name], []).append(f"{name}={text(hidden(read[name]))}")
    listed = "; ".join(f"{' '.join(pairs)} ({place})" for place, pairs in places.items())
    return f"From the inventory, as -e does not say otherwise: {listed}" if listed else ""


def _with_sources(problems: Sequence[str], extra: Mapping[str, Any], context: Context) -> str:
    """Return the problems as one text that also says which values are from where in the inventory."""
    reported = "; ".join(problems)
    places: dict[str, list[str]] = {}
    for name, place in context.sources.items():
        if name not in extra and re.search(rf"(?<!\w){name}(?=[=:])", reported):
            places.setdefault(place, []).append(name)
    origins = " and ".join(f"{place} sets {', '.join(names)}" for place, names in places.items())
    fix = "parameters of scalebook: rename them there, or give other values with -e"
    return f"{reported}. {origins}, {fix}" if origins else reported


def _of_the_report(
    first: str, values: Mapping[str, Any], extra: Mapping[str, Any], read: Mapping[str, Any], context: Context
) -> list[str]:
    """Return what is wrong with values of the inventory that the report after a campaign reads.

    Otherwise they are refused after everything has been measured.
    """
    problems = []
    for name, row in rows_of(["report"]).items() if first == "bench" else ():
        if name in context.sources and not (name in extra or name in read or values.get(name) in (None, "")):
            try:
                _value(row, values[name], ("report", "bench"), read, context)
            except ParameterError as error:
                problems.append(str(error))
    return problems


def _unknown(
    extra: Mapping[str, Any], rows: Mapping[str, Parameter], playbook: str, context: Context
) -> list[str]:
    """Return what is wrong with the extra variables: unknown names, and values that roles cannot take."""
    problems = [] if "_raw_params" in extra else _commas(extra)
    moved = [name for name in extra if name in MOVED and name not in rows]
    of_the_others = rows_of(MOVED[name] for name in moved)
    for name, value in extra.items():
        if name in moved:
            problems.append(f"{name}: use ansible-playbook {MOVED[name]}.yml")
        elif name in of_the_others and name not in rows:
            continue  # it belongs to the command that was named
        elif name == "_raw_params":
            problems.append(_stray(str(value), extra))
        elif name == "framework":
            problems.append(_framework(str(value).strip(), context.workloads))
        elif name == "stack" and not isinstance(value, Mapping):
            problems.append(f"stack={str(value)[:40]}: did you mean stack_name={str(value)[:40]}?")
        elif name in former_variables(context.workloads, context.variables):
            continue  # _of_former names what to write
        elif name in context.variables:
            problems += _role_value(name, value, context.variables[name], context.choices.get(name, ()))
            if name.endswith("_port"):
                problems += _port(name, value, context.nodes)
        elif name not in rows and name not in OF_THE_INVENTORY and not name.startswith("ansible_"):
            others = [f"{other}.yml" for other in PLAYBOOKS if name in rows_of([other])]
            if others:
                problems.append(f"{name}: {playbook}.yml has no such parameter, only {' and '.join(others)}")
                continue
            near = get_close_matches(name, [*rows, *OF_THE_INVENTORY, *context.variables], n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; allowed are {', '.join(rows)}"
            problems.append(f"{name}: there is no parameter of this name{hint}")
    return problems


def former_variables(workloads: Workloads, variables: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the variables that workloads no longer have; for their values, what has them now."""
    former: dict[str, dict[str, str]] = {}
    for name, was in ((name, each.was) for name, each in workloads.items() if each.was):
        for setting, value in was.settings.items():
            if (variable := f"{was.workload}_{setting}") not in variables:
                former.setdefault(variable, {})[text(value)] = name
    return former


def _of_former(values: Mapping[str, Any], context: Context) -> list[str]:
    """Return what to write for variables that workloads no longer have, also for those of the inventory."""
    problems = []
    for variable, names in former_variables(context.workloads, context.variables).items():
        value = text(hidden(values.get(variable, ""))).strip()
        name = names.get(value, variable)
        fix = "leave it out, as there is no such variable any more"
        if not variable.startswith(name):
            fix = f"use workload={name}, whose variables begin with {name}_"
        problems += [f"{variable}={value[:40]}: {fix}"] if value else []
    return problems


def _commas(extra: Mapping[str, Any]) -> list[str]:
    """Return the values that end in a comma, which was meant to come before the next parameter."""
    return [
        f"{name}={value[:40]}: a comma at the end is not allowed; parameters have none between them, "
        "and lists are written without spaces, as 32,64"
        for name, value in extra.items()
        if isinstance(value, str) and value.rstrip().endswith(",")
    ]


def _stray(words: str, extra: Mapping[str, Any]) -> str:
    """Return what is wrong with words of -e that have no name: most often the rest of a list."""
    lists = [name for name, value in extra.items() if str(value).endswith(",")]
    rest = words.replace(" ", "")
    meant = f"{lists[0]}={extra[lists[0]]}{rest}" if len(lists) == 1 else "bsz=32,64"
    return (
        f"'{words[:40]}' is not NAME=VALUE: write lists without spaces, {meant[:60]}, "
        "and put a value with spaces in quotes"
    )


def _framework(value: str, workloads: Workloads) -> str:
    """Return what to use instead of a framework: one of its workloads."""
    if value in workloads:
        return f"framework: use workload={value}"
    word = "".join(filter(str.isalnum, value.lower()))
    fit = [
        name
        for name, each in workloads.items()
        if word and (word in re.sub("[^a-z0-9]", "", each.framework.lower()) or name.startswith(word))
    ]
    whose = "its" if fit else "the"
    return f"framework={value[:40]}: use workload=; {whose} workloads are {', '.join(fit or workloads)}"


def _of_other_workloads(extra: Mapping[str, Any], chosen: Sequence[str], context: Context) -> list[str]:
    """Return the variables of workloads that are not measured, which would change nothing.

    Those of the inventory may be there, since one file of variables serves all workloads.
    """
    read = {name for workload in chosen for name in context.workloads[workload].reads}
    owners = {
        name: owner_of(name, context.workloads)
        for name in extra
        if name in context.variables and name not in read
    }
    return [
        f"{name}={text(extra[name])}: a variable of {owner}, which is not measured; "
        f"leave it out, or use workload={','.join((*chosen, owner))}"
        for name, owner in owners.items()
        if owner and owner not in chosen
    ]


def _settings_of_another_xla(
    extra: Mapping[str, Any], read: Mapping[str, Any], workloads: Workloads
) -> list[str]:
    """Return the settings of which no case can have the value, as they only count with another xla."""
    return [
        f"{name}={text(extra[name])}: only with xla={xla}; give both or neither"
        for workload in read["workload"]
        for xla, others in workloads[workload].xla_settings.items()
        for setting, idle in others.items()
        if xla not in map(text, read["xla"])
        and text(extra.get(name := f"{workload}_{setting}", idle)).strip() not in ("", text(idle))
    ]


def _of_roles(read: Mapping[str, Any], context: Context) -> list[str]:
    """Return what is wrong with the values of the chosen workloads' variables, wherever they are from."""
    chosen = [name for name in read["workload"] if name in context.workloads]
    return [
        problem
        for name in (chosen if context.role_values else ())
        for problem in _of_role(context.workloads[name], read, context)
    ]


def _of_role(workload: Workload, read: Mapping[str, Any], context: Context) -> list[str]:
    """Return what is wrong with the values of one workload's variables: their types and their limits."""
    prefix = f"{workload.name}_"
    stack = declared.stack_of([workload.name], context.workloads, context.stacks, read["stack_name"] or "")
    names = {prefix + name for limit in workload.limits for name in (limit.variable, *limit.names)}
    names |= {name for name in context.variables if name.startswith(prefix) and _is_scalar(name, context)}
    evaluated = context.role_values(sorted(names), stack) if context.role_values else {}
    values: dict[str, Any] = {"accumulation": read.get("accumulation") or 1}
    problems: list[str] = []
    for name in sorted(names & evaluated.keys()):
        value = evaluated[name]
        kind = context.variables.get(name, "str")
        if isinstance(value, Exception):
            wrong = [f"{name}: its value cannot be evaluated: {value}"]
        else:
            wrong = _role_value(name, hidden(value), kind, context.choices.get(name, ()), empty=False)
        problems += wrong
        if not wrong:
            values[name.removeprefix(prefix)] = coerce(kind, hidden(value))
    return [*problems, *limits.problems(workload.limits, prefix, values, hidden(evaluated))]


def _is_scalar(name: str, context: Context) -> bool:
    return context.variables[name] in ("bool", "int", "float") or name in context.choices


def _role_value(name: str, value: Any, kind: str, choices: Sequence[str], empty: bool = True) -> list[str]:
    """Return what is wrong with the value of a role's variable; a template is not checked here.

    `empty`: a choice may also be empty, which stands for no value.
    """
    text = str(value).strip()
    if "{{" in text or "{%" in text:
        return []
    if kind == "bool" and not isinstance(value, bool) and text.lower() not in _TRUE + _FALSE:
        return [f"{name}={text[:40]}: allowed are true and false"]
    if kind == "list" and not isinstance(value, (list, tuple)) and name not in SPLIT_LISTS:
        words = json.dumps(text.strip("[]").replace(",", " ").split())
        return [f"{name}={text[:40]}: it must be a list; give it as JSON, -e '{{\"{name}\": {words}}}'"]
    if kind == "dict" and not isinstance(value, Mapping):
        return [f"{name}={text[:40]}: it must have fields; give it as JSON, -e '{{\"{name}\": {{…}}}}'"]
    if choices and (text or not empty):
        try:
            as_choice(name, text, choices)
        except ParameterError as error:
            return [str(error)]
    if kind == "int" and not re.fullmatch(r"[+]?[0-9]{1,18}", text):
        return [f"{name}={text[:40]}: allowed are whole numbers from 0 on"]
    if kind == "float" and not re.fullmatch(r"[+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
        return [f"{name}={text[:40]}: allowed are numbers from 0 on"]
    return []


def _port(name: str, value: Any, nodes: int) -> list[str]:
    """Return what is wrong with the first port of a run; nodes that share an address take the next ones."""
    word, largest = str(value).strip(), LARGEST_PORT - max(nodes - 1, 0)
    if not re.fullmatch(r"[0-9]{1,18}", word) or 1 <= int(word) <= largest:
        return []
    why = f", since each of the {nodes} nodes may need one" if nodes > 1 else ""
    return [f"{name}={word}: allowed are 1 to {largest}{why}"]


def _value(
    row: Parameter, value: Any, playbooks: Sequence[str], read: Mapping[str, Any], context: Context
) -> Any:
    """Return the typed value of a parameter, or raise ParameterError; `read` are those before it."""
    # Of a wrong value an error shows the beginning, by which a secret would no longer be known as one.
    value = value if row.kind in ("text", "uri", "mapping") else hidden(value)
    if isinstance(value, str) and value.rstrip().endswith(","):
        value = value.rstrip().rstrip(",")  # an extra variable is refused for it by _commas
    choices = _choices(row, read, context, playbooks[0])
    try:
        return _typed(row, value, playbooks, choices)
    except ParameterError as error:
        if row.name != "dtype" or row.choices:
            raise
        raise ParameterError(_whose_dtypes(str(error), read, context)) from None


def _whose_dtypes(problem: str, read: Mapping[str, Any], context: Context) -> str:
    """Return `problem` of a dtype with the workloads and devices that have others."""
    chosen = [name for name in read.get("workload") or () if name in context.workloads]

    def by_device(name: str) -> str:
        dtypes = context.workloads[name].dtypes
        if len({tuple(each) for each in dtypes.values()}) == 1:
            return ", ".join(next(iter(dtypes.values())))
        return " and ".join(
            f"{', '.join(each)} on {_DEVICES[device]}" for device, each in dtypes.items() if each
        )

    own = {dtype for name in chosen for each in context.workloads[name].dtypes.values() for dtype in each}
    others: dict[str, list[str]] = {}
    for name, declaration in context.workloads.items():
        for dtype in dict.fromkeys(d for each in declaration.dtypes.values() for d in each if d not in own):
            others.setdefault(dtype, []).append(name)
    has = [f"{name} has {by_device(name)}" for name in chosen]
    has += [
        f"{dtype} is of {', '.join(names[:3])}{' …' if names[3:] else ''}" for dtype, names in others.items()
    ]
    return f"{problem} ({'; '.join(has)})" if has else problem


def _choices(row: Parameter, read: Mapping[str, Any], context: Context, playbook: str) -> Sequence[str]:
    """Return the values that a parameter of kind choice may have, given the parameters before it."""
    if row.choices:
        return row.choices
    if row.name == "workload":
        return [*context.workloads, *([MICROBENCH] if playbook in TAKES_ALL else [])]
    if row.name == "stack_name":
        return sorted(context.stacks)
    declarations = _declarations(read, context)
    if row.name == "model":
        return list(dict.fromkeys(name for each in declarations for name in each.model_names))
    dtypes = {dtype for each in declarations for of_device in each.dtypes.values() for dtype in of_device}
    return sorted(dtypes, reverse=True)


def _declarations(read: Mapping[str, Any], context: Context) -> list[Workload]:
    """Return the declarations of the workloads that were chosen; of all where none was."""
    chosen = read.get("workload") or []
    return [context.workloads[name] for name in chosen if name in context.workloads] or [
        *context.workloads.values()
    ]


def _typed(row: Parameter, value: Any, playbooks: Sequence[str], choices: Sequence[str]) -> Any:
    """Return the typed value of a parameter of any kind; a list of them where the playbook takes one."""
    readers: dict[str, Callable[[Any], Any]] = {
        "count": lambda value: as_count(row.name, value, row.largest),
        "batch": lambda value: as_batch(row.name, value, row.largest),
        "bool": lambda value: as_bool(row.name, value),
        "choice": lambda value: as_choice(row.name, _measured(row, value, playbooks[0]), choices),
        "name": lambda value: safe_name(row.name, value),
        "topology": lambda value: as_topology(row.name, value),
        "percent": lambda value: as_percent(row.name, value),
        "share": lambda value: as_share(row.name, value),
        "seconds": lambda value: as_seconds(row.name, value, row.largest),
        "number": lambda value: as_number(row.name, value, row.largest),
        "mapping": lambda value: as_mapping(row.name, value),
        "text": lambda value: as_text(row.name, value),
        "uri": lambda value: as_text(row.name, value, secret=True),
    }
    reader = readers[row.kind]
    # A parameter that the first playbook has not means what it does in the others.
    owner = playbooks[0] if playbooks[0] in row.playbooks else "bench"
    if owner in row.lists:
        return _unique(row.name, [reader(part) for part in as_list(value)])
    return reader(value)


def _measured(row: Parameter, value: Any, playbook: str) -> Any:
    """Return `value`, or raise ParameterError for micro-benchmarks as a workload of bench.yml."""
    if (row.name, str(value).strip(), playbook) == ("workload", MICROBENCH, "bench"):
        raise ParameterError(
            f"workload={MICROBENCH}: bench.yml does not measure it; use ansible-playbook microbench.yml"
        )
    return value


def _conflicts(read: Mapping[str, Any], context: Context) -> list[str]:
    """Return what is wrong with parameters that are right each by itself."""
    problems = []
    declarations = [
        context.workloads[name] for name in read.get("workload") or [] if name in context.workloads
    ]
    if read.get("topology") and (read.get("nodes") or read.get("gpus")):
        both = " and ".join(f"{name}={text(read[name])}" for name in ("nodes", "gpus") if read.get(name))
        problems.append(f"topology: it names nodes and devices already; leave out nodes and gpus ({both})")
    counts = [nodes for nodes, _ in map(parts, read.get("topology") or ())]
    smallest = min(counts or as_list(read.get("nodes") or 0))
    if context.nodes and smallest > context.nodes:
        name = "topology" if counts else "nodes"
        problems.append(
            f"{name}={text(read[name])}: {allowed_counts(context.nodes)}, the nodes of this inventory"
        )
    if read.get("device") == "cpu":
        problems += _too_many_devices(read, context)
    if isinstance(read.get("xla"), list) and declarations:
        able = {value for each in declarations for value in each.xla}
        names = ", ".join(each.title for each in declarations)
        problems += [
            f"xla={str(value).lower()}: not a value of {names}" for value in read["xla"] if value not in able
        ]
    if read.get("least") == 100:
        problems.append("least=100: allowed are 1 to 99; equal parts differ a little")
    steps = [name for name in ("warmup", "window") if read.get(name)]
    if steps and declarations and all(each.epoch for each in declarations):
        names = ", ".join(each.title for each in declarations)
        problems.append(f"{' and '.join(steps)}: the window of {names} is an epoch, so it cannot be set")
    if MAX in (read.get("bsz") or ()) and declarations and all(each.epoch for each in declarations):
        names = ", ".join(each.title for each in declarations)
        problems.append(f"bsz={MAX}: the window of {names} is an epoch, so no run is short; give numbers")
    if read.get("corpus"):
        problems += _of_the_corpus(read, context)
    stack = context.stacks.get(str(read.get("stack_name")))
    if stack is not None:
        problems += [
            f"stack_name={read['stack_name']}: it has no versions for {name}; "
            f"leave it out, or use {context.workloads[name].stack}"
            for name in read.get("workload") or []
            if name in context.workloads
            and name in context.stacks.get(context.workloads[name].stack, {})
            and name not in stack
        ]
    return problems


def _of_the_corpus(read: Mapping[str, Any], context: Context) -> list[str]:
    """Return what is wrong with a corpus: workloads that do not read texts, beside their family that does."""
    readers = [name for name in context.workloads if f"{name}_text" in context.variables]
    families = {context.workloads[name].family for name in readers}
    chosen = [name for name in read.get("workload") or [] if name in context.workloads]
    others = [name for name in chosen if name not in readers and context.workloads[name].family in families]
    assignment = f"corpus={read['corpus']}"
    if not str(read["corpus"]).startswith("/"):
        return [f"{assignment}: allowed is the path of a directory on the nodes"]
    if others or not set(chosen) & set(readers):
        which = ", ".join(others or chosen)
        return [f"{assignment}: not read by {which}: leave one of them out; it is for {', '.join(readers)}"]
    return []


def _too_many_devices(read: Mapping[str, Any], context: Context) -> list[str]:
    """Return what is wrong with more devices than the inventory gives nodes that compute on CPUs."""
    name = "topology" if read.get("topology") else "gpus"
    gpus = [count for _, count in map(parts, read.get("topology") or ())] or as_list(read.get("gpus") or 0)
    if not context.slots or min(gpus) <= context.slots:
        return []
    where = " on CPUs" if read.get("device") == "auto" else ""
    return [f"{name}={text(read[name])}: {allowed_counts(context.slots)}, the devices of each node{where}"]


def _of_reports(read: Mapping[str, Any], extra: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with parameters of the commands that need no cluster.

    bench.yml gives its report a directory besides the name of the campaign, so only -e is compared.
    """
    problems = []
    if extra.get("campaign") and extra.get("campaign_dir"):
        both = " ".join(f"{name}={extra[name]}" for name in ("campaign", "campaign_dir"))
        problems.append(f"{both}: each names the campaign; leave out the one or the other")
    if (read.get("push") is None) != (read.get("push_to") is None):
        both = f"push={read['push'] or ''} push_to={hidden(read['push_to'] or '')}"
        problems.append(f"{both}: give both, for example push=mlflow push_to=results/mlflow, or neither")
    if read.get("archive") is False and not read["push"]:
        problems.append("archive=false: nothing is left to do; leave it out, or give push")
    return problems


def _of_components(read: Mapping[str, Any], extra: Mapping[str, Any], context: Context) -> list[str]:
    """Return what is wrong with components that are installed without a workload."""
    name, stacks = f"provision_components={text(read['provision_components'])}", context.stacks
    problems = [
        f"{name}: leave out {other}={text(extra[other])}, as nothing else is installed"
        for other in ("workload", "provision_cuda")
        if extra.get(other) not in (None, "")
    ]
    if not read["stack_name"]:
        return [
            *problems,
            f"{name}: give stack_name too, {' or '.join(sorted(stacks))}, which has the versions",
        ]
    return problems + [
        f"{name}: stack_name={read['stack_name']} has no {component}; "
        f"{' or '.join(sorted(stack for stack in stacks if component in stacks[stack]))} has"
        for component in read["provision_components"]
        if component not in stacks[read["stack_name"]]
    ]


def _without_effect(read: Mapping[str, Any], extra: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with extra variables that only count beside another parameter.

    Their defaults may be given: commands in earlier reports have them.
    """
    defaults = {row.name: (row.default, text(row.default)) for row in TABLE}
    needs = {
        # parameter: (the other, as it is given, whether it is)
        "mirror_sha256": ("mirror", "mirror=DIR", read.get("mirror")),
        "bsz_max_runs": ("bsz", f"bsz={MAX}", MAX in (read.get("bsz") or ())),
        "max_regression": ("baseline", "baseline=NAME", read.get("baseline")),
        "sign_key": ("archive", "archive=true", read.get("archive")),
    }
    return [
        f"{name}={text(extra[name])}: only with {assignment}; give both or neither"
        for name, (other, assignment, there) in needs.items()
        if other in read and extra.get(name) not in (None, "", *defaults.get(name, ())) and not there
    ]


def as_list(value: Any) -> list[Any]:
    """Return `value` as a list: `"32,64"`, `"[32, 64]"`, `64`, `[32, 64]`."""
    if isinstance(value, str):
        return [part.strip() for part in value.strip().removeprefix("[").removesuffix("]").split(",")]
    if isinstance(value, Sequence):
        return list(value)
    return [value]


def as_bool(name: str, value: Any) -> bool:
    """Return the truth value that Ansible's spellings of a boolean stand for; refuse any other word."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ParameterError(f"{name}={str(value)[:40]}: allowed are true and false")


def as_count(name: str, value: Any, largest: int) -> int:
    """Return a positive whole number no larger than `largest`."""
    number = str(value).strip()
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", number) or not 1 <= int(number) <= largest:
        raise ParameterError(f"{name}={number[:40]}: allowed are whole numbers from 1 to {largest}")
    return int(number)


def as_batch(name: str, value: Any, largest: int) -> int | str:
    """Return a batch size as a whole number, or the word max."""
    if str(value).strip() == MAX:
        return MAX
    try:
        return as_count(name, value, largest)
    except ParameterError as error:
        raise ParameterError(f"{error}, and {MAX}") from None


def as_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of `allowed`, with a hint at the nearest one otherwise."""
    word = str(value).strip()
    if word in allowed:
        return word
    near = get_close_matches(word, allowed, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    verb = "are" if len(allowed) > 1 else "is"
    values = ", ".join(filter(None, allowed)) + (" or nothing" if "" in allowed else "")
    raise ParameterError(f"{name}={word[:40]}: allowed {verb} {values}{hint}")


def as_topology(name: str, value: Any) -> str:
    """Return `value` if it is of the form 4n8g: four nodes with eight devices each."""
    word = str(value).strip()
    if not _TOPOLOGY.fullmatch(word):
        raise ParameterError(
            f"{name}={word[:40]}: allowed are values such as 1n8g, one node with eight devices"
        )
    return word


def parts(topology: str) -> tuple[int, int]:
    """Return the number of nodes and of devices per node of a topology: 4n8g is (4, 8)."""
    nodes, gpus = topology.removesuffix("g").split("n")
    return int(nodes), int(gpus)


def as_percent(name: str, value: Any) -> str:
    """Return `value` if it is a share above 0 and below 1, also in per cent."""
    word = str(value).strip()
    share = float(word.rstrip("% ")) / (100 if word.endswith("%") else 1) if _PERCENT.fullmatch(word) else 0
    if isinstance(value, bool) or not 0 < share < 1:
        raise ParameterError(f"{name}={word[:40]}: allowed are shares such as 3% or 0.03, below 100%")
    return word


def as_share(name: str, value: Any) -> float:
    """Return per cent from 1 to 100; 0.8 is refused, since it may be meant as 80 %."""
    word = str(value).strip()
    share = float(word.rstrip("% ")) if _PERCENT.fullmatch(word) else 0.0
    if isinstance(value, bool) or not 1 <= share <= 100:
        raise ParameterError(f"{name}={word[:40]}: allowed are 1% to 100%")
    return share


def as_seconds(name: str, value: Any, largest: int) -> float:
    """Return seconds from 0.1 to `largest`, or 0, which switches something off."""
    word = str(value).strip()
    seconds = float(word) if _SECONDS.fullmatch(word) else -1.0
    if isinstance(value, bool) or (seconds != 0 and not 0.1 <= seconds <= largest):
        raise ParameterError(f"{name}={word[:40]}: allowed are 0 and seconds from 0.1 to {largest}")
    return seconds


def as_number(name: str, value: Any, largest: int) -> float:
    """Return a number above 0."""
    word = str(value).strip()
    number = float(word) if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", word) else 0.0
    if isinstance(value, bool) or not 0 < number <= largest:
        raise ParameterError(f"{name}={word[:40]}: allowed are numbers above 0, such as 14451 or 3.5")
    return number


def as_text(name: str, value: Any, secret: bool = False) -> str:
    """Return `value` if it is one line of text: a path or a name; only with `secret` may it hold one."""
    word = str(value).strip()
    if has_secret(word) and not secret:
        raise ParameterError(
            f"{name}={without_secrets(word)[:80]}: it may hold no password, token or query; give it without"
        )
    if isinstance(value, (list, dict, bool)) or "\n" in word or "\0" in word:
        raise ParameterError(f"{name}={without_secrets(word)[:40]!r}: it must be one line of text")
    return word


def as_mapping(name: str, value: Any) -> dict[str, Any]:
    """Return `value` if it has fields; what reads them checks them."""
    if not isinstance(value, Mapping):
        raise ParameterError(
            f"{name}={without_secrets(str(value))[:40]}: it must have fields; "
            "give them in a file, as -e @FILE"
        )
    return dict(value)


def safe_name(name: str, value: Any) -> str:
    """Return `value` if it can be a directory name and a word of a command line."""
    word = str(value)
    if not _SAFE_NAME.fullmatch(word) or ".." in word:
        raise ParameterError(
            f"{name}={word[:60]!r}: allowed are letters, digits, dot, dash and underscore, at most 100, "
            "beginning with a letter or digit"
        )
    return word


def allowed_counts(largest: int) -> str:
    """Return the words for «1 to `largest`», which is one value where `largest` is 1."""
    return f"allowed are 1 to {largest}" if largest > 1 else "the only allowed value is 1"


def text(values: Any) -> str:
    """Return values as -e takes them: 32,64."""
    values = values if isinstance(values, list) else [values]
    return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _unique(name: str, values: list[Any]) -> list[Any]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise ParameterError(f"{name}: {str(value).lower()} is named twice; every value is measured once")
    return values


def reference() -> str:
    """Return docs/reference/parameters.md: the table of each playbook's parameters."""
    lines = [
        "# Parameters",
        "",
        "Made by `scripts/bench --reference` from `module_utils/scalebook/plan/parameters.py`.",
        "",
        "Pass parameters with `-e`, several in one quoted argument:",
        '`ansible-playbook bench.yml -e "bsz=64 dtype=fp16"`. A name or a value that is not allowed is',
        "refused before any node is asked. `provision.yml`, `playbooks/preflight.yml` and",
        "`playbooks/mirror.yml` also accept the parameters of `bench.yml`, so that one file of variables",
        "(`-e @night.yml`) serves all of them. Variables of roles (`<role>_…`) are described in their",
        "`meta/argument_specs.yml`.",
    ]
    for playbook in PLAYBOOKS:
        lines += [
            "",
            f"## {playbook}.yml",
            "",
            "| parameter | values | default | meaning |",
            "|---|---|---|---|",
        ]
        for row in rows_of([playbook]).values():
            default = row.otherwise or (text(row.default) if row.default is not None else "none")
            lines.append(f"| `{row.name}` | {_values(row, playbook)} | {default} | {row.help} |")
    return "\n".join(lines) + "\n"


def _values(row: Parameter, playbook: str) -> str:
    kinds = {
        "count": "whole number",
        "batch": f"whole number, {MAX}",
        "bool": "true, false",
        "choice": ", ".join(row.choices) or "name",
        "name": "name",
        "topology": "such as 4n8g",
        "percent": "percent",
        "share": "percent, 1 to 100",
        "seconds": "seconds",
        "mapping": "fields",
        "number": "number",
        "text": {"baseline": "path or name", "model": "name", "gpu": "name"}.get(row.name, "path"),
        "uri": "path or URI",
    }
    return kinds[row.kind] + (", or a list" if playbook in row.lists else "")
