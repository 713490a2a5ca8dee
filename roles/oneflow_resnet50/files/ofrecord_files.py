# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of images as OneFlow reads them: DIRECTORY/train/part-00000 and so on, records of protocol buffers.

    python ofrecord_files.py DIRECTORY IMAGES FILES

As a program it checks them and prints what a log says of them, or a sentence and status 1. IMAGES
and FILES are what make_images.py should have made, 0 for files of the user's own.
Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import contextlib
import glob
import hashlib
import itertools
import os
import struct
import sys
from typing import Any, Dict, Iterable, Iterator, List, Tuple

import data_stamp
import labelled_images
from labelled_images import ImageError

LENGTH = struct.Struct("<q")
IMAGE, LABEL = b"encoded", b"class/label"
# Numbers of the fields in OneFlow's record.proto, and the kind of a field that has a length.
FEATURE, NAME, VALUE, ITEMS = 1, 1, 2, 1
BYTES, INT32, INT64 = 1, 4, 5
DELIMITED = 2
NAMES = "part-%05d"
CONVERT = "Fix: convert the images again with the tools that the README of Oneflow-Inc/models names"


# Protocol buffers


def varint(number: int) -> bytes:
    """Return a whole number as protocol buffers have it."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


def read_varint(message: bytes, offset: int) -> Tuple[int, int]:
    """Return (whole number, offset after it)."""
    number = shift = 0
    while True:
        number |= (message[offset] & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if message[offset - 1] < 0x80:
            return number, offset


def field(number: int, content: bytes) -> bytes:
    """Return a field with a length."""
    return varint(number << 3 | DELIMITED) + varint(len(content)) + content


def fields(message: bytes) -> Iterator[Tuple[int, bytes]]:
    """Yield (number, content) of a message whose fields all have a length; ValueError for another message."""
    offset = 0
    while offset < len(message):
        key, offset = read_varint(message, offset)
        length, offset = read_varint(message, offset)
        if key & 7 != DELIMITED or offset + length > len(message):
            raise ValueError
        yield key >> 3, message[offset : offset + length]
        offset += length


# Records


def record(image: bytes, label: int) -> bytes:
    """Return the record of an image."""
    values = {IMAGE: field(BYTES, field(ITEMS, image)), LABEL: field(INT32, field(ITEMS, varint(label)))}
    content = b"".join(field(FEATURE, field(NAME, name) + field(VALUE, values[name])) for name in values)
    return LENGTH.pack(len(content)) + content


def item(content: bytes, name: bytes) -> Tuple[int, bytes]:
    """Return (kind, item) of a feature with one item; LookupError or ValueError where there is none."""
    for _, feature in fields(content):
        content_of = dict(fields(feature))
        if content_of[NAME] == name:
            ((kind, items),) = fields(content_of[VALUE])
            ((_, only),) = fields(items)
            return kind, only
    raise LookupError


def check(where: str, content: bytes) -> None:
    """Raise ImageError where a record is not one image with one label."""
    try:
        kind, image = item(content, IMAGE)
        label_kind, packed = item(content, LABEL)
        label, end = read_varint(packed, 0)
        good = kind == BYTES and label_kind in (INT32, INT64) and end == len(packed)
    except (LookupError, ValueError):
        good = False
    if not good:
        raise ImageError(
            "%s is not a record with one image %s and one whole number %s. %s"
            % (where, IMAGE.decode(), LABEL.decode(), CONVERT)
        )
    labelled_images.check(where, image, label)


# Files


def write(directory: str, images: Iterable[Tuple[bytes, int]], files: int) -> None:
    """Write encoded images and their labels: image `n` is in file `n` modulo `files`."""
    folder = os.path.join(directory, "train")
    os.makedirs(folder)
    with contextlib.ExitStack() as stack:
        paths = [os.path.join(folder, NAMES % number) for number in range(files)]
        parts = [stack.enter_context(open(path, "wb")) for path in paths]
        for number, (image, label) in enumerate(images):
            parts[number % files].write(record(image, label))


def parts_of(directory: str) -> List[str]:
    """Return the paths of the files; raise ImageError where the trainer would not find them all."""
    folder = os.path.join(directory, "train")
    paths = sorted(glob.glob(os.path.join(folder, "part-*")))
    expected = [os.path.join(folder, NAMES % number) for number in range(len(paths))]
    if not paths:
        raise ImageError(
            "%s has no files part-*. Fix: copy them there, or name another directory with train/%s in it with"
            " oneflow_resnet50_data" % (folder, NAMES % 0)
        )
    if paths != expected:
        last, missing = os.path.basename(expected[-1]), os.path.basename(min(set(expected) - set(paths)))
        raise ImageError(
            "%s has %d files part-*: the trainer reads %s to %s, and %s is missing. Fix: copy it there, or"
            " rename the files" % (folder, len(paths), NAMES % 0, last, missing)
        )
    return paths


def records(path: str) -> Iterator[Tuple[int, int]]:
    """Yield the offset and length of each record; raise ImageError where the file ends in one."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        offset = 0
        while offset < size:
            file.seek(offset)
            head = file.read(LENGTH.size)
            length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
            if not 0 < length <= size - offset - LENGTH.size:
                raise ImageError(
                    "%s has %d bytes, and a record of %d bytes at offset %d. Fix: copy the file again, or one"
                    " with records of OneFlow" % (path, size, length, offset)
                )
            yield offset + LENGTH.size, length
            offset += LENGTH.size + length


def first_record(path: str) -> bytes:
    """Return the first record of a file."""
    for offset, length in records(path):
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(length)
    raise ImageError("%s is empty. Fix: copy the file again" % path)


def describe(directory: str) -> Dict[str, Any]:
    """Return the number of files and a checksum of their names, sizes and first records."""
    paths = parts_of(directory)
    digest = hashlib.sha256()
    for path in paths:
        content = first_record(path)
        check("%s: its first record" % path, content)
        digest.update(b"%s %d " % (os.path.basename(path).encode(), os.path.getsize(path)) + content)
    return {"files": len(paths), "identity": digest.hexdigest()}


def check_enough(directory: str, processes: int, batch: int) -> None:
    """Raise ImageError where the files or images are fewer than those of a step of all processes."""
    paths = parts_of(directory)
    if len(paths) < processes:
        raise ImageError(
            "%s has %d files, and %d processes share them by whole files. Fix: oneflow_resnet50_files=%d or"
            " more, or more files of your own" % (directory, len(paths), processes, processes)
        )
    needed = processes * batch
    # They are counted as far as needed: a record has to be found for each.
    images = sum(1 for _ in itertools.islice(itertools.chain.from_iterable(map(records, paths)), needed))
    if images < needed:
        raise ImageError(
            "%s has %d images, and a step of all processes takes %d. Fix: oneflow_resnet50_images=%d or more,"
            " or a smaller batch" % (directory, images, needed, needed)
        )


def main(argv: List[str]) -> None:
    """Print the description."""
    directory, images, files = argv[1], int(argv[2]), int(argv[3])
    try:
        expected = {"images": images, "files": files}
        other = images and data_stamp.problem("oneflow_resnet50", directory, expected)
        if other:
            raise ImageError(other)
        print("records", *("%s=%s" % pair for pair in describe(directory).items()))
    except ImageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv)
