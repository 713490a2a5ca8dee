# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A test's own container nodes: start them, log in, run plays and Molecule's scenarios on them."""

import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tests" / "cluster"


class Nodes:
    """NODE1 to NODE`count` on the subnet `net`."""

    def __init__(self, net, count=4, **environment):
        self.net = net
        self.count = count
        self.files = ROOT / ".scalebook" / "test-cluster" / net
        self.env = {
            **os.environ,
            "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
            "SCALEBOOK_TEST_INVENTORY": str(self.files / "inventory"),
            "ANSIBLE_NOCOLOR": "1",
            "NO_COLOR": "1",
            **environment,
        }

    def run(self, *argv, ok=True, timeout=1200, stdin=""):
        done = subprocess.run(
            [str(word) for word in argv],
            capture_output=True, text=True, input=stdin, timeout=timeout, cwd=ROOT, env=self.env,
        )  # fmt: skip
        if ok:
            assert done.returncode == 0, f"{argv}: {done.stdout[-4000:]}{done.stderr[-2000:]}"
        return done

    def up(self, *options):
        """Make all nodes bare."""
        self.run(TOOLS / "up", "--net", self.net, "--nodes", self.count, "--fresh", *options)

    def down(self):
        self.run(TOOLS / "down", "--net", self.net)

    def ssh(self, node, command, **options):
        login = ["ssh", "-F", self.files / "ssh_config", "-o", "BatchMode=yes", node]
        return self.run(*login, command, **options)

    def pid(self, node):
        """Return the first process of a node as the machine sees it."""
        name = f"{node}.{self.net}"
        done = self.run(self.files.parent / "engine", "inspect", "--format", "{{.State.Pid}}", name)
        return int(done.stdout)

    def play(self, role, *options, ok=True, node=None, **variables):
        """Run the converge.yml of a role's scenario, on one node if one is named."""
        limit = ["--limit", node] if node else []
        playbook = ROOT / "molecule" / role / "converge.yml"
        return self.run(
            "ansible-playbook", "-i", self.files / "inventory", playbook, *limit,
            "-e", json.dumps(variables), *options, ok=ok,
        )  # fmt: skip

    def molecule(self, role):
        """Run a role's scenario; fail unless every step passed."""
        self.run("molecule", "reset", "-s", role)  # or it believes nodes that are gone to be prepared
        done = self.run("molecule", "test", "-s", role)
        output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        for step in ("check", "converge", "idempotence", "verify"):
            assert re.search(rf"{role} (➜|>) {step}: Executed: Successful", output), output[-3000:]


def changes(done):
    """Return {node: changed} of a play's recap."""
    return {node: int(count) for node, count in re.findall(r"^(NODE\d) .*changed=(\d+)", done.stdout, re.M)}


def said(done):
    """Return the output as one line: messages are folded."""
    return re.sub(r"\s+", " ", done.stdout.replace("\\n", " ") + done.stderr)
