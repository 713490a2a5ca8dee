# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The acceptance document in both languages, of a cluster with a slow direction of a link."""

import re
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.accept import criteria, document
from ansible.module_utils.scalebook.pages.messages_en import MESSAGES
from ansible.module_utils.scalebook.report import acceptance
from chinese import chinese

TEMPLATES = str(Path(__file__).parents[3] / "templates")
NODES = ["NODE1", "NODE2", "NODE3", "NODE4"]


@pytest.fixture(scope="module")
def pages():
    line = {"name": "A", "rates": {}, "traces": {}, "problems": {}}
    alone = [
        {**line, "nodes": [node], "rates": {"GPU0": {"copy": 100.0, "launch": 250000.0}}} for node in NODES
    ]
    pairs = [
        {
            **line,
            "nodes": [one, other],
            "rates": {"forward": 50.0, "backward": 25.0 if other == "NODE4" else 50.0},
        }
        for one, other in (("NODE1", "NODE2"), ("NODE3", "NODE4"), ("NODE1", "NODE3"), ("NODE2", "NODE3"))
    ]
    content = {"title": "Tender 7", "quantities": {"copy": {"at_least": 90}}}
    made = document.document(NODES, [*alone, *pairs] * 6, [], criteria.read(content, criteria.Criteria()))
    return acceptance.documents({**made, "time": "2026-11-28T12:00:00+00:00"}, TEMPLATES)


def test_there_is_a_document_in_each_language(pages):
    assert sorted(pages) == ["acceptance.en.html", "acceptance.zh.html"]
    assert "The cluster is not accepted." in pages["acceptance.en.html"]
    assert "集群未通过验收。" in pages["acceptance.zh.html"]
    assert chinese(pages["acceptance.en.html"]) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_heat_map_has_a_cell_for_each_direction_and_says_what_is_slow(pages, language):
    page = pages[f"acceptance.{language}.html"]
    assert len(re.findall(r"<title>NODE\d → NODE\d: [\d.]+%</title>", page)) == 8
    assert "<title>NODE4 → NODE3: 50.0%</title>" in page
    assert 'role="img" aria-labelledby="links-title links-desc"' in page


def test_the_document_has_criteria_evidence_error_rates_and_the_command_that_drains(pages):
    page = pages["acceptance.en.html"]
    for text in ("Criteria: Tender 7.", "NODE4 → NODE3", "at most 1.0 %", "scontrol update nodename=NODE3"):
        assert text in page


def test_the_time_of_a_launch_is_shown_not_how_many_there_are(pages):
    assert re.search(r">4(\.0+)?</td>\s*<td[^>]*>µs<", pages["acceptance.en.html"])


def test_every_quantity_has_a_name():
    missing = [name for name in criteria.QUANTITIES if f"acceptance.of.{name}" not in MESSAGES]
    assert missing == []
