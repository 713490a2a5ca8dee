"""run_gang: mpirun in a session of its own, under a hard limit, findable while it runs."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

RUN_GANG = Path(__file__).parents[2] / "roles/campaign/files/run_gang.py"


def alive(pid):
    """Tell whether `pid` runs; a zombie that nobody reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def words(directory, command, timeout=20):
    pid = directory / "gang.json"
    return [
        sys.executable,
        RUN_GANG,
        "--timeout",
        str(timeout),
        "--pid",
        pid,
        "--id",
        "c/case/1",
        "--",
        *command,
    ]


def gang(directory, command, timeout=20):
    done = subprocess.run(
        words(directory, command, timeout), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def test_it_tells_the_status_and_the_time_of_the_command(tmp_path):
    result = gang(tmp_path, ["sh", "-c", "sleep 0.5; echo lost >&2; exit 3"])
    assert (result["rc"], result["timed_out"], result["stderr"]) == (3, False, "lost\n")
    assert 0.5 <= result["seconds"] < 5


def test_the_limit_ends_the_whole_gang(tmp_path):
    began = time.monotonic()
    result = gang(tmp_path, ["sh", "-c", f"sleep 300 & echo $! > {tmp_path}/child; wait"], timeout=1)
    assert result["timed_out"]
    assert time.monotonic() - began < 15
    assert not alive(int((tmp_path / "child").read_text()))


def test_nothing_is_left_beside_the_answer(tmp_path):
    gang(tmp_path, ["true"])
    assert list(tmp_path.iterdir()) == []


def test_a_running_gang_can_be_found_by_its_id(tmp_path):
    process = subprocess.Popen(words(tmp_path, ["sleep", "300"]), stdout=subprocess.DEVNULL)
    record = tmp_path / "gang.json"
    while not record.exists():
        time.sleep(0.02)
    found = json.loads(record.read_text())
    assert found["id"] == "c/case/1"
    assert os.getsid(found["pid"]) == found["pid"] != os.getsid(0)
    os.killpg(found["pid"], 15)
    process.wait(10)
