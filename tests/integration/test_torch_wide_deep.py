# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The tables of torch_wide_deep, split over processes, train as embeddings of one process do."""

import re
from functools import partial
from pathlib import Path

import frameworks
import pytest

CODE = frameworks.HOME / "torch_wide_deep/code"
BATCH, STEPS = 64, 100  # more steps than there are batches
pytestmark = pytest.mark.slow


printed = partial(frameworks.train_tiny, "torch_wide_deep")


@pytest.fixture(scope="module")
def expected(torch_wide_deep):
    """Return the losses of one process with torch's own embeddings."""
    program = Path(__file__).with_name("train_wide_deep.py")
    return [float(loss) for loss in printed(program, CODE, BATCH, STEPS).split()]


@pytest.mark.parametrize("processes", [1, 2])
def test_the_loss_is_that_of_one_process_with_embeddings_of_torch(expected, processes):
    words = ["--device", "cpu", "--model", "tiny", "--dtype", "fp32", "--batch", BATCH // processes]
    words += ["--steps", STEPS, "--dropout", 0]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes]
    log = printed(*launcher, CODE / "train.py", *words)
    losses = [float(loss) for loss in re.findall(r" step=\S+ loss=(\S+) ", log)]
    assert losses == pytest.approx(expected, abs=0.0005)
    assert expected[-1] < expected[0] - 0.2
    assert f" table_rows=3200 table_devices={processes} own_rows={3200 // processes} " in log
