# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make files of records like those of ImageNet, with random images.

    python make_images.py DIRECTORY IMAGES FILES

Prints ``made``, or ``unchanged`` where the same files exist already. The same arguments give the same files
on every machine. Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import sys
from typing import List

import data_stamp
import labelled_images
import ofrecord_files

VERSION = 1  # of the files that this program makes


def main(argv: List[str]) -> None:
    """Make the files unless they are there."""
    folder, images, files = argv[1], int(argv[2]), int(argv[3])
    values = {"version": [VERSION, labelled_images.VERSION], "images": images, "files": files}
    pictures = labelled_images.random_images(images)
    print(data_stamp.make(folder, values, lambda: ofrecord_files.write(folder, pictures, files)))


if __name__ == "__main__":
    main(sys.argv)
