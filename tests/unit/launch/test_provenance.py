# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""provenance.json: what each workload of a campaign ran on."""

import subprocess

from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.launch.provenance import commit, provenance
from cases import cluster

VERSIONS = [{"tf2_bert": {"tensorflow": "2.3.0"}}, {"tf2_bert": {"tensorflow": "2.3.1"}}]


def test_each_node_has_its_own_versions():
    made = provenance(cluster(2), VERSIONS, {"fit": True}, {}, "c0ffee")
    assert made["workloads"]["tf2_bert"]["NODE2"] == {"tensorflow": "2.3.1"}
    assert made["nodes"] == made["workloads"]["tf2_bert"]
    assert (made["scalebook"], made["preflight"]) == ({"commit": "c0ffee"}, {"fit": True})


def test_the_launcher_is_recorded_unless_it_is_mpirun():
    made = [provenance(cluster(2), VERSIONS, None, {}, "", launcher) for launcher in ("mpirun", "srun")]
    assert [each.get("launcher") for each in made] == [None, "srun"]


def test_workloads_of_an_earlier_start_are_kept():
    earlier = {"workloads": {"torch_bert": {"NODE1": {"torch": "2.13.0"}}, "tf2_bert": {}}}
    made = provenance(cluster(2), VERSIONS, None, earlier, "")
    assert list(made["workloads"]) == ["torch_bert", "tf2_bert"]
    assert made["workloads"]["tf2_bert"]["NODE1"] == {"tensorflow": "2.3.0"}


def test_a_checkout_that_was_changed_says_so(tmp_path):
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (tmp_path / "file").write_text("as committed")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    clean = commit(str(tmp_path))
    (tmp_path / "file").write_text("changed")
    assert len(clean) == 40
    assert commit(str(tmp_path)) == f"{clean}-dirty"


def test_without_a_checkout_or_git_the_reason_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit(str(tmp_path)) == message("commit.no-checkout")
    monkeypatch.setenv("PATH", "")
    assert commit(str(tmp_path)) == message("commit.no-git")
