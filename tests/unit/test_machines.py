# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Machine identities: what is the same machine, and what only looks like it."""

import pytest
from ansible.module_utils.scalebook.machines import difference, digest

HOST = {
    "machine": "m1",
    "board": "b1",
    "addresses": ["a1", "a2"],
    "gpus": ["GPU-1", "GPU-2"],
    "boot": "boot1",
}
RESTARTED = {**HOST, "boot": "boot2"}


def without(*keys):
    return {key: value for key, value in RESTARTED.items() if key not in keys}


@pytest.mark.parametrize(
    "now",
    [
        HOST,
        RESTARTED,
        {**RESTARTED, "addresses": ["a2", "a9"]},
        {**RESTARTED, "gpus": ["GPU-2", "GPU-9"]},
        without("board"),
        without("gpus"),
        without("board", "addresses", "gpus"),
        {"boot": "boot1"},
    ],
    ids=[
        "as it was",
        "started again",
        "a new network card",
        "one GPU exchanged",
        "not read by root",
        "driver gone",
        "only its machine-id",
        "only its boot, and not started again",
    ],
)
def test_the_same_machine(now):
    assert difference(HOST, now) == difference(now, HOST) == ""


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({**RESTARTED, "machine": "m9"}, "machine"),
        ({**RESTARTED, "addresses": ["a8", "a9"]}, "addresses"),
        ({**RESTARTED, "gpus": ["GPU-8", "GPU-9"]}, "gpus"),
        ({**RESTARTED, "board": "b9"}, "board"),
        ({**HOST, "gpus": ["GPU-8"]}, "gpus"),
        ({"boot": "boot9"}, "unknown"),
        ({}, "unknown"),
    ],
    ids=[
        "another system",
        "a copy of the disk",
        "a copy that has GPUs",
        "a copy of a virtual machine",
        "a container with other GPUs of the host",
        "only a boot is known",
        "nothing is known",
    ],
)
def test_another_machine(now, why):
    assert difference(HOST, now) == difference(now, HOST) == why


CONTAINER = {"container": "c1", "boot": "boot1"}


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({**CONTAINER, "boot": "boot2"}, ""),
        ({**CONTAINER, "container": "c2"}, "container"),
        ({**CONTAINER, "container": "c2", "machine": "m1"}, "container"),
    ],
    ids=["started again", "another one on the same host", "another one with a machine-id"],
)
def test_a_container_without_gpus_is_known_by_its_layer(now, why):
    assert difference(CONTAINER, now) == why


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (CONTAINER, "contained"),
        ({**CONTAINER, "machine": "m1"}, "contained"),
        ({**CONTAINER, "gpus": ["GPU-2"]}, ""),
    ],
    ids=["a boot in common", "the machine-id of its host", "a GPU in common"],
)
def test_a_container_is_not_its_host_unless_it_has_its_gpus(now, why):
    assert difference(HOST, now) == difference(now, HOST) == why


def test_containers_that_are_known_by_their_names_alone_are_the_same_until_their_host_starts_again():
    one, other = ({"container": f"local-{name}", "boot": "boot1"} for name in "ab")
    assert difference(one, other) == "container"
    assert difference(one, one) == ""
    assert difference(one, {**one, "boot": "boot2"}) == "unknown"


@pytest.mark.parametrize(
    ("gpus", "why"),
    [(["GPU-1"], ""), (["GPU-1", "GPU-2"], ""), (["GPU-2"], "gpus"), ([], "container")],
)
def test_a_container_that_is_made_again_is_known_by_its_gpus(gpus, why):
    one = {**CONTAINER, "gpus": ["GPU-1"]}
    assert difference(one, {"container": "c2", "boot": "boot2", "gpus": gpus}) == why


@pytest.mark.parametrize(("address", "why"), [("a1", ""), ("local-a1", "unknown")])
def test_an_address_that_somebody_chose_makes_no_two_machines_one(address, why):
    assert difference({"addresses": [address], "boot": "1"}, {"addresses": [address], "boot": "2"}) == why


def test_an_address_that_somebody_chose_tells_copies_of_a_virtual_machine_apart():
    one, other = ({"machine": "m1", "addresses": [f"local-{name}"]} for name in "ab")
    assert difference(one, other) == "addresses"


def test_two_descriptions_that_say_nothing_are_not_one_machine():
    assert difference({}, {}) != ""


@pytest.mark.parametrize("broken", [{"machine": 3}, {"gpus": [1, None]}, {"boot": {"a": 1}}])
def test_a_description_that_somebody_broke_is_no_machine(broken):
    assert difference(HOST, broken) != ""


def test_a_restart_changes_no_digest_and_another_machine_does():
    def of(identity):
        return digest({"NODE1": identity})

    assert of(HOST) == of(RESTARTED)
    assert len({of(HOST), of({**HOST, "gpus": ["GPU-9"]}), digest({"NODE2": HOST})}) == 3
