# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nobody but root may change what root executes."""

import os
from pathlib import Path

import pytest
import root_only
from run_module import call_module, run_module

YOU = 12345
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@pytest.fixture
def home(tmp_path):
    """A directory of programs as provisioning leaves it, with what runs write."""
    top = tmp_path / "scalebook"
    for name in ("openmpi/bin/mpirun", "torch_bert/venv/bin/pip", "work/job", "data/texts"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
        (top / name).chmod(0o755)
    for name in ("work", "work/job", "data", "data/texts"):
        os.chown(top / name, YOU, YOU)
    return top


def call(home, **options):
    done = call_module(root_only, path=str(home), programs=["openmpi", "torch_bert", "mirror"], **options)
    done.pop("invocation", None)
    return done


def mode(path):
    return path.stat().st_mode & 0o7777


def test_an_installation_of_roots_is_left_as_it_is(home):
    assert call(home) == {"changed": False, "moved": []}


def test_a_new_directory_and_those_above_it_are_roots(tmp_path):
    umask = os.umask(0o077)
    try:
        assert call(tmp_path / "a/b")["changed"]
    finally:
        os.umask(umask)
    for path in (tmp_path / "a", tmp_path / "a/b"):
        assert (path.stat().st_uid, mode(path)) == (0, 0o755)


@pytest.mark.parametrize(("owner", "bits"), [(YOU, 0o755), (0, 0o775), (0, 0o777), (0, 0o1777), (0, 0o700)])
def test_a_directory_of_somebody_else_is_taken_back(home, owner, bits):
    os.chown(home, owner, owner)
    home.chmod(bits)
    assert call(home)["changed"]
    assert (home.stat().st_uid, home.stat().st_gid, mode(home)) == (0, 0, 0o755)


def plant_directory(home):
    (home / "openmpi").rename(home / "openmpi.old")
    (home / "openmpi/bin").mkdir(parents=True)
    (home / "openmpi/bin/mpirun").write_text("planted")
    os.chown(home / "openmpi", YOU, YOU)


def plant_file(home):
    os.chown(home / "openmpi/bin/mpirun", YOU, YOU)


def plant_link(home):
    (home / "openmpi/bin/mpirun").unlink()
    (home / "openmpi/bin/mpirun").symlink_to("/bin/true")
    os.lchown(home / "openmpi/bin/mpirun", YOU, YOU)


def plant_in_a_writable_directory(home):
    (home / "openmpi/bin").chmod(0o777)


def plant_through_a_link_of_roots(home):
    (home / "openmpi/bin/mpirun").unlink()
    (home / "openmpi/bin/mpirun").symlink_to(home.parent / "program")
    (home.parent / "program").write_text("of you")
    (home.parent / "program").chmod(0o755)
    os.chown(home.parent / "program", YOU, YOU)


PLANTS = [
    plant_directory,
    plant_file,
    plant_link,
    plant_in_a_writable_directory,
    plant_through_a_link_of_roots,
]


@pytest.mark.parametrize("plant", PLANTS)
def test_a_program_that_somebody_else_may_have_changed_is_moved_where_only_root_goes(home, plant):
    plant(home)
    (sentence,) = call(home)["moved"]
    (aside,) = home.glob("untrusted.*")
    assert sentence.startswith(f"{home}/openmpi is now in {aside}: ")
    assert (mode(aside), [path.name for path in aside.iterdir()]) == (0o700, ["openmpi"])
    assert not (home / "openmpi").exists()


@pytest.mark.parametrize("plant", PLANTS)
def test_after_that_nothing_is_left_to_do(home, plant):
    plant(home)
    call(home)
    assert call(home) == {"changed": False, "moved": []}


def test_a_check_moves_nothing(home):
    plant_file(home)
    done = run_module("root_only", path=str(home), programs=["openmpi"], _ansible_check_mode=True)
    assert done["moved"] == [f"{home}/openmpi would be moved: {home}/openmpi/bin/mpirun belongs to uid {YOU}"]
    assert (home / "openmpi").exists()


def test_what_root_does_not_execute_stays_with_its_owner(home):
    plant_directory(home)
    call(home)
    assert (home / "work/job").stat().st_uid == (home / "data/texts").stat().st_uid == YOU


@pytest.mark.parametrize("bits", [0o775, 0o757])
def test_a_directory_above_that_others_may_write_is_refused(home, bits):
    home.parent.chmod(bits)
    assert f"{home.parent} may be written by others (mode 0{bits:o}): root would" in call(home)["msg"]


def test_a_directory_above_that_is_of_somebody_else_is_refused(home):
    os.chown(home.parent, YOU, YOU)
    assert f"Fix: give it to root (chown root {home.parent}; chmod go-w {home.parent})" in call(home)["msg"]


def test_a_directory_above_where_nobody_replaces_files_of_others_is_allowed(home):
    home.parent.chmod(0o1777)
    assert call(home) == {"changed": False, "moved": []}


def test_a_link_of_somebody_else_to_the_directory_is_refused(home, tmp_path):
    (tmp_path / "link").symlink_to(home)
    assert call(tmp_path / "link") == {"changed": False, "moved": []}
    os.lchown(tmp_path / "link", YOU, YOU)
    assert f"{tmp_path}/link belongs to uid {YOU}" in call(tmp_path / "link")["msg"]


def test_a_program_elsewhere_that_somebody_else_may_change_is_refused(home, tmp_path):
    (tmp_path / "python").write_text("of you")
    assert call(home, others=[str(tmp_path / "python")])["changed"] is False
    os.chown(tmp_path / "python", YOU, YOU)
    refused = call(home, others=[str(tmp_path / "python")])["msg"]
    assert refused.startswith(f"{tmp_path}/python belongs to uid {YOU}: root would execute programs")


def test_a_program_of_the_directory_is_not_one_that_is_elsewhere(home):
    os.chown(home, YOU, YOU)
    assert call(home, others=[f"{home}/openmpi"])["changed"]


def test_a_place_that_others_may_change_is_not_one_for_root_to_write(home, tmp_path):
    assert call(tmp_path / "new/work", state="checked")["changed"] is False
    assert f"{home}/work belongs to uid {YOU}: root cannot" in call(home / "work/a", state="checked")["msg"]


def test_a_directory_in_which_a_link_of_others_waits_is_not_one_for_root_to_write(home):
    data = home / "torch_bert/data"
    data.mkdir()
    assert call(data, state="checked")["changed"] is False
    (data / "manifest.json.new").symlink_to("/etc/shadow")
    os.lchown(data / "manifest.json.new", YOU, YOU)
    refused = call(data, state="checked")["msg"]
    link = f"{data}/manifest.json.new belongs to uid {YOU}"
    assert refused.startswith(f"{link}: root cannot write {data} there safely")


def test_what_a_hardened_umask_hid_is_readable_afterwards(home):
    for path in (home / "openmpi").rglob("*"):
        path.chmod(0o700)
    (home / "openmpi/scalebook.lock").touch(0o600)
    (home / "openmpi/bin/shared").touch()
    (home / "openmpi/bin/shared").chmod(0o666)
    assert call(home, state="readable")["changed"]
    found = {path.name: mode(path) for path in (home / "openmpi").rglob("*")}
    assert found == {"bin": 0o755, "mpirun": 0o755, "scalebook.lock": 0o644, "shared": 0o644}
    assert call(home, state="readable")["changed"] is False


def test_a_private_note_beside_the_programs_stays_private(home):
    (home / "mirror.json").touch(0o600)
    assert call(home, state="readable")["changed"] is False
    assert mode(home / "mirror.json") == 0o600


def test_links_that_go_round_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert "has too many links" in call(tmp_path / "a/home")["msg"]


def test_without_root_nothing_is_checked(home, monkeypatch):
    plant_file(home)
    monkeypatch.setattr(os, "geteuid", lambda: YOU)
    assert call(home) == {"changed": False, "moved": []}
    assert Path(home / "openmpi").exists()
