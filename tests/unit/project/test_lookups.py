# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lookup plugins that no playbook is needed for."""

import importlib.util
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleError
from ansible.module_utils.scalebook.workloads import load_workloads
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

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


@pytest.fixture
def installed():
    """Return what a host with these variables has below /opt/scalebook."""

    def look(**variables):
        variables["scalebook_home"] = "/opt/scalebook"
        loader = DataLoader()
        plugin = lookup("scalebook_installed")
        plugin._loader, plugin._templar = loader, Templar(loader, variables=variables)
        return plugin.run([], variables)[0]

    return look


@pytest.mark.parametrize(
    ("workload", "uses"),
    [
        ("horovod_bert", ["/opt/scalebook/pytorch/venv"]),
        ("oneflow_bert", ["/opt/scalebook/oneflow/venv"]),
        ("deepspeed_bert", []),  # has one of its own
        ("tf2_resnet50", []),
    ],
)
def test_a_workload_uses_the_environment_that_its_framework_has_for_several(installed, workload, uses):
    assert installed()[workload] == {"home": f"/opt/scalebook/{workload}", "uses": uses, "names": []}


def test_the_environment_of_a_framework_is_where_its_variable_says(installed):
    assert installed(pytorch_venv="/srv/venv")["torch_bert"]["uses"] == ["/srv/venv"]


def test_what_the_user_names_for_a_workload_is_known(installed):
    places = installed(torch_bert_home="/srv/x/../bert/", torch_bert_data="/data", horovod_bert_venv="/v")
    assert (places["torch_bert"]["home"], places["torch_bert"]["names"]) == (
        "/srv/bert",
        ["/srv/bert", "/data"],
    )
    assert places["horovod_bert"]["names"] == ["/v"]


def test_the_environment_of_a_framework_lies_where_that_variable_says_or_in_the_directory_of_a_workload():
    """Else remove.yml would not know who uses it."""
    workloads = load_workloads([str(ROOT / "roles")]).values()
    for role in {each.install["framework"] for each in workloads if "framework" in each.install}:
        about = yaml.safe_load((ROOT / f"roles/{role}/vars/main.yml").read_text())
        place = about[f"{role}_environment"]["path"]
        assert place in (f"{{{{ {role}_venv }}}}", "{{ workload_home }}/venv")


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
