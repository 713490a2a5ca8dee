# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Images in folders of classes: which are taken, which are refused with what fix, and what training reads."""

import itertools
import os
import random

import pytest
import role_files
from PIL import Image
from role_files import declaration, load, run

image_folder = load("workload", "image_folder")
make_image_folder = load("workload", "make_image_folder")


@pytest.fixture
def images(tmp_path):
    """Return a directory with five images of two classes."""
    make_image_folder.main(["", str(tmp_path / "images"), "5", "2"])
    return tmp_path / "images"


def folder(directory, classes=1000):
    return image_folder.Folder("torch_resnet50", str(directory), classes)


def problem(directory, classes=1000):
    """Return why a directory is refused."""
    with pytest.raises(image_folder.ImageError) as refused:
        folder(directory, classes).describe()
    return str(refused.value)


# Which images are taken


def test_a_class_is_a_folder_in_the_order_of_names(images):
    found = folder(images)
    assert (found.classes, found.labels.tolist()) == (["n00000000", "n00000001"], [0, 0, 0, 1, 1])
    assert found.path(3) == str(images / "train/n00000001/00000001.JPEG")


def test_other_files_are_left_alone(images):
    (images / "train/n00000000/urls.txt").touch()
    (images / "train/README").touch()
    assert len(folder(images)) == 5


def test_names_that_are_not_utf_8_are_read(images):
    one = images / "train/n00000000/00000000.JPEG"
    one.with_name(os.fsdecode(b"\xff\xe9.jpg")).write_bytes(one.read_bytes())
    assert folder(images).describe().startswith("6 images in 2 classes, sha256 ")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path / "none", "this node has no such directory; needed is the layout"),
        (lambda path: path / "train", "the directory has no folder train; needed is the layout"),
    ],
)
def test_a_directory_of_another_layout_is_refused(images, change, reason):
    wrong = change(images)
    assert problem(wrong).startswith(f"torch_resnet50_data={wrong}: {reason} {wrong}/train/CLASS/IMAGE.JPEG")


def test_a_train_folder_without_classes_is_refused(tmp_path):
    (tmp_path / "train").mkdir()
    assert f"{tmp_path}/train has no folders of classes" in problem(tmp_path)


def test_a_class_without_images_is_refused(images):
    (images / "train/n00000002").mkdir()
    assert f"{images}/train/n00000002 has no image (.jpeg, .jpg, .png); copy its images" in problem(images)


def test_more_classes_than_the_model_has_are_refused(images):
    assert "2 folders of classes, torch_resnet50_classes is 1; set it to 2" in problem(images, 1)


@pytest.mark.parametrize("content", [b"", b"not an image"])
def test_an_image_that_cannot_be_read_is_named(images, content):
    wrong = images / "train/n00000001/00000003.JPEG"
    wrong.write_bytes(content)
    assert problem(images).startswith(f"{wrong} cannot be read as an image (")


def test_half_an_image_is_named(images):
    wrong = images / "train/n00000001/00000003.JPEG"
    wrong.write_bytes(wrong.read_bytes()[:50000])
    assert problem(images).startswith(f"{wrong} cannot be read as an image (")


def test_fewer_images_than_a_step_takes_are_refused(images):
    folder(images).require(5)
    with pytest.raises(
        image_folder.ImageError, match="train has 5 images, a step of all devices takes 6; add"
    ):
        folder(images).require(6)


@pytest.mark.parametrize("workload", ["torch_resnet50", "paddle_resnet50", "paddlecv_resnet50"])
def test_what_is_declared_as_a_failure_is_what_is_raised(workload):
    programs = [*role_files.KIT.glob("*.py"), *(role_files.ROLES / workload / "files").glob("*.py")]
    text = "".join(path.read_text() for path in programs)
    assert all(each.text in text for each in declaration(workload).failures)


# What nodes are compared by


def test_equal_images_have_equal_descriptions(images, tmp_path):
    make_image_folder.main(["", str(tmp_path / "other"), "5", "2"])
    assert folder(images).describe() == folder(tmp_path / "other").describe()


@pytest.mark.parametrize("change", ["name", "class", "content"])
def test_other_images_have_another_description(images, change):
    before = folder(images).describe()
    one, two = images / "train/n00000000/00000000.JPEG", images / "train/n00000001/00000001.JPEG"
    if change == "name":
        one.rename(one.with_name("1.JPEG"))
    elif change == "class":
        one.rename(two.with_name(one.name))
    else:
        one.write_bytes(two.read_bytes())
    assert folder(images).describe() != before


@pytest.fixture
def checked(monkeypatch):
    """Return a function that runs the check of a campaign."""
    monkeypatch.setenv("WORKLOAD", "torch_resnet50")
    return lambda directory, *made: run("workload", "image_folder.py", directory, "2", *made)


def test_images_that_were_made_are_as_many_as_asked_for(images, checked):
    assert checked(images, "5").stdout.startswith("5 images in 2 classes, sha256 ")


def test_other_images_than_those_asked_for_are_refused(images, checked):
    done = checked(images, "6")
    required = "torch_resnet50_images=6, torch_resnet50_classes=2: run ansible-playbook provision.yml"
    assert done.returncode == 1
    assert done.stderr.startswith(f"{images} was made with images=5, classes=2, required are {required}")


# What training reads


def test_all_ranks_together_read_every_image_once_an_epoch():
    ranks = [image_folder.Turns(24, 4, (rank, 3), 1) for rank in range(3)]
    epochs = [row for turns in ranks for batch in itertools.islice(turns, 4) for row in batch]
    assert sorted(epochs) == [(number, epoch) for number in range(24) for epoch in (0, 1)]


def test_what_does_not_fill_a_step_is_left_out():
    batches = list(itertools.islice(image_folder.Turns(11, 4, (1, 2), 1), 3))
    assert [len(batch) for batch in batches] == [4, 4, 4]
    assert [{epoch for _, epoch in batch} for batch in batches] == [{0}, {1}, {2}]


def test_epochs_have_different_orders_and_seeds_too():
    orders = [
        tuple(number for number, _ in batch)
        for batch in itertools.islice(image_folder.Turns(8, 8, (0, 1), 1), 2)
    ]
    other = next(iter(image_folder.Turns(8, 8, (0, 1), 5)))
    assert len({*orders, tuple(number for number, _ in other)}) == 3


def test_the_part_of_an_image_follows_from_seed_epoch_and_image(images):
    def part(seed, row):
        return image_folder.Pictures(folder(images), 32, seed)[row][0].tobytes()

    assert part(1, (0, 0)) == part(1, (0, 0))
    assert len({part(1, (0, 0)), part(1, (0, 1)), part(1, (1, 0)), part(2, (0, 0))}) == 4


def test_a_batch_has_bytes_and_classes(images):
    pictures = image_folder.Pictures(folder(images), 32, 1)
    pixels, labels = image_folder.stack([pictures[(0, 0)], pictures[(4, 0)]])
    assert (pixels.shape, pixels.dtype.name, labels.tolist()) == ((2, 32, 32, 3), "uint8", [0, 1])


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGBA", "P", "1"])
def test_images_of_other_colours_become_red_green_and_blue(tmp_path, mode):
    path = tmp_path / ("image.jpg" if mode in ("L", "CMYK") else "image.png")
    Image.new(mode, (40, 30)).save(path)
    assert image_folder.pixels(str(path), 16, random.Random(1)).shape == (16, 16, 3)


def test_a_part_lies_in_the_image_and_has_8_to_100_percent_of_its_area():
    chance = random.Random(1)
    for _ in range(1000):
        left, top, right, bottom = image_folder.part(500, 375, chance)
        share = (right - left) * (bottom - top) / (500 * 375)
        assert 0 <= left < right <= 500
        assert 0 <= top < bottom <= 375
        assert 0.079 < share <= 1
        assert 0.74 < (right - left) / (bottom - top) < 1.35


@pytest.mark.parametrize(
    ("width", "height", "box"), [(4000, 3, (1998, 0, 2002, 3)), (3, 4000, (0, 1998, 3, 2002))]
)
def test_of_a_long_image_the_middle_is_taken(width, height, box):
    assert image_folder.part(width, height, random.Random(1)) == box


@pytest.mark.parametrize(
    ("wanted", "beside", "address", "nodes", "count"),
    [
        (5, 2, "10.0.0.1", "4", 5),
        (0, 2, "10.0.0.1", "4", 8),
        (0, 32, "10.0.0.1", "4", 1),
        (0, 2, "127.0.0.1", "4", 2),
    ],
)
def test_cores_are_divided_by_the_processes_of_a_machine(monkeypatch, wanted, beside, address, nodes, count):
    monkeypatch.setattr(image_folder.os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setenv("MASTER_ADDR", address)
    monkeypatch.setenv("NNODES", nodes)
    assert image_folder.processes(wanted, beside) == count
