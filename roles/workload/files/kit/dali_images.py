# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Batches of images in files that NVIDIA DALI reads, decodes and cuts: on a GPU where it trains.

The package nvidia.dali is not in the locks: the user installs it.
"""

import collections
import itertools
import os
from typing import Any, Deque, List, Tuple

import image_folder
import images
import numpy as np
import torch
from nvidia.dali import Pipeline, fn, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator


class Files:
    """Endless batches as images.Files has them, of the same images; `threads` threads prepare them.

    The seed and the place in the order decide the part of an image. DALI is two batches ahead.
    """

    def __init__(
        self,
        folder: image_folder.Folder,
        turns: image_folder.Turns,
        size: int,
        seed: int,
        threads: int,
        device: torch.device,
        **form: Any,
    ) -> None:
        self.folder, self.turns = folder, iter(turns)
        self.ahead: Deque[List[int]] = collections.deque()  # the images that DALI has been given
        gpu = device.type == "cuda"
        number = device.index if gpu else None
        pipeline = Pipeline(turns.batch, threads, number, seed=seed % 2**31)
        with pipeline:
            paths, labels = fn.external_source(self._turn, num_outputs=2, batch=True)
            pixels = fn.decoders.image_random_crop(
                fn.io.file.read(paths),
                device="mixed" if gpu else "cpu",
                output_type=types.RGB,
                random_area=image_folder.SHARE,
                random_aspect_ratio=image_folder.SHAPE,
                num_attempts=image_folder.TRIES,
                # As the other loader: files are taken as they are.
                adjust_orientation=False,
                # The processes of a node would bind their threads to the same cores.
                affine=False,
            )
            pixels = fn.flip(fn.resize(pixels, size=(size, size)), horizontal=fn.random.coin_flip())
            pipeline.set_outputs(pixels, labels.gpu() if gpu else labels)
        self.batches = DALIGenericIterator(pipeline, ["pixels", "labels"], prepare_first_batch=False)
        self.normalised = images.Normalised(device, **form)

    def _turn(self) -> Tuple[List[Any], Any]:
        """Return the paths, which may be in any encoding, and the classes of a batch."""
        rows = [row for row, _ in next(self.turns)]
        self.ahead.append(rows)
        paths = [np.frombuffer(os.fsencode(self.folder.path(row)), np.uint8) for row in rows]
        return paths, self.folder.labels[rows]

    def __next__(self) -> images.Batch:
        try:
            (batch,) = next(self.batches)
        except RuntimeError:
            # DALI does not name a damaged file; the other loader does.
            for row in itertools.chain(*self.ahead):
                image_folder.opened(self.folder.path(row))
            raise
        self.ahead.popleft()
        return self.normalised(batch["pixels"].permute(0, 3, 1, 2)), batch["labels"]
