# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A checkout, which other users of a node can read, has no token of the address that it came from."""

import subprocess

import yaml
from role_files import ROLES

TOKEN = "secret-of-the-url"  # noqa: S105


def command(path):
    """Return the command of the task that removes the address."""
    tasks = yaml.safe_load((ROLES / path).read_text())
    tasks += [task for block in tasks for task in block.get("block", ())]
    (task,) = [task for task in tasks if task["name"].startswith("Remove the address")]
    return task["ansible.builtin.command"]["argv"][:-1]


def test_a_checkout_does_not_keep_the_token_of_its_address(tmp_path):
    git = ["git", "-C", tmp_path, "-c", "user.name=you", "-c", "user.email=you@localhost"]
    for step in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *step], check=True)
    subprocess.run([*git, "remote", "add", "origin", f"https://{TOKEN}@localhost/x"], check=True)
    for name in ("FETCH_HEAD", "logs/HEAD"):
        (tmp_path / ".git" / name).write_text(f"clone: from https://{TOKEN}@localhost/x\n")
    subprocess.run([*command("workload/tasks/commit.yml"), tmp_path], check=True)
    kept = [file for file in (tmp_path / ".git").rglob("*") if file.is_file()]
    assert [file.name for file in kept if TOKEN.encode() in file.read_bytes()] == []
    subprocess.run([*git, "rev-parse", "-q", "--verify", "HEAD"], check=True, stdout=subprocess.DEVNULL)
