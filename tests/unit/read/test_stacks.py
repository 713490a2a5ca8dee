# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A run that hung names the rank that the others wait for, and what each of them does."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.read import stacks
from cases import case
from in_english import run_record
from node_logs import JOB
from role_files import declaration

GENUINE = (Path(__file__).resolve().parents[2] / "data/hangs/torch_1n4p.log").read_text()
TRAIN = "rank 2 is in stuck (train.py:12)"
OTHERS = "rank 0, 1, 3 is in barrier (train.py:9, exchange)"


def sentences(tmp_path, text, language="en"):
    log = tmp_path / "NODE1.log"
    log.write_text(text)
    return [Wording(language).tell(each) for each in stacks.places([log])]


def stack(rank, *frames, thread="Thread"):
    lines = [f'1.0 2.0 SCALEBOOK {{"event": "stack", "rank": {rank}}}', "Fatal Python error: Aborted", ""]
    lines += [f"{thread} 0x00007f823c5cab80 (most recent call first):"] if frames else []
    return "".join(f"{line}\n" for line in [*lines, *frames])


def frame(file, line, function):
    return f'  File "{file}", line {line} in {function}'


OWN = frame("/opt/train.py", 7, "step")


def test_the_rank_that_is_apart_from_the_others_comes_first(tmp_path):
    """Of four ranks with gloo (torch 2.13, a CPU) the third slept before a barrier."""
    assert sentences(tmp_path, GENUINE) == [TRAIN, OTHERS]


def test_it_is_there_in_chinese(tmp_path):
    assert sentences(tmp_path, GENUINE, "zh") == [
        "rank 2 停在 stuck（train.py:12）",
        "rank 0、1、3 停在 barrier（train.py:9, exchange）",
    ]


def test_the_reason_of_the_run_has_it_and_the_last_lines_are_those_of_the_trainer(tmp_path):
    (tmp_path / "NODE1.log").write_text(GENUINE)
    record = run_record(tmp_path, case(1, 4), 1, declaration("torch_bert"), ["NODE1"], {**JOB, "rc": 1})
    assert (record["status"], record["last_lines"]) == ("hung", ["step 0", "step 1", "step 2"])
    assert record["reason"] == f"NODE1 (rank 0, host vm) hung: no output for 15 s; {TRAIN}; {OTHERS}"


def test_the_collective_that_ranks_wait_in_comes_before_their_stacks(tmp_path):
    event = '1.0 2.0 SCALEBOOK {"event": "collective", "rank": %d, "group": "0", "last": %d%s}\n'
    waits = ', "waits": "barrier", "number": 9, "place": ""'
    lines = [event % (2, 8, ""), *(event % (rank, 9, waits) for rank in (0, 1, 3))]
    first = next(each for each in GENUINE.splitlines(True) if '"event": "stack"' in each)
    (tmp_path / "NODE1.log").write_text(GENUINE.replace(first, "".join(lines) + first))
    record = run_record(tmp_path, case(1, 4), 1, declaration("torch_bert"), ["NODE1"], {**JOB, "rc": 1})
    waiting = "rank 2 has not begun collective 9; rank 0, 1, 3 is in barrier, collective 9"
    assert record["reason"].endswith(f"no output for 15 s; {waiting}; {TRAIN}; {OTHERS}")


def test_a_rank_that_prints_no_stack_is_named(tmp_path):
    text = stack(0, OWN) + stack(1) + '1.0 2.0 SCALEBOOK {"event": "exit", "status": "hung"}\n'
    assert sentences(tmp_path, text) == ["rank 0 is in step (train.py:7)", "rank 1 did not print its stack"]


def test_a_thread_that_exchanges_data_tells_more_than_the_others(tmp_path):
    waiting = frame("/v/lib/python3.11/threading.py", 320, "wait")
    exchange = frame("/v/lib/python3.11/site-packages/horovod/torch/mpi_ops.py", 90, "synchronize")
    thread = "\nThread 0x00007f823c5cab81 (most recent call first):"
    text = stack(0, waiting, thread, exchange, OWN, thread="Current thread") + stack(0)
    assert sentences(tmp_path, text)[0] == "rank 0 is in synchronize (train.py:7, step)"


def test_without_such_a_thread_the_one_that_was_asked_counts(tmp_path):
    loader = frame("/opt/loader.py", 3, "read")
    thread = "\nCurrent thread 0x00007f823c5cab81 (most recent call first):"
    text = stack(0, loader, thread, OWN) + stack(0)
    assert sentences(tmp_path, text)[0] == "rank 0 is in step (train.py:7)"


def test_many_ranks_are_counted(tmp_path):
    text = "".join(stack(rank, OWN) for rank in range(10)) + stack(10, frame("/opt/train.py", 1, "load"))
    text += '1.0 2.0 SCALEBOOK {"event": "exit"}\n'
    assert sentences(tmp_path, text)[1].startswith("rank 0, 1, 2, 3, 4, 5, 6, 7, 2 more is in step")


@pytest.mark.parametrize("text", ["", OWN + "\n", '1.0 2.0 SCALEBOOK {"event": "stack", "rank": []}\n' + OWN])
def test_a_log_without_stacks_tells_nothing(tmp_path, text):
    assert sentences(tmp_path, text) == []
