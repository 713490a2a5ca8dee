# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print how many tfrecord files of ImageNet, train-*, a directory has, for the records of a run.

    WORKLOAD=NAME NNODES=NUMBER python tfrecord_files.py DIRECTORY NAMED [IMAGES FILES]

NAMED is the user's own directory, empty where provision.yml has made IMAGES random images in FILES files.
Prints a sentence and ends with status 1 where others were made, and where there are fewer files than nodes,
which share them by whole files. Runs on the nodes, Python 3.6 or newer.
"""

import glob
import os
import sys
from typing import List

import data_stamp


def problem(directory: str, named: str, numbers: List[str], count: int) -> str:
    """Return why the files cannot be used, "" where they can."""
    workload, nodes = os.environ["WORKLOAD"], int(os.environ["NNODES"])
    if not named and numbers:
        images, files = map(int, numbers)
        other = data_stamp.problem(workload, directory, {"images": images, "files": files})
        if other:
            return other
    if count >= nodes:
        return ""
    return (
        "%s_tfrecords=%s: found %d files train-* in %s, and %d nodes share them by whole files. Fix: put at "
        "least %d there, or leave the variable empty" % (workload, named, count, directory, nodes, nodes)
    )


def main(argv: List[str]) -> None:
    """Check the files and print their number."""
    directory, named, *numbers = argv[1:]
    count = len(glob.glob(os.path.join(glob.escape(directory), "train*")))
    why = problem(directory, named, numbers, count)
    if why:
        sys.exit(why)
    print("%d tfrecord files%s" % (count, "" if named else " with random images"))


if __name__ == "__main__":
    main(sys.argv)
