# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What NCCL said of links is in acceptance.json; sockets beside a faster network are refused."""

import base64
import json
import lzma

import pytest
from acceptance_site import NODES, Site
from ansible.module_utils.scalebook.accept import printed
from run_module import ROOT

DATA = ROOT / "tests/data/nccl"
IB = (DATA / "ib_2n4g.NODE1.log").read_text()
SOCKETS = """node1:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
node1:7:7 [0] NCCL INFO NET/Socket : Using [0]eth0:192.0.2.2<0>
node1:7:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
"""
NETWORKS = {node: [{"name": "mlx5_0", "kind": "InfiniBand"}] for node in NODES[:4]}


def packed(*of_nodes):
    """Return what nodes print of lines of NCCL, as measure_parts.py does."""
    text = "".join(f"NODE {number}\n{lines}" for number, lines in enumerate(of_nodes))
    return base64.b64encode(lzma.compress(text.encode())).decode()


def measured(lines):
    content = {"at": 0, "name": None, "rates": {}, "traces": {}, "problems": {}, "nccl": lines}
    steps = dict.fromkeys(NODES[:2], [{"at": 0, "nodes": NODES[:2]}])
    outputs = {"NODE1": {"stdout": json.dumps(content)}, "NODE2": {}}
    [measurement] = printed.of_steps(steps, outputs, 60)
    return measurement


def judged(folder, lines, **options):
    site = Site(folder, NODES[:4], **options)
    site.nccl = lines
    return site.judged()


def test_the_lines_of_each_node_are_its_own():
    far = IB.replace("NET/IB/1/GDRDMA", "NET/IB/0/GDRDMA")
    nccl = measured(packed(IB, far))["nccl"]
    assert (nccl["versions"], nccl["transports"]["NET/IB"]) == (["2.21.5"], 6)
    assert [each["node"] for each in nccl["far"]] == ["NODE2"]


@pytest.mark.parametrize("lines", ["", None, "=no=", base64.b64encode(b"no xz").decode(), packed("step 1\n")])
def test_where_nccl_said_nothing_nothing_is_known(lines):
    assert "nccl" not in measured(lines)


def test_links_that_are_connected_alike_are_one_line(tmp_path):
    made, result = judged(tmp_path, packed(IB))
    [connection] = made["connections"]
    assert (connection["between"], connection["nodes"], connection["measurements"]) == ("link", NODES[:4], 6)
    [line] = [each for each in result["display"] if "NET/IB" in each]
    assert line == (
        "GPUs of two nodes, of NODE1, NODE2, NODE3, NODE4: NET/IB/GDRDMA, P2P/CUMEM, NVLink, NVLS, "
        "through mlx5_0:1 (IB) and mlx5_1:1 (IB), 16 channels, NCCL 2.21.5"
    )


def test_gpudirect_that_is_off_and_an_adapter_that_is_far_are_named(tmp_path):
    _, result = judged(tmp_path, packed(IB.replace("NET/IB/1/GDRDMA", "NET/IB/0")))
    lines = "\n".join(result["display"])
    assert "GPUDirect RDMA was off" in lines
    assert "rank 1 on NODE1 used mlx5_0:1 (IB) (PHB), and mlx5_1:1 (IB) is nearer (PIX)" in lines


def test_links_over_sockets_are_refused_where_infiniband_is_up(tmp_path):
    made, result = judged(tmp_path, packed(SOCKETS), networks=NETWORKS)
    reasons = {each["reason"]["code"] for each in made["problems"]}
    assert (made["accepted"], reasons, len(made["problems"])) == (False, {"reason.sockets"}, 6)
    assert "NCCL used sockets though mlx5_0 (InfiniBand) is up." in "\n".join(result["display"])


@pytest.mark.parametrize("options", [{"network": "any", "networks": NETWORKS}, {"networks": {}}])
def test_links_over_sockets_count_where_they_are_accepted_or_nothing_faster_is_up(tmp_path, options):
    made, _ = judged(tmp_path, packed(SOCKETS), **options)
    assert (made["accepted"], made["connections"][0]["nccl"]["adapters"]) == (True, ["eth0"])
