# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a folder of data was made of, noted in it as the last file. Python 3.6 or newer, no other package."""

import json
import os

NAME = "made.json"


def of(folder):
    """Return what the folder's files were made of, None where they were not finished."""
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def note(folder, values):
    """Note that the folder's files are complete, and what they were made of."""
    with open(os.path.join(folder, NAME), "w", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(values, sort_keys=True) + "\n")
