# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Encoded images with labels from 0 to 999, as files of records have them: random ones, and a check.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import random
from typing import Iterator, Tuple

import noise_images

CLASSES = 1000
VERSION = [1, noise_images.VERSION]  # of the images that `made` returns
STARTS = {"JPEG": b"\xff\xd8\xff", "PNG": b"\x89PNG"}


class ImageError(ValueError):
    """Images that a trainer cannot use; the message names the file, what it has and what it needs."""


def random_images(count: int) -> Iterator[Tuple[bytes, int]]:
    """Yield `count` random images, each with a label; the same ones every time."""
    labels = random.Random(2020)
    for image in noise_images.images(count):
        yield image, int(labels.random() * CLASSES)


def check(where: str, image: bytes, label: float) -> None:
    """Raise ImageError where an image is not encoded, or its label is none of ImageNet's."""
    if label not in range(CLASSES):
        raise ImageError(
            "%s has the label %g, allowed are whole numbers from 0 to %d: convert the images again with these"
            " numbers of their classes" % (where, label, CLASSES - 1)
        )
    if not image.startswith(tuple(STARTS.values())):
        raise ImageError(
            "%s has content that begins with %s, needed is an image as %s: convert the images again"
            % (where, image[:4].hex() or "nothing", " or ".join(STARTS))
        )
