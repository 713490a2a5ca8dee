# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What torch's flight recorder keeps of a hung rank is asked for, read as plain values, and put into the log.

The files are genuine (tests/data/README.md): of torch 2.11 with gloo, which has no pipe; a thread stands in
for the one of torch that reads a pipe.
"""

import os
import pickle
import select
import threading
from pathlib import Path

import pytest
from role_files import load
from run_module import ROOT

DATA = ROOT / "tests/data/hangs"


@pytest.fixture
def flight():
    return load("campaign", "flight")


def test_a_rank_that_waits_says_in_which_collective_and_where_it_was_called(flight):
    [group] = flight.groups(flight.read(str(DATA / "flight_gloo.0")))
    assert group == {
        "group": "0",
        "last": 4,
        "waits": "all_gather",
        "number": 4,
        "place": "tr.py:13, <module>",
    }


def test_a_rank_that_has_not_begun_it_waits_in_none(flight):
    assert flight.groups(flight.read(str(DATA / "flight_gloo.1"))) == [{"group": "0", "last": 3}]


class Code:
    def __reduce__(self):
        return os.system, ("exit 1",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        (DATA / "flight_gloo.0").read_bytes()[:-20],
        pickle.dumps(Code()),
        pickle.dumps({"entries": [Code()]}),
        pickle.dumps({"entries": 7}),
        pickle.dumps([1, 2]),
    ],
)
def test_what_is_not_a_whole_file_of_plain_values_is_not_read(flight, tmp_path, content):
    (tmp_path / "flight.0").write_bytes(content)
    assert flight.read(str(tmp_path / "flight.0")) is None


class Ranks:
    """Ranks that write their file when something comes through their pipe, as a thread of torch does."""

    def __init__(self, folder, monkeypatch, flight, dumps):
        self.stem, self.said = f"{folder}/flight.", []
        environment = {name + b"=" + self.stem.encode() for name in (flight.PIPE, flight.FILES[0])}
        monkeypatch.setattr(flight.procfs, "environments", lambda pids: [(pid, environment) for pid in pids])
        self.threads = []
        for rank, dump in dumps.items():
            os.mkfifo(f"{self.stem}{rank}.pipe")
            if dump:
                pipe = os.open(f"{self.stem}{rank}.pipe", os.O_RDONLY | os.O_NONBLOCK)
                self.threads.append(threading.Thread(target=self.answer, args=(rank, pipe, dump)))
        for thread in self.threads:
            thread.start()

    def answer(self, rank, pipe, dump):
        select.select([pipe], [], [], 10)
        os.close(pipe)
        Path(f"{self.stem}{rank}").write_bytes(dump)

    def hear(self, **event):
        self.said.append(event)


def test_every_rank_is_asked_by_its_pipe_and_one_that_does_not_read_it_costs_nothing(
    flight, tmp_path, monkeypatch
):
    dumps = {rank: (DATA / f"flight_gloo.{rank}").read_bytes() for rank in (0, 1)}
    ranks = Ranks(tmp_path, monkeypatch, flight, {**dumps, 2: None})
    flight.ask([7], ranks.hear)
    for thread in ranks.threads:
        thread.join()
    # Ranks answer in any order.
    events = sorted(ranks.said, key=lambda each: each["rank"])
    assert [(each["event"], each["rank"], each["last"], each.get("waits")) for each in events] == [
        ("collective", 0, 4, "all_gather"),
        ("collective", 1, 3, None),
    ]


def test_without_a_pipe_nothing_is_waited_for(flight, tmp_path, monkeypatch):
    ranks = Ranks(tmp_path, monkeypatch, flight, {})
    flight.ask([7], ranks.hear)
    assert ranks.said == []


def test_a_rank_that_gives_no_file_is_not_waited_for_longer_than_is_said(flight, tmp_path, monkeypatch):
    ranks = Ranks(tmp_path, monkeypatch, flight, {0: b"no pickle"})
    flight.ask([7], ranks.hear, patience=0.05)
    assert ranks.said == []
