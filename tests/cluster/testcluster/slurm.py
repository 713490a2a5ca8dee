# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Slurm on the nodes: slurmctld on NODE1, slurmd on all of them, and its commands for this machine."""

import concurrent.futures
import os
import secrets
import time

from . import nodefiles
from .base import CHECKOUT, ClusterError, say, write
from .nodes import MOST, Cluster

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
COMMANDS = ("salloc", "scancel", "scontrol", "sinfo", "squeue", "srun")
PATIENCE = 60
CONF = """\
ClusterName=test
SlurmctldHost=NODE1({net}.2)
SlurmUser=root
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=300
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# Where there is no init nothing has started the daemons; one that runs is left alone.
START = """\
set -e
mkdir -p /run/munge /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm
chown munge: /run/munge /etc/munge/munge.key
chmod 755 /run/munge
chmod 400 /etc/munge/munge.key
pgrep -x munged >/dev/null || { rm -f /run/munge/*; runuser -u munge -- munged; }
for daemon in "$@"; do pgrep -x "$daemon" >/dev/null || "$daemon"; done
"""
COMMAND = """\
#!/bin/sh
# Written by tests/cluster/up --slurm: the command of NODE1.
exec {engine} exec {node} {command} "$@"
"""


def environment(cluster: Cluster) -> dict[str, str]:
    """Return the variables of an environment in which Ansible's commands find those of NODE1."""
    return {"PATH": f"{cluster.folder}/slurm:{CHECKOUT}/.venv/bin:{os.environ['PATH']}"}


def ask(cluster: Cluster, *argv: str, check: bool = True) -> str:
    """Return what a command of Slurm prints on NODE1."""
    return str(cluster.engine("exec", cluster.name(1), *argv, check=check).stdout)


def free(cluster: Cluster) -> None:
    """End all jobs, and take nodes back that Slurm has given up or that still clear up after a job."""
    ask(cluster, "scancel", "--user=root", check=False)
    for change in (["state=down", "reason=soak"], ["state=resume"]):
        ask(cluster, "scontrol", "update", f"nodename=NODE[1-{MOST}]", *change, check=False)


def allocate(cluster: Cluster) -> str:
    """Return the id of an allocation of all nodes, which outlives the loss of one."""
    ask(cluster, "salloc", "--no-shell", f"--nodes={MOST}", "--exclusive", "--no-kill")
    return ask(cluster, "squeue", "--noheader", "--states=running", "--format=%i").split()[0]


def restart(cluster: Cluster, number: int, daemon: str) -> None:
    """Start a daemon of a node that does not run."""
    cluster.engine("exec", cluster.name(number), "sh", "-c", START, "sh", daemon)


def start(cluster: Cluster, count: int) -> None:
    """Start Slurm on NODE1 to NODE`count`, or what of it does not run, and wait until all nodes are idle."""
    key = cluster.folder / "munge.key"
    if not key.exists():
        write(key, secrets.token_hex(512))
    numbers = range(1, count + 1)
    lines = [f"NodeName=NODE{number} NodeAddr={cluster.address(number)} CPUs=2" for number in numbers]
    files = {
        "etc/slurm/slurm.conf": CONF.format(net=cluster.net, nodes="\n".join(lines)),
        "etc/munge/munge.key": key.read_text(),
    }

    def prepare(number: int) -> None:
        name, daemons = cluster.name(number), ["slurmctld", "slurmd"] if number == 1 else ["slurmd"]
        cluster.engine("cp", "-", f"{name}:/", data=nodefiles.pack(files))
        cluster.engine("exec", name, "sh", "-c", START, "sh", *daemons)

    prepare(1)
    with concurrent.futures.ThreadPoolExecutor(MOST) as pool:
        list(pool.map(prepare, numbers[1:]))
    for command in COMMANDS:
        path = cluster.folder / "slurm" / command
        engine = cluster.folder.parent if cluster.folder.name == cluster.net else cluster.folder
        write(path, COMMAND.format(engine=engine / "engine", node=cluster.name(1), command=command))
        path.chmod(0o755)
    deadline, idle = time.monotonic() + PATIENCE, ["idle", str(count)]
    while (
        answer := cluster.engine("exec", cluster.name(1), "sinfo", "-h", "-o", "%T %D", check=False).stdout
    ).split() != idle:
        if time.monotonic() > deadline:
            raise ClusterError(f"Slurm's nodes are not idle after {PATIENCE} s: {answer}")
        time.sleep(0.1)
    say(f"Slurm: PATH={cluster.folder}/slurm:$PATH sinfo")
