# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The words of docs/glossary.md, and no others for the same things.

`PYTHONPATH=tests/helpers python tests/unit/project/test_words.py [PATH]...` prints every finding.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from project_files import ROOT, project_files

# Recordings, results, the licence and history are not rewritten; this file would find itself.
NOT_OURS = (
    "tests/data/",
    "docs/results/",
    "data/",
    "LICENSE",
    "CHANGELOG.md",
    "tests/unit/project/test_words.py",
)
TEXTS = (".md", ".yml", ".yaml", ".py", ".j2", ".sh", ".cfg", ".toml", ".in", ".ini", ".cff", "")


class Rule(NamedTuple):
    """A forbidden pattern, a text that each match contains, what to use, and lines with a match."""

    pattern: str
    stem: str
    use: str
    examples: list[str]


# Case does not matter. In quotes, gang and knobs may be keys or values of old records.
RULES = [
    Rule(r"\bcure[sd]?\b", "cure", "fix", ["# The cure: start again", "each finding has its cures"]),
    Rule(
        r"\bmend(s|ed|ing)?\b", "mend", "fix, repair", ["- name: Mend what apt left", "mended by the start"]
    ),
    Rule(r"\banew\b", "anew", "again, from scratch", ["made anew"]),
    Rule(r"(?<!['\"])\bgangs?\b(?!['\"])", "gang", "job", ["Launch the gang", "two gangs at once"]),
    Rule(r"(?<!['\"])\bknobs?\b(?!['\"])", "knob", "parameter", ["a misspelt knob", "Knobs"]),
    Rule(r"\btold\b", "told", "reported, printed, given", ["it is told by name", "told = json.loads(line)"]),
    Rule(r"\bmedian bears\b", "median bears", "the median is robust to it", ["the median bears it"]),
    Rule(r"\bcan(not| not)? be meant\b", "be meant", "invalid", ["Refuse what cannot be meant"]),
    Rule(r"\bwhat no \w+ can mean\b", "can mean", "invalid", ["what no campaign can mean"]),
    Rule(r"\blogical (node|machine|host)s?\b", "logical ", "simulated node", ["four logical nodes"]),
    Rule(r"\bcontrollers?\b", "controller", "control node", ["one controller at a time"]),
    Rule(r"\bproofs?\b", "proof", "stack check, comparison", ["the proof is made all the same"]),
    Rule(
        r"(?<!there )\b(is|are|was|were) no (?!longer\b|more\b)(?=[a-z])",
        " no ",
        "is not a",
        ["it is no playbook"],
    ),
    Rule(
        r"(/s|\bsamples|\bsentences|\btokens|\bbatch [\d,]+) a (GPU|device|node)\b",
        " a ",
        "per GPU",
        ["5,774 samples/s a GPU", "8 samples a device", "batch 512 a GPU"],
    ),
    Rule(r"\bdesign §", "design", "the name of the upstream file or paper", ["as design §4 asks"]),
    Rule(r"\bseed 00\d", "seed 00", "the name of the upstream file or paper", ["the table of seed 001"]),
    Rule(r"\bpass(es|ed)? over\b", "over", "skips", ["passes over what has not changed"]),
    Rule(r"\bspoil(s|ed|ing)?\b", "spoil", "invalidate", ["what would spoil a measurement"]),
    Rule(r"\b(no|the) outside(?= cut|[.,;:)]|$)", "outside", "the internet", ["hosts with no outside."]),
    Rule(r"\bof the kind\b", "of the kind", "of the same type", ["another host of the kind"]),
    Rule(r"\bheld against\b", "held against", "compared with", ["held against that campaign"]),
    Rule(r"\bquick(er|est)\b", "quick", "faster, fastest", ["2 % quicker"]),
    Rule(r"\ball the same\b", "all the same", "anyway, in any case", ["-e force=true tries it all the same"]),
    Rule(
        r"\bbelieve[ds]?\b", "believe", "valid, plausible, accepted", ["what a log must show to be believed"]
    ),
    Rule(r"\b(can|could)(not| not)? be had\b", "be had", "is available", ["where Python 3.8 can be had"]),
    Rule(r"\bcrawl(s|ed|ing)?\b", "crawl", "is slow", ["fp16 on a CPU crawls"]),
    Rule(r"\bworth a word\b", "worth a word", "worth a warning", ["what is worth a word about a run"]),
    Rule(r"\b(is|are|was|were) wanted\b", "wanted", "required", ["step 120 is wanted"]),
    Rule(r"\bbelongs? into\b", "into", "belong in", ["the groups that belong into it"]),
    Rule(r"\bhalf as long again\b", "long again", "50 % longer", ["half as long again as the others"]),
    Rule(r"\breason stands above\b", "stands above", "see the error above", ["the reason stands above"]),
    Rule("样例", "样例", "样本", ["每百万样例", "样例/秒"]),
    Rule("台 ?设备", "设备", "个设备", ["4 台设备"]),
    Rule("模型家族", "家族", "模型系列", ["同一模型家族"]),
    Rule("使用率", "使用率", "利用率", ["GPU 平均使用率"]),
    Rule("测试(项|组合)", "测试", "用例", ["所有测试项", "测试组合"]),
    Rule("评测对象", "评测对象", "训练任务", ["各评测对象的性能"]),
]
# (file, word) of what is right where it is: the name of a thing of somebody else.
ALLOWED = {
    # A heading of `horovodrun --check-build`.
    ("roles/horovod/filter_plugins/horovod.py", "controllers"),
    ("roles/horovod/vars/main.yml", "controllers"),
    ("tests/integration/test_horovod_role.py", "controllers"),
    ("tests/unit/workloads/test_horovod.py", "controllers"),
}

SEARCHES = [(re.compile(rule.pattern, re.IGNORECASE), rule) for rule in RULES]


def our_texts():
    """Return the texts that are ours, as paths relative to the root."""
    return [
        name
        for name in project_files()
        if not name.startswith(NOT_OURS)
        and Path(name).suffix in TEXTS
        and not re.search(r"requirements.*\.txt$", name)
    ]


def findings(name, text):
    """Return (file, word) and a sentence for every word of the list in a text."""
    found, lines, lower = [], text.splitlines(), text.lower()
    for search, rule in SEARCHES:
        if rule.stem not in lower:
            continue
        for number, line in enumerate(lines, 1):
            for match in search.finditer(line):
                word = match.group().strip()
                if (name, word.lower()) not in ALLOWED:
                    found.append(f"{name}:{number}: «{word}», use: {rule.use}")
    return found


def all_findings(paths=("",)):
    """Return {file: findings} of all texts below `paths`."""
    result = {}
    for name in our_texts():
        content = (ROOT / name).read_bytes()
        if name.startswith(tuple(paths)) and b"\0" not in content:
            found = findings(name, content.decode())
            if found:
                result[name] = found
    return result


def test_texts_use_the_words_of_the_glossary():
    wrong = [line for lines in all_findings().values() for line in lines]
    assert not wrong, "\n".join(["words that docs/glossary.md does not have:", *wrong])


@pytest.mark.parametrize(("name", "word"), sorted(ALLOWED))
def test_every_exception_is_needed(name, word, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ALLOWED", set())
    assert any(f"«{word}»" in found.lower() for found in findings(name, (ROOT / name).read_text()))


@pytest.mark.parametrize(("rule", "line"), [(rule, line) for rule in RULES for line in rule.examples])
def test_a_word_of_the_list_is_found_and_named(rule, line):
    (found, *_) = findings("docs/planted.md", f"first line\n{line}\n")
    assert found.startswith("docs/planted.md:2: «") and found.endswith(f"use: {rule.use}")


@pytest.mark.parametrize(
    "line",
    [
        "there is no campaign below results/",
        "the node is no longer reachable",
        'record["gang"]["seconds"]',
        "secure, recommend, foretold, waterproof",
        "a GPU that is slow",
    ],
)
def test_other_text_is_not_found(line):
    assert findings("docs/planted.md", line) == []


if __name__ == "__main__":
    for found in all_findings(sys.argv[1:] or ("",)).values():
        print("\n".join(found))
