# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Your own images: files in the layout of image_folder.py, or arrays.

Arrays are images.npy, uint8 [count, 3, size, size], and labels.npy, integers [count].

usage: image_files.py DIRECTORY SIZE CLASSES [MADE]

As a program it checks them and prints what they are in one line, or a sentence and status 1. With MADE they
must be that many images of make_image_folder.py.
"""

import hashlib
import os
import sys
from typing import Any, Tuple

import image_folder
import numpy as np
from image_folder import ImageError

WORKLOAD = "torch_resnet50"
ROWS = 1000  # rows of the images that the checksum reads


def are_arrays(directory: str) -> bool:
    """Return whether the images of a directory are arrays."""
    return os.path.exists(os.path.join(directory, "images.npy"))


def arrays(directory: str, size: int, classes: int) -> Tuple[Any, Any]:
    """Return (images, labels), mapped into memory; raise ImageError where they do not fit."""
    mapped = []
    for name in ("images.npy", "labels.npy"):
        path = os.path.join(directory, name)
        try:
            mapped.append(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError) as error:
            raise ImageError("%s: %s" % (path, error)) from None
    images, labels = mapped
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (3, size, size):
        raise ImageError(
            "%s/images.npy is %s %s, needed is uint8 [count, 3, %d, %d]: write them in this shape,"
            " or set torch_resnet50_image_size" % (directory, images.dtype, list(images.shape), size, size)
        )
    if labels.dtype.kind not in "iu" or labels.shape != images.shape[:1] or not len(labels):
        raise ImageError(
            "%s/labels.npy is %s %s, needed are integers [%d], one for each image"
            % (directory, labels.dtype, list(labels.shape), len(images))
        )
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise ImageError(
            "%s/labels.npy has labels from %d to %d, allowed are 0 to %d: set torch_resnet50_classes"
            % (directory, low, high, classes - 1)
        )
    return images, labels


def describe(directory: str, size: int, classes: int) -> str:
    """Return the number of images and a checksum of the labels and of some images."""
    images, labels = arrays(directory, size, classes)
    digest = hashlib.sha256(np.ascontiguousarray(labels).tobytes())
    digest.update(np.ascontiguousarray(images[:: max(1, len(images) // ROWS)]).tobytes())
    return "%d images in arrays, sha256 %s" % (len(images), digest.hexdigest())


def main() -> None:
    """Print the description."""
    directory, (size, classes, *counts) = sys.argv[1], map(int, sys.argv[2:])
    try:
        if are_arrays(directory):
            print(describe(directory, size, classes))
        else:
            print(image_folder.check(WORKLOAD, directory, classes, *counts))
    except ImageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
