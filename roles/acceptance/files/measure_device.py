# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measure with one device what each line of the standard input asks for, and answer each with a line of JSON.

measure_parts.py starts it, once for all that a device measures: to load torch takes longer than most of it.
A line is {"do": NAME, "with": {...}}, the name that of a function of WHAT. It ends with an error when
something cannot be measured.
"""

import base64
import json
import os
import sys
from typing import Any, Callable, Dict, List, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import collectives  # noqa: E402 - it, microbench.py and training_trace.py lie beside this file
import microbench  # noqa: E402
import training_trace  # noqa: E402

GROUP: List[Any] = []
"""The process group that this process is in, if any."""


def compute(options: List[str]) -> Dict[str, Any]:
    """Return what microbench.py measures."""
    result: Dict[str, Any] = microbench.measured(microbench.arguments([*options, "--out", ""]))
    return result


def trace(device: str) -> str:
    """Return the digest of a training."""
    text: str = training_trace.trace(device)
    return text


def join(device: str, environment: Dict[str, str], folder: str) -> None:
    """Join the process group that an environment names; the folder is for NCCL's lines."""
    os.environ.update(environment)
    GROUP.append(collectives.join(device, folder))


def send(options: List[str]) -> Optional[Dict[str, Any]]:
    """Return what collectives.py measures, on the first of the process group alone."""
    [group] = GROUP
    result: Dict[str, Any] = collectives.measured(collectives.arguments([*options, "--out", ""]), group)
    lines = collectives.nccl_lines(group)
    if lines:
        result["lines"] = base64.b64encode(lines).decode()
    return result if group.rank == 0 else None


def leave() -> None:
    """Leave the process group."""
    collectives.leave()
    GROUP.clear()


WHAT: Dict[str, Callable[..., Any]] = {each.__name__: each for each in (compute, trace, join, send, leave)}


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    # What the programs and their libraries print is not an answer.
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(WHAT[request["do"]](**request["with"])), file=answers, flush=True)
    # As in collectives.py.
    os._exit(0)


if __name__ == "__main__":
    main()
