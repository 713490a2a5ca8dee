"""run_job: mpirun in a session of its own, under a hard limit, findable while it runs."""

import json
import subprocess
import sys
import time
from pathlib import Path

RUN_JOB = Path(__file__).parents[3] / "roles/campaign/files/run_job.py"


def alive(pid):
    """Tell whether `pid` runs; a zombie that nobody reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def words(directory, command, timeout=20, options=()):
    limits = ["--timeout", str(timeout), *options]
    return [sys.executable, RUN_JOB, "--dir", directory, *limits, "--", *command]


def run_job(directory, command, **limits):
    done = subprocess.run(
        words(directory, command, **limits), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def run_with(directory, command, **constants):
    """As run_job, with other constants."""
    code = f"""
import runpy, sys
sys.path.insert(0, {str(RUN_JOB.parent)!r})
sys.argv = {[str(word) for word in words(directory, command)[1:]]!r}
module = runpy.run_path({str(RUN_JOB)!r})
module["main"].__globals__.update({constants!r})
module["main"]()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def end_left(place):
    """End the jobs below `place` and return what that says."""
    argv = [sys.executable, RUN_JOB.with_name("orphans.py"), place]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_it_tells_the_status_and_the_time_of_the_command(tmp_path):
    result = run_job(tmp_path, ["sh", "-c", "sleep 0.5; echo lost >&2; exit 3"])
    assert (result["rc"], result["timed_out"], result["stderr"]) == (3, False, "lost\n")
    assert 0.5 <= result["seconds"] < 5


def test_the_limit_ends_the_whole_job(tmp_path):
    began = time.monotonic()
    result = run_job(tmp_path, ["sh", "-c", f"sleep 300 & echo $! > {tmp_path}/child; wait"], timeout=1)
    assert (result["timed_out"], result["ended_by"]) == (True, "timeout")
    assert time.monotonic() - began < 15
    assert not alive(int((tmp_path / "child").read_text()))


def test_a_job_that_does_not_begin_in_time_is_ended(tmp_path):
    began = time.monotonic()
    result = run_job(tmp_path, ["sleep", "300"], options=("--rendezvous", "0.3"))
    assert result["rc"] != 0
    assert not result["timed_out"]
    assert time.monotonic() - began < 15


def test_the_hosts_that_mpirun_still_logs_in_to_are_named(tmp_path):
    login = ["ssh", "-c", "sleep 300; :", "10.11.0.4"]  # a shell that calls itself ssh
    script = f"import subprocess; subprocess.run({login!r}, executable='/bin/sh')"
    mpirun = [sys.executable, "-c", script, "--host", "10.11.0.3:1,10.11.0.4:1"]
    assert run_job(tmp_path, mpirun, options=("--rendezvous", "1"))["unstarted"] == ["10.11.0.4"]


def test_a_job_whose_first_node_began_has_met(tmp_path):
    began = ["sh", "-c", f"touch {tmp_path}/NODE1.log; sleep 1.5"]
    assert run_job(tmp_path, began, options=("--rendezvous", "1"))["rc"] == 0


def test_mpirun_is_not_waited_for_when_the_first_node_went_wrong_long_ago(tmp_path):
    (tmp_path / "exit.json").write_text('{"status": "hung", "rc": 0}')
    began = time.monotonic()
    assert run_with(tmp_path, ["sleep", "300"], LINGER=0.3)["ended_by"] == "failure"
    assert time.monotonic() - began < 20


def test_a_controller_that_lost_its_lock_starts_nothing(tmp_path):
    (tmp_path / "lock.json").write_text('{"id": "another"}')
    options = ("--lock", str(tmp_path / "lock.json"), "--holder", "me")
    done = subprocess.run(
        words(tmp_path, ["touch", f"{tmp_path}/started"], options=options), capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "nothing was started" in done.stderr
    assert not (tmp_path / "started").exists()


def test_the_beginning_of_what_mpirun_says_is_kept(tmp_path):
    script = "echo the cause; for i in $(seq 3000); do echo an explanation; done; echo the end; exit 1"
    said = run_job(tmp_path, ["sh", "-c", script])["stderr"]
    assert (said.startswith("the cause\n"), said.endswith("the end\n"), len(said) < 7000) == (
        True,
        True,
        True,
    )


def test_a_job_that_was_left_behind_is_found_by_its_mark_and_ended(tmp_path):
    job = tmp_path / "work/NODE1/c/case/1"
    job.mkdir(parents=True)
    command = ["sh", "-c", "setsid sleep 300 & echo $! > child; wait"]
    process = subprocess.Popen(words(job, command), cwd=job, stdout=subprocess.DEVNULL)
    child = job / "child"
    while not (child.exists() and child.read_text().strip()):
        time.sleep(0.02)
    process.kill()
    process.wait()
    said = end_left(tmp_path / "work")
    assert list(said["ended"]) == [str(job)]
    assert said["left"] == []
    assert not alive(int(child.read_text()))


def test_jobs_of_another_place_are_left_alone(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    process = subprocess.Popen(words(mine, ["sleep", "300"]), stdout=subprocess.DEVNULL)
    while not (mine / "mpirun.stderr").exists():
        time.sleep(0.02)
    assert end_left(tmp_path / "min") == {"ended": {}, "stopped": 0, "left": []}
    end_left(mine.parent)
    process.wait(20)


def test_a_job_ends_with_the_connection_to_the_control_node(tmp_path):
    """As after Ctrl-C there: nobody reads any more what it prints."""
    command = ["sh", "-c", f"sleep 300 & echo $! > {tmp_path}/child; wait"]
    process = subprocess.Popen(words(tmp_path, command), stdout=subprocess.PIPE)
    child = tmp_path / "child"
    while not (child.exists() and child.read_text().strip()):
        time.sleep(0.02)
    process.stdout.close()
    process.wait(15)
    assert not alive(int(child.read_text()))


def test_a_job_whose_program_is_asked_to_end_is_ended_and_says_so(tmp_path):
    command = ["sh", "-c", f"echo > {tmp_path}/began; sleep 300"]
    process = subprocess.Popen(words(tmp_path, command), stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "began").exists():
        time.sleep(0.02)
    process.terminate()
    assert json.loads(process.communicate(timeout=20)[0])["ended_by"] == "signal"


def test_a_job_whose_program_is_asked_to_end_while_it_starts_is_ended(tmp_path):
    """mpirun itself asks, before run_job has looked at it for the first time."""
    command = ["sh", "-c", "kill -TERM $PPID; exec sleep 300"]
    code = f"""
import runpy, subprocess, sys, time
sys.path.insert(0, {str(RUN_JOB.parent)!r})
sys.argv = {[str(word) for word in words(tmp_path, command)[1:]]!r}
start = subprocess.Popen.__init__
def slowly(self, argv, **options):
    start(self, argv[3:], **options)  # without the program `timeout`
    time.sleep(1)
subprocess.Popen.__init__ = slowly
runpy.run_path({str(RUN_JOB)!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert json.loads(done.stdout)["ended_by"] == "signal"


def test_mpirun_that_does_not_end_after_a_good_run_is_ended_and_the_run_may_count(tmp_path):
    (tmp_path / "exit.json").write_text('{"status": "exited", "rc": 0}')
    login = ["ssh", "-c", "sleep 300; :", "10.11.0.4"]  # a shell that calls itself ssh
    script = f"import subprocess; subprocess.run({login!r}, executable='/bin/sh')"
    mpirun = [sys.executable, "-c", script, "--host", "10.11.0.3:1,10.11.0.4:1"]
    result = run_with(tmp_path, mpirun, FAREWELL=0.5)
    assert (result["rc"], result["lingered"], result["hosts"]) == (0, True, ["10.11.0.4"])


def test_mpirun_has_time_to_end_after_a_good_run(tmp_path):
    (tmp_path / "exit.json").write_text('{"status": "exited", "rc": 0}')
    result = run_with(tmp_path, ["sleep", "1"], FAREWELL=5)
    assert (result["rc"], result["lingered"], result["ended_by"]) == (0, False, None)


def test_the_command_is_read_from_the_directory_of_the_job(tmp_path):
    many = ["sh", "-c", "exit $#", *["x" * 1000] * 200]
    (tmp_path / "launch.json").write_text(json.dumps(many))
    assert run_job(tmp_path, [])["rc"] == 199
