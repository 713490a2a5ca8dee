# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Published rates of pretraining language models (data/llm-published.csv), and what compares with them.

A rate may be compared with another of the same model, sequence, precision and GPU. Batch, checkpointing,
compiler, number of GPUs and limit of power change a rate without making it another measurement: they are
named beside the quotient.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.contracts import Message, message

SEQUENCE = "seq_length"
"""What formulas of data/models.yml call the tokens of a sequence."""


class LanguageModelError(ValueError):
    """A table, a model or a GPU that cannot be used; the message says which, and what is allowed."""


class Rate(NamedTuple):
    """A rate in tokens per second and GPU, and what it was measured with; None and "" where nobody says it.

    `family` and `model` are names of data/models.yml, `gpu` is one of data/gpus.csv. `tflops` per GPU and
    `mfu` in per cent are as they were published.
    """

    source: str
    date: str
    family: str
    model: str
    seq: int
    dtype: str
    compiled: bool | None
    gpu: str
    power_w: int | None
    gpus: int
    bsz: int | None
    checkpointing: str
    parallel: str
    tokens_per_s: float
    tflops: float | None
    mfu: float | None
    link: str


class Beside(TypedDict):
    """A published rate beside one of ours: the quotient, or what differs; what has to be known besides."""

    source: str
    date: str
    gpus: int
    tokens_per_s: float
    gpus_here: int
    tokens_per_s_here: float
    ratio: float | None
    differs: list[Message]
    remarks: list[Message]
    link: str


_NUMBERS: Mapping[str, type] = {
    **dict.fromkeys(("seq", "gpus", "bsz", "power_w"), int),
    **dict.fromkeys(("tokens_per_s", "tflops", "mfu"), float),
}
_COMPILED = {"true": True, "false": False, "": None}


def read(lines: Iterable[str]) -> list[Rate]:
    """Return the rates of data/llm-published.csv; raise LanguageModelError."""
    reader = csv.DictReader(lines)
    if reader.fieldnames is None or tuple(reader.fieldnames) != Rate._fields:
        raise LanguageModelError(f"the columns of published rates are {', '.join(Rate._fields)}")
    rates = []
    for row in reader:
        try:
            values: dict[str, Any] = {
                key: (kind(row[key]) if row[key] else None) for key, kind in _NUMBERS.items()
            }
            values["compiled"] = _COMPILED[row["compiled"]]
            rates.append(Rate(**{**row, **values}))
        except (TypeError, ValueError, KeyError) as error:
            raise LanguageModelError(f"line {reader.line_num} of the published rates: {error}") from None
    return rates


def gpu_patterns(lines: Iterable[str]) -> dict[str, str]:
    """Return the names of data/gpus.csv, each with the pattern of what the driver calls this GPU."""
    return {row["name"]: row["pattern"] for row in csv.DictReader(lines)}


def gpu_of(patterns: Mapping[str, str], name: str) -> str:
    """Return what data/gpus.csv calls a GPU, by its name there or that of the driver; "" for another one."""
    by_name = {each.lower(): each for each in patterns}
    fitting = (each for each, pattern in patterns.items() if re.fullmatch(pattern, name))
    return by_name.get(name.strip().lower()) or next(fitting, "")


def operations(models: Mapping[str, Any], family: str, model: str, seq: int) -> tuple[float, float]:
    """Return the operations of a token, with the whole of attention and with half of it.

    A causal mask leaves half of the products of queries and keys, and a kernel may leave out the others. Some
    publishers count them, others do not. The part of attention is what grows with the sequence.
    """
    formula, sizes = models[family]["sample"], models[family]["models"][model]
    whole, of_twice = (
        flops.evaluate(formula, {**sizes, SEQUENCE: tokens}) / tokens for tokens in (seq, 2 * seq)
    )
    return whole, whole - (of_twice - whole) / 2


def beside(ours: Sequence[Rate], published: Iterable[Rate]) -> list[Beside]:
    """Return the published rates beside those of ours at about as many GPUs, the comparable ones first.

    Ours are of one model and setting. A published rate that differs in more than one thing is left out, as is
    one of a model of another size.
    """
    pairs = []
    for theirs in published:
        nearest = min(ours, key=lambda rate: abs(math.log(rate.gpus / theirs.gpus)))
        differs = _differences(nearest, theirs)
        if len(differs) <= 1 and _size(nearest.model) == _size(theirs.model):
            pairs.append(_pair(nearest, theirs, differs))
    return sorted(pairs, key=lambda pair: len(pair["differs"]))


def _size(model: str) -> str:
    """Return the size of a model that its name ends with: 1B of mpt-1B."""
    return model.rpartition("-")[2]


def _pair(ours: Rate, theirs: Rate, differs: list[Message]) -> Beside:
    return {
        "source": theirs.source,
        "date": theirs.date,
        "gpus": theirs.gpus,
        "tokens_per_s": theirs.tokens_per_s,
        "gpus_here": ours.gpus,
        "tokens_per_s_here": ours.tokens_per_s,
        "ratio": None if differs else ours.tokens_per_s / theirs.tokens_per_s,
        "differs": differs,
        "remarks": _remarks(ours, theirs),
        "link": theirs.link,
    }


def _differences(ours: Rate, theirs: Rate) -> list[Message]:
    """Return why two rates cannot be compared."""
    here, there = (
        {
            "model": f"{each.family} {each.model}",
            **{key: getattr(each, key) for key in ("seq", "dtype", "gpu")},
        }
        for each in (ours, theirs)
    )
    differs = [
        message(f"published.{key}", here=here[key], there=there[key])
        for key in there
        if here[key] != there[key]
    ]
    if here["model"] != there["model"] and theirs.tflops:
        differs[0] = message("published.tflops", model=differs[0], tflops=theirs.tflops)
    return differs


def _remarks(ours: Rate, theirs: Rate) -> list[Message]:
    """Return what else differs or is not known, and what decides a rate besides."""
    remarks = []
    for key in ("bsz", "checkpointing"):
        here, there = getattr(ours, key), getattr(theirs, key)
        if not there:
            remarks.append(message(f"published.unknown-{key}"))
        elif not here:
            remarks.append(message(f"published.its-{key}", there=there))
        elif here != there:
            remarks.append(message(f"published.{key}", here=here, there=there))
    if None not in (ours.compiled, theirs.compiled) and ours.compiled != theirs.compiled:
        remarks.append(message("published.compiled" if theirs.compiled else "published.eager"))
    if theirs.power_w and theirs.power_w != ours.power_w:
        remarks.append(message("published.power", watts=theirs.power_w))
    return [*remarks, *([message("text", text=theirs.parallel)] if theirs.parallel else [])]


def line(pair: Beside) -> Message:
    """Return a published rate beside ours as one line."""
    values = {key: pair[key] for key in ("source", "date", "gpus", "tokens_per_s")}
    if pair["differs"]:
        return message("published.other", differs=pair["differs"], **values)
    quotient = message("published.same", ratio=pair["ratio"], **values)
    return message("published.but", rate=quotient, remarks=pair["remarks"]) if pair["remarks"] else quotient
