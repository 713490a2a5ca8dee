# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Whether a node is as provisioning left it, and whether the same is required of it."""

import json
import os

import provisioned as provisioned_module
import pytest
from ansible.module_utils.scalebook.node import provisioned
from ansible.module_utils.scalebook.provision.fingerprint import fingerprint_of
from run_module import call_module


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node with a package record of its own."""
    (tmp_path / "dpkg/updates").mkdir(parents=True)
    (tmp_path / "dpkg/status").write_text("Package: chrony\n")
    (tmp_path / "etc/apt").mkdir(parents=True)
    (tmp_path / "etc/hosts").write_text("10.11.0.2 NODE1\n")
    (tmp_path / "etc/apt/pin").write_text("hold")
    (tmp_path / "etc/now").symlink_to("hosts")
    monkeypatch.setattr(provisioned, "PACKAGES", str(tmp_path / "dpkg"))
    return tmp_path


def look(node, *without):
    return provisioned.look([str(node / "etc")], without)


def changes(node, change):
    """Return the names of what differs after change()."""
    before = look(node)
    change()
    return [name.replace(str(node), "") for name in provisioned.differences(before, look(node))]


def test_a_node_that_was_left_alone_is_unchanged(node):
    assert changes(node, lambda: None) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda etc: (etc / "hosts").write_text("10.11.0.9 NODE1 too\n"), "/etc"),
        (lambda etc: os.utime(etc / "hosts", (1, 1)), "/etc"),
        (lambda etc: (etc / "hosts").chmod(0o600), "/etc"),
        (lambda etc: (etc / "apt/pin").unlink(), "/etc/apt"),
        (lambda etc: (etc / "apt/more").touch(), "/etc/apt"),
        (lambda etc: (etc.parent / "dpkg/status").write_text("Package: chrony, removed\n"), "packages"),
        (lambda etc: (etc.parent / "dpkg/updates/0001").touch(), "packages"),
    ],
    ids=["content", "time", "mode", "gone", "more", "package", "dpkg interrupted"],
)
def test_a_change_is_named_by_its_directory(node, change, place):
    assert changes(node, lambda: change(node / "etc")) == [place]


def test_a_link_to_another_place_is_a_change(node):
    def change():
        (node / "etc/now").unlink()
        (node / "etc/now").symlink_to("apt")

    assert changes(node, change) == ["/etc"]


def test_what_changes_by_itself_is_not_looked_at(node):
    before = look(node, "hosts", "apt")
    (node / "etc/hosts").write_text("other")
    (node / "etc/apt/pin").write_text("other")
    assert provisioned.differences(before, look(node, "hosts", "apt")) == []


def test_a_root_that_is_gone_is_a_change(node):
    before = look(node)
    (node / "etc").rename(node / "was")
    assert str(node / "etc") in provisioned.differences(before, look(node))


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_record_that_cannot_be_read_makes_everything_differ(tmp_path, text):
    path = tmp_path / "provisioned.json"
    path.write_text(text)
    assert provisioned.differences(provisioned.read(path), {"wanted": "a"}) == ["wanted"]


def test_the_record_is_its_owners_alone(tmp_path):
    path = tmp_path / "provisioned.json"
    provisioned.write(path, {"wanted": "a"})
    assert (json.loads(path.read_text()), path.stat().st_mode & 0o777) == ({"wanted": "a"}, 0o600)


HOSTS = [("NODE1", "10.11.0.2"), ("NODE2", "10.11.0.3")]
VARIABLES = {"workload": "tf2_bert", "slots": 8, "node_packages": ["rsync"]}


def word(folders=(), hosts=HOSTS, **other):
    return fingerprint_of({**VARIABLES, **other}, hosts, [str(folder) for folder in folders])


def test_the_same_is_the_same_word():
    assert word() == word()


@pytest.mark.parametrize(
    "other",
    [
        {"workload": "hf_mlm"},
        {"nccl_version": "2.8.3"},
        {"node_packages": ["rsync", "chrony"]},
        {"ansible_user": "me"},
        {"hosts": HOSTS[:1]},
        {"hosts": HOSTS[::-1]},
    ],
    ids=str,
)
def test_something_else_wanted_is_another_word(other):
    assert word(**other) != word()


@pytest.mark.parametrize(
    "name",
    [
        "ansible_facts",
        "ansible_date_time",
        "__node_before",
        "omit",
        "hostvars",
        "inventory_file",
        "provision_force",
    ],
)
def test_what_says_nothing_of_the_host_does_not_count(name):
    assert word(**{name: "1"}) == word()


def test_a_file_that_a_variable_names_counts(tmp_path):
    key = tmp_path / "key.gpg"
    key.write_text("old")
    before = word(cuda_key=str(key))
    key.write_text("newer")
    assert word(cuda_key=str(key)) != before


def test_what_is_in_the_mirror_counts(tmp_path):
    (tmp_path / "apt").mkdir()
    before = word(mirror=str(tmp_path))
    (tmp_path / "apt/one.deb").write_text("!<arch>")
    assert word(mirror=str(tmp_path)) != before


def test_the_code_counts_but_not_what_python_makes_of_it(tmp_path):
    (tmp_path / "roles/node/__pycache__").mkdir(parents=True)
    task = tmp_path / "roles/node/main.yml"
    task.write_text("- a")
    before = word([tmp_path])
    (tmp_path / "roles/node/__pycache__/x.pyc").touch()
    assert word([tmp_path]) == before
    task.write_text("- b")
    assert word([tmp_path]) != before


def test_a_changed_requirement_is_named_before_the_files():
    before, now = {"wanted": "a", "/etc": "1"}, {"wanted": "b", "/etc": "2"}
    assert provisioned.differences(before, now) == ["wanted", "/etc"]


def test_a_node_of_which_something_else_is_required_is_not_searched(tmp_path):
    provisioned.write(tmp_path / "provisioned.json", {"wanted": "a", "/etc": "1"})
    asked = call_module(
        provisioned_module,
        path=str(tmp_path / "provisioned.json"),
        wanted="b",
        roots=[str(tmp_path)],
        state="asked",
    )
    assert (asked["unchanged"], asked["differs"]) == (False, ["wanted"])
