# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of a case's fields is the only list of them, and what earlier versions wrote is still read."""

import ast
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import contracts, shapes
from cases import case, gpu_case

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "module_utils" / "scalebook"
NAME = "ansible.module_utils.scalebook"
# Facts and text. A new one is a decision.
GROUND = {
    "command", "contracts", "failure_causes", "failure_search", "files", "flops", "grouping", "hardware",
    "json_file", "kit_log", "limits", "machines", "nccl_lines", "network", "patch_lines", "places",
    "published", "quantities", "results_file", "root_only", "secrets", "shapes", "stats", "text",
    "throughput", "unpack", "workload", "workloads", "yaml_file",
}  # fmt: skip
# Each package and the packages that it imports: data flows from store through judge to pages.
ARROWS = {
    **{each: set() for each in ("accept", "plan", "launch", "read", "provision", "judge", "pages")},
    "node": {"launch"},
    "preflight": {"accept"},
    "store": {"judge"},
    "report": {"accept", "judge", "pages", "plan", "preflight", "store"},
    "evaluate": {"judge", "pages", "store"},
}
# What a module of the control node does with several packages. No package imports it.
ARROWS["control"] = {*ARROWS}


def imports_of(path):
    """Return the names below scalebook that a file imports, dotted."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == NAME:
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{NAME}."):
            names.append(node.module.removeprefix(f"{NAME}."))
        elif isinstance(node, ast.Import):
            names += [a.name.removeprefix(f"{NAME}.") for a in node.names if a.name.startswith(NAME)]
    return names


def test_the_case_has_the_fields_of_the_table():
    assert list(contracts.Case.__annotations__) == [field.name for field in contracts.CASE]


def test_rows_and_groups_have_the_fields_that_group_cases():
    for contract in (contracts.Row, contracts.Group):
        assert set(contracts.GROUP_FIELDS) <= set(contract.__annotations__)


@pytest.mark.parametrize("field", contracts.IDENTITY)
def test_cases_that_differ_in_an_identity_field_have_different_names(field):
    one = case()
    assert contracts.case_name({**one, field: "other"}) != contracts.case_name(one)


def test_a_made_case_has_every_required_field():
    made = gpu_case(2, 8)
    assert {field for field in contracts.REQUIRED_FIELDS if field not in made} == set()


def test_every_package_has_its_arrows():
    assert set(ARROWS) == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


@pytest.mark.parametrize("package", ARROWS)
def test_a_package_imports_only_the_ground_floor_itself_and_what_comes_before_it(package):
    foreign = {
        f"{path.name}: {name}"
        for path in (PACKAGE / package).glob("*.py")
        for name in imports_of(path)
        if name.split(".")[0] not in {package, *ARROWS[package], *GROUND}
    }
    assert foreign == set()


@pytest.mark.parametrize("name", sorted(GROUND))
def test_the_ground_floor_imports_no_package(name):
    path = PACKAGE / f"{name}.py"
    if path.exists():
        assert {each for each in imports_of(path) if each.split(".")[0] not in GROUND} == set()


def test_a_bottleneck_that_was_a_sentence_is_read_as_text():
    before = {"schema": 2, "bottlenecks": [{"causes": ["gpu-bound"], "sentence": "GPU-bound."}]}
    [made] = contracts.upgrade(before)["bottlenecks"]
    assert made["message"] == contracts.message("text", text="GPU-bound.")


def test_sentences_of_a_record_of_schema_2_are_text():
    old = {"schema": 2, "reason": "NODE1 died", "notes": ["a note"]}
    texts = [contracts.message("text", text=text) for text in ("NODE1 died", "a note")]
    assert contracts.upgrade(old) == {"schema": 3, "reason": texts[0], "notes": texts[1:]}


def test_sentences_of_a_search_of_schema_2_are_text():
    old = {"schema": 2, "searches": [{"reason": "limit", "trials": [{"case": "a", "reason": None}]}]}
    search = {"reason": contracts.as_message("limit"), "trials": [{"case": "a", "reason": None}]}
    assert contracts.upgrade(old) == {"schema": 3, "searches": [search]}


@pytest.mark.parametrize("value", [{}, {"schema": 3}, {"schema": 1, "case": 7}, {"schema": 1, "cases": [3]}])
def test_what_is_not_of_schema_2_comes_back_as_it_is(value):
    assert contracts.upgrade(value) == value


def test_a_reason_of_a_run_is_a_message():
    value = contracts.message("reason.lost", node="NODE1")
    shapes.check(contracts.Run, {"reason": value, "notes": [value]})


@pytest.mark.parametrize("value", [7, "a sentence", ["a"], {"values": {}}, {"code": 7, "values": {}}])
def test_a_reason_of_a_run_is_nothing_else(value):
    with pytest.raises(shapes.ShapeError, match="reason"):
        shapes.check(contracts.Run, {"reason": value})
