# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of quantities is the only list of them, and each has its words and its columns."""

import ast
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.quantities import MORE, PANELS, QUANTITIES, TABLE
from recordings import recorded, torch_bert

PACKAGE = Path(__file__).resolve().parents[3] / "module_utils" / "scalebook"
OWN = {"quantities.py", "rules.py"}  # the table, and what judges by it


def lists_of(path):
    """Yield the texts of each list, tuple, set and object that a file writes out."""
    for node in ast.walk(ast.parse(path.read_text())):
        parts = getattr(node, "elts", getattr(node, "keys", None))
        if isinstance(parts, list):
            yield {each.value for each in parts if isinstance(each, ast.Constant)}


def test_no_other_module_lists_quantities():
    files = [path for path in PACKAGE.rglob("*.py") if path.name not in OWN]
    found = [(path.name, names & set(QUANTITIES)) for path in files for names in lists_of(path)]
    assert [each for each in found if len(each[1]) > 2] == []


def test_quantities_have_different_names():
    assert len(QUANTITIES) == len(TABLE) + len(MORE)


@pytest.mark.parametrize(
    "code", [each.code for each in TABLE] + [f"quantity.panel_{name}" for name in PANELS]
)
def test_a_quantity_of_the_table_and_a_panel_have_their_words(code):
    assert code in catalogue.CATALOGUES["en"]


def kind(column):
    """Return a column without its instance."""
    return column.split(":")[0], column.split(":")[-1]


def test_a_reading_of_a_quantity_is_a_column_of_the_sampler():
    nodes = [
        *torch_bert(64)["telemetry"],
        *recorded("containers_tf2_bert"),
        *recorded("cpu_made_loader_thread/1n"),
    ]
    there = {kind(name) for node in nodes for name in node["quantities"]}
    read = {kind(reading.column) for quantity in QUANTITIES.values() for reading in quantity.reads}
    of_a_list, of_another_network = {("core", "busy"), ("job", "cores_busy")}, {"infiniband"}
    assert {each for each in read - there - of_a_list if each[0] not in of_another_network} == set()
