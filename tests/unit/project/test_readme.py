# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every command line that the READMEs and the documents print can be typed as it stands."""

import json
import re
import shlex
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.plan.parameters import NAMES, TABLE

ROOT = Path(__file__).resolve().parents[3]
READMES = ["README.md", "README.zh-CN.md"]
TUTORIALS = ["docs/tutorial/first-cluster.md", "docs/tutorial/first-cluster.zh-CN.md"]
GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("[!r]*/*.md"))
# The copy of inventory/cluster that the first of these documents asks for.
COPIED = "inventory/mycluster"
# What other playbooks read in addition to the parameters of a campaign.
OTHER_NAMES = {row.name for row in TABLE} | {"mirror_sha256", "mirror_piece"}
# Options of ansible-playbook and ansible-runner that are followed by a value.
WITH_VALUE = {"-i", "--inventory", "-e", "--extra-vars", "-l", "--limit", "-t", "--tags", "-p", "--cmdline"}
KNOWN = {
    "ansible",
    "ansible-playbook",
    "ansible-doc",
    "ansible-runner",
    "cp",
    "git",
    "cd",
    ".",
    "grep",
    "ssh",
}
KNOWN |= {"ansible-builder", "ansible-galaxy", "pip", "horovodrun", ".venv/bin/python"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


class Unusable(ValueError):
    """A command line that would not do what the README says."""


def fenced(text, *languages):
    return [body for language, body in FENCE.findall(text) if language in languages]


def commands(text):
    """Return the command lines of a README: those of shell blocks, and those within the prose."""
    lines = [line for block in fenced(text, "sh", "bash", "console") for line in block.splitlines()]
    prose = FENCE.sub("", text)
    inline = [
        code for code in re.findall(r"`([^`\n]+)`", prose) if re.match(r"ansible-\w+ \S|scripts/", code)
    ]
    words = [shlex.split(line, comments=True) for line in lines + inline]
    return [split for split in words if split]


def extra_names(value):
    """Return the variables that one -e argument sets."""
    if value.startswith("@"):
        return set()
    if value.startswith("{"):
        return set(json.loads(value))
    pairs = shlex.split(value)
    if not all("=" in pair for pair in pairs):
        raise Unusable(f"-e {value!r} is not made of k=v")
    return {pair.split("=", 1)[0] for pair in pairs}


def check(words, made=()):
    """Raise Unusable unless the words are a command that works; `made` are paths of earlier ones."""
    program, *rest = words
    if program.startswith("scripts/"):
        if not (ROOT / program).is_file():
            raise Unusable(f"{program} does not exist")
    elif program not in KNOWN:
        raise Unusable(f"{program} is not a command that the README may rely on")
    if program not in ("ansible-playbook", "ansible-runner") and not program.startswith("scripts/"):
        return
    given = iter(rest)
    places = []
    for word in given:
        if word not in WITH_VALUE:
            if not word.startswith("-"):
                places.append(word)
            continue
        value = next(given, None)
        if value is None:
            raise Unusable(f"{word} has no value")
        if word in ("-e", "--extra-vars"):
            unknown = extra_names(value) - set(NAMES) - OTHER_NAMES
            if unknown:
                raise Unusable(f"no such variable: {', '.join(sorted(unknown))}")
        elif word in ("-i", "--inventory") and value not in made and not (ROOT / value).exists():
            raise Unusable(f"inventory {value} does not exist")
        elif word == "-p":
            places.append(value)
        elif word == "--cmdline":
            check(["ansible-playbook", *shlex.split(value)])
    if program == "ansible-playbook":
        for place in places:
            named = re.fullmatch(r"scalebook\.scalebook\.(\w+)", place)  # a playbook of the collection
            if not (ROOT / (f"playbooks/{named[1]}.yml" if named else place)).is_file():
                raise Unusable(f"{place} is not a playbook: is an -e unquoted?")


@pytest.mark.parametrize("readme", READMES)
def test_every_command_line_can_be_typed_as_it_stands(readme):
    found = commands((ROOT / readme).read_text())
    made = {words[-1] for words in found if words[0] == "cp"}
    assert len(found) > 6
    for words in found:
        check(words, made)


@pytest.mark.parametrize(
    "line",
    [
        "ansible-playbook bench.yml -e bsz=64 dtype=fp16",
        "ansible-playbook -e bsz=64 dtype=fp16 bench.yml",
        'ansible-playbook bench.yml -e "bzs=64"',
        'ansible-playbook bench.yml -e "bsz 64"',
        "ansible-playbook benhc.yml",
        "ansible-playbook -i inventory/absent bench.yml",
        "ansible-playbook bench.yml -e",
        "scripts/absent",
        "scripts/demo -e 'bzs=64'",
        "rm -rf results",
    ],
)
def test_a_command_line_that_fails_would_be_found(line):
    with pytest.raises(Unusable):
        check(shlex.split(line))


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_line_of_a_document_can_be_typed(guide):
    for words in commands((ROOT / guide).read_text()):
        check(words, [COPIED])


def test_there_are_documents_with_commands():
    assert {*TUTORIALS, "docs/how-to/compare.md", "docs/explanation/window.md"} <= set(GUIDES)


@pytest.mark.parametrize("pair", [READMES, TUTORIALS], ids=lambda pair: pair[0])
def test_both_languages_show_the_same_commands(pair):
    english, chinese = (commands((ROOT / name).read_text()) for name in pair)
    assert english == chinese


def parameters(document):
    """Return the names in the first column of the table of parameters: the table that holds `bsz`."""
    text = (ROOT / document).read_text()
    (table,) = (block for block in text.split("\n\n") if re.search(r"^\| `bsz` \|", block, re.M))
    cells = re.findall(r"^\| (`\w+`.*?) \|", table, re.M)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize("readme", READMES)
def test_the_table_of_parameters_names_none_that_does_not_exist(readme):
    assert len(parameters(readme)) > 8
    assert set(parameters(readme)) <= set(NAMES)


def test_the_chinese_table_of_all_parameters_names_them_all():
    assert sorted(parameters("docs/reference/parameters.zh-CN.md")) == sorted(NAMES)


def test_both_languages_list_the_parameters_in_the_same_order():
    english, chinese = map(parameters, READMES)
    assert english == chinese


DOCUMENTS = sorted(
    str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)


@pytest.mark.parametrize("readme", DOCUMENTS)
def test_links_lead_to_files_that_exist(readme):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / readme).read_text())
    here = (ROOT / readme).parent
    assert [link for link in links if not (here / link).exists()] == []


@pytest.mark.parametrize("readme", READMES)
def test_the_readme_is_short(readme):
    assert len((ROOT / readme).read_text().splitlines()) <= 140
