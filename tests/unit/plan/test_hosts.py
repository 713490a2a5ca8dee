# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nodes from the inventory: names, addresses and slots are checked, and who acts for whom."""

import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.plan import hosts
from ansible.module_utils.scalebook.plan.hosts import HostError, check_name, check_slots, nodes

ROOT = Path(__file__).resolve().parents[3]

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


@pytest.mark.parametrize("address", ["fe80::1%eth0", "fd00::7", "::1"])
def test_ipv6_is_refused_for_runs_with_its_fix(address):
    with pytest.raises(HostError, match="NODE1: address .* runs use IPv4.*Fix: set node_address"):
        nodes([host("NODE1", ansible_host=address)], "cpu")


def test_ansible_may_log_in_with_ipv6():
    (node,) = nodes([host("NODE1", ansible_host="fd00::7", node_address="10.0.0.1")], "cpu")
    assert (node["machine"], node["address"]) == ("fd00::7", "10.0.0.1")


def test_nodes_of_one_address_are_refused_by_name():
    ports = [host("worker1", ansible_host="203.0.113.7", ansible_port=22)]
    ports += [host("worker2", ansible_host="203.0.113.7", ansible_port=9922)]
    with pytest.raises(
        HostError, match="worker1 and worker2 have the address 203.0.113.7.*Fix: set node_address"
    ):
        nodes(ports, "cpu")


def test_nodes_behind_ports_of_one_address_are_machines_where_they_have_addresses_of_their_own():
    behind = {"ansible_host": "203.0.113.7"}
    found = nodes(
        [
            host("worker1", **behind, node_address="10.0.0.1"),
            host("worker2", **behind, ansible_port="9922", node_address="10.0.0.2"),
        ],
        "cpu",
    )
    assert [node["machine"] for node in found] == ["203.0.113.7", "[203.0.113.7]:9922"]


def test_the_names_of_old_inventories_for_address_and_port_are_read():
    (node,) = nodes([host("NODE1", ansible_ssh_host="10.0.0.1", ansible_ssh_port=2222)], "cpu")
    assert (node["address"], node["machine"]) == ("10.0.0.1", "[10.0.0.1]:2222")


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST.localdomain"])
def test_a_remote_host_is_not_called_localhost(name):
    with pytest.raises(HostError, match="Fix: give the host another name"):
        nodes([host(name, ansible_host="10.0.0.1")], "cpu")
    assert nodes([host(name, ansible_connection="local")], "cpu")


@pytest.mark.parametrize("port", ["ssh", 0, 65536, True, "22; id"])
def test_a_port_that_is_not_one_is_refused(port):
    with pytest.raises(HostError, match="NODE1: ansible_port="):
        nodes([host("NODE1", ansible_port=port)], "cpu")


@pytest.mark.parametrize("name", ["NODE1-", "NODE1.", "node_", "_node"])
def test_a_name_that_role_node_would_refuse_is_refused_by_the_plan(name):
    with pytest.raises(HostError, match="ending with a letter or digit"):
        check_name(name)


def test_the_plan_and_role_node_accept_the_same_names():
    variables = yaml.safe_load((ROOT / "roles/node/vars/main.yml").read_text())
    for name in ("gpu_node_01", "a", "a-b.c", *HOSTILE, "a-", "a.", "_a"):
        ours = bool(hosts._NAME.fullmatch(name))
        assert bool(re.fullmatch(variables["__node_is_name"], name)) == ours, name


@pytest.mark.parametrize("name", ["gpu1", "GPU1"])
def test_a_name_of_two_nodes_is_refused_whatever_its_case(name):
    with pytest.raises(HostError, match="a and b have the address gpu1"):
        nodes([host("a", ansible_host="gpu1"), host("b", ansible_host=name)], "cpu")


@pytest.mark.parametrize(("other", "address"), [("NODE1", "10.0.0.2"), ("b", "node1")])
def test_a_name_that_is_also_the_address_of_another_node_is_refused(other, address):
    with pytest.raises(HostError, match=f"node1 is node1 and {other}, by name or address"):
        nodes([host("node1", ansible_host="10.0.0.1"), host(other, ansible_host=address)], "cpu")


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "127.0.1.1"])
def test_one_of_several_nodes_has_no_loopback_address(address):
    here = host("a", ansible_host=address)
    assert nodes([here], "cpu")
    with pytest.raises(HostError, match="a: address .*Fix: set node_address"):
        nodes([here, host("b", ansible_host="10.0.0.2")], "cpu")


@pytest.mark.parametrize(
    ("login", "fix"),
    [
        ("[fd00::7]", "set ansible_host to fd00::7$"),
        ("[fd00::7]:2222", "set ansible_host to fd00::7 and ansible_port to 2222$"),
    ],
)
def test_brackets_around_ipv6_are_refused_with_their_fix(login, fix):
    with pytest.raises(HostError, match=f"NODE1: ansible_host .* Fix: {fix}"):
        nodes([host("NODE1", ansible_host=login, node_address="10.0.0.1")], "cpu")


@pytest.mark.parametrize("name", ["fd00::7", "[fd00::7]"])
def test_ipv6_as_the_name_of_a_host_is_refused_with_its_fix(name):
    with pytest.raises(HostError, match="Fix: give the host a name, and set ansible_host to the address"):
        nodes([host(name, node_address="10.0.0.1")], "cpu")


@pytest.mark.parametrize("other", [{}, {"node_address": "10.0.0.1"}])
def test_a_port_in_ansible_host_is_refused_with_its_fix(other):
    with pytest.raises(HostError, match="set ansible_host to gpu1 and ansible_port to 2222"):
        nodes([host("a", ansible_host="gpu1:2222", **other)], "cpu")


def test_an_address_that_is_not_one_is_refused():
    hostile = ("10.0.0.1;id", "-oProxyCommand=id", "$(id)")
    for address in (*hostile, "10.0.0.01", "10.0.1", "300.1.1.1", "10.0.0.1.", "gpu1.", "1"):
        with pytest.raises(HostError, match="NODE1: a"):
            nodes([host("NODE1", ansible_host=address)], "cpu")


def test_a_remote_host_without_a_home_gets_one_and_others_keep_theirs():
    bare, local = {"inventory_hostname": "a"}, {"inventory_hostname": "b", "ansible_connection": "local"}
    assert hosts.without_home([bare, local, host("c")]) == ["a"]


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


def test_nodes_of_slurm_have_directories_of_their_own_in_the_home_that_they_share():
    shared = [host(f"NODE{n}", ansible_connection="srun", scalebook_home="/shared/me") for n in (1, 2)]
    with pytest.raises(HostError, match="campaign_work=/shared/me/work is that of NODE1 and NODE2"):
        nodes(shared, "cpu")
    own = [{**each, "campaign_work": f"/shared/me/{each['inventory_hostname']}"} for each in shared]
    assert [each["work"] for each in nodes(own, "cpu")] == ["/shared/me/NODE1", "/shared/me/NODE2"]
