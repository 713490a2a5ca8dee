# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Inventories and variables that cannot be meant are refused by file and line, before they are expanded."""

import time

import pytest
import yaml
from ansible.module_utils.scalebook import inputs
from ansible.module_utils.scalebook.inputs import InputError

HOSTILE = [
    ";rm -rf /",
    "a;reboot",
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


def inventory(text):
    return inputs.check_inventory(yaml.compose(text, Loader=yaml.SafeLoader), "hosts.yml")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_could_be_a_path_or_a_command_is_refused(name):
    with pytest.raises(InputError, match="place: host name"):
        inputs.check_name(name, "place")


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("NODE1", 1),
        ("gpu-01.example.org", 1),
        ("10.11.0.2", 1),
        ("node_7:2222", 1),
        ("NODE[1:125]", 125),
        ("node[01:10:2]", 5),
        ("[a:d]x[1:3]", 12),
    ],
)
def test_a_name_of_a_host_is_let_pass(name, hosts):
    assert inputs.check_name(name, "place") == hosts


@pytest.mark.parametrize("name", ["NODE[1:1000000000]", "a[1:99999]b[1:99999]", "NODE[0:100000]"])
def test_more_hosts_than_there_can_be_are_refused_at_once(name):
    started = time.process_time()
    with pytest.raises(InputError, match="allowed are 100000"):
        inputs.check_name(name, "place")
    assert time.process_time() - started < 1


def test_a_bad_name_in_an_inventory_is_refused_by_its_line():
    with pytest.raises(InputError, match=r"hosts.yml:4: host name 'x;id'"):
        inventory("nodes:\n  hosts:\n    NODE1:\n    x;id:\n")


def test_groups_of_groups_are_looked_at_too():
    with pytest.raises(InputError, match="hosts.yml:5"):
        inventory("all:\n  children:\n    nodes:\n      hosts:\n        $(id):\n")


def test_a_host_that_is_there_twice_is_refused_with_both_lines():
    with pytest.raises(InputError, match=r"hosts.yml:4: 'NODE1' is there already, in line 3"):
        inventory(
            "nodes:\n  hosts:\n    NODE1: {ansible_host: 10.11.0.2}\n    NODE1: {ansible_host: 10.11.0.9}\n"
        )


def test_a_host_in_two_groups_is_no_duplicate():
    inventory("nodes:\n  hosts:\n    NODE1:\nslow:\n  hosts:\n    NODE1:\n")


@pytest.mark.parametrize(
    "variable",
    [
        "ansible_host: ';reboot'",
        "ansible_host: -oProxyCommand=id",
        "node_address: $(id)",
        "slots: -1",
        "slots: .nan",
    ]
    + ["slots: 1000000000", "slots: eight", "slots: 0"],
)
def test_a_variable_that_cannot_be_one_is_refused_by_its_line(variable):
    with pytest.raises(InputError, match="hosts.yml:4: (ansible_host|node_address|slots)="):
        inventory(f"nodes:\n  hosts:\n    NODE1:\n      {variable}\n")
    with pytest.raises(InputError, match="hosts.yml:4: (ansible_host|node_address|slots)="):
        inventory(f"nodes:\n  hosts: {{NODE1: }}\n  vars:\n    {variable}\n")


def test_a_template_is_looked_at_when_it_is_used():
    inventory("nodes:\n  hosts:\n    NODE1:\n      ansible_host: \"{{ lookup('env', 'HEAD') }}\"\n")


@pytest.mark.parametrize("path", ["inventory/local/hosts.yml", "inventory/cluster/hosts.yml"])
def test_our_own_inventories_are_let_pass(path, request):
    inventory((request.config.rootpath / path).read_text())


# Aliases


def bomb(levels, width=9):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_make_billions_are_refused_at_once_by_their_line():
    started = time.process_time()
    with pytest.raises(InputError, match=r"vars.yml:7: aliases that make \d+ values; allowed are 1000000"):
        inputs.check_variables(yaml.compose(bomb(10), Loader=yaml.SafeLoader), "vars.yml")
    assert time.process_time() - started < 1


def test_a_bomb_among_the_variables_of_a_host_is_found():
    text = "nodes:\n  hosts:\n    NODE1:\n" + "\n".join(f"      {line}" for line in bomb(10).splitlines())
    with pytest.raises(InputError, match="hosts.yml:10: aliases"):
        inventory(text)


def test_a_few_aliases_are_none():
    inputs.check_variables(yaml.compose(bomb(3), Loader=yaml.SafeLoader), "vars.yml")


def test_an_alias_that_holds_itself_is_refused():
    with pytest.raises(InputError, match="vars.yml:1: an alias that holds itself"):
        inputs.check_variables(yaml.compose("a: &a [*a]", Loader=yaml.SafeLoader), "vars.yml")


# INI and lists


def test_an_inventory_in_ini_form_is_looked_at():
    good = (
        "[nodes]\nNODE[1:4] slots=8\n10.11.0.9 ansible_host='10.11.0.9'\n\n[nodes:vars]\nansible_user=root\n"
    )
    inputs.check_ini(good.splitlines(), "hosts")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x;id", "host name"),
        ("NODE[1:1000000000]", "hosts"),
        ("NODE1 ansible_host=$(id)", "ansible_host="),
        ("NODE1 slots=nan", "slots="),
    ],
)
def test_what_cannot_be_meant_in_ini_form_is_refused_by_its_line(line, words):
    with pytest.raises(InputError, match=f"hosts:3: .*{words}"):
        inputs.check_ini(["[nodes]", "NODE9", line], "hosts")


def test_hosts_of_the_command_line_are_looked_at():
    inputs.check_list("NODE1,NODE2,")
    with pytest.raises(InputError, match="-i: host name"):
        inputs.check_list("NODE1,;id")


# What is left for the moment of use


@pytest.mark.parametrize("slots", ["nan", -1, 0, "1e9", True, None, 1025, "8; id"])
def test_slots_that_are_no_number_of_devices_are_refused(slots):
    with pytest.raises(InputError, match="NODE1: slots="):
        inputs.check_slots({"inventory_hostname": "NODE1", "slots": slots})


def test_an_address_that_is_none_is_refused():
    assert inputs.check_address("fe80::1%eth0", "NODE1") == "fe80::1%eth0"
    with pytest.raises(InputError, match="NODE1: address"):
        inputs.check_address("10.0.0.1;id", "NODE1")
