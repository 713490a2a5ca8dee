# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every role that installs something on a node is played by a scenario of Molecule in CI."""

import ast
from pathlib import Path

import bare_node
import frameworks
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
# Why a role is played by no scenario.
OTHERS = {
    "acceptance": "puts programs beside those of role microbench, and installs nothing else",
    "campaign": "puts the files of a run on a node, and installs nothing",
    "microbench": "installs role torch_bert, where no microbench_python is given, and nothing else",
}
ROLES = {path.parents[1].name for path in ROOT.glob("roles/*/tasks/main.yml")}


def scenarios_in_ci():
    """Return the scenarios that integration tests run: `.molecule("NAME", …)`, and tables SCENARIOS."""
    names = set()
    for path in (ROOT / "tests/integration").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "molecule":
                names |= {word.value for word in node.args[:1] if isinstance(word, ast.Constant)}
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SCENARIOS":
                names |= set(ast.literal_eval(node.value))
    return names


def included(content):
    """Yield the roles that tasks include by name."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key in ("ansible.builtin.include_role", "ansible.builtin.import_role"):
                yield value["name"]
            else:
                yield from included(value)
    elif isinstance(content, list):
        for value in content:
            yield from included(value)


def declared(role):
    """Return the roles that role workload includes for a workload: its framework, and its launcher."""
    path = ROOT / "roles" / role / "meta/workload.yml"
    install = yaml.safe_load(path.read_text()).get("install", {}) if path.exists() else {}
    return {install[key] for key in ("framework", "launcher") if key in install}


def with_what_they_install(roles):
    """Return the roles, and those that installing them includes."""
    found, left = set(), set(roles)
    while left:
        role = left.pop()
        found.add(role)
        files = set((ROOT / "roles" / role / "tasks").glob("*.yml"))
        files -= {path for path in files if path.name.startswith("mirror")}
        names = {name for path in files for name in included(yaml.safe_load(path.read_text()))}
        left |= (names | declared(role)) & ROLES - found
    return found


def test_the_scenarios_of_ci_are_there():
    assert scenarios_in_ci() <= {path.parent.name for path in ROOT.glob("molecule/*/molecule.yml")}
    assert "workload" in scenarios_in_ci()


@pytest.mark.parametrize("workload", sorted(bare_node.DECLARED))
def test_every_workload_is_played_by_the_scenario_workload(workload):
    assert workload in {*frameworks.PARTS, *bare_node.WORKLOADS}


def test_every_role_that_installs_something_is_played():
    scenarios = scenarios_in_ci()
    plays = [yaml.safe_load((ROOT / "molecule" / name / "converge.yml").read_text()) for name in scenarios]
    played = with_what_they_install(scenarios | set(included(plays)) & ROLES | bare_node.DECLARED)
    assert ROLES - played == set(OTHERS)
