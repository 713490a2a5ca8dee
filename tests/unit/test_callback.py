"""The terminal: where a campaign stands, from what its tasks return."""

import pytest
import scalebook


def run(number, name="a", repeat=1):
    case = {"name": name, "label": "2n1g", "bsz": 64, "dtype": "fp32", "xla": False}
    return {"case": case, "repeat": repeat, "number": number, "total": 4}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (42.4, "0:42"), (725, "12:05"), (3723, "1:02:03")]
)
def test_a_duration_reads_as_people_write_it(seconds, text):
    assert scalebook.clock(seconds) == text


def test_what_is_left_is_unknown_before_the_first_run():
    progress = scalebook.Progress(0)
    progress.plan([run(1), run(2)], 0)
    assert progress.left() is None


def test_what_is_left_follows_from_runs_of_the_same_case():
    progress = scalebook.Progress(0)
    progress.plan([run(1, "a"), run(2, "b"), run(3, "a"), run(4, "b")], 0)
    for number, name, began, ended in ((1, "a", 0, 10), (2, "b", 10, 40)):
        progress.start(run(number, name), began)
        progress.end(5, ended)
    assert progress.left() == 10 + 30


def test_the_overhead_of_a_run_is_its_time_without_mpirun():
    progress = scalebook.Progress(0)
    progress.plan([run(1), run(2)], 0)
    progress.start(run(1), 0)
    progress.end(8, 20)
    progress.start(run(2), 20)
    progress.end(8, 31)
    assert progress.overheads == [3]


def test_a_run_is_named_by_number_case_and_repeat():
    progress = scalebook.Progress(0)
    progress.start(run(3, repeat=2), 0)
    assert progress.title() == "[3/4] 2n1g b64 fp32 repeat 2"
