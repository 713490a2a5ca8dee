# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The programs that measure between GPUs keep the lines of NCCL of each rank, by node."""

import lzma
import os
from pathlib import Path

import pytest
from role_files import load
from run_module import ROOT


@pytest.fixture
def nccl_file(monkeypatch):
    for name in ("NCCL_DEBUG_FILE", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return load("microbench", "nccl_file")


def test_the_lines_of_all_ranks_are_together_by_node(nccl_file, tmp_path):
    ranks = []
    for rank in (2, 0, 1):
        os.environ.pop("NCCL_DEBUG_FILE", None)
        path = nccl_file.listen(str(tmp_path), rank)
        Path(path).write_text(f"h:1:1 [{rank}] NCCL INFO rank {rank}\nsomething else\n")
        ranks.append((rank // 2, nccl_file.packed(path)))
        nccl_file.remove(path)
    assert [*tmp_path.iterdir()] == []
    assert lzma.decompress(nccl_file.of_nodes(ranks)).decode().splitlines() == [
        "NODE 0",
        "h:1:1 [0] NCCL INFO rank 0",
        "h:1:1 [1] NCCL INFO rank 1",
        "NODE 1",
        "h:1:1 [2] NCCL INFO rank 2",
    ]


def test_a_process_in_another_group_has_its_lines_and_what_nccl_says_once(nccl_file, tmp_path):
    path = nccl_file.listen(str(tmp_path), 0)
    once = "h:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\nh:1:1 [0] NCCL INFO NCCL version 2.28.9\n"
    Path(path).write_text(once + "h:1:1 [0] NCCL INFO of the first group\n")
    nccl_file.packed(path)
    assert nccl_file.listen("elsewhere", 5) == path
    with Path(path).open("a") as stream:
        stream.write("h:1:1 [0] NCCL INFO of the second group\n")
    assert (
        lzma.decompress(nccl_file.packed(path)).decode() == once + "h:1:1 [0] NCCL INFO of the second group\n"
    )


def test_nccl_is_asked_for_the_lines_that_training_is_asked_for(nccl_file, tmp_path):
    nccl_file.listen(str(tmp_path), 0)
    head = (ROOT / "roles/workload/files/kit/run_head.sh").read_text()
    for name in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"):
        assert f"${{{name}:-{os.environ[name]}}}" in head


def test_a_file_of_the_user_is_left_to_them(nccl_file, tmp_path):
    os.environ["NCCL_DEBUG_FILE"] = "/their/file"
    assert nccl_file.listen(str(tmp_path), 0) == ""
    assert os.environ["NCCL_DEBUG_FILE"] == "/their/file"


def test_where_nccl_wrote_nothing_nothing_is_kept(nccl_file, tmp_path):
    assert lzma.decompress(nccl_file.packed(str(tmp_path / "nccl.0"))) == b""
