# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Result files are whole or not there."""

import json
import os

import pytest
from ansible.module_utils.scalebook.files import write_json


def test_a_file_is_written_once(tmp_path):
    path = tmp_path / "a" / "result.json"
    assert write_json(path, {"rate": 1.5}, sync=True) is True
    assert write_json(path, {"rate": 1.5}) is False
    assert json.loads(path.read_text()) == {"rate": 1.5}
    assert path.stat().st_mode & 0o777 == 0o644


def test_only_looking_writes_nothing(tmp_path):
    assert write_json(tmp_path / "x.json", {}, write=False) is True
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    write_json(path, 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]
    assert path.read_text() == "1\n"


def test_nan_is_no_json(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", float("nan"))


def test_names_that_are_no_text_can_be_written(tmp_path):
    assert write_json(tmp_path / "x.json", {"source": "bad\udcff.log"})
    assert b"bad\\udcff.log" in (tmp_path / "x.json").read_bytes()
