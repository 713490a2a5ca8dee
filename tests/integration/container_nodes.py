# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A test's own container nodes: start them, log in, run plays and Molecule's scenarios on them."""

import configparser
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tests" / "cluster"
# Not the local nodes' own: this machine sees the containers' processes, and a local campaign beside a test
# would end what is left below it.
WORK = "/opt/scalebook/work"
# Prints what a refusal must leave as it was. Lists, caches and logs are apt's notes, not the host's software.
STATE = (
    "{ find /etc /usr /opt /srv /var/lib/dpkg/info -xdev -type f -printf '%p %s %m %T@\\n'; "
    "find /etc /usr /opt /srv -xdev -type l -printf '%p %l\\n'; dpkg --get-selections; } "
    "| grep -v -e /etc/ld.so.cache -e __pycache__ | LC_ALL=C sort"
)


class Nodes:
    """NODE1 to NODE`count` on the subnet `net`."""

    def __init__(self, net, count=4, **environment):
        self.net = net
        self.count = count
        self.files = ROOT / ".scalebook" / "test-cluster" / net
        self.env = {
            **os.environ,
            "SCALEBOOK_LOCK_DIRECTORY": "",  # each node has a /run of its own
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
        """Make all nodes bare; with `--ready`, they have the packages of role node."""
        self.run(TOOLS / "up", "--net", self.net, "--nodes", self.count, "--fresh", *options)

    def down(self):
        self.run(TOOLS / "down", "--net", self.net)

    def ssh(self, node, command, **options):
        login = ["ssh", "-F", self.files / "ssh_config", "-o", "BatchMode=yes", node]
        return self.run(*login, command, **options)

    def state(self, node):
        """Return what STATE prints, as a set of lines."""
        return set(self.ssh(node, STATE).stdout.splitlines())

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

    def playbook(self, playbook, home, inventory=None, ok=True, **variables):
        """Run a playbook of the project on the nodes, with what is installed below `home` (see `shown`)."""
        extra = {"scalebook_home": str(home), "campaign_work": WORK, **variables}
        inventory = inventory or self.files / "inventory"
        return self.run("ansible-playbook", "-i", inventory, playbook, "-e", json.dumps(extra), ok=ok)

    def molecule(self, role, *steps, node=None, timeout=1200):
        """Run these steps of a role's scenario, or its whole test, on all nodes or one of them."""
        limit = ["--", "--limit", node] if node else []
        # A folder of its own: by the usual one, Molecule takes nodes that are gone to be prepared.
        with tempfile.TemporaryDirectory() as state:
            molecule = ["env", f"MOLECULE_EPHEMERAL_DIRECTORY={state}", "molecule"]
            done = [
                self.run(*molecule, step, "-s", role, *limit, timeout=timeout) for step in steps or ["test"]
            ]
        output = re.sub(r"\x1b\[[0-9;]*m", "", "".join(each.stdout + each.stderr for each in done))
        for step in steps or ("check", "converge", "idempotence", "verify"):
            assert re.search(rf"{role} (➜|>) {step}: Executed: Successful", output), output[-3000:]


def shown(*homes):
    """Return options of `up` that show the nodes these installations, and the interpreters they run on.

    Each node may write to its own view of them: four nodes would else install the same gigabyte each.
    """
    folders = {}
    for home in homes:
        folders[str(home)] = ":O"
        # A directory of packages alone has no interpreter.
        for settings in filter(Path.exists, (home / "pyvenv.cfg", home / "venv/pyvenv.cfg")):
            config = configparser.ConfigParser()
            config.read_string("[venv]\n" + settings.read_text())
            interpreter = Path(config["venv"]["home"]).parent
            if not any(map(interpreter.is_relative_to, ["/usr", *homes])):
                folders[str(interpreter)] = ""
    return [word for folder, mode in folders.items() for word in ("--mount", f"{folder}:{folder}{mode}")]


def changes(done):
    """Return {node: changed} of a play's recap."""
    return {node: int(count) for node, count in re.findall(r"^(NODE\d) .*changed=(\d+)", done.stdout, re.M)}


def said(done):
    """Return the output as one line: messages are folded."""
    return re.sub(r"\s+", " ", done.stdout.replace("\\n", " ") + done.stderr)
