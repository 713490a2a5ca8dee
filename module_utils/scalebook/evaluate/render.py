# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.json -> the document, in the language of its texts. Needs Jinja2, on the control node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.evaluate import criteria
from ansible.module_utils.scalebook.text import markdown_cell

try:
    import jinja2

    MISSING = ""
except ImportError as exc:
    MISSING = str(exc)


def markdown(evaluation: Mapping[str, Any], texts: Mapping[str, Any], templates: str) -> str:
    """Return the document as Markdown; `texts` are those of a language, `templates` is their directory."""
    # The output is Markdown, whose cells escape by themselves.
    environment = jinja2.Environment(  # noqa: S701
        loader=jinja2.FileSystemLoader(templates),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        md=markdown_cell,
        number=number,
        gain=gain,
        command=command,
        criterion=lambda verdict: criterion(verdict, texts),
        evidence=evidence,
    )
    template = environment.get_template("evaluation.md.j2")
    return template.render(e=evaluation, t=texts, conclusion=conclusion(evaluation, texts))


def number(value: float) -> str:
    """Return a number as people read it: four significant digits, thousands separated."""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def gain(times: float) -> str:
    """Return how much faster a quotient of rates is, in per cent: 1.234 is 23.4."""
    return f"{100 * (times - 1):.1f}"


def command(parameters: Mapping[str, Any]) -> str:
    """Return the parameters of a campaign as -e takes them."""

    def text(value: Any) -> str:
        values = value if isinstance(value, list) else [value]
        return ",".join(str(each).lower() if isinstance(each, bool) else str(each) for each in values)

    return '`-e "' + " ".join(f"{name}={text(each)}" for name, each in parameters.items()) + '"`'


def criterion(verdict: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    """Return a criterion in words."""
    name = f"criterion_{verdict['criterion']}"
    if verdict["criterion"] == "ahead" and not verdict["limit"]["workload"]:
        name = "criterion_ahead_of_none"
    limits = {key: f"{each:g}" if isinstance(each, float) else each for key, each in verdict["limit"].items()}
    return str(texts[name]).format(**limits)


def evidence(verdict: Mapping[str, Any]) -> str:
    """Return what a criterion was judged by, up to five of it, what did not meet it first."""
    ordered = sorted(verdict["evidence"], key=lambda each: each[2] == criteria.MET)
    shown = [f"{markdown_cell(name)}: {number(value)} {verdict['unit']}" for name, value, _ in ordered[:5]]
    more = len(ordered) - len(shown)
    return "; ".join(shown + [f"… (+{more})"] * bool(more)) or "–"


def conclusion(evaluation: Mapping[str, Any], texts: Mapping[str, Any]) -> list[str]:
    """Return the sentences of the conclusion, all made from the figures of the document."""
    lines = []
    for family in evaluation["families"]:
        best = max(family["options"], key=lambda option: float(option["rate"]))
        said = texts["fastest_of"].format(family["name"], number(best["rate"]), best["unit"], best["name"])
        lines.append(said)
    for verdict in evaluation["criteria"]:
        lines.append(f"{criterion(verdict, texts)}: {texts['verdicts'][verdict['verdict']]}")
    for cost in evaluation["costs"]:
        if cost["offers"]:
            task = f"{evaluation['task']['name']}, {cost['name']}"
            cheapest, fastest = cost["cheapest"], cost["fastest"]
            price = f"{number(cheapest[0]['cost'])} {cost['currency']}"
            lines.append(texts["cheapest_of"].format(task, price, named(cheapest, texts)))
            lines.append(
                texts["quickest_of"].format(task, number(fastest[0]["hours"]), named(fastest, texts))
            )
    return lines


def named(offers: list[Mapping[str, Any]], texts: Mapping[str, Any]) -> str:
    """Return the name of the best option, or the names of those that tie."""
    names = list(dict.fromkeys(f"{offer['name']}, {offer['gpu']}" for offer in offers))
    return names[0] if len(names) == 1 else str(texts["tie"]).format("; ".join(names))
