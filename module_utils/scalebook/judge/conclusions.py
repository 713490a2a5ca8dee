# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a report concludes from its rows: the best ones, one to five sentences, and how far to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    ENOUGH_RUNS,
    Bottleneck,
    Conclusion,
    Family,
    Hardware,
    Message,
    Row,
    Trust,
    message,
)
from ansible.module_utils.scalebook.judge import effects, flags, weak_scaling
from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS

SETTINGS = 2
"""Settings that the sentences name."""
TWICE = 2.0
"""Quotient of rates from which people say «times as fast», not per cent."""


def best(rows: Iterable[Row]) -> list[Row]:
    """Return the fastest usable row of each workload and model, at the most devices that were used."""
    fastest: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row["workload"], row["model"])
        if flags.usable(row) and (key not in fastest or _order(row) > _order(fastest[key])):
            fastest[key] = row
    return sorted(fastest.values(), key=_order, reverse=True)


def _order(row: Row) -> tuple[int, float]:
    return row["devices"], row["median"] or 0.0


def conclude(
    rows: Sequence[Row], families: Iterable[Family], bottlenecks: Iterable[Bottleneck]
) -> list[Conclusion]:
    """Return the sentences: what makes rows fast, what bounds the best one, and what to measure next."""
    top = best(rows)
    if not top:
        return [_conclusion("nothing")]
    causes = {entry["case"]: entry for entry in bottlenecks}
    return [
        *_of_workloads(families, {row["case"]: row for row in rows}),
        *_of_settings([row for row in rows if flags.usable(row)]),
        *_bound(top[0], causes),
        *_losses(top[0], rows),
        *_next(rows, top[0]),
    ][:5]


def _conclusion(code: str, row: Row | None = None, **values: Any) -> Conclusion:
    return {"message": message(f"conclusion.{code}", **values), "case": row["case"] if row else None}


def _of_workloads(families: Iterable[Family], rows: Mapping[str, Row]) -> list[Conclusion]:
    """Return how much faster the fastest workload of a family is than the next, at the most devices."""
    for family in families:
        pairs = []
        for line in family["lines"]:
            measured = [rows[cell["case"]] for cell in line["cells"] if cell]
            own = sorted(filter(flags.usable, measured), key=_order, reverse=True)
            others = [row for row in own if row["workload"] != own[0]["workload"]]
            pairs += [(own[0], others[0])] if others else []
        if pairs:
            first, second = max(pairs, key=lambda pair: pair[0]["devices"])
            values = {"faster": first["workload"], "slower": second["workload"], "label": first["label"]}
            gain = (first["median"] or 0) / (second["median"] or 1)
            return [_conclusion("faster", first, **values, gain=_gain(gain))]
    return []


def _gain(gain: float, least: bool = False) -> Message:
    """Return `7.5 % faster than`, from twice on `2.7 times as fast as`; `least` makes it a lower limit."""
    values = {"gain": gain, "more": gain - 1}
    if gain >= TWICE:
        return message("effect.least-times" if least else "effect.times", **values)
    return message("effect.least-percent" if least else "effect.percent", **values)


def _of_settings(rows: Sequence[Row]) -> list[Conclusion]:
    """Return the settings with the largest clear effects at the most devices, each once."""
    chosen: dict[str, effects.Effect] = {}
    clear_effects = [each for each in effects.effects(rows) if each.clear]
    # That a larger batch is faster surprises nobody.
    for effect in sorted(clear_effects, key=lambda each: (each.setting == "bsz", -each.gain)):
        chosen.setdefault(effect.setting, effect)
    conclusions = []
    for setting, effect in list(chosen.items())[:SETTINGS]:
        faster, slower = effect.faster, effect.slower
        names = [effects.named(row, setting) for row in (faster, slower)]
        own = [each for each in clear_effects if each.setting == setting]
        same = [each for each in own if [effects.named(row, setting) for row in each[1:3]] == names]
        least = min(each.gain for each in same)
        several = len(same) > 1 and least < effect.gain - effects.LEAST
        values = {
            "faster": names[0],
            "slower": names[1],
            "gain": _gain(effect.gain),
            "label": faster["label"],
        }
        word = "setting-from" if several else "setting"
        conclusions.append(_conclusion(word, faster, **values, least=_gain(least, least=True)))
    return conclusions


def _bound(row: Row, causes: Mapping[str, Bottleneck]) -> list[Conclusion]:
    """Return what bounds a row, as its bottleneck says first."""
    bound = causes[row["case"]]["bound"] if row["case"] in causes else None
    if not bound:
        return []
    what = message("bottleneck.likely", what=bound["what"], evidence=bound["evidence"][:1])
    return [_conclusion("bound", row, label=row["label"], what=what)]


def _losses(row: Row, rows: Iterable[Row]) -> list[Conclusion]:
    """Return where a step loses its efficiency, for a loss that is worth a sentence."""
    base = next((each for each in rows if each["group"] == row["group"] and each["label"] == BASELINE), None)
    efficiency = row["efficiency"]
    if row is base or efficiency is None or efficiency >= THRESHOLDS["efficiency"].value:
        return []
    parts = (
        weak_scaling.longer_parts(row["steps"], base["steps"])
        if base and row["steps"] and base["steps"]
        else None
    )
    values = {"label": row["label"], "lost": 1 - efficiency}
    if parts is None:
        return [_conclusion("lost", row, **values)]
    return [_conclusion("lost-to", row, **values, waiting=parts[0], exchange=parts[1])]


def _next(rows: Sequence[Row], top: Row) -> list[Conclusion]:
    """Return what to measure next: what the rows lack first, then what the campaign did not reach."""
    stopped = [row for row in rows if not flags.usable(row)]
    if stopped:
        labels = list(dict.fromkeys(row["label"] for row in stopped))
        return [_conclusion("again", stopped[0], cases=labels, count=len(stopped))]
    few = [row for row in rows if row["status"] == "provisional"]
    if few:
        return [_conclusion("repeats", few[0], count=len(few), of=len(rows), needed=ENOUGH_RUNS)]
    if any(flag["code"] == "shared-machine" for flag in top["flags"]):
        return [_conclusion("machines", top)]
    return [_conclusion("nodes", top, nodes=2 * top["nodes"])]


def trust(rows: Sequence[Row], hardware: Sequence[Hardware]) -> Trust:
    """Return how far a reader may trust the rows, by the worst level of their flags, and why."""
    kinds: dict[str, int] = {}
    for row in rows:
        for code in {flag["code"]: None for flag in row["flags"]}:
            kinds[code] = kinds.get(code, 0) + 1
    unusable = sum(not flags.usable(row) for row in rows)
    level = "stop" if unusable == len(rows) else "care"
    if not unusable and hardware and not any(flags.LEVELS[code] == "care" for code in kinds):
        level = "sound"
    order = [code for each in ("stop", "care") for code in kinds if flags.LEVELS[code] == each]
    reasons = [
        message("trust.kind", kind=message(f"short.{code}"), count=kinds[code], of=len(rows))
        for code in order
    ]
    unknown = [] if hardware else [message("trust.hardware")]
    return {"level": level, "reasons": [*unknown, *reasons]}
