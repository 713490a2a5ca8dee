# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What reads, plans, accepts and judges gives reasons, notes and fixes as messages: no sentence is data."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "module_utils" / "scalebook"
PARTS = ("accept", "judge", "plan", "preflight", "read", "store")
FILES = sorted(path for part in PARTS for path in (PACKAGE / part).glob("*.py"))
NAMED = ("expected", "fix", "notes", "observed", "reason", "refusal", "refusals")


def name_of(node):
    """Return what a target of an assignment, or the key of an entry, is called."""
    node = node.slice if isinstance(node, ast.Subscript) else node
    return getattr(node, "value", None) if isinstance(node, ast.Constant) else getattr(node, "attr", None)


def is_sentence(node):
    """Say whether an expression may be a sentence: text with a space in it."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    sentence = isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp, ast.BoolOp, ast.IfExp, ast.List))
    return sentence and any(isinstance(text, str) and " " in text.strip() for text in texts)


def sentences(source):
    """Yield the lines of code that give a sentence as a reason or a note."""
    for node in ast.walk(ast.parse(source)):
        pairs = []
        if isinstance(node, ast.Dict):
            pairs = [(name_of(key), value) for key, value in zip(node.keys, node.values, strict=True) if key]
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            pairs = [(name_of(target), node.value) for target in targets]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            adds = node.func.attr in ("append", "extend")
            pairs = [(name_of(node.func.value) if adds else None, node.args[0])]
            if getattr(node.func.value, "id", "") in NAMED and adds:
                pairs = [("notes", node.args[0])]
        if isinstance(node, ast.Call):
            pairs += [(each.arg, each.value) for each in node.keywords]
        yield from (node.lineno for name, value in pairs if name in NAMED and is_sentence(value))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_reason_or_a_note_is_a_message(path):
    assert list(sentences(path.read_text())) == []


@pytest.mark.parametrize(
    "code",
    [
        'x = {"reason": f"{file} is missing"}',
        'record["notes"] = ["a note"]',
        'log.refusal = "it is not"',
        'notes.append(f"{count} lines of it")',
        'log.notes.append("a note")',
        'finding("gpu", "warn", fix=f"reset {gpu} and reboot")',
    ],
)
def test_a_sentence_is_found(code):
    assert list(sentences(code)) == [1]
