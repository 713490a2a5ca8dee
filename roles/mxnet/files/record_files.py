# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of images as MXNet reads them: NAME.rec, and NAME.idx, which says where each record begins.

    WORKLOAD=NAME python record_files.py NAME.rec MADE

As a program it checks both and prints what a log says of them, or a sentence and status 1, which names
variables of the workload. MADE is the number of images that make_images.py should have made, 0 for files of
the user's own. Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import hashlib
import os
import struct
import sys
from typing import Any, BinaryIO, Dict, Iterable, List, Tuple

import data_stamp
import labelled_images
from labelled_images import ImageError

MAGIC = struct.pack("<I", 0xCED7230A)
HEADER = struct.Struct("<IfQQ")
"""Number of labels in an array, the label where there is no array, two numbers of the image."""

WHOLE, FIRST, MIDDLE, LAST = range(4)  # the part of a record that a magic number begins
LENGTH_BITS = 29
LOOKED_AT = 100  # records whose content is checked and counts for the identity
REPAIR = "Fix: write it again with MXNet's tools/rec2idx.py"


def pieces(payload: bytes) -> List[bytes]:
    """Return what is between the magic numbers that a payload has at multiples of four bytes."""
    parts, begin, offset = [], 0, payload.find(MAGIC)
    while offset >= 0:
        if offset % len(MAGIC) == 0:
            parts.append(payload[begin:offset])
            begin = offset + len(MAGIC)
        offset = payload.find(MAGIC, offset + 1)
    return [*parts, payload[begin:]]


def framed(part: int, content: bytes) -> bytes:
    """Return a part of a record with what is before and after it."""
    head = struct.pack("<I", part << LENGTH_BITS | len(content))
    return MAGIC + head + content + b"\0" * (-len(content) % len(MAGIC))


def record(image: bytes, label: int, number: int) -> bytes:
    """Return the record of an image. One that has the magic number is written in pieces without it."""
    first, *others = pieces(HEADER.pack(0, label, number, 0) + image)
    if not others:
        return framed(WHOLE, first)
    *middle, last = others
    return framed(FIRST, first) + b"".join(framed(MIDDLE, each) for each in middle) + framed(LAST, last)


def index_of(path: str) -> str:
    """Return the path of the index of a file of records."""
    return os.path.splitext(path)[0] + ".idx"


def write(path: str, images: Iterable[Tuple[bytes, int]]) -> None:
    """Write encoded images and their labels as the records of a file, and its index."""
    with open(path, "wb") as records, open(index_of(path), "w", encoding="ascii") as index:
        for number, (image, label) in enumerate(images):
            index.write("%d\t%d\n" % (number, records.tell()))
            records.write(record(image, label, number))


def offsets(path: str) -> List[int]:
    """Return where the records of a file begin, as its index says."""
    name = index_of(path)
    try:
        with open(name, encoding="ascii") as file:
            begins = sorted(int(line.split("\t")[1]) for line in file)
    except OSError as error:
        raise ImageError(
            "%s: %s, and the trainer finds the records by it. %s" % (name, error.strerror, REPAIR)
        ) from None
    except (IndexError, ValueError):
        raise ImageError(
            "%s has a line that is not a number, a tab and an offset. %s" % (name, REPAIR)
        ) from None
    if not begins:
        raise ImageError("%s is empty. %s" % (name, REPAIR))
    return begins


def look(file: BinaryIO, where: str) -> bytes:
    """Return the record that begins here, or its first piece; raise ImageError where there is none."""
    magic, head = file.read(len(MAGIC)), file.read(4)
    if magic != MAGIC or len(head) < 4:
        raise ImageError(
            "%s begins with %s, a record with %s. Fix: an index that was written for this file, and records"
            " of MXNet's tools/im2rec.py" % (where, (magic + head).hex() or "nothing", MAGIC.hex())
        )
    length = struct.unpack("<I", head)[0] & ((1 << LENGTH_BITS) - 1)
    content = file.read(length)
    if len(content) < length:
        raise ImageError(
            "%s ends after %d of %d bytes. Fix: copy the file again" % (where, len(content), length)
        )
    return content


def check(where: str, content: bytes) -> None:
    """Raise ImageError where a record is not one image with one label."""
    labels, label = HEADER.unpack(content[: HEADER.size].ljust(HEADER.size, b"\0"))[:2]
    array = content[HEADER.size :][: 4 * labels]
    if labels == 1 and len(array) == 4:
        label = struct.unpack("<f", array)[0]
    elif labels:
        raise ImageError(
            "%s has %d labels, the trainer takes one. Fix: tools/im2rec.py without --pack-label"
            % (where, labels)
        )
    labelled_images.check(where, content[HEADER.size + 4 * labels :], label)


def describe(path: str) -> Dict[str, Any]:
    """Return the number of images and a checksum of the index and of some records."""
    if not os.path.isfile(path):
        raise ImageError(
            "there is no file %s. Fix: copy it there, or name another with %s_data"
            % (path, os.environ["WORKLOAD"])
        )
    record_offsets = offsets(path)
    digest = hashlib.sha256(repr(record_offsets).encode())
    with open(path, "rb") as file:
        for offset in [*record_offsets[:: -(-len(record_offsets) // LOOKED_AT)], record_offsets[-1]]:
            where = "%s at offset %d" % (path, offset)
            file.seek(offset)
            content = look(file, where)
            check(where, content)
            digest.update(content)
    return {"images": len(record_offsets), "identity": digest.hexdigest()}


def check_enough(path: str, images: int, batch: int, shares: List[int]) -> None:
    """Raise ImageError where the last process has fewer images than its batch.

    `shares` are the images of each process: the same number, but for the last one.
    """
    if shares[-1] < batch:
        rest = ", and the last one what is left" if shares[-1] != shares[0] else ""
        raise ImageError(
            "%s has %d images: %d processes have %d of them each%s, fewer than the batch of %d. Fix: %d"
            " images, or a smaller batch"
            % (path, images, len(shares), shares[0], rest, batch, max(shares[0], batch) * len(shares))
        )


def main(argv: List[str]) -> None:
    """Print the description."""
    path, count = argv[1], int(argv[2])
    try:
        other = count and data_stamp.problem(os.environ["WORKLOAD"], os.path.dirname(path), {"images": count})
        if other:
            raise ImageError(other)
        print("records", *("%s=%s" % pair for pair in describe(path).items()))
    except ImageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv)
