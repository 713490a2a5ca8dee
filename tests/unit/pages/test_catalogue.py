# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A message is said in every language, with all its values; text is left as it is."""

import ast
import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.pages import catalogue, messages_zh
from ansible.module_utils.scalebook.text import clean

ENGLISH, CHINESE = catalogue.CATALOGUES["en"], catalogue.CATALOGUES["zh"]


def places(sentence):
    return {match[1] for match in catalogue.PLACE.finditer(sentence)}


def test_every_code_is_in_both_catalogues():
    assert set(ENGLISH) == set(CHINESE)


@pytest.mark.parametrize("code", ENGLISH)
def test_both_languages_use_the_same_values(code):
    assert places(ENGLISH[code]) == places(CHINESE[code])


ROOT = Path(__file__).parents[3]
MODULES = [
    path
    for top in ("module_utils", "library", "roles", "filter_plugins", "callback_plugins")
    for path in (ROOT / top).rglob("*.py")
]


def written():
    """Return the texts that the programs have, and how codes begin that they put together."""
    texts = set()
    begins = {"head.", "count."}
    for path in MODULES:
        if path.stem in ("messages_en", "messages_zh", "heads"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts |= {node.value.replace(" ", "-"), *node.value.split()}
            elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                begins.add(node.values[0].value)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("name", "join"):
                begins |= {f"{each.value}." for each in node.args if isinstance(each, ast.Constant)}
    for path in (ROOT / "templates").glob("*.j2"):
        texts |= set(re.findall(r"_\('([^']+)'", path.read_text()))
    texts |= {yaml.safe_load(path.read_text())["unit"] for path in ROOT.glob("roles/*/meta/workload.yml")}
    return texts, begins


def test_every_code_is_said_somewhere():
    texts, begins = written()
    rest = {code: [code[len(each) :] for each in begins if code.startswith(each)] for code in ENGLISH}
    silent = [
        code
        for code in ENGLISH
        if not texts & {code, *rest[code], *(word.rstrip("s") for word in rest[code])}
    ]
    # Facts are named by the keys of provenance.json; the evaluation's writer puts its codes together.
    assert [code for code in silent if not code.startswith(("join.", "fact.", "evaluation."))] == []


def declared_texts():
    """Return the texts of declarations that reports print."""
    for path in ROOT.glob("roles/*/meta/workload.yml"):
        made = yaml.safe_load(path.read_text())
        yield from (made.get("title", ""), made.get("slower", ""), made.get("dlperf", {}).get("differs", ""))
        yield made.get("install", {}).get("data", "")
        yield from (rule["why"] for key in ("refuses", "failures") for rule in made.get(key, ()))
        yield from (hint for hints in made.get("dtype_hints", {}).values() for hint in hints.values())
        yield from (each[key] for each in made["log"].get("unread", ()) for key in ("program", "why"))
    for path in ROOT.glob("roles/*/vars/main.yml"):
        yield from re.findall(r"['\"]((?:synthetic, |tfrecord files)[^'\"]*)", path.read_text())
    for path in ROOT.glob("roles/*/files/own_data.py"):
        yield from re.findall(r'return "([a-z ]+ [a-z ]+), samples=', path.read_text())
    # What records of before 28 November 2026 say of images.
    yield from ("tfrecord files", "tfrecord files with random images")
    yield "train_batch_size=bsz*1024 => gradient accumulation 1024/gpus"


def test_what_declarations_say_is_in_the_chinese_catalogue_and_nothing_else():
    texts = {clean(text) for text in declared_texts() if re.search(r"\b[a-z]{3,}", text)}
    assert set(messages_zh.DECLARED) == texts


@pytest.mark.parametrize("text", messages_zh.DECLARED)
def test_a_declared_text_has_its_values_in_chinese(text):
    assert places(messages_zh.DECLARED[text]) == places(text)


def test_the_values_of_a_declared_text_are_filled_in():
    given = message("text", text="{a} is not {b}", a=1, b="{a}")
    assert catalogue.sentence(given) == "1 is not {a}"


WITH_WORDS = [
    code
    for code, text in ENGLISH.items()
    if not code.startswith("join.") and re.search("[a-z]+ [a-z]+ [a-z]+", catalogue.PLACE.sub("", text))
]


@pytest.mark.parametrize("code", WITH_WORDS)
def test_every_sentence_in_chinese_has_chinese_in_it(code):
    assert re.search("[\u4e00-\u9fff]", CHINESE[code])


@pytest.fixture
def catalogues(monkeypatch):
    """Catalogues of two sentences."""
    english = {
        "join.list": "; ",
        "one": "takes {seconds:.1f} s",
        "two": "either {ways:list}, of {share:percent}",
    }
    monkeypatch.setattr(catalogue, "CATALOGUES", {"en": english})


def test_numbers_are_formatted_as_the_sentence_says(catalogues):
    assert catalogue.sentence(message("one", seconds=2.345)) == "takes 2.3 s"


def test_a_list_of_messages_is_joined(catalogues):
    given = message("two", ways=[message("one", seconds=1), "none"], share=-0.0004)
    assert catalogue.sentence(given) == "either takes 1.0 s; none, of 0.0 %"


def test_text_stays_whatever_its_kind(catalogues):
    assert catalogue.sentence(message("one", seconds="2.30")) == "takes 2.30 s"


def test_a_line_of_a_log_is_text_in_every_language():
    assert catalogue.sentence(message("text", text="{not: 1}\x1b[1m"), "zh") == "{not: 1} [1m"


@pytest.mark.parametrize("given", [message("three"), message("one"), message("one", seconds=[])])
def test_a_message_that_cannot_be_said_is_named(catalogues, given):
    with pytest.raises(catalogue.CatalogueError, match=given["code"]):
        catalogue.sentence(given)
