"""job_dir: a fresh directory for every job."""

import job_dir
import pytest


def test_what_an_earlier_attempt_left_is_gone(tmp_path):
    job = tmp_path / "job"
    (job / "model").mkdir(parents=True)
    (job / "model" / "checkpoint").touch()
    job_dir.make(job, {"run.sh": "true\n"})
    assert [path.name for path in job.iterdir()] == ["run.sh"]


@pytest.mark.parametrize("name", ["../run.sh", "a/b", "", ".", ".."])
def test_a_file_name_with_a_directory_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="not a plain file name"):
        job_dir.make(tmp_path / "job", {name: ""})
