# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which loader reads your own images: Pillow in processes of its own, or NVIDIA DALI.

usage: image_loader.py LOADER DEVICE DIRECTORY

LOADER is `auto`, `pillow` or `dali`. Prints the loader and its version, or `none` for arrays; or a sentence
and status 1. `auto` is DALI on a GPU where it is installed.
"""

import importlib
import sys
from typing import List

import image_files

MODULES = {"pillow": "PIL", "dali": "nvidia.dali"}


class LoaderError(ValueError):
    """A loader that cannot be used; the message names the variable and a fix."""


def version(loader: str) -> str:
    """Return the version of a loader."""
    try:
        number: str = importlib.import_module(MODULES[loader]).__version__
    except ModuleNotFoundError as error:
        raise LoaderError(
            "torch_resnet50_loader=%s: %s has no module %s (%s); install it there, as docs/how-to/own-data.md"
            " says, or set another loader" % (loader, sys.executable, MODULES[loader], error)
        ) from None
    return number


def choose(loader: str, device: str, directory: str) -> str:
    """Return what the program prints."""
    if image_files.are_arrays(directory):
        if loader != "auto":
            raise LoaderError(
                "torch_resnet50_loader=%s: %s has arrays, which need no loader; set it to auto"
                % (loader, directory)
            )
        return "none"
    if loader != "auto":
        return "%s %s" % (loader, version(loader))
    if device == "gpu":
        try:
            return "dali %s" % version("dali")
        except LoaderError:
            pass  # it is not installed
    return "pillow %s" % version("pillow")


def main(argv: List[str]) -> None:
    """Print the loader."""
    try:
        print(choose(*argv[1:]))
    except LoaderError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv)
