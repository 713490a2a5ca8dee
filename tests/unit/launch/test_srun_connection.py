# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The connection over steps of Slurm: what tells a command that failed from a node that was lost."""

import importlib.util
from pathlib import Path

import pytest
from ansible.errors import AnsibleConnectionFailure

ROOT = Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("srun_connection", ROOT / "connection_plugins/srun.py")
connection = importlib.util.module_from_spec(spec)
spec.loader.exec_module(connection)

# As srun 22.05 and slurmstepd write them.
DOWN = b"srun: error: Task launch for StepId=6.0 failed on node NODE4: Communication connection failure\n"
CANCELLED = b"slurmstepd-NODE4: error: *** STEP 1.5 ON NODE4 CANCELLED AT 2026-11-28T20:00:00 ***\n"
EXITED = b"srun: error: NODE4: task 0: Exited with exit code 3\n"
BEGUN, ENDED = b"scalebook-srun begun\n", b"\nscalebook-srun ended\n"


def test_what_a_command_writes_arrives_without_the_sentences_of_srun():
    assert connection.answer(3, BEGUN + EXITED + b"oops\n" + ENDED, "NODE4") == b"oops\n"
    assert connection.answer(3, b"srun: warning\n" + BEGUN + b"oops" + ENDED + EXITED, "NODE4") == b"oops"


def test_a_sentence_of_srun_may_come_just_before_the_end_of_the_command():
    blank, ended = ENDED[:1], ENDED[1:]
    assert connection.answer(3, BEGUN + b"oops\n" + blank + EXITED + ended, "NODE4") == b"oops\n"


def test_a_sentence_of_srun_that_the_command_itself_wrote_stays():
    assert connection.answer(0, BEGUN + DOWN + ENDED, "NODE4") == DOWN


@pytest.mark.parametrize(
    ("code", "text", "what"),
    [
        (1, DOWN, "did not start: srun: error: Task launch for StepId=6.0 failed on node NODE4"),
        (0, BEGUN, "was lost: srun ended with 0"),
        (143, BEGUN + b"working\n" + CANCELLED, "was lost: slurmstepd-NODE4: error: "),
    ],
)
def test_a_command_that_did_not_begin_or_end_by_itself_makes_the_node_unreachable(code, text, what):
    with pytest.raises(AnsibleConnectionFailure, match=f"a step of Slurm on NODE4 {what}"):
        connection.answer(code, text, "NODE4")
