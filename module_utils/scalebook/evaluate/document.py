# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Campaigns, prices and criteria -> evaluation.json, of which the document is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.evaluate import criteria, differences, extrapolate, value
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED, Option, of_campaign
from ansible.module_utils.scalebook.evaluate.prices import Price, described

SCHEMA = 1
KEYS = ("framework", "cuda", "cudnn", "nccl", "mpi", "horovod", "python", "commit")
"""The fields of a campaign's provenance that the table of frameworks shows."""


def document(
    given: Mapping[str, Any],
    campaigns: Sequence[Mapping[str, Any]],
    published: Sequence[Option],
    price_list: Sequence[Price],
) -> dict[str, Any]:
    """Return the evaluation as data, every number unrounded.

    `given` are the options of module evaluation, `campaigns` the contents of results.json of each campaign.
    Raises value.ComparisonError where prices are in several currencies.
    """
    measured = [option for results in campaigns for option in of_campaign(results)]
    families = list(dict.fromkeys(option["family"] for option in measured))
    return {
        "schema": SCHEMA,
        "title": given["title"],
        "platform": given["platform"],
        "texts": dict(given["texts"]),
        "campaigns": [_campaign(results) for results in campaigns],
        "frameworks": _frameworks(campaigns),
        "families": [
            {
                **_family(name, [each for each in measured if each["family"] == name]),
                "differences": differences.of_family(campaigns, name),
            }
            for name in families
        ],
        "criteria": _criteria(given["criteria"], campaigns, measured),
        "extrapolations": extrapolate.of_options(
            measured, int(given["criteria"].get("machines") or criteria.DEFAULTS["machines"])
        ),
        "task": _task(given["task"]),
        "deadline_hours": given["deadline_hours"],
        "budget": given["budget"],
        "electricity": given["electricity"],
        "costs": _costs(given, [*measured, *published], price_list),
        "published": list(published),
        "slower_than_one": [
            {"option": option["name"], "source": option["source"], "times": option["rate"] / alone["rate"]}
            for option, alone in value.slower_than_one([*measured, *published])
        ],
        "problems": [
            {
                "campaign": results["campaign"],
                **{name: run.get(name) for name in ("case", "repeat", "reason")},
            }
            for results in campaigns
            for run in results.get("uncounted") or ()
        ],
    }


def _campaign(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the document says of a campaign: when, on what, how many runs, with which parameters."""
    parameters = (results.get("plan") or {}).get("parameters") or {}
    return {
        "name": results["campaign"],
        "started": results["started"],
        "runs": results["counts"],
        "simulated": results.get("simulated"),
        "hardware": [hardware.sentence(entry) for entry in results.get("hardware") or ()],
        "topology": [
            entry["gpu_topology"] for entry in results.get("hardware") or () if entry.get("gpu_topology")
        ],
        "parameters": {name: each for name, each in parameters.items() if each is not None},
    }


def _frameworks(campaigns: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a line per workload and campaign: its versions, as the first node recorded them."""
    lines = []
    for results in campaigns:
        titles = {group["workload"]: group for group in results["groups"]}
        for workload, nodes in ((results.get("provenance") or {}).get("workloads") or {}).items():
            about: Mapping[str, Any] = next(iter(nodes.values()), {})
            group = titles.get(workload, {})
            line = {"workload": workload, "title": group.get("workload_title", workload)}
            line |= {"campaign": results["campaign"], "compiler": group.get("compiler", "")}
            lines.append({**line, **{key: str(about.get(key, "not recorded")) for key in KEYS}})
    return lines


def _family(name: str, options: Sequence[Option]) -> dict[str, Any]:
    """Return the options of a model family, and who was faster where several workloads ran the same case."""
    return {"name": name, "options": list(options), "ranking": ranking(options)}


def ranking(options: Sequence[Option]) -> list[dict[str, Any]]:
    """Return, for each case that several workloads ran, the fastest one and its lead over the others.

    `least` and `most` are the quotients of the slowest and the fastest runs; where they enclose 1, no
    difference is shown.
    """

    def case(option: Option) -> tuple[Any, ...]:
        names = ("gpu", "model", "nodes", "gpus", "bsz", "dtype", "unit")
        # Hardware that is not recorded is known to be the same within a campaign alone.
        place = option["source"] if option["gpu"] == NOT_RECORDED else ""
        return (place, *(option[key] for key in names))  # type: ignore[literal-required]

    lines = []
    for place in dict.fromkeys(map(case, options)):
        rivals = sorted((each for each in options if case(each) == place), key=lambda each: -each["rate"])
        for other in rivals[1:]:
            if other["workload"] != rivals[0]["workload"]:
                lines.append(
                    {
                        "first": rivals[0]["name"],
                        "other": other["name"],
                        "times": rivals[0]["rate"] / other["rate"],
                        "least": rivals[0]["slowest"] / other["fastest"],
                        "most": rivals[0]["fastest"] / other["slowest"],
                    }
                )
    return lines


def _criteria(
    given: Mapping[str, Any], campaigns: Sequence[Mapping[str, Any]], measured: Sequence[Option]
) -> list[criteria.Verdict]:
    limits = {**criteria.DEFAULTS, **{name: each for name, each in given.items() if each is not None}}
    return [
        criteria.scaling(measured, limits["efficiency"], limits["machines"]),
        criteria.utilisation(campaigns, limits["utilisation"]),
        criteria.ahead(measured, limits["ahead"]),
    ]


def _task(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training whose cost is computed, with its number of samples in `total`."""
    total = float(given["samples"]) * float(given["epochs"])
    return {**given, "name": given["name"] or f"{total:,.0f}", "total": total}


def _costs(
    given: Mapping[str, Any], options: Sequence[Option], price_list: Sequence[Price]
) -> list[dict[str, Any]]:
    """Return time and cost of the task for each workload and model: others are not the same training."""
    samples = float(_task(given["task"])["total"])
    names = list(dict.fromkeys((option["workload"], option["model"]) for option in options))
    return [
        _cost(
            given,
            samples,
            name,
            [each for each in options if (each["workload"], each["model"]) == name],
            price_list,
        )
        for name in names
    ]


def _cost(
    given: Mapping[str, Any],
    samples: float,
    name: tuple[str, str],
    options: Sequence[Option],
    price_list: Sequence[Price],
) -> dict[str, Any]:
    found = value.offers(options, price_list, samples, float(given["electricity"] or 0))
    priced = {offer["option"]["name"] for offer in found}
    return {
        "name": " ".join(name),
        "currency": found[0]["price"]["currency"] if found else None,
        "prices": sorted({described(offer["price"]) for offer in found}),
        "offers": [_offer(offer) for offer in sorted(found, key=lambda offer: offer["cost"])],
        "front": [_offer(offer) for offer in value.front(found)],
        "cheapest": [_offer(offer) for offer in value.best(found, value.COST)],
        "fastest": [_offer(offer) for offer in value.best(found, value.HOURS)],
        "within_deadline": [
            _offer(each) for each in value.cheapest_within(found, given["deadline_hours"] or 0)
        ],
        "within_budget": [_offer(each) for each in value.fastest_within(found, given["budget"] or 0)],
        "without_price": [option["name"] for option in options if option["name"] not in priced],
    }


def _offer(offer: value.Offer) -> dict[str, Any]:
    return {
        "name": offer["option"]["name"],
        "source": offer["option"]["source"],
        "gpu": offer["option"]["gpu"],
        "per": offer["price"]["per"],
        **{name: offer[name] for name in ("hourly", "hours", "cost", "energy_cost", "least", "most")},
    }
