# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""ansible-runner drives the playbooks from the root, with everything that ansible.cfg names."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def test_ansible_runner_plans_a_campaign_from_the_root(tmp_path):
    # A copy, because the runner leaves env/cmdline behind and would take it at its next start.
    checkout = tmp_path / "checkout"
    shutil.copytree(
        ROOT, checkout, ignore=shutil.ignore_patterns(".*", "results", "artifacts", "env", "tests")
    )
    tools = Path(sys.executable).parent
    done = subprocess.run(
        [tools / "ansible-runner", "run", ".", "-p", "bench.yml", "--inventory", "inventory/local"]
        + ["--cmdline", '-e "plan_only=true nodes=1,2 bsz=8"'],
        cwd=checkout,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    # The runner prints through a callback of its own; what ours would show is in the events.
    results = [
        json.loads(path.read_text())["event_data"].get("res", {})
        for path in checkout.glob("artifacts/*/job_events/*.json")
    ]
    (plan,) = {result["display"] for result in results if "display" in result}
    assert "2n1g" in plan
    assert not (checkout / "results").exists()
