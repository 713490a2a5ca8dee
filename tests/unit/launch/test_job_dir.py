"""job_dir: a fresh directory for every job."""

import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.launch import lock_file
from ansible.module_utils.scalebook.node import job_directories

ROOT = Path(__file__).parents[3]
MAKE = f"""
import sys
sys.path[:0] = {sys.path!r}
import pathlib, ansible.module_utils
ansible.module_utils.__path__.append({str(ROOT / "module_utils")!r})
from ansible.module_utils.scalebook.node import job_directories
for _ in range(40):
    job_directories.make(pathlib.Path(sys.argv[1]), {{"run.sh": "x" * 100_000}})
"""


def test_what_an_earlier_attempt_left_is_gone(tmp_path):
    job = tmp_path / "job"
    (job / "model").mkdir(parents=True)
    (job / "model" / "checkpoint").touch()
    job_directories.make(job, {"run.sh": "true\n"})
    assert [path.name for path in job.iterdir()] == ["run.sh"]


@pytest.mark.parametrize("name", ["../run.sh", "a/b", "", ".", ".."])
def test_a_file_name_with_a_directory_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="not a plain file name"):
        job_directories.make(tmp_path / "job", {name: ""})


def test_many_processes_may_make_one_directory_at_once(tmp_path):
    """Where all nodes share one directory."""
    makers = [subprocess.Popen([sys.executable, "-c", MAKE, tmp_path / "a/job"]) for _ in range(6)]
    assert [maker.wait(60) for maker in makers] == [0] * 6
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["job"]
    assert (tmp_path / "a/job/run.sh").stat().st_size == 100_000


def test_nothing_is_written_beside_another_control_node(tmp_path):
    lock = tmp_path / "lock"
    lock_file.turn(lock, {"id": "other", "user": "ann", "host": "desk"}, None, "present", True)
    with pytest.raises(ValueError, match="in use by ann@desk"):
        job_directories.check_lock(str(lock), {"id": "me"})


def test_a_machine_that_was_restarted_is_locked_again(tmp_path):
    job_directories.check_lock(str(tmp_path / "lock"), {"id": "me"})
    assert lock_file.read(tmp_path / "lock") == {"id": "me"}
