# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The images that workloads make for tests: the same bytes everywhere, files that any decoder reads."""

import hashlib
import io
import subprocess
import sys

import pytest
from PIL import Image
from role_files import ROLES, load

PROGRAM = ROLES / "workload/files/kit/make_image_folder.py"
noise_images = load("workload", "noise_images")


@pytest.fixture(scope="module")
def jpegs():
    return list(noise_images.images(20))


def test_the_images_have_the_same_bytes_everywhere(jpegs):
    """Computed with CPython 3.6 and 3.13 on x86-64."""
    digest = hashlib.sha256(b"".join(jpegs[:10])).hexdigest()
    assert digest == "abca5d6ee09e87b7d630ecf27f5e1df432299d1763e25f075db07ecceed94a04"


def test_more_images_begin_with_the_same_ones(jpegs):
    assert list(noise_images.images(3)) == jpegs[:3]


def test_an_image_has_the_pixels_and_bytes_of_an_average_one_of_imagenet(jpegs):
    image = Image.open(io.BytesIO(jpegs[0]))
    image.load()
    assert (image.format, image.size, image.mode) == ("JPEG", (500, 375), "RGB")
    assert 100_000 < len(jpegs[0]) < 120_000


def test_no_two_images_are_equal(jpegs):
    assert len(set(jpegs)) == len(jpegs)


def test_pieces_fit_together(jpegs):
    """A decoder that loses its place at a marker leaves the rest of an image grey."""
    pixels = Image.open(io.BytesIO(jpegs[1])).convert("L")
    rows = [pixels.crop((0, top, 500, top + 16)) for top in range(0, 360, 16)]
    assert all(high - low > 100 for low, high in (row.getextrema() for row in rows))


def made(folder, images, classes):
    """Make a folder; return what the program prints and {path: bytes}."""
    words = [sys.executable, PROGRAM, folder, str(images), str(classes)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("train/*/*")}
    return done.stdout.strip(), files


def test_images_are_in_the_folders_of_their_classes(tmp_path):
    answer, files = made(tmp_path / "images", 5, 2)
    assert (answer, sorted(files)) == (
        "made",
        [f"train/n0000000{number % 2}/0000000{number}.JPEG" for number in (0, 2, 4, 1, 3)],
    )


def test_the_same_folder_is_not_made_again(tmp_path):
    made(tmp_path / "images", 3, 2)
    assert made(tmp_path / "images", 3, 2)[0] == "unchanged"


def test_a_folder_of_other_images_is_replaced(tmp_path):
    made(tmp_path / "images", 5, 2)
    answer, files = made(tmp_path / "images", 2, 3)
    assert (answer, len(files)) == ("made", 2)
