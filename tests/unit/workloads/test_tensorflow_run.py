# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tensorflow_run.py: a trainer starts where TensorFlow sees its GPUs, and as Python itself would start it."""

import os
import subprocess
import sys

import pytest
from role_files import ROLES

RUN = ROLES / "workload/files/kit/tensorflow_run.py"
# A stand-in for TensorFlow that sees two GPUs.
TENSORFLOW = "class config:\n    list_physical_devices = staticmethod(lambda kind: [0, 1])\n"
TRAINER = "import os, sys\nprint(__name__, os.path.basename(sys.argv[0]), sys.argv[1:], sys.path[0])\n"


@pytest.fixture
def run(tmp_path):
    """Return a function that starts tensorflow_run.py beside the stand-in and a trainer."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/tensorflow.py").write_text(TENSORFLOW)
    (tmp_path / "trainer.py").write_text(TRAINER)

    def start(*arguments):
        return subprocess.run(
            [sys.executable, RUN, *arguments],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "packages")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return start


def test_a_run_without_its_gpus_ends_before_the_trainer_starts(run):
    done = run("3", "trainer.py")
    assert (done.returncode, done.stdout) == (1, "TensorFlow sees 2 GPUs, the run needs 3\n")


@pytest.mark.parametrize("trainer", [["trainer.py"], ["-m", "trainer"]], ids=["script", "module"])
def test_the_trainer_starts_as_python_starts_it(run, tmp_path, trainer):
    done = run("2", *trainer, "--steps", "5")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1] == f"__main__ trainer.py ['--steps', '5'] {tmp_path}"
