# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What scripts/collection changes in the text of the checkout, and what it leaves."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import places

ROOT = Path(__file__).resolve().parents[3]

spec = spec_from_loader("collection", SourceFileLoader("collection", str(ROOT / "scripts/collection")))
collection = module_from_spec(spec)
spec.loader.exec_module(collection)


@pytest.fixture(scope="module")
def names():
    return collection.Names(dict(collection.project_files()))


def test_a_task_calls_its_module_by_the_full_name_and_an_option_of_that_name_stays(names):
    tasks = "- name: Judge\n  block:\n    - name: Judge\n      evaluation:\n        evaluation: x\n"
    changed = names.in_yaml(tasks, "playbooks/tasks/x.yml")
    assert changed == tasks.replace("      evaluation:\n ", "      scalebook.scalebook.evaluation:\n ")


def test_a_variable_that_has_the_name_of_a_module_stays(names):
    text = "evaluation:\n  title: x\n"
    assert names.in_yaml(text, "playbooks/vars/x.yml") == text


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x | scalebook_nodes('cpu')", "x | scalebook.scalebook.scalebook_nodes('cpu')"),
        ("x | map('scalebook_redact')", "x | map('scalebook.scalebook.scalebook_redact')"),
        ("lookup('scalebook_path', x)", "lookup('scalebook.scalebook.scalebook_path', x)"),
        ("ansible_connection == 'srun'", "ansible_connection == 'scalebook.scalebook.srun'"),
        (
            "launcher | default('srun' if ansible_connection | default('ssh') == 'srun' else 'mpirun')",
            "launcher | default('srun' if ansible_connection | default('ssh') == 'scalebook.scalebook.srun' "
            "else 'mpirun')",
        ),
        ("launcher == 'srun'", "launcher == 'srun'"),
        ("x | default(scalebook_home)", "x | default(scalebook_home)"),
        (
            "ansible-playbook -i mine bench.yml -e x=1",
            "ansible-playbook -i mine scalebook.scalebook.bench -e x=1",
        ),
        ("ansible-playbook playbooks/preflight.yml", "ansible-playbook scalebook.scalebook.preflight"),
    ],
)
def test_what_the_collection_has_is_called_by_its_full_name(names, text, changed):
    assert names.in_yaml(f"x: >-\n  {text}\n", "roles/x/vars/main.yml") == f"x: >-\n  {changed}\n"


def test_every_connection_that_is_compared_with_is_that_of_the_collection(names):
    for place, path in collection.project_files():
        if path.endswith(".yml") and path.startswith(("playbooks/", "roles/")):
            text = names.in_yaml((ROOT / path).read_text(), place)
            wrong = [line for line in text.splitlines() if "ansible_connection" in line and "'srun'" in line]
            assert all("default('srun' if" in line or "launcher" in line for line in wrong), (path, wrong)


def test_a_plugin_imports_from_the_collection(names):
    source = (ROOT / "lookup_plugins/scalebook_stack.py").read_text()
    changed = names.in_python(source)
    package = "ansible_collections.scalebook.scalebook.plugins.module_utils.scalebook"
    assert f"from {package}.places import ROOT" in changed
    assert "ansible.module_utils" not in changed


def test_the_settings_are_those_of_the_checkout_without_its_directories():
    made = collection.settings((ROOT / "ansible.cfg").read_text())
    assert "_plugins" not in made and "roles_path" not in made and "library" not in made
    assert "stdout_callback = scalebook.scalebook.scalebook\n" in made
    assert "pipelining = True" in made


def test_a_role_of_a_collection_has_no_plugins_of_its_own():
    files = collection.project_files()
    assert not [place for place, _ in files if place.startswith("roles/") and "/library/" in place]


class Config:
    """Ansible's configuration, as far as it says where roles are."""

    def __init__(self, paths, origin):
        self.paths, self.origin = paths, origin

    def get_config_value_and_origin(self, name):
        assert name == "DEFAULT_ROLES_PATH"
        return self.paths, self.origin


OWN = str(ROOT / "roles")


def test_the_roles_that_ansible_cfg_of_a_checkout_names_count_in_its_order():
    assert places.roles_paths(Config(["/mine", OWN], "ansible.cfg")) == ["/mine", OWN]


def test_the_own_roles_of_a_collection_are_before_those_that_a_user_names():
    assert places.roles_paths(Config(["/mine"], "env: ANSIBLE_ROLES_PATH")) == [OWN, "/mine"]


def test_roles_that_nobody_has_named_do_not_count():
    assert places.roles_paths(Config(["/etc/ansible/roles"], "default")) == [OWN]


def test_a_collection_writes_where_its_user_stands(tmp_path, monkeypatch):
    assert places.working_directory() == ROOT
    (tmp_path / "plugins").mkdir()
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path / "plugins")
    assert places.working_directory() == tmp_path / "plugins"
