# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A run that hung in a collective names the rank that has not begun it, and where the others wait."""

import json

import pytest
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.read import collectives


def line(rank, last, waits=None, number=None, **more):
    event = {"event": "collective", "rank": rank, "group": "0", "last": last, **more}
    event |= {"waits": waits, "place": "train.py:9, exchange"} if waits else {}
    event |= {"number": number} if number else {}
    return f"1.0 2.0 SCALEBOOK {json.dumps(event)}\n"


def sentences(tmp_path, *of_nodes, language="en"):
    paths = []
    for number, lines in enumerate(of_nodes, 1):
        paths.append(tmp_path / f"NODE{number}.log")
        paths[-1].write_text("".join(lines))
    return [Wording(language).tell(each) for each in collectives.waits(paths)]


WAITING = [line(rank, 17, "all_reduce", 17) for rank in (0, 1)]


def test_the_rank_that_has_not_begun_it_is_named_first_also_of_another_node(tmp_path):
    assert sentences(tmp_path, WAITING, [line(2, 17, "all_reduce", 17), line(3, 16)]) == [
        "rank 3 has not begun collective 17",
        "rank 0, 1, 2 is in all_reduce, collective 17 (train.py:9, exchange)",
    ]


def test_it_is_there_in_chinese(tmp_path):
    assert sentences(tmp_path, WAITING, [line(2, 16)], language="zh") == [
        "rank2尚未开始第17次集合通信",
        "rank0、1停在all_reduce，即第17次集合通信（train.py:9, exchange）",
    ]


def test_ranks_in_different_collectives_of_one_number_are_apart(tmp_path):
    assert sentences(tmp_path, [*WAITING, line(2, 17, "all_gather", 17)]) == [
        "rank 2 is in all_gather, collective 17 (train.py:9, exchange)",
        "rank 0, 1 is in all_reduce, collective 17 (train.py:9, exchange)",
    ]


def test_a_rank_that_is_further_does_not_hide_the_one_that_is_missing(tmp_path):
    assert sentences(tmp_path, [*WAITING, line(2, 18, "broadcast", 18), line(3, 12)])[0] == (
        "rank 3 has not begun collective 17"
    )


def test_messages_between_two_ranks_have_no_number_and_other_groups_a_name(tmp_path):
    lines = [line(0, 3, "send 0->1", group="7"), line(1, 3, group="7")]
    assert sentences(tmp_path, lines) == ["rank 0 is in send 0->1 of process group 7 (train.py:9, exchange)"]


@pytest.mark.parametrize(
    "text", ["", 'SCALEBOOK {"event": "collective"}\n', 'SCALEBOOK {"event": "collective", "rank": []}\n']
)
def test_where_the_recorder_said_nothing_nothing_is_known(tmp_path, text):
    assert sentences(tmp_path, [text, line(0, 17)]) == []
