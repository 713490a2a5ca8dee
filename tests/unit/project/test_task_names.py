# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The name of a task is a verb and its object: the terminal shows it without the file around it."""

import functools
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
VERBS = set(
    """
    Add Build Change Check Choose Claim Collect Combine Compare Compile Complete Compute Configure
    Continue Copy Count Create Describe Detect Download Evaluate Exclude Expand Export Fail Fetch Find Gather
    Generate Group Hold Import Inspect Install Join Launch Link List Load Lock Mark Measure Pack
    Patch Pin Plan Prepare Probe Push Raise Read Reboot Record Refuse Release Remove Repair Report Request
    Resolve Restore Restrict Run Save Search Set Show Sign Simulate Split Start Stop Store Sum Test Unpack
    Unset Update Use Verify Wait Write
    """.split()
)
"""Verbs that tasks begin with; a new one is a decision."""
PLAY = {"hosts", "import_playbook", "ansible.builtin.import_playbook"}
"""Keys of a play, whose name is the phase that the terminal shows."""
IN_PHRASES = ("Take over ",)
FILES = sorted(
    path
    for place in ("roles", "playbooks", "molecule", "tests/roles")
    for path in (ROOT / place).rglob("*.yml")
    if path.parent.name in ("tasks", "handlers", "playbooks") or path.is_relative_to(ROOT / "molecule")
)


def names(content):
    """Yield the names of the tasks in a list of tasks or plays."""
    for entry in content if isinstance(content, list) else ():
        if "name" in entry and not PLAY & set(entry):
            yield str(entry["name"])
        for key in ("block", "rescue", "always", "tasks", "pre_tasks"):
            yield from names(entry.get(key))


def wrong(name):
    return name.split()[0].rstrip(",") not in VERBS and not name.startswith(IN_PHRASES)


@functools.cache
def all_names():
    return {
        (str(path.relative_to(ROOT)), name)
        for path in FILES
        for name in names(yaml.load(path.read_text(), Loader=yaml.CSafeLoader))
    }


def test_there_are_task_names():
    assert len(all_names()) > 500


def test_a_task_name_begins_with_a_verb_of_the_list_and_has_an_object():
    assert {(path, name) for path, name in all_names() if wrong(name) or len(name.split()) < 2} == set()


def test_every_verb_is_used():
    assert VERBS - {name.split()[0].rstrip(",") for _, name in all_names()} == set()


@pytest.mark.parametrize("name", ["Have the mirror", "Point the roles at it", "Know the nodes", "The nodes"])
def test_another_name_would_be_found(name):
    assert wrong(name)
