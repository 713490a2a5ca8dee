# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A mirror is split into pieces of a given size, and put together from them."""

import mirror_pieces
import pytest
from run_module import call_module

PIECE = 1 << 20


@pytest.fixture
def mirror(tmp_path):
    """A mirror of 2.5 MiB in two files."""
    top = tmp_path / "mirror"
    (top / "wheels").mkdir(parents=True)
    (top / "sha256sums").write_text("of the mirror\n")
    (top / "wheels/torch.whl").write_bytes(bytes(range(256)) * 10240)
    return top


@pytest.fixture
def pieces(mirror, tmp_path):
    """The directory of its pieces."""
    done = call_module(mirror_pieces, path=str(tmp_path / "pieces"), mirror=str(mirror), size=PIECE)
    assert done["pieces"] == 3
    return tmp_path / "pieces"


def join(pieces):
    return call_module(mirror_pieces, path=str(pieces))


def files(top):
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_no_piece_is_larger_than_asked_for(pieces):
    sizes = [path.stat().st_size for path in sorted(pieces.glob("mirror.tar.*"))]
    assert sizes[:-1] == [PIECE, PIECE]
    assert 0 < sizes[-1] <= PIECE


def test_the_pieces_give_the_mirror_back(pieces, mirror):
    assert join(pieces)["changed"]
    assert files(pieces / "mirror") == files(mirror)


def test_pieces_that_were_put_together_are_left_alone(pieces):
    join(pieces)
    assert not join(pieces)["changed"]


def test_pieces_of_a_newer_mirror_replace_the_older_one(pieces, mirror):
    join(pieces)
    (mirror / "wheels/torch.whl").unlink()
    call_module(mirror_pieces, path=str(pieces), mirror=str(mirror), size=PIECE)
    assert join(pieces)["pieces"] == 1
    assert files(pieces / "mirror") == {"sha256sums": b"of the mirror\n"}


def test_files_that_are_no_pieces_are_left_alone(pieces, mirror):
    (pieces / "mirror.tar.gz").write_bytes(b"the user's")
    call_module(mirror_pieces, path=str(pieces), mirror=str(mirror), size=PIECE)
    assert (pieces / "mirror.tar.gz").read_bytes() == b"the user's"


def test_a_directory_that_is_not_from_pieces_is_left_alone(pieces):
    (pieces / "mirror").mkdir()
    (pieces / "mirror/file").write_text("the user's")
    refused = join(pieces)["msg"]
    assert refused == f"{pieces}/mirror exists already, and not from pieces. Fix: move it elsewhere"
    assert files(pieces / "mirror") == {"file": b"the user's"}


def test_an_interrupted_start_leaves_nothing_that_the_next_one_refuses(pieces, mirror, monkeypatch):
    monkeypatch.setattr(mirror_pieces.os, "rename", lambda *names: (_ for _ in ()).throw(OSError("power")))
    assert join(pieces)["failed"]
    monkeypatch.undo()
    assert join(pieces)["changed"]
    assert files(pieces / "mirror") == files(mirror)


def test_a_changed_piece_is_refused_by_its_name(pieces):
    with (pieces / "mirror.tar.0001").open("r+b") as stream:
        stream.write(b"\xff")
    assert "changed: mirror.tar.0001. Fix: copy these pieces again" in join(pieces)["msg"]
    assert not (pieces / "mirror").exists()


def test_a_missing_piece_is_refused_by_its_name(pieces):
    (pieces / "mirror.tar.0002").unlink()
    assert "missing: mirror.tar.0002. Fix" in join(pieces)["msg"]


@pytest.mark.parametrize("text", ["", "0" * 64 + "  ../mirror.tar.0000\n"])
def test_a_list_of_something_else_is_refused(pieces, text):
    (pieces / "pieces.sha256").write_text(text)
    assert "is not a list of pieces" in join(pieces)["msg"]


def test_a_piece_below_a_megabyte_is_refused(mirror, tmp_path):
    done = call_module(mirror_pieces, path=str(tmp_path / "pieces"), mirror=str(mirror), size=1000)
    assert done["msg"] == "a piece of 1000 bytes is too small: at least 1048576 are needed"


def test_a_link_out_of_the_mirror_is_refused_by_name(mirror, tmp_path):
    (mirror / "wheels/passwd").symlink_to("/etc/passwd")
    call_module(mirror_pieces, path=str(tmp_path / "pieces"), mirror=str(mirror), size=PIECE)
    refused = join(tmp_path / "pieces")
    assert refused["failed"]
    assert refused["msg"] == "wheels/passwd is neither a file nor a directory of a mirror"
