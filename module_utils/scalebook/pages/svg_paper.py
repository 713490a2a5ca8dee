# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A chart with its style as attributes, for word processors.

Those know neither nested selectors nor variables of CSS.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree import ElementTree

from ansible.module_utils.scalebook.pages import svg

_NAMESPACE = "http://www.w3.org/2000/svg"
_FONT = re.compile(r"(\d+px) (.*)")
_VARIABLE = re.compile(r"var\((--\w+)\)")


class _Rule(NamedTuple):
    """A rule of the style: what its element and, before that, its ancestors must have, and what it sets."""

    path: list[tuple[str, set[str]]]
    values: dict[str, str]


def for_paper(chart: str) -> tuple[str, float, float]:
    """Return a chart of svg.framed as a file of its own, with its width and height in pixels.

    The colours are those of paper.
    """
    root = ElementTree.fromstring(chart)  # noqa: S314 (our own text)
    _, _, wide, tall = (float(number) for number in root.attrib["viewBox"].split())
    root.set("width", f"{wide:g}")
    root.set("height", f"{tall:g}")
    _dress(root, [], {}, _rules())
    ElementTree.register_namespace("", _NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode"), wide, tall


def _rules() -> list[_Rule]:
    """Return the rules of svg.style() that hold on paper; more specific ones come later there."""
    declarations = []
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", svg.style().partition("@media")[0]):
        path = []
        for part in selector.split():
            tag, *classes = part.split(".")
            path.append((tag, set(classes)))
        pairs = (pair.partition(":") for pair in body.split(";") if pair)
        declarations.append(_Rule(path, {name.strip(): value.strip() for name, _, value in pairs}))
    return declarations


def _matches(element: ElementTree.Element, part: tuple[str, set[str]]) -> bool:
    tag, classes = part
    name = element.tag.rpartition("}")[2]
    return tag in ("", name) and classes <= set(element.get("class", "").split())


def _applies(rule: _Rule, element: ElementTree.Element, ancestors: list[ElementTree.Element]) -> bool:
    if not _matches(element, rule.path[-1]):
        return False
    outer_parts = list(rule.path[:-1])
    for ancestor in reversed(ancestors):
        if outer_parts and _matches(ancestor, outer_parts[-1]):
            outer_parts.pop()
    return not outer_parts


def _dress(
    element: ElementTree.Element,
    ancestors: list[ElementTree.Element],
    variables: dict[str, str],
    rules: list[_Rule],
) -> None:
    """Set the attributes of an element and of all below; `variables` are those of its ancestors."""
    values: dict[str, str] = {}
    for rule in rules:
        if _applies(rule, element, ancestors):
            values.update(rule.values)
    variables = {**variables, **{name: value for name, value in values.items() if name.startswith("--")}}
    for name, value in values.items():
        text = _VARIABLE.sub(lambda name: variables[name[1]], value)
        font = _FONT.fullmatch(text)
        if name == "font" and font:
            element.set("font-size", font[1])
            element.set("font-family", "sans-serif")
        elif not name.startswith("--"):
            element.set(name, text)
    for child in element:
        _dress(child, [*ancestors, element], variables, rules)
    element.attrib.pop("class", None)
