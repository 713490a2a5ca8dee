# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/coverage.md has a row for every requirement of the source documents, and names files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs/coverage.md").read_text()
LAST = {"0": 40, "1": 35, "2": 53, "3": 30, "4": 36, "C": 12, "N": 22}
"""The requirements of each document are numbered from 1 to this."""
STATUSES = re.findall(r"^\| ([a-z ]+) \| it is ", DOCUMENT, re.M)
ROWS = re.findall(r"^\| ((?:[0-4CN]\.\d[^|]*)) \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", DOCUMENT, re.M)
SEEN = re.compile(r"\]\(|^text alone")
LINKS = sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)", DOCUMENT)))
BARE = sorted(set(re.findall(r"(?<![\w/.\[(])(?:tests|molecule|roles|docs|data)/[\w/.-]*", DOCUMENT)))


def numbers(cell):
    """Return the numbers of a first cell: `1.1, 1.5–1.6` is 1.1, 1.5 and 1.6."""
    found = []
    for part in cell.split(", "):
        (of, first), (_, last) = (end.split(".") for end in (part.split("–") * 2)[:2])
        found += [f"{of}.{number}" for number in range(int(first), int(last) + 1)]
    return found


def test_every_requirement_has_one_row():
    wanted = [f"{of}.{number}" for of, last in LAST.items() for number in range(1, last + 1)]
    assert sorted(number for ids, *_ in ROWS for number in numbers(ids)) == sorted(wanted)


def test_a_status_is_one_of_the_three_that_the_page_explains():
    assert len(STATUSES) == 3
    assert {status for _, status, *_ in ROWS} == set(STATUSES)


def test_what_is_done_was_seen_and_every_row_says_where_it_is():
    assert [ids for ids, _, where, _ in ROWS if "](" not in where] == []
    assert [ids for ids, status, _, seen in ROWS if status == "done" and not SEEN.search(seen)] == []


@pytest.mark.parametrize("path", [f"docs/{link}" for link in LINKS] + BARE)
def test_every_path_exists(path):
    assert (ROOT / path).exists()
