# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every parallel mode of torch_gpt2, on one, two and four processes, trains what one process trains.

The sequences of a step are the same in all of them; clipping is on, which needs the norm of the whole model.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
SEQUENCES = 16
# Four layers, so that a pipeline of four has stages without embedding and projection.
FP32, BF16 = "--model four --dtype fp32 ", "--model four --dtype bf16 "
# A piece of 0 MB: every layer is gathered by itself.
FSDP, TWO_STAGES = "--parallel fsdp --bucket-mb 0 ", "--pipeline-parallel 2 "
MODES = {
    1: [FP32 + "--batch 16", FP32 + FSDP + "--batch 16", FP32 + "--batch 4 --accumulation 4"],
    2: [
        FP32 + "--batch 8",
        FP32 + FSDP + "--batch 8",
        FP32 + FSDP + "--batch 4 --accumulation 2",
        FP32 + "--tensor-parallel 2 --batch 8",
        FP32 + TWO_STAGES + "--batch 2 --accumulation 4",
        BF16 + FSDP + "--batch 8",
        BF16 + TWO_STAGES + "--batch 2 --accumulation 4",
    ],
    4: [
        FP32 + "--tensor-parallel 2 --batch 4",
        FP32 + TWO_STAGES + "--batch 2 --accumulation 2",
        FP32 + "--pipeline-parallel 4 --batch 1 --accumulation 4",
    ],
}  # fmt: skip


def torchrun(home, processes, *words):
    """Return what the program prints as that many processes on this machine."""
    place = home / "torch_gpt2/code"
    launcher = [home / "pytorch/venv/bin/python", "-m", "torch.distributed.run", "--standalone"]
    program = [Path(__file__).with_name("train_in_parallel.py"), place, "cpu", str(SEQUENCES), *words]
    done = subprocess.run(
        [*launcher, "--nproc_per_node", str(processes), *program],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def trained(torch_gpt2):
    """Return {(processes, options): what became of it}. Takes half a minute."""
    found = {}
    for processes, modes in MODES.items():
        printed = torchrun(torch_gpt2, processes, *modes)
        lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        assert len(lines) == len(modes), printed
        found |= {(processes, line["options"]): line for line in lines}
    return found


@pytest.mark.parametrize(
    ("processes", "options"), [(number, options) for number, modes in MODES.items() for options in modes]
)
def test_every_mode_has_the_losses_and_the_weights_of_one_process(trained, processes, options):
    one, found = trained[(1, MODES[1][0])], trained[(processes, options)]
    within = 1e-6 if "fp32" in options else 5e-4
    assert found["losses"] == pytest.approx(one["losses"], rel=within)
    assert found["sums"] == pytest.approx(one["sums"], rel=within)
    assert found["agree"]
    assert one["losses"][-1] < one["losses"][0] - 0.3


def test_a_combination_that_is_not_among_them_ends_before_it_begins(torch_gpt2):
    """The plan refuses it too; this is a trainer that was started without one."""
    printed = torchrun(torch_gpt2, 2, FP32 + FSDP + "--tensor-parallel 2 --batch 4")
    assert "scalebook: refused: torch_gpt2_parallel=fsdp does not go with torch_gpt2_tensor_par" in printed
    assert "losses" not in printed
