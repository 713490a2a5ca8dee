# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What was said is not read again: no pattern of the code matches a sentence of the catalogue.

A pattern matches a sentence where it needs half of the words that stand in it, four at least, whatever its
values are.  `\\d+` needs none, and a text of logs, such as `out of memory`, has few of them.
"""

import ast
import re
from re import _constants as kinds
from re import _parser as parser

import pytest
from ansible.module_utils.scalebook.pages.catalogue import CATALOGUES, PLACE, phrase
from role_files import ROLES

ROOT = ROLES.parent
FOLDERS = ("module_utils/scalebook", "library", *(each.name for each in ROOT.glob("*_plugins")))
OURS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
OF_RE = {"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
OF_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split"}
WORD = re.compile(r"[A-Za-z]{2,}")
FEWEST = 4  # words of a sentence
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
READS_ITS_OWN = {
    "module_utils/scalebook/judge/versions.py": "a version that an earlier stack_check_info.py wrote as text",
}


def sentences():
    """Return (words, filled) of the English sentences of four words or more, with numbers and with names."""
    said = []
    for code, text in CATALOGUES["en"].items():
        own, names = set(WORD.findall(PLACE.sub(" ", text))), [place[1] for place in PLACE.finditer(text)]
        if len(own) >= FEWEST:
            said += [(own, phrase(code, dict.fromkeys(names, value), "en")) for value in ("3", "NODE1")]
    return said


def patterns(source):
    """Return the patterns of a program, and the texts that it looks for at the ends of others."""
    tree = ast.parse(source)
    known = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = _text(node.value, known)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            text = _text(node.args[0], known)
            if text and getattr(node.func.value, "id", "") == "re" and node.func.attr in OF_RE:
                found.append(text)
            elif text and node.func.attr in OF_TEXT:
                found.append(re.escape(text))
    return found


def _text(node, known):
    """Return the text of an expression, `.+` for what is not known of it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.JoinedStr):
        parts = (part if isinstance(part, ast.Constant) else part.value for part in node.values)
        return "".join(_text(part, known) or ".+" for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (_text(node.left, known) or "") + (_text(node.right, known) or "")
    return None


def words_of(parsed):
    """Return the words of a pattern, those of all alternatives."""
    return set(WORD.findall(_literals(parsed)))


def _literals(parsed):
    text = ""
    for kind, value in parsed:
        if kind is kinds.LITERAL:
            text += chr(value)
        elif kind is kinds.BRANCH:
            text += "".join(f" {_literals(each)} " for each in value[1])
        elif kind is kinds.SUBPATTERN or kind in REPEATS:
            text += _literals(value[-1])
        else:
            text += " "
    return text


def read_again(pattern, said):
    """Return the first of the sentences `said` that a pattern matches."""
    words = words_of(parser.parse(pattern))
    if len(words) < FEWEST:
        return None
    for own, filled in said:
        enough = max(FEWEST, len(own) / 2)
        if len(words & own) >= enough:
            for match in re.finditer(pattern, filled):
                if len(words & own & set(WORD.findall(match[0]))) >= enough:
                    return filled
    return None


SAID = sentences()


def test_no_pattern_matches_what_a_message_says():
    found = {
        path.relative_to(ROOT).as_posix(): (pattern, sentence)
        for path in OURS
        for pattern in patterns(path.read_text())
        if (sentence := read_again(pattern, SAID))
    }
    assert {name: pair for name, pair in found.items() if name not in READS_ITS_OWN} == {}
    assert set(READS_ITS_OWN) <= set(found), "a reason that nothing needs"


@pytest.mark.parametrize(
    "line",
    [
        're.match(r"the repeats differ by (.+)", text)',
        'SAID = re.compile(r"Differs in all cases: (?P<what>.+)\\.")',
        'A = "measured "; re.search(f"(.+) {A}(.+) times the rate of (.+) in (.+)", text)',
        'text.endswith("all in the report")',
        'text.removeprefix("needs ").partition(" nodes, the inventory has ")',
    ],
)
def test_a_pattern_of_an_own_sentence_is_found(line):
    assert [pattern for pattern in patterns(line) if read_again(pattern, SAID)]


@pytest.mark.parametrize(
    "line",
    [
        're.match(r"\\d+", text)',
        're.search(r"(?:CUDA )?out of memory", line)',
        're.search("is lost|unknown error", line)',
        're.split(r"\\s*, \\s*", text)',
        're.fullmatch(r"(\\S+) \\(rank (\\d+), host (\\S+)\\) (.*)", line)',
        'text.partition(": ")',
    ],
)
def test_a_pattern_of_a_log_or_of_digits_is_none(line):
    assert [pattern for pattern in patterns(line) if read_again(pattern, SAID)] == []
