# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a workload has installed is removed whole, and nothing that is used, linked or mounted."""

import subprocess

import pytest
import remove_workload
from ansible.module_utils.scalebook.node import removal
from run_module import call_module

FILES = (
    "torch_bert/install.json torch_bert/code/train.py torch_bert/data/words.npy horovod_bert/install.json "
    "pytorch/venv/bin/python openmpi/bin/mpirun work/bin/run_node.py work/compiled/torch_bert/kernel "
    "work/stack_check_torch_bert.json work/NODE1/night/torch_bert-base-1n1g/1/NODE1.log "
    "work/NODE1/night/torch_bert_large-base-1n1g/1/NODE1.log"
).split()
OF_TORCH_BERT = {
    "torch_bert",
    "work/compiled/torch_bert",
    "work/stack_check_torch_bert.json",
    "work/NODE1/night/torch_bert-base-1n1g",
}


@pytest.fixture
def home(tmp_path):
    """A node with two workloads, which share an environment, and what runs have left."""
    top = tmp_path / "scalebook"
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    return top


def call(home, *workloads, check=False, **changes):
    names = ("torch_bert", "horovod_bert", "torch_gpt2")
    uses = [str(home / "pytorch/venv")]
    installed = {name: {"home": str(home / name), "uses": uses, "names": []} for name in names}
    for name, change in changes.items():
        installed[name].update(change)
    given = {"path": str(home), "work": f"{home}/work/", "workloads": workloads or ("torch_bert",)}
    return call_module(remove_workload, check, installed=installed, **given)


def removed(home, done):
    return {each["path"].removeprefix(f"{home}/") for each in done["removed"]}


def files(home):
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def test_a_workload_goes_with_its_data_and_what_its_runs_have_left(home):
    assert removed(home, call(home)) == OF_TORCH_BERT
    gone = {
        name for name in FILES if any(name == path or name.startswith(path + "/") for path in OF_TORCH_BERT)
    }
    assert files(home) == set(FILES) - gone


def test_a_check_says_the_same_and_removes_nothing(home):
    assert removed(home, call(home, check=True)) == OF_TORCH_BERT
    assert files(home) == set(FILES)


def test_the_bytes_are_those_of_du(home):
    (home / "torch_bert/code/again.py").hardlink_to(home / "torch_bert/code/train.py")
    sizes = {each["path"]: each["bytes"] for each in call(home, check=True)["removed"]}
    shown = subprocess.run(["du", "-sB1", home / "torch_bert"], capture_output=True, text=True, check=True)
    assert sizes[str(home / "torch_bert")] == int(shown.stdout.split()[0])


def test_a_second_time_there_is_nothing_to_remove(home):
    call(home)
    done = call(home)
    assert (done["changed"], done["removed"]) == (False, [])


def test_an_environment_stays_while_another_workload_uses_it(home):
    kept = {"path": str(home / "pytorch/venv"), "why": "horovod_bert uses it"}
    assert call(home)["kept"] == [kept]


def test_the_last_one_takes_the_environment_with_it(home):
    assert call(home, "torch_bert", "horovod_bert")["kept"] == []
    assert not (home / "pytorch").exists()


def test_horovod_that_was_built_for_an_environment_keeps_it(home):
    site = home / "horovod/pytorch/venv/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "scalebook-framework.pth").write_text(f"{home}/pytorch/venv/lib/python3.11/site-packages\n")
    kept = call(home, "torch_bert", "horovod_bert")["kept"]
    assert kept == [{"path": str(home / "pytorch/venv"), "why": "horovod uses it"}]


def outside(home):
    return {"home": str(home.parent / "torch_bert")}


def above(home):
    return {"home": str(home)}


def beside(home):
    return {"home": str(home / "x/../../torch_bert")}


def with_data_of_the_user(home):
    return {"names": [str(home / "torch_bert/data")]}


def of_something_else(home):
    return {"home": str(home / "openmpi"), "names": [str(home / "openmpi")]}


def linked(home):
    (home / "torch_bert").rename(home.parent / "elsewhere")
    (home / "torch_bert").symlink_to(home.parent / "elsewhere")
    return {}


def linked_above(home):
    (home / "links").symlink_to(home)
    return {"home": str(home / "links/torch_bert")}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (outside, "it is not below {home}"),
        (above, "horovod_bert uses it"),
        (beside, "it is not below {home}"),
        (with_data_of_the_user, "a variable names {home}/torch_bert/data"),
        (of_something_else, "it has no install.json, so it may be something else"),
        (linked, "{home}/torch_bert is a link to {home}/../elsewhere"),
        (linked_above, "{home}/links is a link to {home}"),
    ],
)
def test_a_directory_that_may_be_somebody_elses_is_refused_and_nothing_is_removed(home, change, why):
    (home.parent / "torch_bert").mkdir()
    given = change(home)
    before = files(home.parent)
    done = call(home, torch_bert=given)
    reason = why.format(home=home).replace(f"{home}/..", str(home.parent))
    assert done["failed"] and f"nothing was removed, since {reason}. Fix: " in done["msg"], done["msg"]
    assert files(home.parent) == before


def test_a_directory_that_the_user_has_named_for_the_workload_is_removed(home):
    (home / "torch_bert").rename(home / "mine")
    mine = str(home / "mine")
    assert "mine" in removed(home, call(home, torch_bert={"home": mine, "names": [mine]}))


def test_what_is_mounted_below_a_workload_is_refused(home, tmp_path, monkeypatch):
    (home / "torch_bert/a b").mkdir()
    (tmp_path / "mounts").write_text(f"/dev/sdb1 {home}/torch_bert/a\\040b ext4 rw 0 0\n")
    monkeypatch.setattr(removal, "MOUNTS", str(tmp_path / "mounts"))
    done = call(home)
    assert f"since a file system is mounted on {home}/torch_bert/a b. Fix" in done["msg"]
    assert files(home) == set(FILES)


def test_of_a_link_in_a_workload_only_the_link_is_removed(home, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images/1.jpeg").write_text("mine")
    (home / "torch_bert/images").symlink_to(tmp_path / "images")
    call(home)
    assert not (home / "torch_bert").exists()
    assert (tmp_path / "images/1.jpeg").read_text() == "mine"


def test_a_link_that_a_user_of_runs_has_made_is_not_followed(home, tmp_path):
    """Runs may write to the directory of runs, and root removes there."""
    (tmp_path / "etc/torch_bert-base").mkdir(parents=True)
    (home / "work/NODE1/away").symlink_to(tmp_path / "etc")
    (home / "work/compiled/torch_bert/kernel").unlink()
    (home / "work/compiled/torch_bert").rmdir()
    (home / "work/compiled/torch_bert").symlink_to(tmp_path / "etc")
    kept = call(home)["kept"]
    assert (tmp_path / "etc/torch_bert-base").exists()
    assert f"is a link to {tmp_path}/etc" in kept[-1]["why"]


def test_a_directory_that_is_replaced_by_a_link_in_between_is_not_followed(home, tmp_path):
    place = removal.Home(str(home))
    (home / "work/NODE1").rename(tmp_path / "moved")
    (home / "work/NODE1").symlink_to(tmp_path / "moved")
    with pytest.raises(OSError, match="NODE1"):
        place.remove(f"{home}/work/NODE1/night/torch_bert-base-1n1g")
    assert (tmp_path / "moved/night/torch_bert-base-1n1g").exists()


def test_scalebook_home_itself_may_be_a_link(home, tmp_path):
    (tmp_path / "opt").symlink_to(home)
    assert removed(tmp_path / "opt", call(tmp_path / "opt")) == OF_TORCH_BERT
