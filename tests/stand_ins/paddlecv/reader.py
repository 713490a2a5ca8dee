# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stands in for PaddleCV's reader.py: images of the list, scaled."""

from pathlib import Path

import cv2


def process_image(sample, settings, mode, color_jitter, rotate):
    """Return the pixels and the label of a sample, None where it cannot be read."""
    image = cv2.imread(sample[0])
    if image is None:
        return None
    image = cv2.resize(image, tuple(settings.image_shape[1:]))
    return image.astype("float32").transpose((2, 0, 1)) / 255, sample[1]


def samples(settings):
    """Yield the samples of the list."""
    for line in Path(settings.data_dir, "train_list.txt").read_text().splitlines():
        path, label = line.split()
        yield process_image((path, int(label)), settings, "train", False, False)
