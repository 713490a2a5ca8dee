# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Questions to a node have a limit: whatever hangs there, the node is named and the others go on."""

import re
import time
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.limited import run_limited

ROOT = Path(__file__).parents[3]


def test_it_tells_status_and_output():
    assert run_limited("sh", "-c", "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")


@pytest.mark.parametrize(
    "script", ["exec sleep 300", "sleep 300", "sleep 300 & wait", "trap '' TERM; sleep 300"]
)
def test_what_hangs_is_ended_and_not_waited_for(script):
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.3 s"):
        run_limited("sh", "-c", script, seconds=0.3)
    assert time.monotonic() - began < 5


def test_what_a_command_leaves_behind_does_not_hold_it_up():
    began = time.monotonic()
    assert run_limited("sh", "-c", "setsid sleep 20 & echo out")[1] == "out\n"
    assert time.monotonic() - began < 5


def files():
    for pattern in ("playbooks/**/*.yml", "roles/**/*.yml", "roles/**/*.j2"):
        yield from ROOT.glob(pattern)


def test_no_task_and_no_script_asks_a_driver_without_a_limit():
    call = re.compile(r"(?:raw: |argv: \[|\$\(|^\s*)(?:\S+ )*?nvidia-smi[, ]+--")
    asked = [line for path in files() for line in path.read_text().splitlines() if call.search(line)]
    assert len(asked) >= 5
    assert [line for line in asked if "timeout" not in line] == []
