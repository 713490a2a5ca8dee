# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make a file of records like that of ImageNet, with random images.

    python make_images.py NAME.rec IMAGES

Prints ``made``, or ``unchanged`` where the same files exist already. The same arguments give the same files
on every machine. Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import os
import sys
from typing import List

import data_stamp
import labelled_images
import record_files

VERSION = 1  # of the files that this program makes


def main(argv: List[str]) -> None:
    """Make the files unless they are there."""
    path, count = argv[1], int(argv[2])
    values = {"version": [VERSION, labelled_images.VERSION], "images": count}
    images = labelled_images.random_images(count)
    print(data_stamp.make(os.path.dirname(path), values, lambda: record_files.write(path, images)))


if __name__ == "__main__":
    main(sys.argv)
