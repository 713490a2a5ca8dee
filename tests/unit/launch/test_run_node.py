"""run_node: one node's part of a run, watched, stamped and ended without orphans."""

import json
import lzma
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.pages.catalogue import CATALOGUES, PLACE, sentence

RUN_NODE = Path(__file__).parents[3] / "roles/campaign/files/run_node.py"
sys.path.insert(0, str(RUN_NODE.parent))
import messages  # noqa: E402

ENV = {"SCALEBOOK_RUN": "c/case/1", "NODE": "NODE1", "TASK_INDEX": "0", "PORT": "0"}
STEPS = {"literal": "step=", "pattern": r"step=(?P<step>\d+)", "warmup": 2, "last": 4}


def alive(pid):
    """Tell whether `pid` runs; a zombie that nobody reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def job(directory, script, limits=None, **env):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "watch.json").write_text(json.dumps(limits or {}))
    given = {**ENV, "JOB_DIR": directory, **env}
    (directory / "job.env").write_text("".join(f"{k}={v}\n" for k, v in given.items()))
    (directory / "run.sh").write_text(script)
    return f"{env.get('NODE', 'NODE1')}={directory}"


def start(*jobs, rank=0, processes=1):
    return subprocess.Popen(
        [sys.executable, RUN_NODE, "--processes", str(processes), *jobs],
        env={**os.environ, "OMPI_COMM_WORLD_RANK": str(rank)},
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*jobs, **options):
    process = start(*jobs, **options)
    said = process.communicate(timeout=30)[1]
    return process.returncode, said


def read_when_there(path, patience=20):
    """Return the text of a file that somebody else writes."""
    deadline = time.monotonic() + patience
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline, f"{path} is not written"
        time.sleep(0.02)
    return path.read_text()


def read_pid(path):
    return int(read_when_there(path))


def await_end(pid, patience=20):
    deadline = time.monotonic() + patience
    while alive(pid):
        assert time.monotonic() < deadline, f"{pid} lives on"
        time.sleep(0.02)


def ended(directory):
    return json.loads((directory / "exit.json").read_text())


def why(directory):
    """Return why a workload was ended, in English."""
    return sentence(ended(directory)["reason"])


def test_what_run_node_prints_are_the_sentences_of_the_catalogue():
    said = {code: re.sub(r"%\((\w+)\)[dgs]", r"{\1}", text) for code, text in messages.IN_ENGLISH.items()}
    del said["text"]
    assert said == {code: PLACE.sub(r"{\1}", CATALOGUES["en"][code]) for code in said}


def test_why_a_workload_was_ended_is_a_message_of_every_language(tmp_path):
    finish(job(tmp_path, "echo one; sleep 60", {"stall": 0.3}))
    assert ended(tmp_path)["reason"] == {"code": "reason.silent", "values": {"seconds": 0.3}}
    assert sentence(ended(tmp_path)["reason"], "zh") == "0.3 秒没有输出"


def test_the_output_is_logged_behind_two_stamps(tmp_path):
    assert finish(job(tmp_path, "echo hello; echo world >&2"))[0] == 0
    lines = (tmp_path / "NODE1.log").read_bytes().splitlines()
    assert re.fullmatch(rb"\d+\.\d{6} \d{10}\.\d{6} hello", lines[1])
    assert lines[2].endswith(b" world")


def test_the_log_begins_and_ends_with_a_line_of_our_own(tmp_path):
    finish(job(tmp_path, "echo hello"))
    lines = (tmp_path / "NODE1.log").read_text().splitlines()
    first, last = (json.loads(line.split(" SCALEBOOK ")[1]) for line in (lines[0], lines[-1]))
    assert (first["event"], first["node"], first["task_index"]) == ("start", "NODE1", 0)
    assert last == ended(tmp_path)


def test_the_end_tells_which_start_of_which_machine_it_was(tmp_path):
    finish(job(tmp_path, "echo hello"))
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert ended(tmp_path)["boot"] == boot


def test_the_workload_has_the_environment_of_its_job(tmp_path):
    finish(job(tmp_path, 'echo "index $TASK_INDEX of $NODE"', NODE="NODE1"))
    assert "index 0 of NODE1" in (tmp_path / "NODE1.log").read_text()


def test_an_exit_status_is_passed_on_so_that_the_job_ends(tmp_path):
    assert finish(job(tmp_path, "exit 7"))[0] == 7
    assert (ended(tmp_path)["rc"], ended(tmp_path)["status"]) == (7, "exited")


def test_a_signal_is_named(tmp_path):
    assert finish(job(tmp_path, "kill -KILL $$"))[0] != 0
    assert (ended(tmp_path)["signal"], ended(tmp_path)["status"]) == (9, "signaled")


def test_silence_beyond_the_limit_is_a_hang(tmp_path):
    began = time.monotonic()
    finish(job(tmp_path, "echo one; sleep 60", {"stall": 0.3}))
    assert ended(tmp_path)["status"] == "hung"
    assert time.monotonic() - began < 10


def test_a_workload_that_shows_no_step_in_time_has_missed_the_rendezvous(tmp_path):
    began = time.monotonic()
    finish(job(tmp_path, "while :; do echo waiting; sleep 0.1; done", {**STEPS, "rendezvous": 0.5}))
    said = ended(tmp_path)
    assert (said["status"], why(tmp_path), said["stepped"]) == ("rendezvous", "no step within 0.5 s", False)
    assert time.monotonic() - began < 10


def test_a_workload_that_never_says_anything_is_told_from_one_that_waits(tmp_path):
    finish(job(tmp_path, "sleep 60", {**STEPS, "rendezvous": 0.5}))
    assert why(tmp_path) == "no step within 0.5 s, and nothing was said"
    assert ended(tmp_path)["said"] == 0


def test_silence_before_the_first_step_is_no_hang(tmp_path):
    finish(job(tmp_path, "sleep 0.8; echo step=1; exit 0", {**STEPS, "rendezvous": 60, "stall": 0.4}))
    assert (ended(tmp_path)["status"], ended(tmp_path)["stepped"]) == ("exited", True)


SUMS = {**STEPS, "rendezvous": 60, "stall": 60, "silences": {"sums by nccl": 1}}


def test_silence_after_a_line_that_a_known_hang_ends_with_has_a_limit_of_its_own(tmp_path):
    began = time.monotonic()
    finish(job(tmp_path, "echo 206 sums by nccl; sleep 60", SUMS))
    assert time.monotonic() - began < 10
    said = ended(tmp_path)
    assert (said["status"], why(tmp_path)) == ("hung", 'no output for 1 s after "sums by nccl"')
    assert said["limit"] == {"seconds": 1, "after": "sums by nccl"}


def test_that_limit_counts_from_the_last_line_of_any_kind_and_ends_with_the_first_step(tmp_path):
    compiling = "for file in 1 2 3 4 5; do sleep 0.25; echo $file files; done"
    finish(job(tmp_path, f"echo sums by nccl; {compiling}; echo step=1; sleep 1.2; exit 0", SUMS))
    assert (ended(tmp_path)["status"], ended(tmp_path)["stepped"]) == ("exited", True)


def test_a_node_script_may_refuse_its_run(tmp_path):
    finish(job(tmp_path, "echo 'scalebook: refused: no such GPU' >&2; exit 2"))
    assert (ended(tmp_path)["status"], why(tmp_path)) == ("refused", "no such GPU")


def test_a_trainer_may_refuse_a_run_though_its_launcher_speaks_after_it(tmp_path):
    finish(job(tmp_path, "echo 'scalebook: refused: no such GPU'; echo train.py FAILED >&2; exit 1"))
    assert (ended(tmp_path)["status"], why(tmp_path)) == ("refused", "no such GPU")


RANKS = """ulimit -c unlimited
export PYTHONFAULTHANDLER={handler}
for RANK in 0 1; do
  RANK=$RANK python3 -c 'import os, time
def waits(): time.sleep(60)
def loads(): time.sleep(60)
(waits if os.environ["RANK"] == "0" else loads)()' &
done
echo ready; wait"""


def test_the_ranks_of_a_hung_workload_print_their_stacks_and_leave_no_core_file(tmp_path):
    finish(job(tmp_path, RANKS.format(handler=1), {"stall": 3}))
    log = (tmp_path / "NODE1.log").read_text()
    first, second = (log.index(f'{{"event": "stack", "rank": {rank}}}') for rank in (0, 1))
    assert "in waits" in log[first:second] and "in loads" in log[second:]
    assert not list(tmp_path.glob("core*"))


def test_processes_that_would_not_print_a_stack_are_only_ended(tmp_path):
    finish(job(tmp_path, RANKS.format(handler=""), {"stall": 3}))
    log = (tmp_path / "NODE1.log").read_text()
    assert '"event": "stack"' not in log and ended(tmp_path)["status"] == "hung"


def test_a_stopped_process_is_told_from_a_silent_one(tmp_path):
    finish(job(tmp_path, "echo one; kill -STOP $$", {"stall": 0.5}))
    assert (ended(tmp_path)["status"], ended(tmp_path)["stopped"]) == ("hung", 1)


def test_the_work_of_the_window_is_measured_without_the_framework(tmp_path):
    burn = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    script = f"""
        echo step=1; echo step=2
        sleep 0.6  # the reading at step 2 is due, late on a busy machine
        {sys.executable} -c '{burn}'
        sleep 0.5; echo step=4"""
    finish(job(tmp_path, script, STEPS))
    busy = ended(tmp_path)["busy"]
    assert busy["work"] >= 0.45
    assert busy["seconds"] >= 0.95


def test_a_child_that_outlives_the_workload_is_ended(tmp_path):
    finish(job(tmp_path, "sleep 300 & echo $! > child"))
    child = int((tmp_path / "child").read_text())
    assert not alive(child)


def test_a_child_that_left_the_group_is_ended_all_the_same(tmp_path):
    left = "setsid sh -c 'echo $$ > child; exec sleep 300' &"
    finish(job(tmp_path, f"{left} while [ ! -s child ]; do sleep 0.05; done"))
    assert not alive(int((tmp_path / "child").read_text()))


def test_the_workload_ends_though_run_node_is_killed_as_soon_as_it_begins(tmp_path):
    process = start(job(tmp_path, "kill -9 $PPID; echo $$ > pid; exec sleep 300"))
    pid = read_pid(tmp_path / "pid")
    process.communicate(timeout=10)
    await_end(pid)


def test_the_last_lines_are_written_though_mpirun_kills_what_it_started(tmp_path):
    process = start(job(tmp_path, "echo $$ > pid; setsid sleep 300 & exec sleep 300"))
    pid = read_pid(tmp_path / "pid")
    process.kill()
    process.communicate(timeout=10)
    await_end(pid)
    assert json.loads(read_when_there(tmp_path / "exit.json"))["status"] == "terminated"


def test_the_workload_ends_when_what_started_run_node_dies(tmp_path):
    word = job(tmp_path, "echo $$ > pid; exec sleep 300")
    command = f"OMPI_COMM_WORLD_RANK=0 {sys.executable} {RUN_NODE} '{word}' & wait"
    orted = subprocess.Popen(["/bin/sh", "-c", command])
    pid = read_pid(tmp_path / "pid")
    orted.kill()
    orted.wait()
    await_end(pid)
    assert "died" in sentence(json.loads(read_when_there(tmp_path / "exit.json"))["reason"])


def test_the_end_of_the_job_ends_the_workload(tmp_path):
    process = start(job(tmp_path, "echo $$ > pid; exec sleep 300"))
    pid = read_pid(tmp_path / "pid")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert ended(tmp_path)["status"] == "terminated"
    assert not alive(pid)


def test_a_rank_whose_job_is_another_s_is_refused(tmp_path):
    jobs = [job(tmp_path / "a", "echo a"), job(tmp_path / "b", "echo b", NODE="NODE2", TASK_INDEX="0")]
    status, said = finish(*jobs, rank=1)
    assert status != 0
    assert "mpirun rank 1 is NODE2, but its job says task_index 0" in said


def test_a_host_without_the_job_of_its_rank_names_the_one_it_has(tmp_path):
    here = job(tmp_path / "a", "echo a", NODE="NODE2", TASK_INDEX="1")
    status, said = finish(f"NODE1={tmp_path}/elsewhere", here, rank=0)
    assert status != 0
    assert "is NODE1, but its job is not here" in said
    assert "here is the job of NODE2" in said


def test_a_port_in_use_is_refused_with_its_number(tmp_path):
    with socket.socket() as held:
        held.bind(("", 0))
        held.listen()
        port = held.getsockname()[1]
        status, said = finish(job(tmp_path, "echo never", PORT=str(port)))
    assert status != 0
    assert f"port {port} " in said
    assert ended(tmp_path)["status"] == "refused"
    assert "never" not in (tmp_path / "NODE1.log").read_text()


def test_ranks_of_one_node_log_apart(tmp_path):
    word = job(tmp_path, "echo rank")
    for rank in (0, 1):
        finish(word, rank=rank, processes=2)
    assert {path.name for path in tmp_path.glob("*.log")} == {"NODE1.log", "NODE1.1.log"}


def test_what_nccl_said_in_further_processes_is_kept_beside_the_log_of_the_first(tmp_path):
    word = job(tmp_path, "echo other; echo host1:1:2 [0] NCCL INFO Using network IB of $OMPI_COMM_WORLD_RANK")
    for rank in (2, 1, 0):
        finish(word, rank=rank, processes=3)
    lines = lzma.decompress((tmp_path / "NODE1.nccl.xz").read_bytes()).decode().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == [
        f"host1:1:2 [0] NCCL INFO Using network IB of {rank}" for rank in (1, 2)
    ]


def test_a_node_with_one_process_keeps_no_such_file(tmp_path):
    finish(job(tmp_path, "echo host1:1:2 [0] NCCL INFO Using network IB"))
    assert not list(tmp_path.glob("*.xz"))


def test_the_first_process_of_a_node_is_the_first_to_say_that_no_step_came(tmp_path):
    """Its record tells which nodes began; mpirun ends all when a further process gives up."""
    word = job(tmp_path, "exec sleep 60", limits={**STEPS, "rendezvous": 0.5})
    further = start(word, rank=1, processes=2)
    assert finish(word, rank=0, processes=2)[0] != 0
    assert (ended(tmp_path)["status"], further.poll()) == ("rendezvous", None)
    further.terminate()
    further.communicate(timeout=30)


def test_a_stopped_process_beside_the_first_one_of_its_node_is_found(tmp_path):
    word = job(tmp_path, "echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec sleep 60", limits={"stall": 1})
    further = start(word, rank=1, processes=2)
    os.kill(read_pid(tmp_path / "pid.1"), signal.SIGSTOP)
    finish(word, rank=0, processes=2)
    further.terminate()
    further.communicate(timeout=30)
    assert (ended(tmp_path)["status"], ended(tmp_path)["stopped"]) == ("hung", 1)


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("echo RuntimeError: no memory; exit 3", "ended with exit code 3: RuntimeError: no memory"),
        ("exit 3", "ended with exit code 3"),
        ("kill -9 $$", "was ended by signal 9 (SIGKILL)"),
        ("echo step=1; exec sleep 60", "was ended: no output for 5.5 s"),
    ],
)
def test_a_further_process_of_a_node_says_through_mpirun_why_it_ended(tmp_path, script, how):
    """Its log stays on the node, and the node's own process was only ended with it."""
    said = finish(job(tmp_path, script, limits={"stall": 0.5}), rank=1, processes=2)[1]
    assert said == f"scalebook: failed: NODE1.1 (rank 1, host {socket.gethostname()}) {how}\n"


@pytest.mark.parametrize(("script", "rank"), [("exit 0", 1), ("exit 3", 0)])
def test_nothing_is_said_of_one_that_ended_well_or_whose_log_is_the_nodes(tmp_path, script, rank):
    assert finish(job(tmp_path, script), rank=rank, processes=2)[1] == ""


def test_a_line_without_an_end_is_logged(tmp_path):
    finish(job(tmp_path, "printf tail"))
    assert " tail\n" in (tmp_path / "NODE1.log").read_text()


def test_a_full_disk_is_a_failed_run(tmp_path):
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], capture_output=True)
    if mount.returncode:
        pytest.skip("root: a small file system cannot be mounted here")
    try:
        status, said = finish(job(tmp_path, "head -c 200000 /dev/zero | tr '\\0' x | fold -w 100"))
        assert status != 0
        assert ended(tmp_path)["status"] == "failed"
        # The closing line has its place even then, and a line of its own.
        last = (tmp_path / "NODE1.log").read_text().splitlines()[-1]
        assert "No space left on device" in sentence(json.loads(last.split(" SCALEBOOK ")[1])["reason"])
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_process_that_hides_in_a_session_and_without_environment_is_ended(tmp_path):
    finish(job(tmp_path, f"(setsid env -i sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300' &)\nsleep 0.5"))
    await_end(read_pid(tmp_path / "pid"), patience=1)


def test_a_process_that_hides_is_ended_though_run_node_is_killed(tmp_path):
    hides = f"(setsid env -i sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300' &)"
    waits = f"while [ ! -s {tmp_path}/pid ]; do sleep 0.05; done"
    process = start(job(tmp_path, f"{hides}\n{waits}\nkill -9 $PPID"))
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGKILL
    await_end(read_pid(tmp_path / "pid"), patience=1)


# Read by every Python: writes down what reaches the disk.
SYNCED = """
import os
fsync = os.fsync
def record(descriptor):
    fsync(descriptor)
    with open(os.environ["SYNCED"], "a") as file:
        file.write(os.path.basename(os.readlink("/proc/self/fd/%d" % descriptor)) + "\\n")
os.fsync = record
"""


def test_the_log_is_on_the_disk_before_its_closing_record_is(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(SYNCED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SYNCED", str(tmp_path / "synced"))
    finish(job(tmp_path / "job", "echo done"))
    assert (tmp_path / "synced").read_text().split() == ["NODE1.log", "exit.json.new", "job"]


ENDLESS = "i=0; while :; do i=$((i+1)); echo line $i of a log without an end, made longer by words; done"


def test_a_log_without_an_end_ends_the_run(tmp_path):
    finish(job(tmp_path, ENDLESS, {"log": 4_000_000}))
    assert ended(tmp_path)["status"] == "failed"
    assert why(tmp_path) == "the log is larger than 4 MB (campaign_log_limit)"


def test_the_beginning_and_the_end_of_a_log_without_an_end_are_kept(tmp_path):
    finish(job(tmp_path, ENDLESS, {"log": 4_000_000}))
    lines = (tmp_path / "NODE1.log").read_text().splitlines()
    (cut,) = (index for index, line in enumerate(lines) if '"event": "cut"' in line)
    numbers = [int(line.split(" line ")[1].split()[0]) for line in lines if " line " in line]
    assert (tmp_path / "NODE1.log").stat().st_size < 3 << 20
    assert numbers[: cut - 1] == list(range(1, cut))
    assert numbers[cut - 1] > cut
    assert json.loads(lines[-1].split(" SCALEBOOK ")[1])["event"] == "exit"


def finish_by_slurm(*jobs, rank, node, processes=1, **env):
    """As finish, started by srun as process `rank` on `node`."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("OMPI")}
    done = subprocess.run(
        [sys.executable, RUN_NODE, "--processes", str(processes), *jobs],
        env={**given, "SLURM_PROCID": str(rank), "SLURMD_NODENAME": node, **env},
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    return done.returncode, done.stderr


def test_the_rank_that_slurm_gave_has_the_names_that_node_scripts_know(tmp_path):
    words = "$OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_SIZE"
    second = job(tmp_path, f'echo "ranks {words}"', NODE="NODE2", TASK_INDEX="1")
    assert finish_by_slurm("NODE1=/nowhere", second, rank=3, node="NODE2", processes=2)[0] == 0
    assert "ranks 3 1 2" in (tmp_path / "NODE2.1.log").read_text()


def test_a_job_that_every_node_can_read_is_refused_on_the_wrong_one(tmp_path):
    code, said = finish_by_slurm(job(tmp_path, "true"), rank=0, node="NODE4")
    assert code != 0
    assert "refused: Slurm started rank 0 on NODE4, and its job is that of NODE1" in said


def test_the_gpus_are_the_first_that_slurm_gave(tmp_path):
    one = job(tmp_path, 'echo "devices $CUDA_VISIBLE_DEVICES"', CUDA_VISIBLE_DEVICES="0,1")
    finish_by_slurm(one, rank=0, node="NODE1", CUDA_VISIBLE_DEVICES="3,5,6")
    assert "devices 3,5\n" in (tmp_path / "NODE1.log").read_text()


def test_a_run_on_cpus_sees_none_of_the_gpus_that_slurm_gave(tmp_path):
    one = job(tmp_path, 'echo "devices <$CUDA_VISIBLE_DEVICES>"', CUDA_VISIBLE_DEVICES="")
    finish_by_slurm(one, rank=0, node="NODE1", CUDA_VISIBLE_DEVICES="3")
    assert "devices <>" in (tmp_path / "NODE1.log").read_text()


@pytest.mark.parametrize("given", ["", "3"])
def test_a_run_with_too_few_gpus_of_slurm_is_refused_with_the_fix(tmp_path, given):
    one = job(tmp_path, "true", CUDA_VISIBLE_DEVICES="0,1")
    assert finish_by_slurm(one, rank=0, node="NODE1", CUDA_VISIBLE_DEVICES=given)[0] != 0
    assert ended(tmp_path)["status"] == "refused"
    assert "make the allocation with --gpus-per-node=2" in why(tmp_path)


def test_the_signal_that_srun_passes_on_ends_the_workload_and_is_recorded(tmp_path):
    process = start(job(tmp_path, "touch began; exec sleep 300"))
    while not (tmp_path / "began").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=20)
    assert (ended(tmp_path)["status"], why(tmp_path)) == (
        "terminated",
        f"ended by the job (signal {int(signal.SIGUSR1)})",
    )
