# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The patch of bing_bert: lines are found by their text, patched once, and refused where they differ."""

import bing_bert_patch
import pytest
from bing_bert_sources import INSTALL, PATCH, REQUIREMENTS, SOURCES, STORE, TRAINER
from run_module import call_module


@pytest.fixture
def sources(tmp_path):
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return tmp_path


def run(sources, vocabulary="/vocabulary", **options):
    return call_module(bing_bert_patch, path=str(sources), vocabulary=vocabulary, **options)


def content(sources, name):
    return (sources / name).read_bytes().decode()


def test_all_files_are_changed_once(sources):
    assert sorted(SOURCES) == run(sources)["files"]
    again = run(sources)
    assert (again["changed"], again["files"]) == (False, [])


def test_pip_is_that_of_the_python_in_use(sources):
    run(sources)
    assert 'else\n    PIP_SUDO="python3 -m "\nfi\n' in content(sources, "install.sh")


def test_torch_is_not_required_and_the_imports_of_the_trainer_are(sources):
    run(sources)
    lines = content(sources, "requirements/requirements.txt").splitlines()
    assert lines == ["# torch>=1.2", "# torchvision>=0.4.0", "boto3", "h5py", "tqdm"]


def test_the_learning_rate_is_known_in_fp32_too(sources):
    run(sources)
    lines = content(sources, PATCH.TRAINER).split("\r\n")
    assert lines[1] == '                lr_this_step = optimizer.param_groups[0]["lr"]'


def test_micro_steps_count_against_the_steps_of_an_epoch(sources):
    run(sources)
    lines = content(sources, PATCH.TRAINER).split("\r\n")
    assert lines[lines.index("            else:") + 1] == "                epoch_step += 1"


def test_line_ends_stay_as_they_are(sources):
    run(sources)
    text = content(sources, PATCH.TRAINER)
    assert text.count("\n") == text.count("\r\n") == TRAINER.count("\n") + 2


def test_no_vocabulary_is_downloaded(sources):
    run(sources)
    text = content(sources, PATCH.TOKENIZATION)
    assert STORE not in text
    assert "'bert-base-uncased':\n    \"/vocabulary/bert-base-uncased-vocab.txt\"," in text


def test_the_modes_of_files_stay(sources):
    (sources / "install.sh").chmod(0o755)
    run(sources)
    assert (sources / "install.sh").stat().st_mode & 0o777 == 0o755


def test_a_check_changes_nothing(sources):
    assert run(sources, check=True)["changed"]
    assert content(sources, "install.sh") == INSTALL


@pytest.mark.parametrize("name", ["install.sh", PATCH.TRAINER])
def test_an_unknown_text_is_refused_by_name_and_nothing_is_written(sources, name):
    (sources / name).write_text("something else\n")
    done = run(sources)
    assert done["failed"] and name in done["msg"]
    assert content(sources, "requirements/requirements.txt") == REQUIREMENTS


def test_lines_that_occur_twice_are_refused(sources):
    (sources / "install.sh").write_text(INSTALL * 2)
    assert "occur 2 times" in run(sources)["msg"]


def test_another_directory_of_vocabularies_is_refused(sources):
    run(sources)
    assert "vocabularies are on the node" in run(sources, vocabulary="/other")["msg"]


def test_the_diff_shows_each_file_before_and_after(sources):
    shown = {each["before_header"]: each for each in run(sources, check=True, diff=True)["diff"]}
    assert shown["install.sh"]["before"] == INSTALL
    assert 'PIP_SUDO="python3 -m "' in shown["install.sh"]["after"]


def test_sources_that_are_not_there_are_named(tmp_path):
    assert f"cannot patch the sources in {tmp_path}" in run(tmp_path)["msg"]
