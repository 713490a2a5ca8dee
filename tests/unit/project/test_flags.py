# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Flags of rows are made in one file: judge/flags.py."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "module_utils" / "scalebook"
MAKERS = {PACKAGE / "judge" / "flags.py", PACKAGE / "contracts.py"}
"""The contracts turn the flags of earlier files into those of today."""


def makes_a_flag(node):
    """Say whether an expression is a flag: a dictionary of its two keys, or a call of its type."""
    if isinstance(node, ast.Dict):
        return {getattr(key, "value", None) for key in node.keys} == {"code", "message"}
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Flag"


def test_only_the_file_of_flags_makes_a_flag():
    makers = {
        path
        for path in PACKAGE.rglob("*.py")
        if any(makes_a_flag(node) for node in ast.walk(ast.parse(path.read_text())))
    }
    assert makers == MAKERS
