# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nodes from the inventory: names, addresses and slots are checked, and who acts for whom."""

import pytest
from ansible.module_utils.scalebook.plan.hosts import HostError, check_address, check_name, check_slots, nodes

HOSTILE = [
    ";rm -rf /",
    "$(touch x)",
    "`id`",
    "../up",
    "a/b",
    "{{ lookup('pipe', 'id') }}",
    "-oProxyCommand=id",
    "a b",
    "a\nb",
    "a|b",
    "a..b",
    "",
    "<script>",
    "x" * 101,
    "NODE\u202e1",
]


def host(name, **variables):
    return {"inventory_hostname": name, "scalebook_home": "/opt/scalebook", **variables}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_could_be_a_path_or_a_command_is_refused(name):
    with pytest.raises(HostError, match="host name"):
        check_name(name)


@pytest.mark.parametrize("name", ["NODE1", "gpu-01.example.org", "10.11.0.2", "node_7"])
def test_a_name_of_a_host_is_accepted(name):
    assert check_name(name) == name


@pytest.mark.parametrize("slots", ["nan", -1, 0, "1e9", True, None, 1025, "8; id"])
def test_slots_that_are_not_a_number_of_devices_are_refused(slots):
    with pytest.raises(HostError, match="NODE1: slots="):
        check_slots(slots, "NODE1")


def test_an_address_that_is_not_one_is_refused():
    assert check_address("fe80::1%eth0", "NODE1") == "fe80::1%eth0"
    for address in ("10.0.0.1;id", "-oProxyCommand=id", "$(id)"):
        with pytest.raises(HostError, match="NODE1: address"):
            nodes([host("NODE1", ansible_host=address)], "cpu")


def test_a_node_listens_on_its_own_address_where_it_has_one():
    (node,) = nodes([host("NODE1", ansible_host="bastion", node_address="10.0.0.1")], "cpu")
    assert (node["machine"], node["address"], node["host"]) == ("bastion", "10.0.0.1", "NODE1")


def test_nodes_with_a_local_connection_are_one_machine_and_its_first_acts_for_all():
    local = {"ansible_connection": "local", "slots": 2}
    found = nodes([host("NODE1", **local, workload_gpu_count=4), host("NODE2", **local)], "gpu")
    assert [(node["machine"], node["host"], node["slots"]) for node in found] == [
        ("localhost", "NODE1", 4)
    ] * 2


def test_the_slots_of_the_inventory_count_where_no_gpus_were_listed():
    assert nodes([host("NODE1", slots=8)], "gpu")[0]["slots"] == 8
    assert nodes([host("NODE1", slots=8, workload_gpu_count=4)], "cpu")[0]["slots"] == 8


def test_jobs_are_kept_below_the_home_of_the_acting_host_or_where_campaign_work_says():
    assert nodes([host("NODE1")], "cpu")[0]["work"] == "/opt/scalebook/work"
    assert nodes([host("NODE1", campaign_work="/fast")], "cpu")[0]["work"] == "/fast"
