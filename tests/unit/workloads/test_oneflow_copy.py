# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The copy of a trainer of Oneflow-Inc/models, for CPUs where the case is for CPUs."""

import pytest
from role_files import load

oneflow_copy = load("oneflow", "oneflow_copy")
FILES = ("train.py", "graph.py", "models/data.py")


@pytest.fixture
def trainer(tmp_path):
    folder = tmp_path / "trainer"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('x.to("cuda")\n')
    (folder / "config.py").write_text('DEVICE = "cuda"\n')
    return folder


def test_for_cpus_the_files_that_name_the_device_are_changed(trainer, tmp_path):
    assert oneflow_copy.main(["", str(trainer), str(tmp_path / "copy"), "cpu", *FILES]) == 0
    assert {(tmp_path / "copy" / name).read_text() for name in FILES} == {'x.to("cpu")\n'}
    assert (tmp_path / "copy/config.py").read_text() == 'DEVICE = "cuda"\n'


def test_for_gpus_the_trainer_stays_as_it_is(trainer, tmp_path):
    assert oneflow_copy.main(["", str(trainer), str(tmp_path / "copy"), "gpu", *FILES]) == 0
    assert (tmp_path / "copy/train.py").read_text() == 'x.to("cuda")\n'


def test_another_trainer_is_refused(trainer, tmp_path, capsys):
    (trainer / "graph.py").write_text("pass\n")
    assert oneflow_copy.main(["", str(trainer), str(tmp_path / "copy"), "cpu", *FILES]) == 1
    assert 'graph.py has no "cuda"' in capsys.readouterr().err
