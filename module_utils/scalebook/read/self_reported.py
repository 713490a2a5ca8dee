# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The closing line in which a framework reports its own results of a run.

A workload declares `self_reported: {literal: "HF_MLM row="}`; the last line with it is read as `name=value`
words, the first of which is the literal's own: `HF_MLM row=V100_4gpu_8 train_runtime=203.7`.
"""

from __future__ import annotations

import os
import re

from ansible.module_utils.scalebook.files import open_regular
from ansible.module_utils.scalebook.read.step_log import TAIL

MOST = 40
_WORD = re.compile(r"(?:^|\s)([A-Za-z]\w{0,39})=([\x21-\x7e]{1,60})(?=\s|$)")


def read(path: str | os.PathLike[str], literal: str) -> dict[str, str]:
    """Return the values at the end of a log by name, as text; none where there is no such line.

    Raises OSError when the log cannot be read and LogError when it is not a regular file.
    """
    with open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        tail = file.read(TAIL).decode(errors="replace")
    line = tail[tail.rfind(literal) :].split("\n", 1)[0] if literal in tail else ""
    return dict(_WORD.findall(line)[:MOST])
