# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Images of a user in the layout of ImageNet, train/CLASS/IMAGE.JPEG, as training reads them.

    WORKLOAD=NAME python image_folder.py DIRECTORY CLASSES [MADE]

As a program it checks them and prints what they are in one line, or a sentence and status 1, which names
variables of the workload. With MADE above 0 they must be that many images of make_image_folder.py.

Runs on the nodes, with numpy and, to read images, Pillow.
"""

import hashlib
import itertools
import math
import os
import random
import sys
from typing import Any, Iterator, List, Tuple

import data_stamp
import numpy as np

ENDINGS = (".jpeg", ".jpg", ".png")
CHECKED = 1000  # images that are read before a campaign
# How a part of an image is cut out (Szegedy et al. 2014, arXiv:1409.4842, section 6): its share of the area,
# and its width by its height.
SHARE = (0.08, 1.0)
SHAPE = (3 / 4, 4 / 3)
TRIES = 10

Row = Tuple[int, int]
"""Number of an image and of the epoch that reads it."""
Box = Tuple[int, int, int, int]
"""Left, top, right and bottom of a part of an image."""


class ImageError(ValueError):
    """Images that cannot be used; the message names the file or folder, what it has and what it needs."""


class Folder:
    """The images of a directory and their classes, by number.

    The names are in an array: every process that prepares images would copy a list of a million texts.
    """

    def __init__(self, workload: str, directory: str, classes: int) -> None:
        self.train = os.path.join(directory, "train")
        self.named = "%s_data=%s" % (workload, directory)
        layout = "needed is the layout %s/CLASS/IMAGE.JPEG on every node" % self.train
        if not os.path.isdir(directory):
            raise ImageError("%s: this node has no such directory; %s" % (self.named, layout))
        if not os.path.isdir(self.train):
            raise ImageError("%s: the directory has no folder train; %s" % (self.named, layout))
        self.classes = sorted(entry.name for entry in os.scandir(self.train) if entry.is_dir())
        if not self.classes:
            raise ImageError("%s: %s has no folders of classes; %s" % (self.named, self.train, layout))
        if len(self.classes) > classes:
            raise ImageError(
                "%s: %s has %d folders of classes, %s_classes is %d; set it to %d"
                % (self.named, self.train, len(self.classes), workload, classes, len(self.classes))
            )
        names, labels = [], []
        for label, name in enumerate(self.classes):
            paths = sorted(
                entry.name
                for entry in os.scandir(os.path.join(self.train, name))
                if entry.name.lower().endswith(ENDINGS)
            )
            if not paths:
                raise ImageError(
                    "%s: %s/%s has no image (%s); copy its images there, or remove it"
                    % (self.named, self.train, name, ", ".join(ENDINGS))
                )
            names += [os.fsencode(each) for each in paths]
            labels += [label] * len(paths)
        self.names, self.labels = np.array(names), np.array(labels, np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, number: int) -> str:
        """Return the path of an image."""
        name = os.fsdecode(self.names[number].item())
        return os.path.join(self.train, self.classes[self.labels[number]], name)

    def require(self, global_batch: int) -> None:
        """Raise ImageError where there are fewer images than one step of all devices takes."""
        if len(self) < global_batch:
            raise ImageError(
                "%s: %s has %d images, a step of all devices takes %d; add images, or lower bsz"
                % (self.named, self.train, len(self), global_batch)
            )

    def describe(self) -> str:
        """Return the numbers of images and classes, and a checksum of all names and of some images.

        Raises ImageError where one of these images cannot be read.
        """
        digest = hashlib.sha256("\n".join(self.classes).encode("utf-8", "surrogateescape"))
        digest.update(self.labels.tobytes())
        digest.update(b"\n".join(self.names.tolist()))
        for number in range(0, len(self), -(-len(self) // CHECKED)):
            opened(self.path(number))
            with open(self.path(number), "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
        return "%d images in %d classes, sha256 %s" % (len(self), len(self.classes), digest.hexdigest())


def opened(path: str) -> Any:
    """Return an image of Pillow with the colours red, green and blue."""
    # Imported here: an interpreter of the user's own needs Pillow for such data only.
    try:
        from PIL import Image
    except ImportError:
        raise ImageError("%s has no Pillow, which reads images: install it there" % sys.executable) from None
    try:
        with Image.open(path) as image:
            image.load()
            # Converting copies the image, also where there is nothing to convert.
            return image if image.mode == "RGB" else image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ImageError(
            "%s cannot be read as an image (%s): copy it again, or remove it on every node" % (path, error)
        ) from None


def part(width: int, height: int, chance: random.Random) -> Box:
    """Return a random part of an image of this size."""
    for _ in range(TRIES):
        area = width * height * chance.uniform(*SHARE)
        shape = math.exp(chance.uniform(math.log(SHAPE[0]), math.log(SHAPE[1])))
        wide, high = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < wide <= width and 0 < high <= height:
            left, top = chance.randint(0, width - wide), chance.randint(0, height - high)
            return left, top, left + wide, top + high
    # Of a long image no part fit: the largest one in its middle that is not as long.
    wide = min(width, round(height * SHAPE[1]))
    high = min(height, round(width / SHAPE[0]))
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


def pixels(path: str, size: int, chance: random.Random) -> Any:
    """Return a random part of an image, scaled to [size, size, 3] and mirrored half the time, as uint8."""
    from PIL import Image

    image = opened(path)
    image = image.resize((size, size), Image.BILINEAR, part(image.width, image.height, chance))
    if chance.random() < 0.5:
        image = image.transpose(Image.FLIP_LEFT_RIGHT)
    return np.asarray(image)


class Pictures:
    """The data set of a loader: (pixels, class) of a row. The seed, epoch and image decide the part."""

    def __init__(self, folder: Folder, size: int, seed: int) -> None:
        self.folder, self.size, self.seed = folder, size, seed

    def __len__(self) -> int:
        return len(self.folder)

    def __getitem__(self, row: Row) -> Tuple[Any, int]:
        number, epoch = row
        chance = random.Random("%d %d %d" % (self.seed, epoch, number))
        return pixels(self.folder.path(number), self.size, chance), self.folder.labels[number]


class Turns:
    """The batches of a rank, without end, as lists of rows: a loader's batch sampler.

    In every epoch all ranks use the same permutation and take its batches in turn, so no two get the same
    image. What does not fill a step is left out; it differs from epoch to epoch. `place` is (rank, ranks).
    An epoch ends without a pause: the loader prepares the first images of the next one meanwhile.
    """

    def __init__(self, count: int, batch: int, place: Tuple[int, int], seed: int) -> None:
        self.count, self.batch, self.seed = count, batch, seed
        self.rank, self.world = place

    def __iter__(self) -> Iterator[List[Row]]:
        step = self.batch * self.world
        for epoch in itertools.count():
            order = np.random.RandomState((self.seed + epoch) % 2**32).permutation(self.count)
            for first in range(self.rank * self.batch, self.count // step * step, step):
                yield [(row, epoch) for row in order[first : first + self.batch].tolist()]


def stack(samples: List[Tuple[Any, int]]) -> Tuple[Any, Any]:
    """Return a batch as arrays: uint8 [batch, size, size, 3] and int64 [batch]."""
    return np.stack([pixels for pixels, _ in samples]), np.array([label for _, label in samples], np.int64)


def processes(requested: int, beside: int) -> int:
    """Return how many processes prepare images for each of the `beside` processes of a node that train.

    That is `requested`, or for 0 the cores of the node that may be used, divided by those processes.
    Simulated nodes share the cores of a machine.
    """
    if requested:
        return requested
    if os.environ["MASTER_ADDR"].startswith("127."):
        beside *= int(os.environ["NNODES"])
    return max(1, len(os.sched_getaffinity(0)) // beside)


def check(workload: str, directory: str, classes: int, count: int = 0) -> str:
    """Return what the images are; raise ImageError where they cannot be used."""
    other = count and data_stamp.problem(workload, directory, {"images": count, "classes": classes})
    if other:
        raise ImageError(other)
    return Folder(workload, directory, classes).describe()


def main(argv: List[str]) -> None:
    """Print the description."""
    try:
        print(check(os.environ["WORKLOAD"], argv[1], *map(int, argv[2:])))
    except ImageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv)
