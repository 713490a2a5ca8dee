"""program_files: the files of a program, as required and no others touched."""

import os
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.node import program_files

FILES = {"train.py": "print(1)\n", "model.py": "é\n"}


@pytest.fixture
def code(tmp_path):
    """A directory in which the files are as required, made with its parent."""
    program_files.put(tmp_path / "home/code", FILES)
    return tmp_path / "home/code"


def test_files_are_written_as_given(code):
    assert {path.name: path.read_text(encoding="utf-8") for path in code.iterdir()} == FILES


def test_files_are_for_all_to_read(code):
    assert {path.stat().st_mode & 0o777 for path in code.iterdir()} == {0o644}


def test_directories_are_for_all_to_read_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        program_files.put(tmp_path / "home/code", FILES)
    finally:
        os.umask(before)
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("home", "home/code")} == {0o755}


def test_what_is_as_wanted_is_left(code):
    assert program_files.put(code, FILES) == {}


def test_what_differs_is_told_and_written(code):
    (code / "train.py").write_text("print(2)\n")
    assert program_files.put(code, FILES) == {"train.py": b"print(2)\n"}
    assert (code / "train.py").read_text() == "print(1)\n"


def test_a_wrong_mode_is_mended(code):
    (code / "train.py").chmod(0o600)
    assert list(program_files.put(code, FILES)) == ["train.py"]
    assert (code / "train.py").stat().st_mode & 0o777 == 0o644


def test_a_link_is_replaced_and_not_followed(code, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    (code / "train.py").unlink()
    (code / "train.py").symlink_to(elsewhere)
    program_files.put(code, FILES)
    assert (elsewhere.read_text(), (code / "train.py").is_symlink()) == ("mine\n", False)


def test_files_of_others_are_left(code):
    (code / "pretrain.py").touch()
    program_files.put(code, FILES)
    assert (code / "pretrain.py").exists()


def test_a_check_writes_nothing(tmp_path):
    assert program_files.put(tmp_path / "code", FILES, write=False) == {"model.py": None, "train.py": None}
    assert not (tmp_path / "code").exists()


@pytest.mark.parametrize("name", ["../run.sh", "a/b", "", ".", ".."])
def test_a_file_name_with_a_directory_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="not the name of a file"):
        program_files.put(tmp_path / "code", {name: ""})


def test_nodes_that_share_a_home_make_its_folders_at_the_same_time(tmp_path, monkeypatch):
    mkdir = Path.mkdir

    def made_by_both(folder, *args, **options):
        if not folder.is_dir():
            mkdir(folder)
        mkdir(folder, *args, **options)

    monkeypatch.setattr(Path, "mkdir", made_by_both)
    program_files.put(tmp_path / "home/code", FILES)
    assert (tmp_path / "home/code/train.py").read_text() == FILES["train.py"]
