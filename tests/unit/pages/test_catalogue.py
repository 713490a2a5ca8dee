# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A message is said in every language, with all its values; text is left as it is."""

import re

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.pages import catalogue

ENGLISH, CHINESE = catalogue.CATALOGUES["en"], catalogue.CATALOGUES["zh"]


def places(sentence):
    return {match[1] for match in catalogue.PLACE.finditer(sentence)}


def test_every_code_is_in_both_catalogues():
    assert set(ENGLISH) == set(CHINESE)


@pytest.mark.parametrize("code", ENGLISH)
def test_both_languages_use_the_same_values(code):
    assert places(ENGLISH[code]) == places(CHINESE[code])


WITH_WORDS = [
    code
    for code, text in ENGLISH.items()
    if not code.startswith("join.") and re.search("[a-z]+ [a-z]+ [a-z]+", catalogue.PLACE.sub("", text))
]


@pytest.mark.parametrize("code", WITH_WORDS)
def test_every_sentence_in_chinese_has_chinese_in_it(code):
    assert re.search("[\u4e00-\u9fff]", CHINESE[code])


def test_text_within_a_message_is_said_as_the_caller_says_it(catalogues):
    given = message("two", ways=[message("text", text="a hint")], share=0.1)
    assert catalogue.sentence(given, say=str.upper) == "either A HINT, of 10.0 %"


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
