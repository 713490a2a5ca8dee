# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads with MXNet: files of records as MXNet writes them, made and checked without MXNet.

test_bare_node.py has MXNet itself read them.
"""

import functools
import re
import struct

import pytest
import role_files
from role_files import load

JPEG = b"\xff\xd8\xff\xe0 an image"

record_files = load("mxnet", "record_files")
run = functools.partial(role_files.run, "mxnet")

MAGIC = record_files.MAGIC


@pytest.fixture(autouse=True)
def workload(monkeypatch):
    """The programs name the variables of this workload."""
    monkeypatch.setenv("WORKLOAD", "mxnet_resnet50")


def refusal(path, made=0):
    """Return why the files were refused."""
    done = run("record_files.py", path, made)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.strip()


@pytest.fixture
def path(tmp_path):
    """Three images with the labels 0, 1 and 999."""
    record_files.write(str(tmp_path / "train.rec"), [(JPEG, label) for label in (0, 1, 999)])
    return tmp_path / "train.rec"


# The format


def test_a_record_is_its_length_header_and_image_and_ends_at_a_multiple_of_four():
    header = struct.pack("<IfQQ", 0, 7.0, 5, 0)
    expected = MAGIC + struct.pack("<I", len(header) + len(JPEG)) + header + JPEG + b"\0" * 3
    assert record_files.record(JPEG, 7, 5) == expected


def test_a_record_with_the_magic_number_is_written_in_pieces_as_mxnet_writes_it():
    """MXIndexedRecordIO of MXNet 1.6.0 writes these bytes for pack(IRHeader(0, 0.0, 0, 0), image)."""
    image = b"\xff\xd8\xffA" + MAGIC + b"xyz" + MAGIC + MAGIC + b"12345"
    pieces = [b"\0" * 24 + b"\xff\xd8\xffA", b"xyz" + MAGIC + MAGIC + b"12345"]
    expected = b"".join(
        MAGIC + struct.pack("<I", kind << 29 | len(piece)) + piece + b"\0" * (-len(piece) % 4)
        for kind, piece in zip((1, 3), pieces, strict=True)
    )
    assert record_files.record(image, 0, 0) == expected


def test_every_magic_number_at_a_multiple_of_four_ends_a_piece():
    assert record_files.pieces(b"abcd" + MAGIC * 2 + b"a" + MAGIC) == [b"abcd", b"", b"a" + MAGIC]


def test_a_line_of_the_index_is_a_number_and_an_offset(path):
    size = 8 + 24 + 16
    assert path.with_suffix(".idx").read_text() == f"0\t0\n1\t{size}\n2\t{2 * size}\n"


# Images that are made


def test_images_are_made_once_and_are_the_same_everywhere(tmp_path):
    folders = [tmp_path / name for name in ("NODE1", "NODE2")]
    assert [run("make_images.py", folder / "train.rec", 3).stdout for folder in folders] == ["made\n"] * 2
    for name in ("train.rec", "train.idx"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1
    assert run("make_images.py", folders[0] / "train.rec", 3).stdout == "unchanged\n"
    printed = run("record_files.py", folders[0] / "train.rec", 3).stdout
    assert re.fullmatch(r"records images=3 identity=[0-9a-f]{64}\n", printed)


def test_another_number_of_images_is_made_again(tmp_path):
    run("make_images.py", tmp_path / "train.rec", 3)
    assert run("make_images.py", tmp_path / "train.rec", 2).stdout == "made\n"
    assert len((tmp_path / "train.idx").read_text().splitlines()) == 2


def test_a_campaign_with_another_number_of_images_is_refused(tmp_path):
    run("make_images.py", tmp_path / "train.rec", 3)
    assert refusal(tmp_path / "train.rec", 4) == (
        f"{tmp_path} was made with images=3, required are mxnet_resnet50_images=4: run ansible-playbook"
        " provision.yml with the same values first"
    )


# The user's own files


def test_files_with_other_images_have_another_identity(path, tmp_path):
    before = record_files.describe(str(path))
    record_files.write(str(path), [(JPEG, label) for label in (0, 2, 999)])
    after = record_files.describe(str(path))
    assert (before["images"], after["images"]) == (3, 3)
    assert before["identity"] != after["identity"]


def test_a_hundred_records_of_many_are_looked_at(path, monkeypatch):
    record_files.write(str(path), [(JPEG, 0)] * 1050)
    looked, look = [], record_files.look
    monkeypatch.setattr(record_files, "look", lambda *given: (looked.append(1), look(*given))[1])
    assert record_files.describe(str(path))["images"] == 1050
    assert 90 <= len(looked) <= 101


def test_a_label_in_an_array_of_one_is_read(path):
    """As tools/im2rec.py --pack-label writes it."""
    header = struct.pack("<IfQQ", 1, 0.0, 0, 0)
    record_files.check("here", header + struct.pack("<f", 999.0) + JPEG)
    with pytest.raises(record_files.ImageError, match="has the label 1000, allowed are"):
        record_files.check("here", header + struct.pack("<f", 1000.0) + JPEG)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (struct.pack("<IfQQ", 0, 1000.0, 0, 0) + JPEG, "here has the label 1000, allowed are"),
        (struct.pack("<IfQQ", 0, -1.0, 0, 0) + JPEG, "has the label -1,"),
        (struct.pack("<IfQQ", 0, 0.5, 0, 0) + JPEG, "has the label 0.5,"),
        (struct.pack("<IfQQ", 0, float("nan"), 0, 0) + JPEG, "has the label nan,"),
        (struct.pack("<IfQQffff", 4, 0, 0, 0, 1, 2, 3, 4) + JPEG, "has 4 labels, .* without --pack-label"),
        (struct.pack("<IfQQ", 0, 1.0, 0, 0) + b"GIF89a", "with 47494638, needed .* JPEG or PNG"),
        (b"\0" * 24, "with nothing, needed"),
    ],
)  # fmt: skip
def test_a_record_that_the_trainer_cannot_use_is_refused(content, message):
    with pytest.raises(record_files.ImageError, match=message):
        record_files.check("here", content)


def test_a_missing_file_is_named(tmp_path):
    assert refusal(tmp_path / "train.rec") == (
        f"there is no file {tmp_path}/train.rec. Fix: copy it there, or name another with mxnet_resnet50_data"
    )


def test_a_file_without_its_index_is_refused(path):
    path.with_suffix(".idx").unlink()
    message = refusal(path)
    assert message.startswith(f"{path.with_suffix('.idx')}: No such file")
    assert message.endswith("Fix: write it again with MXNet's tools/rec2idx.py")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("0 0\n", "has a line that"),
        ("0\tx\n", "has a line that"),
        ("\xff", "has a line that"),
    ],
)
def test_an_index_of_another_shape_is_refused(path, text, message):
    path.with_suffix(".idx").write_text(text, encoding="latin-1")
    assert message in refusal(path)


def test_a_file_of_another_kind_is_refused(path):
    path.write_bytes(b"PK\x03\x04" + path.read_bytes()[4:])
    assert f"{path} at offset 0 begins with 504b0304" in refusal(path)
    assert f"a record with {MAGIC.hex()}" in refusal(path)


def test_an_index_of_another_file_is_refused(path):
    index = path.with_suffix(".idx")
    index.write_text(index.read_text() + "3\t1000\n")
    assert f"{path} at offset 1000 begins with nothing" in refusal(path)


def test_a_file_that_ends_in_a_record_is_refused(path):
    path.write_bytes(path.read_bytes()[:-8])
    assert "at offset 96 ends after 32 of 37 bytes. Fix: copy the file again" in refusal(path)
