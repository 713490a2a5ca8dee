# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the record says of the network: read from lines of NCCL, genuine ones of machines with GPUs.

Those with InfiniBand and RoCE are paraphrased from public issues (tests/data/README.md).
"""

import lzma
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.read import nccl

DATA = Path(__file__).resolve().parents[2] / "data"
IB = (DATA / "nccl/ib_2n4g.NODE1.log").read_text()


def facts(tmp_path, *texts):
    """Return what is read of a run whose nodes have these logs."""
    names = [f"NODE{number}" for number in range(1, len(texts) + 1)]
    for name, text in zip(names, texts, strict=True):
        (tmp_path / f"{name}.log").write_text(text)
    return nccl.of_run(tmp_path, names)


def of_file(tmp_path, name):
    return facts(tmp_path, (DATA / name).read_text())


def edited(tmp_path, *changes):
    """Return what is read of the lines with InfiniBand after each (old, new) of `changes`."""
    text = IB
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return facts(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "version", "transports", "channels"),
    [
        ("torch_bert/h200x2_b256_bf16.log", ["2.28.9"], {"P2P/CUMEM": 48}, 24),
        ("nccl/2.25.1_1n2g.log", ["2.25.1"], {"P2P/direct pointer": 4}, 24),
        ("tf2_bert/edge/12_nccl_fails_w1.log", [], {"P2P/IPC": 24}, 24),
    ],
)
def test_genuine_lines_of_one_machine_are_read(tmp_path, name, version, transports, channels):
    read = of_file(tmp_path, name)
    assert (read["versions"], read["transports"], read["channels"]) == (version, transports, channels)
    assert "gpudirect" not in read and (read["adapters"], read["far"]) == ([], [])


def test_infiniband_is_named_by_its_devices_and_gpudirect_is_on(tmp_path):
    read = facts(tmp_path, IB)
    assert read["transports"] == {"NET/IB": 3, "P2P/CUMEM": 1}
    assert read["adapters"] == ["mlx5_0:1 (IB)", "mlx5_1:1 (IB)"]
    assert (read["gpudirect"], read["nvls"], read["links"]) == (True, True, ["NVL"])


def test_one_connection_through_the_host_is_gpudirect_off(tmp_path):
    assert edited(tmp_path, ("NET/IB/1/GDRDMA", "NET/IB/1"))["gpudirect"] is False


def test_the_adapter_of_another_rank_is_not_a_far_one(tmp_path):
    assert edited(tmp_path)["far"] == []


def test_a_gpu_that_does_not_use_its_nearest_adapter_is_named(tmp_path):
    assert edited(tmp_path, ("NET/IB/1/GDRDMA", "NET/IB/0/GDRDMA"))["far"] == [
        {
            "node": "NODE1",
            "rank": 1,
            "adapter": "mlx5_0:1 (IB)",
            "distance": "PHB",
            "nearest": "mlx5_1:1 (IB)",
            "nearest_distance": "PIX",
        }
    ]


def test_paths_of_newer_versions_have_the_number_of_the_system(tmp_path):
    changes = [("GPU/", "GPU/0-"), ("NET/0 (", "NET/0-0 ("), ("NET/1 (", "NET/0-1 (")]
    read = edited(tmp_path, *changes, ("NET/IB/1/GDRDMA", "NET/IB/0/GDRDMA(PCI)"))
    assert [(each["rank"], each["nearest"]) for each in read["far"]] == [(1, "mlx5_1:1 (IB)")]


def test_a_plugin_has_its_own_name(tmp_path):
    read = edited(tmp_path, ("NET/IB", "NET/IBext_v8"))
    assert read["transports"]["NET/IBext_v8"] == 3
    assert read["adapters"] == ["mlx5_0:1 (IB)", "mlx5_1:1 (IB)"]


def test_sockets_are_named_by_their_interface(tmp_path):
    lines = [
        "node1:7:7 [0] NCCL INFO NET/Socket : Using [0]eth0:192.0.2.2<0> [1]eth1:192.0.2.130<0>",
        "node1:7:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/1/Shared",
        "node1:7:9 [0] NCCL INFO Channel 01 : 0[0] -> 2[1] via SHM/direct/direct",
    ]
    read = facts(tmp_path, "\n".join(lines))
    assert (read["transports"], read["adapters"]) == ({"NET/Socket": 1, "SHM": 1}, ["eth1"])
    assert "gpudirect" not in read


def test_the_further_processes_of_a_node_are_read_too(tmp_path):
    together = facts(tmp_path, IB)
    first, second = ([line for line in IB.splitlines(True) if f"[{gpu}] NCCL" in line] for gpu in (0, 1))
    (tmp_path / nccl.file_of("NODE1")).write_bytes(lzma.compress("".join(second).encode()))
    assert facts(tmp_path, "".join(first)) == together


@pytest.mark.parametrize(
    "text", ["", "step 1\nNCCL INFO\n", "h:1:1 [0] NCCL INFO NET/IB : No device found.\n"]
)
def test_a_run_in_which_nccl_said_nothing_has_no_facts(tmp_path, text):
    assert facts(tmp_path, text) is None


def socket_record(kind):
    networks = [{"name": "eth0", "kind": "Ethernet"}, {"name": "mlx5_0", "kind": kind}]
    used = {"versions": [], "transports": {"NET/Socket": 2}, "links": [], "adapters": ["eth0"], "far": []}
    return {"status": "ok", "nccl": used, "hardware": [{"nodes": ["NODE1"], "networks": networks}]}


@pytest.mark.parametrize("kind", ["InfiniBand", "RoCE"])
def test_a_run_over_sockets_is_refused_where_something_faster_is_up(kind):
    record = socket_record(kind)
    nccl.refuse_sockets(record)
    assert record["status"] == "refused"
    assert sentence(record["reason"]).startswith(f"NCCL used sockets though mlx5_0 ({kind}) is up. Fix:")


def test_a_run_over_sockets_counts_where_nothing_faster_is_up():
    record = socket_record("Ethernet")
    nccl.refuse_sockets(record)
    assert record["status"] == "ok"
