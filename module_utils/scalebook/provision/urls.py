# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""URLs that users give: which of them hold a secret, and how they are shown."""

from __future__ import annotations

import re
from typing import Any

# What comes before the @ of a host, and what follows a question mark: tokens are given as either.
_SECRET = re.compile(r"(?<=://)[^\s/@'\"]+(?=@)|(?<=\?)[^\s'\"#<>]+", re.ASCII)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.ASCII | re.IGNORECASE)


def redact(text: str) -> str:
    """Return `text` with the secrets of the URLs in it replaced by `***`.

    >>> redact("Cannot reach https://me:token@mirror/simple?key=1 today")
    'Cannot reach https://***@mirror/simple?*** today'
    """
    return _URL.sub(lambda url: _SECRET.sub("***", url[0]), text)


def has_secret(value: Any) -> bool:
    """Return whether a URL, or one of a list of them, holds a user, a password or a query."""
    if isinstance(value, (list, tuple)):
        return any(has_secret(each) for each in value)
    return redact(str(value)) != str(value)
