# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a role exposes is what its argument_specs say, under the role's own name."""

import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.workloads import load_workloads

ROOT = Path(__file__).resolve().parents[3]
ROLES = sorted(path for path in (ROOT / "roles").glob("*") if (path / "tasks/main.yml").exists())
DECLARATIONS = load_workloads([str(ROOT / "roles"), str(ROOT / "tests/roles")])
WORKLOADS = [Path(workload.path) for workload in DECLARATIONS.values()]


def load(path):
    return yaml.safe_load(path.read_text()) or {} if path.exists() else {}


def documented(role):
    """Return the options of all entry points of a role; the same option twice must agree."""
    options = {}
    for name, spec in load(role / "meta/argument_specs.yml").get("argument_specs", {}).items():
        for option, fields in (spec.get("options") or {}).items():
            known = options.setdefault(option, fields)
            assert known.get("default") == fields.get("default"), f"{name}: another default for {option}"
    return options


def each(roles):
    return pytest.mark.parametrize("role", roles, ids=lambda role: role.name)


@each(ROLES)
def test_a_role_has_an_argument_spec_that_says_what_it_is_for(role):
    specs = load(role / "meta/argument_specs.yml").get("argument_specs", {})
    assert specs and all(spec.get("short_description") for spec in specs.values())


@each(ROLES)
def test_every_default_is_an_option(role):
    assert set(load(role / "defaults/main.yml")) - set(documented(role)) == set()


@each(ROLES)
def test_the_documented_defaults_are_the_real_ones(role):
    """A default made of other variables, or a dictionary, may be documented in the description instead."""
    defaults = load(role / "defaults/main.yml")
    promised = {name: spec["default"] for name, spec in documented(role).items() if "default" in spec}
    real = {
        name: value
        for name, value in defaults.items()
        if name in promised or not (isinstance(value, dict) or "{{" in str(value))
    }
    assert promised == real


@each(ROLES)
def test_every_option_is_described(role):
    assert [name for name, spec in documented(role).items() if not spec.get("description")] == []


DEFAULTS = [
    *(ROOT / "roles").glob("*/defaults/main.yml"),
    *(ROOT / "tests/roles").glob("*/defaults/main.yml"),
]


@pytest.mark.parametrize("file", DEFAULTS, ids=lambda file: file.parents[1].name)
def test_variables_of_a_role_are_described_in_its_argument_specs_alone(file):
    lines = file.read_text().splitlines()
    assert [line for line in lines if line.lstrip().startswith("#")] == []


@each(ROLES)
def test_what_a_role_exposes_bears_its_name(role):
    names = [*load(role / "defaults/main.yml"), *load(role / "vars/main.yml")]
    assert [n for n in names if not n.startswith((f"{role.name}_", f"__{role.name}_"))] == []


@each(WORKLOADS)
def test_a_workload_has_dtypes_for_the_devices_that_it_has_models_for(role):
    workload = DECLARATIONS[role.name]
    assert set(workload.models) == set(workload.dtypes)


@each(WORKLOADS)
def test_a_declaration_is_static(role):
    assert "{{" not in (role / "meta/workload.yml").read_text()


@each(WORKLOADS)
def test_the_default_stack_of_a_workload_exists(role):
    assert (ROOT / f"playbooks/vars/stack_{DECLARATIONS[role.name].stack}.yml").is_file()


def test_the_roles_with_a_node_script_are_the_workloads():
    scripts = [*ROOT.glob("roles/*/templates/run.sh.j2"), *ROOT.glob("tests/roles/*/templates/run.sh.j2")]
    assert {path.parents[1] for path in scripts} == set(WORKLOADS)


def test_the_micro_benchmarks_are_checked_where_nothing_has_changed_as_a_workload_is():
    """provision.yml includes these tasks of whatever `workload` names."""
    assert (ROOT / "roles/microbench/tasks/prepare.yml").exists()


FETCHING = {f"ansible.builtin.{module}" for module in ("get_url", "git", "uri", "apt_repository")}


def tasks_of(listed):
    """Yield every task of a list of tasks, those in blocks included."""
    for task in listed or []:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks_of(task.get(part))


def where(role, wrong):
    """Return the role's tasks, `<file>: <name>`, of which `wrong` is true."""
    return [
        f"{path.name}: {task['name']}"
        for path in (role / "tasks").glob("*.yml")
        for task in tasks_of(load(path))
        if wrong(task)
    ]


@each(ROLES)
def test_a_task_that_fetches_says_nothing_where_its_url_holds_a_secret(role):
    def talks(task):
        return FETCHING & task.keys() and "scalebook_secret" not in str(task.get("no_log"))

    assert where(role, talks) == []


@each(ROLES)
def test_a_file_that_may_hold_a_secret_is_for_its_owner_alone(role):
    def is_readable(task):
        secret = "ansible.builtin.copy" in task and "scalebook_secret" in str(task.get("no_log"))
        return secret and not re.search("0600|scalebook_secret", task["ansible.builtin.copy"].get("mode", ""))

    assert where(role, is_readable) == []


@each(ROLES)
def test_package_lists_are_not_read_by_ansibles_own_module_which_warns_of_urls_with_their_tokens(role):
    assert where(role, lambda task: "update_cache" in str(task.get("ansible.builtin.apt"))) == []
