# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Results -> offline runs, by the wandb of PyPI, and what its own reader finds in them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import wandb_packages
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store import tracking
from ansible.module_utils.scalebook.store.load import load_campaign
from recordings import torch_bert
from report_records import campaign, case, record

HERE = Path(__file__).parent
# The name of the machine while it pushes: a short one stands in any bytes.
HOST = "host-of-this-test"
APART = ["unshare", "--uts", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
PUSH = """
import json, socket, sys, pathlib, ansible.module_utils as utils
socket.sethostname(sys.argv[4])
utils.__path__.append(sys.argv[1])
from ansible.module_utils.scalebook.store import push
for _ in range(2):
    print(json.dumps(push.push(pathlib.Path(sys.argv[2]), "wandb", sys.argv[3], True)))
"""

pytestmark = wandb_packages.MARKS


@pytest.fixture(scope="module")
def run_python(tmp_path_factory):
    """A function that runs this Python where wandb can be imported, with no server of W&B in reach."""
    packages = tmp_path_factory.mktemp("packages")
    env = wandb_packages.environment(packages, sys.executable, HERE.parents[1] / "library")

    def run(*arguments, cwd):
        done = subprocess.run(
            [*APART, sys.executable, *arguments],
            env=env, cwd=cwd, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    records = [torch_bert(64), record(case(1, 2), 1, None)]
    return build_results(load_campaign(campaign(tmp_path_factory.mktemp("night1") / "night1", records)))


@pytest.fixture(scope="module")
def pushed(run_python, made, tmp_path_factory):
    """Where the runs are, and what each of two pushes said; the report is gone since."""
    top = tmp_path_factory.mktemp("there")
    report = tmp_path_factory.mktemp("report")
    (report / "results.json").write_text(json.dumps(made))
    (report / "report.html").write_text("<html></html>")
    said = run_python("-c", PUSH, HERE.parents[1] / "module_utils", report, top, HOST, cwd=top)
    shutil.rmtree(report)
    return top, [json.loads(line) for line in said.splitlines()]


def test_a_case_is_pushed_once(pushed):
    assert [said["pushed"] for said in pushed[1]] == [1, 0]


def test_the_run_has_the_parameters_and_metrics_of_the_case(pushed, made, run_python):
    [path] = pushed[0].glob("wandb/offline-run-*/*.wandb")
    found = json.loads(run_python(HERE / "wandb_records.py", path, cwd=pushed[0]))
    [run] = tracking.runs(made)
    names = (found["project"], found["run_group"], found["display_name"])
    assert names == ("scalebook", made["campaign"], run.name)
    assert run.params.items() <= found["config"].items()
    assert {name: found["metrics"][name] for name in run.metrics} == pytest.approx(run.metrics)
    assert sorted(found["files"]) == ["report.html", "results.json"] and found["ended"]


def test_the_files_outlive_the_report(pushed, made):
    [path] = pushed[0].glob("wandb/offline-run-*/files/results.json")
    assert json.loads(path.read_text()) == json.loads(json.dumps(made))


def test_the_run_does_not_name_the_machine(pushed):
    [path] = pushed[0].glob("wandb/offline-run-*/*.wandb")
    assert HOST.encode() not in path.read_bytes()


def test_wandb_sync_finds_the_run(pushed, run_python):
    assert "Would sync 1 run(s)" in run_python("-m", "wandb", "sync", "--dry-run", cwd=pushed[0])
