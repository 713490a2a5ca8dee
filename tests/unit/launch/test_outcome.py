# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What Ansible's own results say of a run, where run_job and run_node could say nothing."""

import json

from ansible.module_utils.scalebook.launch import outcome
from ansible.module_utils.scalebook.launch.outcome import job_end, program_end, trouble
from in_english import in_english

NODES = [{"name": "NODE1", "address": "10.11.0.2"}, {"name": "NODE2", "address": "10.11.0.20"}]


def answer(**said):
    return {"rc": 0, "stdout": json.dumps(said)}


def test_the_answer_of_run_job_is_taken():
    job = job_end(answer(rc=3, seconds=1.5))
    assert (job["rc"], job["seconds"]) == (3, 1.5)


def test_hosts_are_called_by_the_names_of_their_nodes():
    job = job_end(answer(rc=1, stderr="on node 10.11.0.20\n10.11.0.2: gone.", unstarted=["10.11.0.2"]), NODES)
    assert (job["stderr"], job["unstarted"]) == ("on node NODE2\nNODE1: gone.", ["NODE1"])


def test_an_address_that_nodes_share_names_none_of_them():
    shared = [{**node, "address": "127.0.0.1"} for node in NODES]
    assert job_end(answer(rc=1, stderr="127.0.0.1: gone"), shared)["stderr"] == "127.0.0.1: gone"


def test_a_first_node_that_was_lost_is_told_from_one_that_failed():
    job = job_end({"unreachable": True, "msg": "Failed to connect: Connection timed out"})
    assert (job["rc"], job["unreachable"]) == (255, True)
    assert "timed out" in job["stderr"]


def test_a_run_job_that_failed_says_why():
    job = job_end({"rc": 1, "stderr": "scalebook: the lock is another's"})
    assert (job["rc"], job["unreachable"], job["stderr"]) == (1, False, "scalebook: the lock is another's")


def test_half_an_answer_is_no_success():
    assert job_end({"rc": 0, "stdout": '{"rc": 0, "sec'})["rc"] == 255


def test_a_node_that_no_longer_answers_is_lost():
    cleared = [{"rc": 0}, {"unreachable": True, "msg": "Failed:\nssh: No route to host"}]
    assert trouble(["NODE1", "NODE2"], [{"made": ["/a"]}, {"made": ["/b"]}], cleared) == {
        "lost": {"NODE2": "ssh: No route to host"},
        "unwritten": {},
    }


def test_a_node_that_could_not_write_its_job_is_not_lost():
    written = [{"msg": "cannot write the job of /w: No space left on device"}]
    assert trouble(["NODE1"], written, [{"rc": 0}]) == {
        "lost": {},
        "unwritten": {"NODE1": "cannot write the job of /w: No space left on device"},
    }


ENDED = {"rc": 0, "start": "2026-11-24 22:57:40.5", "end": "2026-11-24 22:57:48.75", "stderr_lines": []}


def test_a_program_that_ended_well_has_its_times_and_no_reason():
    assert program_end(ENDED, ["NODE1"], "compute", 1800) == {
        "nodes": ["NODE1"],
        "rc": 0,
        "seconds": 8.25,
        "started": "2026-11-24T22:57:40Z",
        "ended": "2026-11-24T22:57:48Z",
        "reason": None,
    }


def test_a_program_that_failed_says_why_with_its_last_lines():
    said = in_english(
        program_end({**ENDED, "rc": 1, "stderr_lines": ["a", "b"]}, ["NODE1"], "compute", 1800)
    )["reason"]
    assert said == "it ended with status 1; its output is in compute.log: a b"


def test_a_program_that_failed_names_the_cause_rather_than_its_last_lines():
    lines = ["Error 802: system not yet initialized", *["  at a place"] * 9]
    ended = program_end({**ENDED, "rc": 1, "stderr_lines": lines}, ["NODE1"], "compute", 1800)
    said = in_english(ended["reason"])
    assert said.startswith(
        'it ended with status 1; its output is in compute.log: it says "Error 802": the NVLink fabric'
    )


def test_a_run_job_that_a_signal_ended_has_the_status_that_a_shell_gives_it():
    assert job_end({"rc": -9, "stdout": ""})["rc"] == 137


def test_a_program_that_was_stopped_at_its_limit_says_so():
    ended = program_end({**ENDED, "rc": 124}, ["NODE1"], "collectives", 60)
    said = in_english(ended["reason"])
    assert said.startswith("it ended with status 124, at its limit of 60 s;")


def test_a_program_that_could_not_be_started_failed():
    end = program_end({"msg": "no such file"}, ["NODE1"], "compute", 60)
    assert (end["rc"], end["seconds"]) == (255, None)
    assert in_english(end)["reason"].endswith(": no such file")


LINGERED = {"lingered": True, "hosts": ["NODE2", "NODE3"]}


def test_a_note_names_the_node_whose_processes_were_stopped_and_no_other():
    cleared = [{"stdout": '{"stopped": 0}'}, {"stdout": '{"stopped": 1}'}, {"unreachable": True}]
    note = outcome.linger_note(LINGERED, ["NODE1", "NODE2", "NODE3"], cleared)
    assert note.endswith("and was ended: its processes on NODE2 were stopped")


def test_a_note_on_a_job_that_was_ended_blames_nobody_without_evidence():
    assert outcome.linger_note(LINGERED, ["NODE1"], [{}]).endswith("it was still connected to NODE2, NODE3")


def test_a_job_that_ended_by_itself_has_no_note():
    assert outcome.linger_note({"rc": 0}, [], []) == ""
