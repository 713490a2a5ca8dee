# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sentences in data, which should have messages."""

import re

WORDS = re.compile(r"[A-Za-z]+(?:'s)?[,;:.]? (?:[A-Za-z]+(?:'s)?[,;:.]? )+[A-Za-z]+")
"""Three words in a row."""
PHRASE = re.compile(
    r"(?<![\w.=/-])[a-z']{2,}[,;:]? [a-z]{2,}(?![\w=./-])"
    r"|(?:\S*[A-Za-z]{2}\S* ){2}\S*[A-Za-z]{2}"
)
"""Two words in small letters, or three of any letters, names with digits and signs in them included."""
OTHERS = ("command", "name", "processor", "scalebook", "traces")
"""Keys of what systems and users say."""


def phrases_in(value, of_others=(), place=()):
    """Yield (place, text) of each phrase in a file's content but those of a message that is text.

    A place is the last two keys, `key.key`, or the last one; `of_others` are those of what others said.
    """
    name = ".".join(place[-2:])
    if {name, *place[-1:]} & set(of_others):
        return
    if isinstance(value, str) and PHRASE.search(value):
        yield name, value
    elif isinstance(value, list):
        for each in value:
            yield from phrases_in(each, of_others, place)
    elif isinstance(value, dict) and value.get("code") != "text":
        for key, each in value.items():
            yield from phrases_in(each, of_others, (*place, str(key)))


def sentences_in(value):
    """Return the sentences in a file's content but those of a message that is text: what others said."""
    if isinstance(value, str):
        return [value] if WORDS.search(value) else []
    if isinstance(value, list):
        return [each for entry in value for each in sentences_in(entry)]
    if not isinstance(value, dict) or value.get("code") == "text":
        return []
    return [each for key, entry in value.items() if key not in OTHERS for each in sentences_in(entry)]
