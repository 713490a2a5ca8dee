# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What connected the GPUs of runs: in the report, in its flags, and between two campaigns."""

import pytest
from ansible.module_utils.scalebook.judge.campaign import Baseline
from ansible.module_utils.scalebook.judge.comparison import compare
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.network import described
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import runs
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import load_campaign
from report_records import campaign, case, record

P2P = {"versions": ["2.28.9"], "transports": {"P2P/CUMEM": 48}, "links": ["NVL"], "adapters": [], "far": []}
IB = {**P2P, "transports": {"NET/IB": 8, "P2P/CUMEM": 8}, "adapters": ["mlx5_0:1 (IB)"], "gpudirect": True}
SOCKETS = {**P2P, "transports": {"NET/Socket": 8}, "links": [], "adapters": ["eth0"]}
CODES = ("transports-differ", "sockets", "gpudirect-off", "far-adapter")
FAR = {
    **{"node": "NODE1", "rank": 1, "adapter": "mlx5_0:1 (IB)", "distance": "SYS"},
    **{"nearest": "mlx5_1:1 (IB)", "nearest_distance": "PIX"},
}


def results(tmp_path, *facts, **more):
    """Return the results of a campaign whose repeats were connected by `facts`."""
    records = [record(case(2), number, nccl=each, **more) for number, each in enumerate(facts, 1)]
    return build_results(load_campaign(campaign(tmp_path, records)))


def flags(tmp_path, *facts, language="en", **more):
    [row] = results(tmp_path, *facts, **more)["rows"]
    return [Wording(language).tell(each["message"]) for each in row["flags"] if each["code"] in CODES]


def test_a_line_says_what_connected_the_gpus():
    assert sentence(described({**IB, "channels": 16, "nvls": True})) == (
        "NET/IB/GDRDMA, P2P/CUMEM, NVLink, NVLS, through mlx5_0:1 (IB), 16 channels, NCCL 2.28.9"
    )


@pytest.mark.parametrize("links", [[], ["NVL", "PHB"]])
def test_nvlink_is_claimed_only_where_all_gpus_have_it(links):
    assert "NVLink" not in sentence(described({**P2P, "links": links}))


@pytest.mark.parametrize(("language", "text"), [("en", "through eth0"), ("zh", "经 eth0")])
def test_runs_have_a_column_for_it_in_both_languages(tmp_path, language, text):
    view = View(results(tmp_path, SOCKETS), Wording(language))
    assert "network" in [column.key for column in runs.columns(view)]
    [table] = [block for block in runs.section(view) if hasattr(block, "rows")]
    assert text in table.rows[0]["network"]


def test_runs_that_know_nothing_of_it_have_no_such_column(tmp_path):
    view = View(build_results(load_campaign(campaign(tmp_path, [record(case(2), 1)]))), Wording("en"))
    assert "network" not in [column.key for column in runs.columns(view)]


def test_good_networks_have_no_flag(tmp_path):
    assert flags(tmp_path, IB, IB) == []


def test_repeats_over_something_else_than_the_first_are_named(tmp_path):
    assert flags(tmp_path, IB, SOCKETS, IB) == ["NCCL connected the GPUs in another way (repeat 2)"]


def test_accepted_sockets_are_flagged(tmp_path):
    machine = [{"nodes": ["NODE1"], "networks": [{"name": "mlx5_0", "kind": "InfiniBand"}]}]
    assert flags(tmp_path, SOCKETS, hardware=machine) == [
        "NCCL used sockets though mlx5_0 (InfiniBand) is up"
    ]


def test_gpudirect_that_was_off_is_flagged(tmp_path):
    assert flags(tmp_path, {**IB, "gpudirect": False}) == ["GPUDirect RDMA was off (repeat 1)"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "rank 1 on NODE1 used mlx5_0:1 (IB) (SYS), and mlx5_1:1 (IB) is nearer (PIX)"),
        ("zh", "NODE1 的 rank 1 使用了 mlx5_0:1 (IB)（SYS），而 mlx5_1:1 (IB) 更近（PIX）"),
    ],
)
def test_a_far_adapter_is_flagged(tmp_path, language, text):
    assert flags(tmp_path, {**IB, "far": [FAR]}, language=language) == [text]


def test_two_campaigns_over_different_networks_say_so(tmp_path):
    now, before = (results(tmp_path / name, facts) for name, facts in (("now", IB), ("before", SOCKETS)))
    sides = [Baseline("", name, made["rows"], 5.0) for name, made in (("now", now), ("before", before))]
    [differs] = [each for each in compare(*sides, {})["differs"] if each["what"] == "transport"]
    assert (differs["before"], differs["now"]) == ("NET/Socket", "NET/IB/GDRDMA, P2P/CUMEM")


def test_a_baseline_over_another_network_is_said_to_be(tmp_path):
    rows = results(tmp_path / "before", SOCKETS)["rows"]
    now = load_campaign(campaign(tmp_path / "now", [record(case(2), 1, nccl=IB)]))
    made = build_results(now, earlier=Baseline("", "before", rows, 5.0))["baseline"]
    assert sentence(made["other_hardware"]) == (
        "before ran on NET/Socket, this campaign on NET/IB/GDRDMA, P2P/CUMEM"
    )


def test_a_campaign_that_knows_no_network_does_not_differ_in_it(tmp_path):
    now = results(tmp_path / "now", IB)
    before = build_results(load_campaign(campaign(tmp_path / "before", [record(case(2), 1)])))
    sides = [Baseline("", name, made["rows"], 5.0) for name, made in (("now", now), ("before", before))]
    assert "transport" not in [each["what"] for each in compare(*sides, {})["differs"]]
