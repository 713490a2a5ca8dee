# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make a directory of images in the layout of ImageNet: train/CLASS/IMAGE.JPEG.

    python make_image_folder.py DIRECTORY IMAGES CLASSES

Prints ``made``, or ``unchanged`` where the same files exist already. Image `n` is in class `n` modulo
CLASSES. The same arguments give the same files.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import os
import sys
from typing import List

import data_stamp
import noise_images


def write(folder: str, count: int, classes: int) -> None:
    """Write the files."""
    names = [os.path.join(folder, "n%08d" % number) for number in range(min(count, classes))]
    for name in names:
        os.makedirs(name)
    for number, jpeg in enumerate(noise_images.images(count)):
        with open(os.path.join(names[number % classes], "%08d.JPEG" % number), "wb") as file:
            file.write(jpeg)


def main(argv: List[str]) -> None:
    """Make the files unless they are there; those of other arguments are removed."""
    directory, count, classes = argv[1], int(argv[2]), int(argv[3])
    values = {"version": noise_images.VERSION, "images": count, "classes": classes}
    train = os.path.join(directory, "train")
    print(data_stamp.make(directory, values, lambda: write(train, count, classes)))


if __name__ == "__main__":
    main(sys.argv)
