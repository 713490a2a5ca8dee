# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What every trainer needs: lines for the log, arguments, and an end when its launcher has ended.

Runs on the nodes, Python 3.6 or newer, standard library only. Import it before any framework:

    import trainer_kit

    trainer_kit.die_with_parent()
    say = trainer_kit.Say("MY_WORKLOAD")
    say(step="1/120", loss="6.91")        # prints: MY_WORKLOAD step=1/120 loss=6.91
"""

import argparse
import ctypes
import json
import math
import os
import signal
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, List, NoReturn

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Let the kernel kill this process as soon as the process that started it has ended (Linux)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def print_line(text: str) -> None:
    """Print a line in one piece.

    With Python's option -u, which torchrun and DeepSpeed's launcher give, `print` writes the newline by
    itself, and the line of another process gets in between.
    """
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Say:
    """Prints lines `PREFIX name=value …`, which the log patterns of meta/workload.yml read."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __call__(self, **values: Any) -> None:
        """Print one line."""
        words = ["%s=%s" % pair for pair in values.items()]
        print_line(" ".join([self.prefix] + words))


def refuse(reason: Any) -> NoReturn:
    """End this process at once, with the line that the report of the run repeats as its reason."""
    print_line("scalebook: refused: %s" % reason)
    os._exit(2)


def boolean(text: str) -> bool:
    """Return an argument that is `true` or `false`."""
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError("must be true or false")
    return text == "true"


def model_size() -> Dict[str, int]:
    """Return the sizes that the declaration has of the case's model, from job.env."""
    size: Dict[str, int] = json.loads(os.environ["MODEL_SIZE"])
    return size


def parser(models: Iterable[str], dtypes: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser of the arguments that describe a case; add what else the trainer takes.

    Without `models`, any model is taken whose sizes the case has.
    """
    case = argparse.ArgumentParser(allow_abbrev=False)
    case.add_argument("--device", choices=["cpu", "gpu"], required=True)
    case.add_argument("--model", choices=sorted(models) or None, required=True)
    case.add_argument("--dtype", choices=sorted(dtypes), required=True)
    case.add_argument("--batch", type=int, required=True, help="samples per device and micro-step")
    case.add_argument("--accumulation", type=int, default=1)
    case.add_argument("--steps", type=int, required=True)
    return case


def is_number(loss: float) -> bool:
    """Return whether a loss is a finite number; training on without one measures nothing."""
    return math.isfinite(loss)


def sums(weights: Iterable[Any]) -> List[float]:
    """Return the sum and the sum of squares of weights: arrays, or tensors of a framework, of float64."""
    total, squares = 0.0, 0.0
    for numbers in weights:
        total, squares = total + float(numbers.sum()), squares + float((numbers * numbers).sum())
    return [total, squares]


def finish(say: Callable[..., None], first: bool, ranks: List[List[float]], steps: int) -> None:
    """Print the closing lines of a node; exit where the `sums` of all ranks differ or are not finite.

    Where the weights agree, the gradients were summed. The `first` rank of a node prints.
    """
    if not all(map(math.isfinite, ranks[0])):
        sys.exit("the weights are not finite: %s" % ranks[0])
    if any(values != ranks[0] for values in ranks):
        sys.exit("the ranks hold different weights: the gradients were not summed: %s" % ranks)
    if first:
        say(steps_done=steps)
        say(weights_sum="%.9e" % ranks[0][0], weights_sum_of_squares="%.9e" % ranks[0][1])
        say(weights="agree", end="true")


def run(main: Callable[[], None]) -> None:
    """Call `main`, and end the process at once where that fails.

    A framework would wait for the other ranks, which wait for this one.
    """
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
