# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The collection is made, installed into an empty home, and measures there, in a directory of its user's."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent
# The trainer is a script of the tests, whose role lies in a directory of the user's.
MATRIX = (
    "workload=scripted scripted_step=0.003 nodes=1,2 gpus=1 bsz=2 repeats=1 campaign=demo campaign_port=24700"
)

pytestmark = pytest.mark.slow


class Site:
    """A home with the collection, and the directory in which its user works."""

    def __init__(self, folder):
        self.home, self.work = folder / "home", folder / "work"
        self.made = folder / "made"
        self.installed = self.home / ".ansible/collections/ansible_collections/scalebook/scalebook"
        self.work.mkdir()

    def run(self, *argv, cwd=None, **more):
        names = ("PATH", "SCALEBOOK_LOCK_DIRECTORY", "LANG", "LC_ALL", "PIP_INDEX_URL")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        done = subprocess.run(
            argv, cwd=cwd or self.work, env={**kept, "HOME": str(self.home), **more},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    def play(self, playbook, *options):
        argv = (TOOLS / "ansible-playbook", f"scalebook.scalebook.{playbook}")
        return self.run(*argv, *options, ANSIBLE_ROLES_PATH=str(ROOT / "tests/roles"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("collection"))
    site.run(sys.executable, ROOT / "scripts/collection", site.made)
    [file] = site.made.glob("*.tar.gz")
    site.run(
        TOOLS / "ansible-galaxy", "collection", "install", file, "-p", site.home / ".ansible/collections"
    )
    shutil.copy(site.installed / "ansible.cfg", site.work)
    shutil.copytree(site.installed / "inventory", site.work / "inventory")
    return site


@pytest.fixture(scope="module")
def shown(site):
    """Install and measure, as the demo does; return what was printed."""
    return site.play("demo", "-e", MATRIX)


def test_every_run_is_measured_and_reported_where_the_user_stands(site, shown):
    results = site.work / "results/demo"
    records = [json.loads(path.read_text()) for path in results.glob("runs/*/1/result.json")]
    assert sorted((each["case"]["label"], each["status"]) for each in records) == [
        ("1n1g", "ok"),
        ("2n1g", "ok"),
    ]
    assert f"Report: {results}/report/report.html" in shown
    assert "[2/2] 2n1g" in shown, "the callbacks of the collection are not used"


def test_the_records_name_the_commit_that_the_collection_was_made_of(site, shown):
    recorded = json.loads((site.work / "results/demo/provenance.json").read_text())["scalebook"]["commit"]
    assert recorded.removesuffix("-dirty").isalnum() and len(recorded.removesuffix("-dirty")) == 40


def test_what_is_installed_and_measured_is_not_in_the_collection(site, shown):
    assert not (site.installed / "results").exists() and not (site.installed / ".scalebook").exists()
    assert (site.work / ".scalebook/provisioned.json").is_file()


# Not those that look at what scripts/test has looked at already, by pylint say.
CHECKS = (
    "action-plugin-docs", "compile", "empty-init", "ignores", "line-endings", "no-assert", "no-get-exception",
    "no-illegal-filenames", "no-smart-quotes", "replace-urlopen", "runtime-metadata", "shebang", "symlinks",
    "use-argspec-type-path", "use-compat-six", "validate-modules",
)  # fmt: skip
# What ansible-test would download to install the packages of a check: pip is in the standard library.
GET_PIP = "import ensurepip\nensurepip.bootstrap()\n"


def test_ansible_test_finds_nothing_in_what_is_installed(site):
    cache = site.home / ".ansible/test/cache"
    cache.mkdir(parents=True)
    (cache / "get_pip_24_2.py").write_text(GET_PIP)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    checks = [word for check in CHECKS for word in ("--test", check)]
    site.run(TOOLS / "ansible-test", "sanity", "--python", python, *checks, cwd=site.installed)
