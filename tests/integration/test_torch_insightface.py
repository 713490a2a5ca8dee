# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The centres of torch_insightface, split over processes, train as one table of one process does."""

import re
from functools import partial
from pathlib import Path

import frameworks
import pytest

CODE = frameworks.HOME / "torch_insightface/code"
# Of four devices not each has as many classes. From the second step on a loss shows the gradients before it.
BATCH, STEPS, CLASSES, RATE = 16, 8, 4002, 0.01
CASES = ["1:1.0:arcface", "2:1.0:cosface", "4:0.1:arcface"]
pytestmark = pytest.mark.slow


printed = partial(frameworks.train_tiny, "torch_insightface")


@pytest.fixture(scope="module")
def expected(torch_insightface):
    """Return (losses, sums of the weights) of each case in one process with a table of all classes."""
    program = Path(__file__).with_name("train_insightface.py")
    lines = printed(program, CODE, BATCH, STEPS, CLASSES, RATE, *CASES).splitlines()
    parts = [lines[start : start + STEPS + 1] for start in range(0, len(lines), STEPS + 1)]
    return {
        case: ([float(loss) for loss in part[:-1]], [float(total) for total in part[-1].split()])
        for case, part in zip(CASES, parts, strict=True)
    }


@pytest.mark.parametrize("case", CASES)
def test_losses_and_weights_are_those_of_one_process_with_one_table(expected, case):
    processes, rate, margin = case.split(":")
    words = ["--device", "cpu", "--model", "tiny", "--dtype", "fp32", "--batch", BATCH // int(processes)]
    words += [
        "--steps",
        STEPS,
        "--image-size",
        32,
        "--classes",
        CLASSES,
        "--sample-rate",
        rate,
        "--margin",
        margin,
    ]
    words += ["--learning-rate", RATE]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes]
    log = printed(*launcher, CODE / "train.py", *words)
    losses = [float(loss) for loss in re.findall(r" step=\S+ loss=(\S+) ", log)]
    sums = re.search(r" backbone_sum=(\S+) centres_sum=(\S+)", log).groups()
    assert losses == pytest.approx(expected[case][0], rel=5e-5)
    assert [float(each) for each in sums] == pytest.approx(expected[case][1], rel=1e-5, abs=0.01)
    assert f" split_classes={CLASSES} class_devices={processes} " in log
