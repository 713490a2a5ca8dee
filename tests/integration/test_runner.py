# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""ansible-runner drives the playbooks from the root, with everything that ansible.cfg names."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import measured
import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

RUN = {
    "case": {"workload": "tf2_bert", "name": "a", "label": "1n1g", "bsz": 8, "dtype": "fp32", "xla": False},
    "repeat": 1,
    "number": 1,
    "total": 1,
    "folder": "runs",
}
PLAN = {"search": [], "pending": [RUN], "report_language": "en"}
RESULT = {"status": "ok", "rate": 12.5, "record": {**RUN, "job": {"seconds": 2.0}}}
# Modules that return the results they are given: a run without a training.
STAND_IN = """
DOCUMENTATION = "options: {returns: {type: dict}}"
def run(params, check):
    return {"changed": False, **params["returns"]}
"""
ONE_RUN = f"""
- name: Show one run
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Plan it
      campaign_plan: {{returns: {json.dumps(PLAN)}}}
    - name: Record it
      bench_result: {{returns: {json.dumps(RESULT)}}}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    # A copy, because the runner leaves env/cmdline behind and would take it at its next start.
    checkout = tmp_path_factory.mktemp("runner") / "checkout"
    shutil.copytree(
        ROOT, checkout, ignore=shutil.ignore_patterns(".*", "results", "artifacts", "env", "tests")
    )
    measured.unpack("h200x4-2026-11-21/scaling", checkout / "scaling")
    return checkout


def runner(checkout, playbook, extra):
    """Run a playbook through ansible-runner and return what it prints, through a callback of its own."""
    tools = Path(sys.executable).parent
    done = subprocess.run(
        [tools / "ansible-runner", "run", ".", "-p", playbook, "--inventory", "inventory/local"]
        + ["--cmdline", f'-e "{extra}"'],
        cwd=checkout,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def test_the_plan_of_a_campaign_is_printed(checkout):
    shown = runner(checkout, "bench.yml", "plan_only=true nodes=1,2 bsz=8")
    assert re.search(r"run +1n1g +b8", shown) and re.search(r"run +2n1g +b8", shown), shown[-3000:]
    assert not (checkout / "results").exists()


def test_the_table_and_the_path_of_a_report_are_printed(checkout):
    shown = runner(checkout, "report.yml", f"campaign_dir={checkout}/scaling")
    assert "6127.4" in shown and "94.2 %" in shown, shown[-3000:]
    assert f"Report: {checkout}/scaling/report/report.html" in shown


def test_the_progress_of_a_campaign_is_printed(checkout):
    """The callback of the progress is loaded beside the runner's: it prints its line per run."""
    (checkout / "one_run.yml").write_text(ONE_RUN)
    (checkout / "library/bench_result.py").write_text(STAND_IN)
    (checkout / "library/campaign_plan.py").write_text(STAND_IN)
    assert "[1/1] 1n1g b8 fp32 repeat 1: 12.50 samples/s" in runner(checkout, "one_run.yml", "x=1")
