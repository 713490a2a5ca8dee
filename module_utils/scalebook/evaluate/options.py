# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What there is to choose from: every measured row with its rate and hardware."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Group, Hardware, Message, Results, Row, message
from ansible.module_utils.scalebook.judge import headings
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads, size_name

NOT_RECORDED = "not-recorded"
"""What stands for a value that no record has."""
FAMILIES = {
    "bert": "BERT",
    "resnet50": "ResNet-50",
    "gpt2": "GPT-2",
    "llama": "Llama",
    "wide_deep": "Wide & Deep",
    "insightface": "InsightFace",
}
"""What model families are called in every language."""
FEWEST_RUNS = 2
"""Runs below which nothing is known of how much they differ."""


class Option(TypedDict):
    """One way to train: a workload with a precision and a batch on a number of devices.

    `slowest` to `fastest` is the range of `rates`, those of its `runs` runs, per second in `unit`; of one run
    all three are equal.  A published row has no `rates`, and `runs` is 0 where nobody says how many there
    were.  `gpu` is the model of the devices, None on CPUs and NOT_RECORDED where no record says it; `link` is
    how they are linked and whether nodes share machines, '' where no record says it.  `machines` is on how
    many its nodes were, as many as nodes where no record says it.
    `compiler` is the name of what compiled the model, '' where nothing did; `variant` is its gradient
    accumulation or what its publisher says of it, None without; `differing` are the settings in which the
    groups of its workload in the campaign differ; `size` says how much a sample is.  `joules` is the energy
    of the GPUs per unit, `step_p50` and `step_p95` are seconds, `usage` has the means of the utilisation by
    quantity; what was not measured is None, or not there.  `source` is the campaign, or what published the
    row, and `group` its group there.  A case without a valid run (`without_run`) has no `runs`, and its
    rates are 0.
    """

    name: str | Message
    source: str
    group: str
    family: str
    workload: str
    model: str
    task: str
    size: str
    gpu: str | None
    link: str
    nodes: int
    machines: int
    gpus: int
    bsz: int
    dtype: str
    xla: bool
    compiler: str
    variant: str | Message | None
    differing: Message | None
    unit: str
    rate: float
    slowest: float
    fastest: float
    rates: list[float]
    runs: int
    speedup: float | None
    efficiency: float | None
    joules: float | None
    step_p50: float | None
    step_p95: float | None
    usage: dict[str, float]
    mfu: float | None
    bottleneck: Message | None


def of_campaign(results: Results, workloads: Workloads | None = None) -> list[Option]:
    """Return the options of a campaign's results.json: its rows that have a valid run.

    `workloads` are the declarations, which say what a workload trains.
    """
    return _options(results, workloads or {}, [row for row in results["rows"] if row["median"]])


def without_run(results: Results, workloads: Workloads | None = None) -> list[Option]:
    """Return the cases of a results.json that were planned and have no valid run: only criteria have them."""
    rows = [row for row in results["rows"] if row["planned"] and not row["median"]]
    return _options(results, workloads or {}, rows)


def _options(results: Results, workloads: Workloads, rows: Sequence[Row]) -> list[Option]:
    groups = {group["id"]: group for group in results["groups"]}
    usage: dict[str, dict[str, float]] = {}
    for entry in results.get("utilisation") or ():
        usage.setdefault(entry["case"], {})[entry["quantity"]] = entry["mean"]
    shares = {entry["case"]: entry["mfu"] for entry in results.get("mfu") or ()}
    bottlenecks = {
        entry["case"]: entry["bound"]["what"] if entry["bound"] else message("evaluation.no-bottleneck")
        for entry in results.get("bottlenecks") or ()
        # A report of an earlier version has none.
        if "bound" in entry
    }
    entries = results.get("hardware") or ()
    options: list[Any] = [
        {
            **_option(row, groups[row["group"]], workloads.get(row["workload"], UNKNOWN)),
            "source": str(results["campaign"]),
            "gpu": gpu_of(row, entries),
            "link": hardware.link(entries, row),
            "usage": usage.get(row["case"], {}),
            "joules": usage.get(row["case"], {}).get("gpu_energy"),
            "mfu": shares.get(row["case"]),
            "bottleneck": bottlenecks.get(row["case"]),
        }
        for row in rows
    ]
    return options


SAME = ("workload", "model", "nodes", "gpus", "bsz", "dtype", "xla", "speedup", "efficiency")
"""What an option has as its row has it."""


def _option(row: Row, group: Group, declaration: Workload) -> dict[str, Any]:
    compiler = str(group.get("compiler") or "XLA") if row["xla"] else ""
    steps: Mapping[str, Any] = row.get("steps") or {}
    differing = group.get("differing")
    differing = differing if differing and differing["values"]["words"] else None
    return {
        **{key: row[key] for key in SAME},  # type: ignore[literal-required]
        "name": name_of(row, compiler, differing),
        "group": group["id"],
        "family": str(group.get("family", "")),
        "task": declaration.task,
        "size": size_of(row.get("settings") or {}, declaration),
        "machines": row.get("machines") or row["nodes"],
        "compiler": compiler,
        "variant": variant_of(row.get("accumulation", 1)),
        "differing": differing,
        # A row without a record does not know its unit.
        "unit": row["unit"] if row["median"] else declaration.unit if declaration.name else row["unit"],
        "rate": row["median"] or 0.0,
        "slowest": row["min"] or 0.0,
        "fastest": row["max"] or 0.0,
        "rates": [run["rate"] for run in row["runs"]],
        "runs": row["good"],
        "step_p50": steps.get("p50"),
        "step_p95": steps.get("p95"),
    }


def size_of(settings: Mapping[str, Any], declaration: Workload) -> str:
    """Return how large a sample is, as text."""
    return str(declaration.sample_size(settings) or NOT_RECORDED)


def gpu_of(row: Row, entries: Sequence[Hardware]) -> str | None:
    """Return the model of the GPUs that a row ran on, None on CPUs; known is what all nodes have alike.

    Logs that were imported do not say which device they are of.
    """
    if row["device"] == "cpu":
        return None
    entries_of_case = hardware.of_case(entries, row) if row["device"] == "gpu" else ()
    models = {str(gpu["name"]) for entry in entries_of_case for gpu in entry.get("gpus") or ()}
    return models.pop() if len(models) == 1 else NOT_RECORDED


def name_of(row: Row, compiler: str, differing: Message | None) -> Message:
    """Return the name of an option, such as `tf2_bert 1n1g b64 fp16 XLA steps_per_loop=10`."""
    words = [row["workload"], f"{row['nodes']}n{row['gpus']}g", f"b{row['bsz']}", row["dtype"], compiler]
    variant = variant_of(row.get("accumulation", 1))
    return headings.named(filter(None, [*words, variant, differing]))


def variant_of(steps: int) -> Message | None:
    """Return the variant of an option whose gradients are accumulated, such as `accumulation 8`."""
    return message("name.accumulation", steps=steps) if steps != 1 else None


def accumulation(option: Mapping[str, Any]) -> Message | str | None:
    """Return the variant of an option if it is its gradient accumulation."""
    variant = option["variant"]
    is_accumulation = "accumulation" in (variant["code"] if isinstance(variant, Mapping) else variant or "")
    return variant if is_accumulation else None


def values_of(option: Mapping[str, Any], keys: Iterable[str]) -> tuple[Any, ...]:
    """Return values of an option that can be the key of a dict, also where they are messages."""
    values = (option[key] for key in keys)
    return tuple(repr(value) if isinstance(value, Mapping) else value for value in values)


def precision(option: Mapping[str, Any]) -> str:
    """Return the precision of an option and what compiled it."""
    return " ".join(filter(None, (option["dtype"], option["compiler"])))


def devices(option: Mapping[str, Any]) -> int:
    """Return the number of devices; a node without GPUs is one."""
    return int(option["nodes"] * option["gpus"] or option["nodes"])


def setting(option: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what options must have the same to stand side by side: the model, the batch and the hardware.

    Gradient accumulation is of the batch: with more of it the devices communicate less.  Hardware that is not
    recorded is known to be the same within a campaign alone.
    """
    names = ("model", "task", "size", "unit", "dtype", "bsz", "gpu")
    place = option["source"] if option["gpu"] == NOT_RECORDED else ""
    return (*(option[name] for name in names), repr(accumulation(option)), place)


def size_words(option: Mapping[str, Any]) -> list[Message]:
    """Return what people call the size of an option's samples; the list is empty where none is recorded."""
    if option["size"] == NOT_RECORDED:
        return []
    return [message(f"evaluation.sample-{size_name(option['unit']).replace(' ', '-')}", size=option["size"])]


def setting_name(option: Mapping[str, Any]) -> Message:
    """Return what people call a setting: `resnet50, image size = 224, fp32, batch size = 64, NVIDIA H200`."""
    gpu = option["source"] if option["gpu"] == NOT_RECORDED else option["gpu"] or "CPU"
    batch = message("evaluation.batch-size", bsz=option["bsz"])
    parts = [option["model"], *size_words(option), option["dtype"], batch, accumulation(option), gpu]
    return message("evaluation.names", parts=list(filter(None, parts)))
