# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A run's record: its status, and a reason that names file, host or value."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.judge.runs import check_record, digest
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.read import record as read
from ansible.module_utils.scalebook.read.record import sha256_of, skip_record
from ansible.module_utils.scalebook.throughput import measure
from cases import case
from declared import vary
from dlperf_logs import WORKLOAD, exit_record, log_of_speed, log_text, stamped, step_times
from in_english import in_english, log_record
from node_logs import JOB, node_log

DATA = Path(__file__).resolve().parents[2] / "data" / "tf2_bert"
VICTIM = {"status": "terminated", "rc": None, "signal": 15}


def run(tmp_path, *logs, job=JOB, workload=WORKLOAD, **of_case):
    """Return the record of a run with these node logs; None for a log that is not there."""
    names = [f"NODE{index}" for index in range(1, len(logs) + 1)]
    for name, content in zip(names, logs, strict=True):
        if content is not None:
            (tmp_path / f"{name}.log").write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
    record = read.run_record(tmp_path, case(len(logs), **of_case), 1, workload, names, job)
    check_record(record)
    write_json(tmp_path / "result.json", record)
    assert json.loads((tmp_path / "result.json").read_text()) == record
    return in_english(record)


def verdict(record):
    assert record["status"] == "ok" or isinstance(record["last_lines"], list)
    return record["status"], record["reason"]


def imported(name, nodes=1, **of_case):
    return log_record(DATA / name, case(nodes, **of_case), 1, WORKLOAD, name)


# Good runs


def test_a_good_run_is_ok(tmp_path):
    record = run(tmp_path, node_log(0, 2), node_log(1, 2))
    assert verdict(record) == ("ok", None)
    assert record["notes"] == []
    assert "last_lines" not in record
    assert record["job"] == {key: JOB[key] for key in ("rc", "seconds", "started", "ended")}
    node = record["nodes"][1]
    assert (node["node"], node["task_index"], node["log"]) == ("NODE2", 1, "NODE2.log")
    assert node["steps"] == list(range(1, 121))
    assert (node["times"][0], node["times"][119]) == (0.0, 59.5)
    assert node["sha256"] == sha256_of(tmp_path / "NODE2.log")
    assert node["loss"] == {"first": 7.02980375289917, "last": 7.02980375289917}
    assert node["exit"]["rc"] == 0


def test_a_good_run_has_two_readings_that_agree(tmp_path):
    measured = measure(run(tmp_path, node_log()))
    assert (measured["rate"], measured["second"]) == (32.0, {"time_source": "received", "rate": 32.0})
    assert measured["differs"] == 0.0


def test_the_report_takes_a_record(tmp_path):
    summary = digest(run(tmp_path, node_log()))
    assert (summary["status"], summary["rate"], len(summary["steps"])) == ("ok", 32.0, 100)


@pytest.mark.parametrize("jump", [-5, 3600])
def test_a_clock_that_was_set_during_the_run_changes_no_number(tmp_path, jump):
    times = step_times(0.5, warm=1)
    times[60:] = [at + timedelta(seconds=jump) for at in times[60:]]
    lines = node_log(text=log_text(times)).splitlines(keepends=True)
    for index, line in enumerate(lines[62:], 62):
        clock, wall, rest = line.split(" ", 2)
        lines[index] = f"{clock} {float(wall) + jump:.6f} {rest}"
    record = run(tmp_path, "".join(lines))
    assert (record["status"], record["reason"]) == ("ok", None)
    assert measure(record) == {
        "rate": 32.0, "seconds": 50.0, "time_source": "received", "second": None, "differs": None,
    }  # fmt: skip
    said = f"the clock was set by {jump:+.1f} s during the run: its own times do not count"
    assert record["notes"] == [f"NODE1.log: {said}"]


def test_readings_that_differ_are_noted(tmp_path):
    record = run(tmp_path, node_log(every=0.55))
    assert record["status"] == "ok"
    assert record["notes"] == ["two readings differ by 9.1%: 32.00 samples/s by times, 29.09 by received"]


def test_workers_that_differ_are_noted(tmp_path):
    slow = log_text(step_times(0.52, warm=1), devices=2, nodes=2, task_index=1)
    record = run(tmp_path, node_log(0, 2), node_log(1, 2, slow, every=0.52))
    assert record["notes"][0] == "the window is 50.000 s on NODE1 and 52.000 s on NODE2 (4.0% apart by times)"


def test_a_step_that_eats_the_window_is_noted(tmp_path):
    times = step_times(0.5, warm=1)
    times[70:] = [at + timedelta(seconds=30) for at in times[70:]]
    record = run(tmp_path, node_log(text=log_text(times)))
    assert "step 71 alone takes 30.500 s of the window's 80.000 s" in record["notes"]


def test_steps_that_are_not_logged_are_noted(tmp_path):
    lines = log_text(step_times(0.5, warm=1)).splitlines(keepends=True)
    del lines[50:53]
    record = run(tmp_path, node_log(text="".join(lines)))
    assert record["status"] == "ok"
    assert "NODE1.log: 3 steps of the window are not logged, the first is 50" in record["notes"]


def test_whole_seconds_are_noted_where_they_matter(tmp_path):
    log = {"literal": "step=", "step": r"(?P<time>\d\d:\d\d:\d\d) step=(?P<step>\d+)", "time": "clock"}
    coarse = vary(WORKLOAD, log=log, sanity=[])
    text = "".join(f"10:00:{step // 4:02} step={step}\n" for step in range(1, 122))
    (tmp_path / "x.log").write_text(text)
    record = log_record(tmp_path / "x.log", case(), 1, coarse, "x.log")
    assert record["notes"] == ["the time stamps are whole seconds: the window of 25 s is known to 4.0%"]


def test_odd_bytes_are_noted_with_their_file(tmp_path):
    record = run(tmp_path, node_log().encode().replace(b"***** Number", b"\xff** Number"))
    assert (record["status"], record["notes"]) == ("ok", ["NODE1.log: has bytes that are not UTF-8"])


def test_only_the_first_node_may_be_asked_for_steps(tmp_path):
    first = vary(WORKLOAD, log={**WORKLOAD.data["log"], "nodes": "first"}, sanity=[])
    record = run(tmp_path, node_log(0, 2), stamped("nothing\n", exit_record=exit_record()), workload=first)
    assert verdict(record) == ("ok", None)


# How processes end


def test_an_exit_code_is_a_failure_named_by_its_host(tmp_path):
    record = run(tmp_path, node_log(exits={"rc": 3}), job={**JOB, "rc": 3})
    assert verdict(record) == ("failed", "NODE1 (rank 0, host host1) ended with exit code 3")
    assert record["last_lines"][-1] == "{'total_training_steps': 120, 'train_loss': 6.75}"


def test_a_signal_is_named(tmp_path):
    record = run(
        tmp_path, node_log(exits={"rc": -9, "signal": 9, "status": "signaled"}), job={**JOB, "rc": 137}
    )
    assert verdict(record) == ("failed", "NODE1 (rank 0, host host1) was ended by signal 9 (SIGKILL)")


def test_the_first_node_to_go_wrong_is_the_culprit(tmp_path):
    late = {"rc": 1, "ended": 1795219410.0}
    early = {"rc": -11, "signal": 11, "status": "signaled", "ended": 1795219400.0}
    record = run(
        tmp_path, node_log(0, 3, exits=late), node_log(1, 3, exits=early), node_log(2, 3, exits=VICTIM)
    )
    assert verdict(record) == ("failed", "NODE2 (rank 1, host host2) was ended by signal 11 (SIGSEGV)")


def test_victims_of_the_job_are_not_the_culprit(tmp_path):
    victim = {**VICTIM, "ended": 1795219300.0}
    record = run(
        tmp_path, node_log(0, 2, exits=victim), node_log(1, 2, exits={"rc": 1}), job={**JOB, "rc": 1}
    )
    assert verdict(record) == ("failed", "NODE2 (rank 1, host host2) ended with exit code 1")


@pytest.mark.parametrize(
    ("status", "ended", "sentence"),
    [
        ("hung", "hung", "NODE1 (rank 0, host host1) hung: no line for 300 s"),
        ("timeout", "hung", "NODE1 (rank 0, host host1) ran past its time limit: no line for 300 s"),
        ("refused", "refused", "NODE1 (rank 0, host host1) was refused: no line for 300 s"),
    ],
)
def test_what_run_node_stopped_says_why(tmp_path, status, ended, sentence):
    exits = {"status": status, "rc": None, "reason": "no line for 300 s"}
    assert verdict(run(tmp_path, node_log(exits=exits), job={**JOB, "rc": 1})) == (ended, sentence)


def test_out_of_memory_is_distinguished_from_other_failures(tmp_path):
    text = (
        log_text(step_times(0.5, count=30), last=120)
        + "2026: W OOM when allocating tensor\n"
        + "Chunk\n" * 20_000
    )
    record = run(tmp_path, node_log(text=text, exits={"rc": 1}), job={**JOB, "rc": 1})
    assert verdict(record) == (
        "oom",
        'NODE1 (rank 0, host host1) ran out of memory: its log says "OOM when allocating"; '
        "it ended with exit code 1",
    )


def test_a_victims_killed_is_not_out_of_memory(tmp_path):
    victim = node_log(0, 2, text="Killed\n", exits=VICTIM)
    assert run(tmp_path, victim, node_log(1, 2, exits={"rc": 1}))["status"] == "failed"


def test_a_run_that_ended_well_may_have_said_killed(tmp_path):
    text = log_text(step_times(0.5, warm=1)).replace("***** Num", "Killed a stale process\n***** Num")
    assert run(tmp_path, node_log(text=text))["status"] == "ok"


def test_a_missing_log_is_a_failure(tmp_path):
    record = run(tmp_path, node_log(0, 2), None)
    assert verdict(record) == ("failed", "NODE2.log is missing")
    assert record["nodes"][1]["bytes"] is None


def test_a_job_that_never_started_reports_the_message_of_mpirun(tmp_path):
    job = {**JOB, "rc": 213, "stderr": "----\nmpirun was unable to launch\n----\n"}
    record = run(tmp_path, None, job=job)
    assert verdict(record) == (
        "failed",
        "NODE1.log is missing; mpirun ended with exit code 213: mpirun was unable to launch",
    )
    assert record["last_lines"] == ["mpirun was unable to launch"]


def test_a_job_that_failed_without_a_culprit_is_a_failure(tmp_path):
    record = run(tmp_path, node_log(), job={**JOB, "rc": "1", "stderr": "ORTE lost a daemon"})
    assert verdict(record) == ("failed", "mpirun ended with exit code 1: ORTE lost a daemon")


def test_sigterm_to_the_ranks_of_a_killed_mpirun_is_not_the_cause(tmp_path):
    ended = {"status": "signaled", "rc": 0, "signal": 15}
    record = run(tmp_path, node_log(0, 2, exits=VICTIM), node_log(1, 2, exits=ended), job={**JOB, "rc": 137})
    assert verdict(record) == ("failed", "mpirun was ended by signal 9 (SIGKILL)")


def test_a_rank_that_is_stopped_by_sigterm_is_the_cause(tmp_path):
    ended = {"status": "signaled", "rc": 0, "signal": 15}
    said = (
        "mpirun detected that one or more processes exited with non-zero status\n  Process name: [[7,1],1]\n"
    )
    job = {**JOB, "rc": 143, "stderr": said}
    record = run(tmp_path, node_log(0, 2, exits=VICTIM), node_log(1, 2, exits=ended), job=job)
    assert record["reason"] == "NODE2 (rank 1, host host2) was ended by signal 15 (SIGTERM)"


def test_a_rank_that_was_stopped_with_an_mpirun_that_was_ended_is_not_the_cause(tmp_path):
    ended = {"status": "signaled", "rc": 0, "signal": 15}
    record = run(tmp_path, node_log(0, 2, exits=VICTIM), node_log(1, 2, exits=ended), job={**JOB, "rc": 143})
    assert record["reason"] == "mpirun was ended by signal 15 (SIGTERM)"


def test_mpiruns_warning_of_its_own_race_is_no_reason(tmp_path):
    warning = "[NODE1:9] plm:rsh: Warning: setpgid(12,12) failed in parent with errno=Permission denied(13)"
    job = {**JOB, "rc": 1, "stderr": f"ssh: connect to host NODE2 port 22: refused\n{warning}\n"}
    record = run(tmp_path, None, job=job)
    assert 'exit code 1: it says "ssh: connect to host NODE2 port 22: refused"' in record["reason"]


def test_a_daemon_that_mpirun_lost_is_named(tmp_path):
    stderr = "ORTE has lost communication with a remote daemon.\n  Remote daemon: [[617,0],2] on node NODE2\n"
    record = run(tmp_path, node_log(), job={**JOB, "rc": 205, "stderr": stderr})
    assert verdict(record) == ("failed", "mpirun lost contact with NODE2")


def test_a_killed_mpirun_is_named(tmp_path):
    record = run(tmp_path, node_log(exits=VICTIM), job={**JOB, "rc": 137, "stderr": ""})
    assert verdict(record) == ("failed", "mpirun was ended by signal 9 (SIGKILL)")


def test_a_job_at_its_time_limit_hung(tmp_path):
    record = run(tmp_path, node_log(exits=VICTIM), job={**JOB, "rc": 124})
    assert verdict(record) == ("hung", "mpirun ran past its time limit after 61.2 s")


def test_a_log_without_run_nodes_closing_line_is_a_failure(tmp_path):
    record = run(tmp_path, node_log(0, 2), node_log(1, 2, exits=False))
    assert verdict(record) == (
        "failed",
        "NODE2.log ends without run_node's closing line: its machine or run_node died",
    )


def test_a_node_that_vanished_is_named_beside_the_one_that_failed(tmp_path):
    record = run(tmp_path, node_log(0, 2, exits={"rc": 1}), node_log(1, 2, exits=False))
    assert verdict(record) == (
        "failed",
        "NODE1 (rank 0, host host1) ended with exit code 1; NODE2 left no closing line",
    )


def test_a_host_called_as_its_node_is_named_once(tmp_path):
    record = run(tmp_path, node_log(exits={"rc": 1, "host": "NODE1", "rank": 0}), job={**JOB, "rc": 1})
    assert record["reason"] == "NODE1 (rank 0) ended with exit code 1"


def test_a_signal_that_a_shell_passes_on_is_named(tmp_path):
    record = run(tmp_path, node_log(exits={"rc": 137}), job={**JOB, "rc": 137})
    assert record["reason"] == "NODE1 (rank 0, host host1) was ended by signal 9 (SIGKILL)"


def test_a_rank_that_was_killed_comes_before_one_that_failed_a_moment_earlier(tmp_path):
    earlier = {"rc": 1, "ended": 1795219400.0}
    killed = {"rc": 0, "signal": 9, "status": "signaled", "ended": 1795219400.1}
    record = run(tmp_path, node_log(0, 2, exits=earlier), node_log(1, 2, exits=killed), job={**JOB, "rc": 1})
    assert record["reason"] == "NODE2 (rank 1, host host2) was ended by signal 9 (SIGKILL)"


def test_a_killed_run_node_is_named_by_mpirun(tmp_path):
    said = (
        "mpirun noticed that process rank 1 with PID 0 on node 10.11.0.3 exited on signal 9 (Killed).\n"
        "-----\n"
    )
    job = {**JOB, "rc": 137, "stderr": said}
    record = run(tmp_path, node_log(0, 2, exits=VICTIM), node_log(1, 2, exits=False), job=job)
    assert record["reason"] == "NODE2: run_node of rank 1 on 10.11.0.3 was ended by signal 9 (SIGKILL)"


def test_a_lost_node_comes_before_what_it_did_to_the_others(tmp_path):
    job = {**JOB, "rc": 1, "lost": {"NODE2": "No route to host"}}
    record = run(tmp_path, node_log(0, 2, exits={"rc": 1}), None, job=job)
    assert verdict(record) == ("failed", "NODE2 was lost: No route to host")


def test_a_job_that_could_not_be_written_is_the_reason(tmp_path):
    job = {**JOB, "rc": 1, "unwritten": {"NODE2": "cannot write the job: No space left on device"}}
    record = run(tmp_path, node_log(0, 2, exits=VICTIM), None, job=job)
    assert record["reason"].startswith("NODE2 could not be given its job: cannot write")


LATE = {"status": "rendezvous", "rc": 0, "reason": "no step within 60 s", "said": 7, "stepped": False}


def test_who_missed_the_rendezvous_is_named(tmp_path):
    logs = [node_log(index, 3, exits={**LATE, "said": 0 if index == 1 else 7}) for index in range(3)]
    assert verdict(run(tmp_path, *logs, job={**JOB, "rc": 1})) == (
        "failed",
        "rendezvous timeout: NODE2 never began; no step within 60 s",
    )


def test_a_rendezvous_that_all_came_to_and_nobody_left_names_nobody(tmp_path):
    logs = [node_log(index, 2, exits=LATE) for index in range(2)]
    assert run(tmp_path, *logs, job={**JOB, "rc": 1})["reason"] == (
        "rendezvous timeout: all nodes began; no step within 60 s"
    )


def test_a_host_that_no_login_came_through_to_missed_the_rendezvous(tmp_path):
    record = run(tmp_path, None, None, job={**JOB, "rc": 143, "unstarted": ["10.11.0.3"]})
    assert record["reason"] == "rendezvous timeout: no login to 10.11.0.3"


def test_of_nodes_that_fell_silent_the_one_that_was_stopped_hung(tmp_path):
    silent = {"status": "hung", "rc": 0, "reason": "no output for 15 s", "ended": 1795219400.0}
    stopped = {**VICTIM, "stopped": 1, "ended": 1795219401.0}
    logs = node_log(0, 2, exits=silent), node_log(1, 2, exits=stopped)
    assert verdict(run(tmp_path, *logs, job={**JOB, "rc": 1})) == (
        "hung",
        "NODE2 (rank 1, host host2) hung: no output for 15 s; 1 of its processes stopped (SIGSTOP)",
    )


@pytest.mark.parametrize(
    ("status", "limit", "english", "chinese"),
    [
        ("hung", {"seconds": 15}, "hung: no output for 15 s", "卡死：15 秒没有输出"),
        (
            "hung",
            {"seconds": 0.5, "after": "x = nccl"},
            'hung: no output for 0.5 s after "x = nccl"',
            "卡死：在“x = nccl”之后 0.5 秒没有输出",
        ),
        ("rendezvous", {"seconds": 60}, "no step within 60 s", "60 秒内没有完成任何一步"),
    ],
)
def test_the_limit_that_a_node_passed_is_said_in_the_language_of_the_report(
    tmp_path, status, limit, english, chinese
):
    late = {**LATE, "status": status, "reason": "of the node", "limit": limit}
    assert run(tmp_path, node_log(0, 1, exits=late), job={**JOB, "rc": 1})["reason"].endswith(english)
    written = json.loads((tmp_path / "result.json").read_text())
    assert catalogue.sentence(written["reason"], "zh").endswith(chinese)


@pytest.mark.parametrize("limit", [None, [], {}, {"seconds": "x"}])
def test_a_limit_that_is_no_number_leaves_the_sentence_of_the_node(tmp_path, limit):
    late = {**LATE, "status": "hung", "reason": "no output for 15 s", "limit": limit}
    reason = run(tmp_path, node_log(0, 1, exits=late), job={**JOB, "rc": 1})["reason"]
    assert reason.endswith("hung: no output for 15 s")


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        (
            message("end.large-log", megabytes=4),
            ": the log is larger than 4 MB (campaign_log_limit)",
            "：日志超过 4 MB（campaign_log_limit）",
        ),
        (message("text", text="\x1b[2Jno such\nGPU"), ": no such GPU", "：no such GPU"),
        ("of an earlier version", ": of an earlier version", "：of an earlier version"),
    ],
)
def test_why_a_node_was_ended_is_said_in_the_language_of_the_report(tmp_path, reason, english, chinese):
    ends = {"status": "failed", "rc": 0, "reason": reason}
    assert run(tmp_path, node_log(0, 1, exits=ends), job={**JOB, "rc": 1})["reason"].endswith(english)
    written = json.loads((tmp_path / "result.json").read_text())
    assert catalogue.sentence(written["reason"], "zh").endswith(chinese)


def test_what_the_kernel_killed_for_memory_ran_out_of_memory(tmp_path):
    killed = {"rc": 0, "signal": 9, "status": "signaled", "oom_kills": 1}
    record = run(tmp_path, node_log(exits=killed), job={**JOB, "rc": 137})
    assert verdict(record) == (
        "oom",
        "NODE1 (rank 0, host host1) ran out of memory: the kernel killed a process of its; "
        "it was ended by signal 9 (SIGKILL)",
    )


def test_a_full_disk_that_the_workload_met_is_named(tmp_path):
    text = log_text(step_times(0.5, count=30), last=120) + "OSError: [Errno 28] No space left on device\n"
    record = run(tmp_path, node_log(text=text, exits={"rc": 1}), job={**JOB, "rc": 1})
    assert record["status"] == "failed"
    assert 'ran out of disk: its log says "No space left on device"' in record["reason"]


def test_a_full_disk_that_run_node_met_is_named(tmp_path):
    job = {**JOB, "rc": 1, "stderr": "scalebook: failed: NODE1: /w/NODE1.log: No space left on device\n"}
    assert run(tmp_path, None, job=job)["reason"] == "NODE1: /w/NODE1.log: No space left on device"


def test_a_run_that_was_not_made_is_a_record_with_its_reason():
    record = skip_record(case(), 2, WORKLOAD, "NODE3 lost: 4 nodes are required, 3 are left")
    check_record(record)
    assert (record["status"], record["repeat"], record["nodes"]) == ("skipped", 2, [])
    assert in_english(digest(record))["reason"].startswith("NODE3 lost")


def test_a_terminated_node_is_a_failure_whatever_mpirun_says(tmp_path):
    assert verdict(run(tmp_path, node_log(exits=VICTIM))) == ("failed", "NODE1 was terminated")


# What logs show


def test_a_campaign_log_without_a_sanity_line_is_refused(tmp_path):
    text = log_text(step_times(0.5, warm=1)).replace("Number of cores used", "cores")
    assert verdict(run(tmp_path, node_log(text=text))) == (
        "refused",
        'NODE1.log does not show devices (a line with "Number of cores used")',
    )


def test_an_imported_log_may_lack_a_sanity_line(tmp_path):
    (tmp_path / "x.log").write_text(log_of_speed(128.0).replace("Number of cores used", "cores"))
    assert log_record(tmp_path / "x.log", case(bsz=64), 1, WORKLOAD, "x.log")["status"] == "ok"


def test_a_contradiction_is_refused_on_any_node(tmp_path):
    alone = log_text(step_times(0.5, warm=1), devices=1, nodes=2, task_index=1)
    assert verdict(run(tmp_path, node_log(0, 2), node_log(1, 2, alone))) == (
        "refused",
        "NODE2.log shows devices 1, the case has devices 2",
    )


def test_a_run_of_another_number_of_steps_is_refused(tmp_path):
    text = log_text(step_times(0.5, warm=1, count=400))
    assert verdict(run(tmp_path, node_log(text=text))) == (
        "refused",
        "NODE1.log says the run has 400 steps, the case has 120",
    )


def test_the_window_of_the_case_counts_not_the_workloads(tmp_path):
    text = log_text(step_times(0.5, warm=1, count=50))
    assert run(tmp_path, node_log(text=text), warmup=10, window=40)["status"] == "ok"


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (60, "NODE1.log stops at step 60, step 120 is required"),
        (0, "NODE1.log shows no step, step 120 is required"),
    ],
)
def test_a_log_without_the_window_is_incomplete(tmp_path, count, reason):
    text = log_text(step_times(0.5, warm=1, count=count), last=120)
    assert verdict(run(tmp_path, node_log(text=text))) == ("incomplete", reason)


def test_an_empty_log_is_incomplete(tmp_path):
    (tmp_path / "x.log").touch()
    record = log_record(tmp_path / "x.log", case(), 1, WORKLOAD, "x.log")
    assert verdict(record) == ("incomplete", "x.log is empty, step 120 is required")


@pytest.mark.parametrize(("step", "word"), [(20, "begins"), (120, "ends")])
def test_a_window_without_an_end_is_incomplete(tmp_path, step, word):
    lines = log_text(step_times(0.5, warm=1, count=130), last=120).splitlines(keepends=True)
    del lines[step]
    assert verdict(run(tmp_path, node_log(text="".join(lines)))) == (
        "incomplete",
        f"NODE1.log does not show step {step}, where the window {word}",
    )


def test_a_doubled_log_is_refused_by_name(tmp_path):
    record = run(tmp_path, node_log(text=log_text(step_times(0.5, warm=1)) * 2))
    assert record["status"] == "refused"
    assert "NODE1.log is not plausible: step 1 is logged twice" in record["reason"]


def test_a_window_in_which_no_time_passes_is_refused(tmp_path):
    text = log_text([step_times(0.5)[0]] * 120)
    record = run(tmp_path, stamped(text, every=0.0, exit_record=exit_record()))
    assert record["status"] == "refused"
    assert "no reading covers the window" in record["reason"]


def test_last_lines_are_short_and_plain(tmp_path):
    text = log_text(step_times(0.5, count=5), last=120) + "\x1b[31m" + "x" * 900 + "\x07\xff\n"
    lines = run(tmp_path, node_log(text=text))["last_lines"]
    assert lines[-1] == "x" * 500 and len(lines) <= 20


def test_an_unreadable_log_is_refused_by_its_reason(tmp_path, monkeypatch):
    import ansible.module_utils.scalebook.read.record as module

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "read_any_log", denied)
    record = log_record(tmp_path / "x.log", case(), 1, WORKLOAD, "x.log")
    assert verdict(record) == ("refused", "x.log cannot be read: Permission denied")


@pytest.mark.parametrize("rc", [{"ended": "soon"}, {"host": None}, {"status": 7}, {"signal": 999, "rc": 1}])
def test_a_garbled_exit_record_is_survived(tmp_path, rc):
    assert run(tmp_path, node_log(exits={"rc": 1, **rc}))["status"] == "failed"


# What TensorFlow really wrote when it went wrong


@pytest.mark.parametrize(
    ("name", "nodes", "status", "reason"),
    [
        ("01_unpatched_multi_flags", 2, "refused", "shows devices 1, the case has devices 2"),
        ("01_unpatched_multi_flags", 1, "incomplete", "stops at step 12, step 120 is required"),
        ("02_no_task_index", 2, "incomplete", "shows no step, step 120 is required"),
        ("03_hosts_with_mirrored", 2, "refused", "shows devices 1, the case has devices 2"),
        ("04_nccl_cpu_w0", 2, "incomplete", "shows no step, step 120 is required"),
        ("05_lo_sameport_w0", 2, "incomplete", "shows no step, step 120 is required"),
        ("05_lo_sameport_w1", 2, "incomplete", "shows no step, step 120 is required"),
        ("06_rerun_same_model_dir", 1, "incomplete", "shows no step, step 120 is required"),
        ("06b_rerun_no_timehistory", 1, "incomplete", "shows no step, step 120 is required"),
        ("07_stale_TF_CONFIG", 2, "refused", "shows devices 1, the case has devices 2"),
        ("08_onefile_w0", 2, "incomplete", "shows no step, step 120 is required"),
        ("08_onefile_w1", 2, "incomplete", "shows no step, step 120 is required"),
        ("09_kill_w0", 2, "incomplete", "stops at step 11, step 120 is required"),
        ("09_kill_w1", 2, "incomplete", "stops at step 11, step 120 is required"),
        ("10_xla_w0", 2, "incomplete", "stops at step 30, step 120 is required"),
    ],
)
def test_a_genuine_trap_never_gives_a_number(name, nodes, status, reason):
    record = imported(f"edge/{name}.log", nodes)
    assert verdict(record) == (status, f"edge/{name}.log {reason}")
    assert record["last_lines"]


@pytest.mark.parametrize("worker", [0, 1])
def test_the_genuine_short_xla_run_counts_for_a_window_it_has(worker):
    record = imported(f"edge/10_xla_w{worker}.log", 2, warmup=10, window=20)
    assert verdict(record) == ("ok", None)


def test_two_genuine_workers_make_one_run(tmp_path):
    logs = [
        stamped((DATA / f"2n_w{index}.log").read_text(), every=0.2, exit_record=exit_record())
        for index in (0, 1)
    ]
    record = run(tmp_path, *logs)
    assert record["status"] == "ok"
    assert measure(record)["rate"] == 3200 / 22.428402
