# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What of a cluster is fit for a campaign: each fault is found, with its node, and nothing else is."""

import json

import preflight_report
import pytest
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.preflight import judge
from ansible.module_utils.scalebook.report.preflight_lines import describe, refusal
from chinese import faults
from preflight_site import Cluster, nodes
from run_module import call_module
from sentences import sentences_in

CHINESE = Wording("zh")
STRAY = {"pid": 4242, "user": "eve", "command": "nc -l 11111", "port": 11111}
OURS = {"pid": 77, "user": "root", "command": "sh run.sh", "run": "night/1n1g/1"}


@pytest.mark.parametrize("count", [1, 2, 4, 125])
def test_a_healthy_cluster_is_fit(count):
    cluster = Cluster(count)
    assert cluster.bad() == []
    assert judge.verdict(cluster.findings()) == "ok"


def test_every_check_that_could_be_made_is_named():
    made = {one["check"] for one in Cluster().findings()}
    assert made == {
        "reach",
        "login",
        "firewall",
        "selinux",
        "shell",
        "name",
        "address",
        "clock",
        "run",
        "port",
        "disk",
        "shm",
        "cpu",
    }


def test_one_machine_alone_is_not_asked_about_a_network():
    assert {one["check"] for one in Cluster(1).findings()}.isdisjoint({"login", "name", "address", "clock"})


def test_the_first_node_starts_a_step_on_the_others_where_srun_starts_the_runs():
    cluster = Cluster(steps="17")
    assert {one["check"] for one in cluster.findings()}.isdisjoint({"login", "shell"})
    cluster["NODE1"]["peers"]["NODE3"] = {"error": "srun: error: Required node not available (down)"}
    assert ("launcher", "refuse", ["NODE3"]) in cluster.bad()
    assert "NODE1 cannot start a step on NODE3: srun: error: Required node not available" in cluster.said()


# Reach


def test_a_machine_that_does_not_answer_is_named_with_the_reason():
    cluster = Cluster()
    cluster.probed["NODE3"] = {"error": "ssh: connect to host 10.11.0.4 port 22: No route to host"}
    assert ("reach", "refuse", ["NODE3"]) in cluster.bad()
    assert "No route to host" in cluster.said()


def test_a_machine_that_was_not_asked_is_not_taken_for_well():
    cluster = Cluster()
    del cluster.probed["NODE2"]
    assert ("reach", "refuse", ["NODE2"]) in cluster.bad()


def test_a_login_that_one_node_cannot_make_names_both():
    cluster = Cluster()
    cluster["NODE1"]["peers"]["NODE4"] = {"error": "Host key verification failed."}
    assert cluster.bad() == [("login", "refuse", ["NODE1", "NODE4"])]
    assert "Host key verification failed" in cluster.said()


def test_a_node_that_nobody_can_log_in_to_is_one_finding():
    cluster = Cluster()
    for name in ("NODE1", "NODE2", "NODE4"):
        cluster[name]["peers"]["NODE3"] = {"error": "Connection refused"}
    assert cluster.bad() == [("login", "refuse", ["NODE3"])]


@pytest.mark.parametrize("took", [{"command": 3.1, "login": 0.1}, {"command": None, "login": None}])
def test_a_slow_login_is_named_but_starts_all_the_same(took):
    cluster = Cluster()
    cluster["NODE2"]["login"].update(took)
    assert cluster.bad() == [("shell", "warn", ["NODE2"])]
    assert ".bashrc" in cluster.said()


# Names and addresses


def test_a_name_at_the_wrong_address_is_refused():
    cluster = Cluster()
    cluster["NODE1"]["names"]["nodes"]["NODE2"] = ["127.0.1.1"]
    assert cluster.bad() == [("name", "refuse", ["NODE1"])]
    assert "NODE2 is 127.0.1.1 there" in cluster.said()


def test_a_name_that_nobody_knows_is_refused():
    cluster = Cluster()
    cluster["NODE4"]["names"]["nodes"]["NODE1"] = []
    assert "NODE1 is unknown there" in cluster.said()


def test_a_node_that_knows_itself_by_loopback_is_warned_of():
    cluster = Cluster()
    cluster["NODE3"]["names"]["own_addresses"] = ["127.0.1.1"]
    assert cluster.bad() == [("name", "warn", ["NODE3"])]


def test_two_machines_of_one_name_are_refused():
    cluster = Cluster()
    for name in ("NODE2", "NODE3"):
        cluster[name]["names"]["own"] = "gpu"
    assert cluster.bad() == [("name", "refuse", ["NODE2", "NODE3"])]


def test_an_address_that_no_interface_has_is_refused():
    cluster = Cluster()
    cluster["NODE2"]["interfaces"]["eth0"]["addresses"] = ["10.99.0.3/24"]
    assert ("address", "refuse", ["NODE2"]) in cluster.bad()
    assert "10.11.0.3 is on none of its interfaces (eth0 10.99.0.3/24)" in cluster.said()


def test_an_address_on_two_interfaces_is_refused():
    cluster = Cluster()
    cluster["NODE2"]["interfaces"]["eth1"] = {"addresses": ["10.11.0.3/16"], "mtu": 1500, "up": True}
    assert cluster.bad() == [("address", "refuse", ["NODE2"])]


def test_a_second_interface_that_nothing_goes_over_is_no_fault():
    cluster = Cluster()
    for name in ("NODE1", "NODE2", "NODE3", "NODE4"):
        cluster[name]["interfaces"]["docker0"] = {"addresses": ["172.17.0.1/16"], "mtu": 1500, "up": False}
    assert cluster.bad() == []


def test_traffic_that_leaves_by_another_interface_is_refused():
    cluster = Cluster()
    cluster["NODE3"]["interfaces"]["eth1"] = {"addresses": ["10.99.0.4/24"], "mtu": 1500, "up": True}
    cluster["NODE3"]["routes"]["NODE1"] = "10.99.0.4"
    assert cluster.bad() == [("address", "refuse", ["NODE3"])]
    assert "traffic to NODE1 leaves from 10.99.0.4" in cluster.said()


def test_a_node_in_another_network_is_warned_of_and_refused_where_one_was_named():
    for subnet, level in (("", "warn"), ("10.11.0.0/24", "refuse")):
        cluster = Cluster(subnet=subnet)
        cluster["NODE4"]["names"]["nodes"]["10.11.0.5"] = ["10.12.0.5"]
        cluster["NODE4"]["names"]["nodes"]["NODE4"] = ["10.12.0.5"]
        cluster["NODE4"]["interfaces"]["eth0"]["addresses"] = ["10.12.0.5/24"]
        cluster["NODE4"]["routes"] = dict.fromkeys(cluster["NODE4"]["routes"], "10.12.0.5")
        assert cluster.bad() == [("address", level, ["NODE4"])]


@pytest.mark.parametrize("bits", [31, 32])
def test_an_address_of_a_point_to_point_link_with_right_routes_is_no_fault(bits):
    cluster = Cluster()
    for machine in cluster.machines:
        cluster[machine["name"]]["interfaces"]["eth0"]["addresses"] = [f"{machine['address']}/{bits}"]
    assert cluster.bad() == []


def test_an_address_of_a_point_to_point_link_does_not_make_the_others_strangers():
    cluster = Cluster()
    cluster["NODE1"]["interfaces"]["eth0"]["addresses"] = ["10.11.0.2/32"]
    assert cluster.bad() == []


def test_an_address_of_a_point_to_point_link_with_a_wrong_route_is_refused():
    cluster = Cluster()
    cluster["NODE1"]["interfaces"]["eth0"]["addresses"] = ["10.11.0.2/32"]
    cluster["NODE1"]["routes"]["NODE3"] = "172.17.0.1"
    assert cluster.bad() == [("address", "refuse", ["NODE1"])]


def test_an_interface_that_is_down_is_refused():
    cluster = Cluster()
    cluster["NODE1"]["interfaces"]["eth0"]["up"] = False
    assert cluster.bad() == [("address", "refuse", ["NODE1"])]


def test_an_mtu_of_its_own_is_warned_of():
    cluster = Cluster()
    cluster["NODE3"]["interfaces"]["eth0"]["mtu"] = 9000
    assert cluster.bad() == [("address", "warn", ["NODE3"])]


@pytest.mark.parametrize(
    "line",
    [
        "GLOO_SOCKET_IFNAME=eth1",
        "NCCL_SOCKET_IFNAME=docker",
        "NCCL_SOCKET_IFNAME==eth",
        "NCCL_SOCKET_IFNAME=^eth0",
    ],
)
def test_a_setting_that_names_another_interface_is_refused(line):
    cluster = Cluster(device="gpu")
    cluster["NODE1"]["nccl"] = [line]
    assert ("address", "refuse", ["NODE1"]) in cluster.bad()


@pytest.mark.parametrize(
    "lines",
    [
        ["NCCL_SOCKET_IFNAME==eth0"],
        ["NCCL_SOCKET_IFNAME=eth"],
        ["NCCL_SOCKET_IFNAME=^docker,lo"],
        ["NCCL_SOCKET_IFNAME==eth0", "NCCL_SOCKET_IFNAME=eth1"],
        ["GLOO_SOCKET_IFNAME=eth0"],
        ["NCCL_SOCKET_IFNAME="],
        ["GLOO_SOCKET_IFNAME= ", "NCCL_SOCKET_IFNAME="],
    ],
)
def test_a_setting_that_names_the_right_interface_is_none(lines):
    cluster = Cluster(device="gpu")
    cluster["NODE1"]["nccl"] = lines
    assert "address" not in {check for check, _, _ in cluster.bad()}


def test_a_setting_of_nccl_means_nothing_to_processors():
    cluster = Cluster(device="cpu")
    cluster["NODE1"]["nccl"] = ["NCCL_SOCKET_IFNAME=eth9"]
    assert cluster.bad() == []


# Clocks


def turn(cluster, name, seconds, delay=0.002):
    """Set the clock of one node, as all the others and it itself would see it, with a network of `delay`."""
    for machine, seen in cluster.probed.items():
        for peer, said in seen["facts"]["peers"].items():
            off = seconds * ((peer == name) - (machine == name))
            said["offset"] = [off - delay, off + delay]


@pytest.mark.parametrize(
    ("seconds", "level"), [(90, "refuse"), (-5.5, "refuse"), (-4.9, "warn"), (0.6, "warn")]
)
def test_a_clock_that_is_off_is_named(seconds, level):
    cluster = Cluster()
    turn(cluster, "NODE3", seconds)
    assert cluster.bad() == [("clock", level, ["NODE3"])]
    assert ("ahead of" if seconds > 0 else "behind") in cluster.said()


@pytest.mark.parametrize("name", ["NODE1", "NODE4"])
def test_the_odd_clock_is_named_whoever_was_asked_first(name):
    cluster = Cluster()
    turn(cluster, name, -90)
    assert cluster.bad() == [("clock", "refuse", [name])]


def test_of_two_clocks_nobody_knows_which_is_wrong():
    cluster = Cluster(2)
    turn(cluster, "NODE2", 90)
    assert [(check, level, sorted(nodes)) for check, level, nodes in cluster.bad()] == [
        ("clock", "refuse", ["NODE1", "NODE2"])
    ]


def test_a_slow_network_is_not_taken_for_a_wrong_clock():
    cluster = Cluster()
    for seen in cluster.probed.values():
        for said in seen["facts"]["peers"].values():
            said["offset"] = [-30.0, 0.1]  # the answer took half a minute
    assert cluster.bad() == []


def test_small_differences_are_none():
    cluster = Cluster()
    turn(cluster, "NODE2", 0.4)
    assert cluster.bad() == []


# Processes and ports


def test_a_port_that_is_held_names_the_process_and_its_user():
    cluster = Cluster()
    cluster["NODE2"]["ports"] = [STRAY]
    assert cluster.bad() == [("port", "refuse", ["NODE2"])]
    assert "port 11111 is held by nc -l 11111 (pid 4242, user eve)" in cluster.said()


def test_the_logical_node_whose_port_is_held_is_named():
    shared = [dict(node, machine="localhost", address="127.0.0.1") for node in nodes(4)]
    machines = judge.machines(shared, 11111)
    assert [machine["ports"] for machine in machines] == [[11111, 11112, 11113, 11114]]
    cluster = Cluster(1)
    cluster.machines = machines
    cluster["NODE1"]["ports"] = [dict(STRAY, port=11113)]
    assert cluster.bad() == [("port", "refuse", ["NODE3"])]


def test_a_run_that_is_going_on_is_refused_with_the_way_to_end_it():
    cluster = Cluster()
    cluster["NODE4"]["ours"] = [OURS, dict(OURS, pid=78)]
    assert cluster.bad() == [("run", "refuse", ["NODE4"])]
    assert "night/1n1g/1 has processes 77, 78 of root: sh run.sh" in cluster.said()
    assert "-e reap=true" in cluster.said()


def test_a_run_of_another_campaign_is_warned_of_with_its_user():
    cluster = Cluster()
    cluster["NODE4"]["others"] = [dict(OURS, user="bob"), dict(OURS, user="bob", pid=78)]
    assert cluster.bad() == [("run", "warn", ["NODE4"])]
    assert "night/1n1g/1 of another campaign has processes 77, 78 of bob: sh run.sh" in cluster.said()
    assert "with its inventory" in cluster.said()


def test_a_refusal_tells_the_worst_with_its_cure_and_how_many_more():
    cluster = Cluster()
    assert refusal(cluster.findings()) == ""
    cluster["NODE4"]["ours"] = [OURS]
    cluster["NODE2"]["ports"] = [STRAY]
    said = refusal(cluster.findings())
    assert said.startswith(
        "Preflight failed: NODE4: night/1n1g/1 has process 77 of root: sh run.sh. Fix: wait "
    )
    assert " 1 more above." in said


# Room


@pytest.mark.parametrize(
    ("probe", "change", "check", "level"),
    [
        ("work", {"mb": 500}, "disk", "refuse"),
        ("work", {"inodes": 12}, "disk", "refuse"),
        ("work", {"writable": False}, "disk", "refuse"),
        ("shm", {"mb": 64}, "shm", "warn"),
    ],
)
def test_a_lack_of_room_is_found_in_time(probe, change, check, level):
    cluster = Cluster()
    cluster["NODE2"][probe].update(change)
    assert cluster.bad() == [(check, level, ["NODE2"])]


def test_a_file_system_that_counts_no_inodes_has_enough():
    cluster = Cluster()
    cluster["NODE2"]["work"]["inodes"] = None
    assert cluster.bad() == []


@pytest.mark.parametrize(
    ("firewalld", "said", "fix"),
    [
        (False, "no connection of NODE1, NODE3 to port 40000 of NODE2 gets there: No route", "allow TCP"),
        (
            True,
            "firewalld of NODE2 lets no connection of NODE1, NODE3 to port 40000 pass: ",
            "on NODE2 and for all nodes: firewall-cmd --permanent --zone=trusted ",
        ),
    ],
)
def test_ports_that_a_node_does_not_let_pass_are_refused_with_the_fix(firewalld, said, fix):
    cluster = Cluster()
    for node in ("NODE1", "NODE3"):
        cluster[node]["doors"]["NODE2"] = {"port": 40000, "error": "No route to host"}
    cluster["NODE2"]["guards"]["firewalld"] = firewalld
    (found,) = [one for one in cluster.findings() if one["check"] == "firewall"]
    assert (found["level"], found["nodes"]) == ("refuse", ["NODE2"])
    assert found["found"].startswith(said) and found["fix"].startswith(fix)
    assert ("--add-source=10.11.0.2 --add-source=10.11.0.4 && " in found["fix"]) is firewalld


def test_ports_of_a_node_that_cannot_be_reached_at_all_are_not_reported_too():
    cluster = Cluster()
    cluster["NODE1"]["doors"]["NODE2"] = {"port": 40000, "error": "no answer in 3 s"}
    cluster["NODE1"]["peers"]["NODE2"] = {"error": "Connection timed out"}
    assert {check for check, _, _ in cluster.bad()} == {"login"}


@pytest.mark.parametrize(
    ("label", "homes", "warned", "fix"),
    [
        ("unconfined_u:object_r:ssh_home_t:s0", False, False, ""),
        ("unconfined_u:object_r:default_t:s0", False, True, "restorecon -R ~/.ssh"),
        ("system_u:object_r:nfs_t:s0", False, True, "setsebool -P use_nfs_home_dirs 1"),
        ("system_u:object_r:nfs_t:s0", True, False, ""),
    ],
)
def test_a_label_with_which_sshd_may_not_read_keys_is_a_warning_where_selinux_is_enforcing(
    label, homes, warned, fix
):
    for enforcing in (True, False):
        cluster = Cluster()
        cluster["NODE2"]["guards"].update(selinux=enforcing, nfs_homes=homes, label=label)
        assert cluster.bad() == ([("selinux", "warn", ["NODE2"])] if warned and enforcing else [])
        assert not (warned and enforcing) or fix in [one["fix"] for one in cluster.findings()]


def test_little_shared_memory_stops_gpus():
    cluster = Cluster(device="gpu")
    cluster["NODE2"]["shm"]["mb"] = 64
    assert ("shm", "refuse", ["NODE2"]) in cluster.bad()


def test_memory_that_cannot_be_locked_stops_infiniband_only():
    for rdma in (True, False):
        cluster = Cluster(device="gpu")
        cluster["NODE2"]["limits"] = {"memlock": 65536, "rdma": rdma}
        assert (("memlock", "refuse", ["NODE2"]) in cluster.bad()) is rdma


@pytest.mark.parametrize(
    ("probe", "check", "level"),
    [
        ("work", "disk", "refuse"),
        ("peers", "login", "refuse"),
        ("shm", "shm", "warn"),
        ("login", "shell", "warn"),
    ],
)
def test_a_probe_that_hangs_is_a_finding(probe, check, level):
    cluster = Cluster()
    cluster.fail("NODE3", probe)
    assert cluster.bad() == [(check, level, ["NODE3"])]
    assert "no answer in 20 s" in cluster.said()


# Findings as a whole


def test_the_worst_comes_first_and_decides():
    cluster = Cluster()
    cluster["NODE1"]["login"]["command"] = 3.0
    cluster["NODE2"]["ports"] = [STRAY]
    levels = [one["level"] for one in cluster.findings()]
    assert levels[:2] == ["refuse", "warn"]
    assert judge.verdict(cluster.findings()) == "refuse"


def test_the_same_of_several_nodes_is_said_once():
    cluster = Cluster()
    for name in ("NODE1", "NODE3"):
        cluster[name]["shm"]["mb"] = 64
    assert cluster.bad() == [("shm", "warn", ["NODE1", "NODE3"])]


def test_a_refusal_can_be_accepted_and_stays_visible():
    cluster = Cluster(accept=["port"])
    cluster["NODE2"]["ports"] = [STRAY]
    assert cluster.bad() == [("port", "warn", ["NODE2"])]
    assert "(accepted)" in cluster.said()


def test_every_finding_that_is_not_ok_says_what_is_wanted_and_how():
    cluster = Cluster()
    cluster["NODE1"]["login"]["command"] = 3.0
    cluster["NODE2"]["ports"] = [STRAY]
    cluster["NODE3"]["work"]["mb"] = 1
    turn(cluster, "NODE4", 90)
    assert all(one["expected"] and one["fix"] for one in cluster.findings() if one["level"] != "ok")


def test_the_words_of_a_node_cannot_move_the_cursor():
    cluster = Cluster()
    cluster["NODE2"]["ports"] = [dict(STRAY, command="x\x1b[2J\n\rok  \u202eevil")]
    table = describe(cluster.findings(), 4, 1.0)
    assert "\x1b" not in table and "\r" not in table and "\u202e" not in table


def test_the_table_names_level_check_node_and_cure():
    cluster = Cluster()
    cluster["NODE2"]["ports"] = [STRAY]
    table = describe(cluster.findings(), 4, 1.84).splitlines()
    assert table[0] == "Preflight of 4 nodes in 1.8 s: refused"
    assert table[1].split()[:3] == ["refuse", "port", "NODE2"]
    assert table[2].split()[0] == "Fix:"
    assert table[3].startswith("  ok      reach, login, firewall, selinux, shell, name")


def test_the_table_and_the_refusal_have_the_language_that_was_asked_for():
    cluster = Cluster()
    assert describe(cluster.findings(CHINESE), 4, 1.84, CHINESE).splitlines()[0] == (
        "预检 4 个节点，用时 1.8 秒：通过"
    )
    cluster["NODE2"]["ports"] = [STRAY]
    cluster["NODE4"]["ours"] = [OURS]
    findings = cluster.findings(CHINESE)
    table = describe(findings, 4, 1.84, CHINESE).splitlines()
    assert table[0] == "预检 4 个节点，用时 1.8 秒：未通过"
    assert table[2].split()[0].startswith("解决办法：") and table[-1].startswith("  通过    reach, login")
    refused = refusal(findings, CHINESE)
    assert refused.endswith("上面另有 1 项。如仍要运行：-e preflight=false（会记入报告）。")
    assert faults([refused.replace("sh run.sh", ""), table[0]]) == []


# What the machines are asked


def test_a_machine_is_asked_once_for_all_its_logical_nodes():
    shared = [dict(node, machine="localhost", address="127.0.0.1") for node in nodes(4)]
    [machine] = judge.machines(shared, 24100)
    assert machine["nodes"] == ["NODE1", "NODE2", "NODE3", "NODE4"]
    asked = judge.ask([machine], "NODE1", "/w", Cluster(1).limits, "auto")
    assert asked["peers"] == [] and not asked["login"]


def test_a_machine_is_asked_about_all_the_others():
    machines = judge.machines(nodes(4), 11111)
    asked = judge.ask(machines, "NODE3", "/opt/scalebook/work", Cluster(1).limits, "auto")
    assert [peer["name"] for peer in asked["peers"]] == ["NODE4", "NODE1", "NODE2"]
    assert asked["ports"] == [11111]
    assert asked["gpus"] and asked["login"] and asked["steps"] == ""


def test_only_the_first_machine_starts_steps():
    machines, limits = judge.machines(nodes(4), 11111), Cluster(1, steps="17").limits
    asked = [judge.ask(machines, machine["name"], "/w", limits, "cpu")["steps"] for machine in machines]
    assert asked == ["17", "-", "-", "-"]


def test_nobody_looks_at_gpus_that_were_not_asked_for():
    machines = judge.machines(nodes(2), 11111)
    assert not judge.ask(machines, "NODE1", "/w", Cluster(1).limits, "cpu")["gpus"]


def test_figures_that_a_template_made_text_are_figures():
    """ansible-core 2.16 has every number of a template as text."""
    made = Cluster(2)
    limits = {
        name: str(value) if isinstance(value, float | int) else value for name, value in made.limits.items()
    }
    asked = judge.ask(made.machines, "NODE1", "/w", limits, "cpu")
    assert (asked["seconds"], asked["login_seconds"]) == (20.0, 1.0)
    assert {one["level"] for one in judge.judge(made.machines, made.probed, limits)} == {"ok"}


def test_a_record_keeps_what_was_warned_of_as_messages():
    cluster = Cluster(1)
    cluster["NODE1"]["processors"]["numa_balancing"] = "1"
    recorded = judge.fitness(True, {"verdict": "warn", "findings": cluster.findings()})
    assert [sentence(each) for each in recorded["warnings"]] == [
        "NODE1: cpu: the kernel moves memory between 2 NUMA nodes (numa_balancing)"
    ]


def test_the_file_has_messages_where_the_terminal_has_sentences(tmp_path):
    cluster, out = Cluster(1), tmp_path / "preflight.json"
    cluster["NODE1"]["processors"]["numa_balancing"] = "1"
    cluster["NODE1"]["ports"] = [STRAY]
    result = call_module(
        preflight_report,
        machines=cluster.machines,
        probed={"NODE1": {"facts": {**cluster["NODE1"], "nvlink": ""}, "failures": {}}},
        limits=cluster.limits,
        device="cpu",
        results=str(tmp_path),
        out=[str(out)],
    )
    written = json.loads(out.read_text())["findings"]
    assert {*written[0]} == {"check", "level", "nodes", "message", "expected", "fix"}
    assert sentences_in([{**each, "message": None} for each in written]) == []
    assert [sentence(each["fix"], "zh") for each in written if each["check"] == "port"] == [
        "停止它，或用 -e campaign_port=N 换用其他端口"
    ]
    assert "Fix: stop it, or use other ports with -e campaign_port=N" in result["display"]


def test_a_record_keeps_the_sentence_that_an_earlier_preflight_wrote():
    finding = {"check": "cpu", "level": "warn", "nodes": ["NODE1"], "found": "it is hot"}
    recorded = judge.fitness(True, {"verdict": "warn", "findings": [finding]})
    assert [sentence(each, "zh") for each in recorded["warnings"]] == ["NODE1：cpu：it is hot"]


@pytest.mark.parametrize(("asked", "words"), [(False, "skipped by -e preflight=false"), (True, "not made")])
def test_a_record_says_that_no_preflight_was_made(asked, words):
    assert sentence(judge.fitness(asked, {})) == words
