# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""oneflow_resnet50: files of records as OneFlow reads them, made and checked without OneFlow.

test_bare_node.py has OneFlow itself read them.
"""

import functools
import re
import shutil

import pytest
import role_files
from role_files import load

JPEG = b"\xff\xd8\xff\xe0 an image"

ofrecord_files = load("oneflow_resnet50", "ofrecord_files")
run = functools.partial(role_files.run, "oneflow_resnet50")

ImageError = ofrecord_files.ImageError


def refusal(folder, images=0, files=0):
    """Return why the files were refused."""
    done = run("ofrecord_files.py", folder, images, files)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.strip()


@pytest.fixture
def folder(tmp_path):
    """Five images in two files, three in the first."""
    ofrecord_files.write(str(tmp_path), [(JPEG, label) for label in (0, 1, 2, 300, 999)], 2)
    return tmp_path


def part(folder, number):
    return folder / f"train/part-0000{number}"


# The format


def test_a_record_is_its_length_and_a_map_of_features():
    """Byte for byte what oneflow.core.record.record_pb2 of OneFlow 0.9.0 reads; 300 is AC 02."""
    image = b"\x0a\x07encoded" + b"\x12\x11" + b"\x0a\x0f" + b"\x0a\x0d" + JPEG
    label = b"\x0a\x0bclass/label" + b"\x12\x06" + b"\x22\x04" + b"\x0a\x02\xac\x02"
    content = b"\x0a" + bytes([len(image)]) + image + b"\x0a" + bytes([len(label)]) + label
    assert len(JPEG) == 13
    assert ofrecord_files.record(JPEG, 300) == bytes([len(content)]) + bytes(7) + content


@pytest.mark.parametrize("number", [0, 127, 128, 300, 999, 1 << 40])
def test_a_whole_number_is_read_as_it_was_written(number):
    written = ofrecord_files.varint(number)
    assert ofrecord_files.read_varint(written, 0) == (number, len(written))


def test_images_are_dealt_to_the_files_in_turn(folder):
    counts = [len(list(ofrecord_files.records(str(part(folder, number))))) for number in (0, 1)]
    assert counts == [3, 2]


# Images that are made


def test_images_are_made_once_and_are_the_same_everywhere(tmp_path):
    folders = [tmp_path / name for name in ("NODE1", "NODE2")]
    assert [run("make_images.py", each, 3, 2).stdout for each in folders] == ["made\n"] * 2
    assert len({part(each, 1).read_bytes() for each in folders}) == 1
    assert run("make_images.py", folders[0], 3, 2).stdout == "unchanged\n"
    printed = run("ofrecord_files.py", folders[0], 3, 2).stdout
    assert re.fullmatch(r"records files=2 identity=[0-9a-f]{64}\n", printed)


@pytest.mark.parametrize(("images", "files"), [(4, 2), (3, 1)])
def test_a_campaign_with_other_files_is_refused(tmp_path, images, files):
    run("make_images.py", tmp_path, 3, 2)
    assert refusal(tmp_path, images, files) == (
        f"{tmp_path} was made with images=3, files=2, required are oneflow_resnet50_images={images},"
        f" oneflow_resnet50_files={files}: run ansible-playbook provision.yml with the same values first"
    )


# The user's own files


def test_a_file_more_of_other_size_or_with_another_first_image_gives_another_identity(folder):
    found = [ofrecord_files.describe(str(folder))]
    for labels in ((1, 0, 2, 300, 999), (1, 0, 2, 300), (1, 0, 2)):
        shutil.rmtree(folder / "train")
        ofrecord_files.write(str(folder), [(JPEG, label) for label in labels], 3 if len(labels) == 3 else 2)
        found.append(ofrecord_files.describe(str(folder)))
    assert [each["files"] for each in found] == [2, 2, 2, 3]
    assert len({each["identity"] for each in found}) == 4


def feature(name, kind, *items):
    made = b"".join(ofrecord_files.field(1, item) for item in items)
    value = ofrecord_files.field(kind, made)
    return ofrecord_files.field(1, ofrecord_files.field(1, name) + ofrecord_files.field(2, value))


IMAGE, LABEL = feature(b"encoded", 1, JPEG), feature(b"class/label", 4, b"\x07")


@pytest.mark.parametrize("kind", [4, 5])
def test_a_label_of_32_or_64_bits_is_read_beside_other_features(kind):
    label = feature(b"class/label", kind, b"\x07")
    ofrecord_files.check("here", feature(b"filename", 1, b"x.JPEG") + label + IMAGE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (IMAGE, "here is not a record with one image encoded and one whole number class/label. Fix: convert"),
        (LABEL, "is not a record"),
        (b"", "is not a record"),
        (b"PK\x03\x04 a file of another kind", "is not a record"),
        ((IMAGE + LABEL)[:-1], "is not a record"),
        (IMAGE + feature(b"class/label", 2, b"\0\0\0\0"), "is not a record"),
        (IMAGE + feature(b"class/label", 4, b"\x07\x08"), "is not a record"),
        (IMAGE + feature(b"class/label", 4), "is not a record"),
        (LABEL + feature(b"encoded", 1, JPEG, JPEG), "is not a record"),
        (LABEL + feature(b"encoded", 4, b"\x07"), "is not a record"),
        (IMAGE + feature(b"class/label", 4, b"\xe8\x07"), "here has the label 1000, allowed are"),
        (LABEL + feature(b"encoded", 1, b"GIF89a"), "with 47494638, needed is an image as JPEG or PNG"),
    ],
)  # fmt: skip
def test_a_record_that_the_trainer_cannot_use_is_refused(content, message):
    with pytest.raises(ImageError, match=message):
        ofrecord_files.check("here", content)


def test_a_directory_without_files_is_refused(tmp_path):
    assert refusal(tmp_path) == (
        f"{tmp_path}/train has no files part-*. Fix: copy them there, or name another directory with"
        " train/part-00000 in it with oneflow_resnet50_data"
    )


def test_a_file_that_is_missing_between_others_is_named(folder):
    part(folder, 1).rename(part(folder, 2))
    assert refusal(folder) == (
        f"{folder}/train has 2 files part-*: the trainer reads part-00000 to part-00001, and part-00001 is"
        " missing. Fix: copy it there, or rename the files"
    )


def test_an_empty_file_is_refused(folder):
    part(folder, 1).write_bytes(b"")
    assert refusal(folder) == f"{part(folder, 1)} is empty. Fix: copy the file again"


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 a zip file", b"\xff" * 16, b"\0" * 16, b"\x09", b"\x09" + b"\0" * 7]
)
def test_a_file_that_does_not_begin_with_a_record_is_refused(folder, content):
    part(folder, 1).write_bytes(content)
    assert f"{part(folder, 1)} has {len(content)} bytes, and a record of " in refusal(folder)


def test_a_file_that_ends_in_a_record_is_refused_once_the_record_is_counted(folder):
    path = part(folder, 0)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ImageError, match=r"at offset \d+. Fix: copy the file again"):
        ofrecord_files.check_enough(str(folder), 1, 5)


@pytest.mark.parametrize(("processes", "batch"), [(1, 5), (2, 2)])
def test_as_many_images_as_a_step_takes_are_enough(folder, processes, batch):
    ofrecord_files.check_enough(str(folder), processes, batch)


@pytest.mark.parametrize(
    ("processes", "batch", "message"),
    [
        (2, 3, "has 5 images, and a step of all processes takes 6. Fix: oneflow_resnet50_images=6 or more"),
        (3, 1, "has 2 files, and 3 processes share them by whole files. Fix: oneflow_resnet50_files=3 or"),
    ],
)
def test_fewer_images_or_files_than_a_step_takes_are_refused(folder, processes, batch, message):
    """OneFlow 0.9.0 ends with a check of its sources where it has fewer files than processes."""
    with pytest.raises(ImageError, match=message):
        ofrecord_files.check_enough(str(folder), processes, batch)
