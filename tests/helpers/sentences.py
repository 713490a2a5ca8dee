# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sentences in data, which should have messages."""

import re

WORDS = re.compile(r"[A-Za-z]+(?:'s)?[,;:.]? (?:[A-Za-z]+(?:'s)?[,;:.]? )+[A-Za-z]+")
"""Three words in a row."""
OTHERS = ("command", "name", "processor", "scalebook", "traces")
"""Keys of what systems and users say."""


def sentences_in(value):
    """Return the sentences in a file's content but those of a message that is text: what others said."""
    if isinstance(value, str):
        return [value] if WORDS.search(value) else []
    if isinstance(value, list):
        return [each for entry in value for each in sentences_in(entry)]
    if not isinstance(value, dict) or value.get("code") == "text":
        return []
    return [each for key, entry in value.items() if key not in OTHERS for each in sentences_in(entry)]
