# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Identifiers say what they hold: none is a verb or preposition without its object."""

import ast

import pytest
from project_files import ROOT, project_files

BARE = frozenset(
    "found said lost alone given made known used wanted done shown seen taken kept asked heard "
    "written built drawn counted sent work at of without within".split()
)
"""Words that leave open of what: `found` is `paths`, `given` is `extra_variables`, `at` is `offset`."""
FILES = [name for name in project_files() if name.endswith(".py") and not name.startswith("tests/")]


def bare(source):
    """Return (line, name) of functions, parameters and names that are bare words."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = [(node.lineno, node.name) for node in nodes if isinstance(node, ast.FunctionDef)]
    names += [(node.lineno, node.arg) for node in nodes if isinstance(node, ast.arg)]
    fields = {
        field.target
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    names += [
        (node.lineno, node.id)
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields
    ]
    return [(line, name) for line, name in names if name.lstrip("_") in BARE]


@pytest.mark.parametrize("name", FILES)
def test_names_say_what_they_hold(name):
    wrong = [f"{name}:{line}: {word}" for line, word in bare((ROOT / name).read_text())]
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        "def found(): pass",
        "def f(given): pass",
        "found = 1",
        "f = lambda at: at",
        "lost: int = 1",
        "def f():\n  made = 1",
    ],
)
def test_a_bare_name_is_found(line):
    assert bare(line) != []
