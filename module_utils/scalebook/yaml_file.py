# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reads YAML files, each once until it changes: all tasks of a campaign ask for the same ones."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any


def read_yaml(file: Path) -> Any:
    """Return the content of a YAML file, a new copy with each call.

    Raises ValueError, with the name of the file, when it cannot be read or is not YAML.
    """
    try:
        status = file.stat()
        return copy.deepcopy(_parse(file, status.st_mtime_ns, status.st_size))
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from None


@functools.lru_cache(maxsize=256)
def _parse(file: Path, changed: int, size: int) -> Any:
    """Return the content of a file; `changed` and `size` make an edited file another entry of the cache."""
    del changed, size
    # Here, because only ansible-core brings PyYAML, and modules that nodes run may import this one.
    import yaml

    # As yaml.safe_load, in C where that is built in.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return loader(file.read_text(encoding="utf-8")).get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: is not YAML: {error}") from None
