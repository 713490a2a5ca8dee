# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reads YAML files, each once until it changes: all tasks of a campaign ask for the same ones."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.files import read_small

MOST_VALUES = 100_000
"""Values of one file, aliases counted as what they stand for: nine lines of nine aliases are 387 million."""
DEEPEST = 100
MOST_OPEN = 2000
"""Characters that can open a list in a list; a file with fewer cannot overflow the stack of the C parser."""


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
        text = read_small(file).decode()
        if sum(map(text.count, "[{-?")) > MOST_OPEN:
            _check_depth(file, yaml.parse(text, loader))
        content = loader(text).get_single_data()
        if count_values(content, {}) > MOST_VALUES:
            raise ValueError(f"{file}: has more than {MOST_VALUES} values, its aliases written out")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: is not YAML: {error}") from None
    except RecursionError:
        raise ValueError(f"{file}: is nested too deeply") from None
    return content


def _check_depth(file: Path, events: Iterable[Any]) -> None:
    """Raise ValueError where values are in each other too deeply: the loader would end the whole process."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith(("SequenceStartEvent", "MappingStartEvent"))
        depth -= name.endswith(("SequenceEndEvent", "MappingEndEvent"))
        if depth > DEEPEST:
            raise ValueError(f"{file}: is nested too deeply")


def count_values(value: Any, counts: dict[int, int]) -> int:
    """Return how many values a value has with all that is in it, as often as it is; infinite is very many.

    `counts` are the numbers of the lists and dictionaries that were counted before, by their id.
    """
    if not isinstance(value, (dict, list, tuple)):
        return 1
    if id(value) not in counts:
        counts[id(value)] = MOST_VALUES + 1  # for what holds itself
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(count_values(part, counts) for part in parts)
    return counts[id(value)]
