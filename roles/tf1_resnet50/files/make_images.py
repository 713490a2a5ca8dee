# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make tfrecord files like those of ImageNet: JPEGs of 500 x 375 with labels from 1 to 1000.

    python make_images.py DIRECTORY IMAGES FILES

Prints ``made``, or ``unchanged`` where the same files exist already. The same arguments give the same files.
Runs in an environment of TensorFlow 1.15.
"""

import os
import random
import sys
from typing import Any, Dict, List

# TensorFlow's messages are not printed.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import data_stamp  # noqa: E402
import noise_images  # noqa: E402
import tensorflow as tf  # noqa: E402

CLASSES = 1000
VERSION = 3  # of the files that this program makes


def feature(value: Any) -> Any:
    """Return a feature of an example: bytes, a whole number, or an empty list of floats."""
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def example(jpeg: bytes, label: int) -> bytes:
    """Return an example as the scripts that convert ImageNet write it: its box is the whole image."""
    values: Dict[str, Any] = {"image/encoded": jpeg, "image/format": b"JPEG", "image/colorspace": b"RGB"}
    size = {"image/height": noise_images.HEIGHT, "image/width": noise_images.WIDTH, "image/channels": 3}
    values.update(size)
    values.update({"image/class/label": label, "image/class/text": b"noise"})
    values.update({"image/object/bbox/%s" % side: [] for side in ("xmin", "ymin", "xmax", "ymax")})
    features = tf.train.Features(feature={name: feature(value) for name, value in values.items()})
    # Otherwise the order of the features is another in each process, and the nodes' files differ.
    encoded: bytes = tf.train.Example(features=features).SerializeToString(deterministic=True)
    return encoded


def write(folder: str, images: int, files: int) -> None:
    """Write the files: image `n` is in file `n` modulo `files`."""
    labels = random.Random(2020)
    names = ["train-%05d-of-%05d" % (number, files) for number in range(files)]
    writers = [tf.io.TFRecordWriter(os.path.join(folder, name)) for name in names]
    for number, jpeg in enumerate(noise_images.images(images)):
        writers[number % files].write(example(jpeg, labels.randint(1, CLASSES)))
    for writer in writers:
        writer.close()


def main(argv: List[str]) -> None:
    """Make the files unless they are there; those of other arguments are removed."""
    folder, images, files = argv[1], int(argv[2]), int(argv[3])
    values = {"version": VERSION, "images": images, "files": files}
    print(data_stamp.make(folder, values, lambda: write(folder, images, files)))


if __name__ == "__main__":
    main(sys.argv)
