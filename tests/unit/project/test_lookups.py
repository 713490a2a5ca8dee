# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lookup plugins that no playbook is needed for."""

import importlib.util
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleError

ROOT = Path(__file__).resolve().parents[3]


def lookup(name):
    """Return the plugin of a file of lookup_plugins."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"lookup_plugins/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LookupModule()


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("", "here"),
        ("logs/", "here/logs"),
        ("../bz64", "bz64"),
        ("~/night1", "home/night1"),
        ("/srv", "/srv"),
    ],
)
def test_a_path_counts_from_where_the_user_stands(tmp_path, monkeypatch, path, meant):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # A program that starts ansible-playbook elsewhere leaves this as it was.
    monkeypatch.setenv("PWD", "/nowhere")
    assert lookup("scalebook_path").run([path]) == [str(tmp_path / meant)]


def test_an_option_that_a_lookup_does_not_have_is_refused():
    with pytest.raises(AnsibleError, match="scalebook_path has no option from"):
        lookup("scalebook_path").run(["x"], **{"from": "/"})


def test_the_hosts_of_a_play_are_returned_as_they_are_given():
    assert lookup("scalebook_hosts").run(["localhost"], unlimited=True) == ["localhost"]


def test_a_limit_is_refused_with_a_fix():
    with pytest.raises(AnsibleError, match="--limit NODE1: .*Fix: leave out --limit; -e nodes=1"):
        lookup("scalebook_hosts").run(["localhost"], {"ansible_limit": "NODE1"}, unlimited=True)


def test_the_first_play_of_a_playbook_that_reports_refuses_a_limit():
    """machines.yml is imported by others; the others can do their work on fewer hosts."""
    playbooks = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "playbooks").glob("*.yml")}
    first = {name: plays[0]["hosts"] for name, plays in playbooks.items() if "hosts" in plays[0]}
    assert sorted(name for name, hosts in first.items() if "unlimited=" not in hosts) == [
        "mirror",
        "release",
        "remove",
        "uninstall",
    ]
    assert "unlimited=playbook | default('') != 'provision'" in first["machines"]


def test_the_first_play_on_nodes_refuses_an_inventory_without_nodes():
    playbooks = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "playbooks").glob("*.yml")}
    first = {name: plays[0]["hosts"] for name, plays in playbooks.items() if "hosts" in plays[0]}
    on_nodes = {name: hosts for name, hosts in first.items() if "nodes" in hosts}
    assert sorted(on_nodes) == [
        *("acceptance", "machines", "microbench", "mirror", "release", "remove", "uninstall")
    ]
    checks = "lookup('scalebook_hosts', 'nodes'"
    assert [name for name, hosts in on_nodes.items() if checks not in hosts] == []


@pytest.mark.parametrize("name", ["acceptance", "bench", "microbench", "preflight", "release"])
def test_what_measures_or_stops_jobs_becomes_the_user_of_the_runs(name):
    """Programs of jobs are in a directory of that user, so root executes none of them."""
    plays = yaml.safe_load((ROOT / f"playbooks/{name}.yml").read_text())
    variables = [
        each.get("vars", {})
        for play in plays
        if "vars/node_user.yml" in play.get("vars_files", ())
        for each in (play, *play.get("tasks", ()))
    ]
    [own] = [each for each in variables if each.get("ansible_become")]
    becomes = {key: value for key, value in own.items() if key.startswith("ansible_become")}
    assert becomes == {
        "ansible_become": "{{ __node_user_become }}",
        "ansible_become_user": "{{ __node_user }}",
        "ansible_become_method": "{{ __node_user_method }}",
    }


@pytest.mark.parametrize("groups", [{}, {"nodes": []}, {"all": ["localhost"]}])
def test_an_inventory_without_nodes_is_refused_with_its_name_and_a_fix(groups):
    variables = {"groups": groups, "ansible_inventory_sources": ["/etc/ansible/hosts"]}
    with pytest.raises(AnsibleError, match=r"no hosts in the group nodes \(-i: /etc/ansible/hosts\)\. Fix: "):
        lookup("scalebook_hosts").run(["nodes"], variables)


def test_the_nodes_of_an_inventory_are_returned_as_their_group():
    assert lookup("scalebook_hosts").run(["nodes"], {"groups": {"nodes": ["NODE1"]}}) == ["nodes"]
