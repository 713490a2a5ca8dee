# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Facts stay data until they are printed: only pages/ writes a tag or the digits of a number.

Programs of roles run on nodes, which have no pages/; what they print is theirs.
"""

import ast
import functools
import re

import pytest
from role_files import ROLES

ROOT = ROLES.parent
PAGES = ROOT / "module_utils/scalebook/pages"
OURS = sorted(
    path
    for folder in ("module_utils/scalebook", "library", *(each.name for each in ROOT.glob("*_plugins")))
    for path in (ROOT / folder).rglob("*.py")
    if PAGES not in path.parents
)
ELEMENTS = (
    "a b body br circle code desc details div em g h1 h2 h3 head html img li ol p path polyline pre "
    "rect script section span strong style sub summary sup svg table tbody td text th thead title tr tspan ul"
)
TAG = re.compile(rf"(?<!\?P)</?(?:{ELEMENTS.replace(' ', '|')})(?=[\s>/])")
DIGITS = re.compile(r"[.,%eEfFgGn]")
"""In what follows the colon of a place in an f-string: a number of digits, a separator, a date."""
OLD_DIGITS = re.compile(r"%[-+ #0-9]*(?:\.\d+)?[eEfFgG]")
DOCUMENTED = {"DOCUMENTATION", "EXAMPLES", "RETURN"}

WRITES_DIGITS = {
    "module_utils/scalebook/accept/criteria.py": "a refusal, which names a limit",
    "module_utils/scalebook/flops.py": "a refusal, for who writes a declaration",
    "module_utils/scalebook/judge/flags.py": "thresholds in a page of the documents",
    "module_utils/scalebook/judge/self_reported.py": "as many digits as the framework printed",
    "module_utils/scalebook/limited.py": "a refusal, which names the seconds that were waited",
    "module_utils/scalebook/node/removal.py": "runs on nodes, which have no pages/",
}
"""The files outside pages/ that write digits, and for whom."""


parsed = functools.cache(ast.parse)


def tags(text):
    """Return the tags in the strings of a program, but those of its documentation."""
    tree = parsed(text)
    documented = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        or (isinstance(node, ast.Assign) and DOCUMENTED & {getattr(each, "id", "") for each in node.targets})
        for part in [node.value]
    }
    return [
        found
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
        for found in TAG.findall(node.value)
    ]


def digits(text):
    """Return the places of a program that turn a number into text of a certain form."""
    tree = parsed(text)
    # float(f"{value:.4g}") is a number again.
    numbers = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "float"
        for part in ast.walk(node)
    }
    return [ast.unparse(node) for node in ast.walk(tree) if id(node) not in numbers and _writes_digits(node)]


def _writes_digits(node):
    if isinstance(node, ast.FormattedValue):
        spec = node.format_spec.values if node.format_spec else []
        literal = "".join(part.value for part in spec if isinstance(part, ast.Constant))
        return bool(DIGITS.search(literal)) or _is_round(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        return bool(OLD_DIGITS.search(str(node.left.value)))
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", "")
    return name == "format" or (name == "str" and any(map(_is_round, node.args)))


def _is_round(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "round"


@pytest.mark.parametrize(
    "line",
    ['x = f"<td>{text}</td>"', 'x = "<path d=M0/>"', 'show("<br>")', 'x = "a" "</svg>"'],
)
def test_a_tag_is_found(line):
    assert tags(line)


@pytest.mark.parametrize(
    "line",
    ['"""<td>"""', 'DOCUMENTATION = "<table>"', 'x = "(?P<text>.+)"', 'x = "results/<campaign>"'],
)
def test_other_angle_brackets_are_no_tags(line):
    assert tags(line) == []


@pytest.mark.parametrize(
    "line",
    [
        'f"{rate:.1f}"',
        'f"{rate:,}"',
        'f"{rate:.{count}f}"',
        'f"{round(rate, 2)}"',
        'f"{when:%Y}"',
        "str(round(rate))",
        '"%.2f s" % rate',
        'format(rate, ",")',
    ],
)
def test_digits_are_found(line):
    assert digits(line)


@pytest.mark.parametrize(
    "line", ['f"{name:>7} {minutes:02}"', 'f"{name:<{width}}"', 'float(f"{rate:.4g}")', "round(rate, 2)"]
)
def test_columns_and_rounded_numbers_are_no_digits(line):
    assert digits(line) == []


def test_only_pages_write_tags():
    assert {path.relative_to(ROOT).as_posix(): tags(path.read_text()) for path in OURS} == {
        path.relative_to(ROOT).as_posix(): [] for path in OURS
    }


def test_only_pages_and_what_has_a_reason_write_digits():
    writing = {path.relative_to(ROOT).as_posix(): digits(path.read_text()) for path in OURS}
    assert {name: found for name, found in writing.items() if found and name not in WRITES_DIGITS} == {}
    assert [name for name in WRITES_DIGITS if not writing[name]] == [], "a reason that nothing needs"


def test_pages_write_both():
    assert any(tags(path.read_text()) for path in PAGES.glob("*.py"))
    assert any(digits(path.read_text()) for path in PAGES.glob("*.py"))
