# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Says whether a rate that is claimed for training a language model is possible, and of which peak."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.judge.language_models import (
    Beside,
    LanguageModelError,
    Rate,
    beside,
    operations,
)
from ansible.module_utils.scalebook.judge.mfu import TERA

ROUNDING = 1.001
"""By how much a published rate that is claimed again may be more than itself."""
GIGA = 1e9


class Share(TypedDict):
    """A peak, and which share of it a claim is with the whole and with half of attention."""

    precision: str
    peak_tflops: float
    mfu: float
    mfu_half: float


class Verdict(TypedDict):
    """What follows from a claim. Those with `half` count half of attention, what a causal mask leaves of it.

    `level` is impossible, unseen (above everything that was published) or possible.
    """

    flop: float
    flop_half: float
    tflops: float
    tflops_half: float
    shares: list[Share]
    level: str
    verdict: Message
    hints: list[Message]
    published: list[Beside]
    ours: list[Beside]


def find_model(models: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return family and model of data/models.yml that a name means: `Llama-3.1 8B` is llama3 and 8B.

    Raises LanguageModelError that has the names of all language models.
    """
    spelling = re.sub(r"[-_ ]", "", name.lower())
    places = [(family, model) for family in models for model in models[family]["models"]]
    places = [place for place in places if _has_tokens(models, *place)]
    fitting = [place for place in places if re.fullmatch(_pattern(*place), spelling)]
    if len(fitting) != 1:
        names = ", ".join(model if "-" in model else f"{family}-{model}" for family, model in places)
        raise LanguageModelError(f"model={name}: allowed are {names}")
    return fitting[0]


def _pattern(family: str, model: str) -> str:
    """Return the pattern of a model's names, with or without its family, and that with a minor version."""
    return rf"({family.lower()}(\.\d)?)?{model.lower().replace('-', '')}"


def _has_tokens(models: Mapping[str, Any], family: str, model: str) -> bool:
    """Return whether the operations of a model follow from its sequence alone."""
    try:
        operations(models, family, model, 1)
    except flops.FlopsError:
        return False
    return True


def check(
    claim: Rate,
    models: Mapping[str, Any],
    peaks: Mapping[str, float],
    published: Sequence[Rate],
    ours: Iterable[Rate] = (),
) -> Verdict:
    """Return what follows from a claim; `peaks` are those of its GPU. Raises LanguageModelError.

    A rate is impossible if the least arithmetic that the model needs, with half of attention, is above the
    dense peak of its precision.
    """
    if claim.dtype not in peaks:
        raise LanguageModelError(f"dtype={claim.dtype}: data/gpus.csv has no peak of {claim.gpu} in it")
    whole, half = operations(models, claim.family, claim.model, claim.seq)
    tflops, least = (claim.tokens_per_s * flop / TERA for flop in (whole, half))
    most_published = _most(claim, models, published)
    level, verdict = _level(claim, tflops, least, peaks[claim.dtype], most_published)
    return {
        "flop": whole,
        "flop_half": half,
        "tflops": tflops,
        "tflops_half": least,
        "shares": [
            {
                "precision": precision,
                "peak_tflops": peaks[precision],
                "mfu": tflops / peaks[precision],
                "mfu_half": least / peaks[precision],
            }
            for precision in dict.fromkeys((claim.dtype, "bf16"))
            if precision in peaks
        ],
        "level": level,
        "verdict": verdict,
        "hints": list(_hints(claim, least, peaks)) if level == "impossible" else [],
        "published": beside([claim], published),
        "ours": beside([claim], ours),
    }


def _most(claim: Rate, models: Mapping[str, Any], published: Iterable[Rate]) -> tuple[float, Rate] | None:
    """Return the published rate with the most TFLOP/s on the claim's GPU and precision, None without one."""
    alike = [each for each in published if (each.gpu, each.dtype) == (claim.gpu, claim.dtype)]
    amounts = [
        each.tokens_per_s * operations(models, each.family, each.model, each.seq)[0] / TERA for each in alike
    ]
    return max(zip(amounts, alike, strict=True), key=lambda pair: pair[0], default=None)


def _level(
    claim: Rate, tflops: float, least: float, peak: float, most: tuple[float, Rate] | None
) -> tuple[str, Message]:
    place: dict[str, Any] = {"gpu": claim.gpu, "precision": claim.dtype}
    if least > peak:
        return "impossible", message("claim.impossible", tflops=least, peak=peak, **place)
    if most is None:
        return "possible", message("claim.unknown", **place)
    level = "possible" if tflops <= most[0] * ROUNDING else "unseen"
    record = most[1]
    source = {"source": record.source, "model": f"{record.family} {record.model}", "seq": record.seq}
    return level, message(f"claim.{level}", tflops=most[0], **source, **place)


def _hints(claim: Rate, least: float, peaks: Mapping[str, float]) -> Iterator[Message]:
    """Yield what may be meant by a rate that is impossible as it stands."""
    peak = peaks[claim.dtype]
    if claim.gpus > 1 and least / claim.gpus <= peak:
        yield message("claim.all-gpus", gpus=claim.gpus, rate=claim.tokens_per_s / claim.gpus)
    higher = (name for name in ("bf16", "fp8") if name in peaks and peak < peaks[name] >= least)
    for precision in higher:
        yield message("claim.precision", precision=precision, peak=peaks[precision])
    if least <= 2 * peak:
        yield message("claim.sparse", precision=claim.dtype, peak=2 * peak)


def sentences(claim: Rate, verdict: Verdict) -> list[Message]:
    """Return what to say of a claim: itself, its arithmetic, the shares of the peaks, the verdict, hints."""
    rate = claim.tokens_per_s
    return [
        message(
            "claim.is",
            **{"model": f"{claim.family} {claim.model}", "seq": claim.seq, "precision": claim.dtype},
            **{"gpus": claim.gpus, "gpu": claim.gpu, "rate": rate, "total": rate * claim.gpus},
        ),
        message("claim.flop", whole=verdict["flop"] / GIGA, half=verdict["flop_half"] / GIGA),
        message("claim.tflops", whole=verdict["tflops"], half=verdict["tflops_half"]),
        *(message("claim.share", **share) for share in verdict["shares"]),
        verdict["verdict"],
        *verdict["hints"],
    ]
