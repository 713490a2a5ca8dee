# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Slurm with several nodes on this machine, from unpacked packages, as the user who runs it.

Nothing is installed. Nodes are NODE1 to NODE4 where none are named, each with two GPUs that are none:
character devices.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from local_nodes import CACHE, turn
from nets import free_ports

PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libmunge2", "libhwloc15"),
    *("libjson-c5", "liblua5.1-0", "libnuma1", "libyaml-0-2", "libdbus-1-3"),
)
NODES = ("NODE1", "NODE2", "NODE3", "NODE4")
CONF = """
ClusterName=one
GresTypes=gpu
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={place}/munge/socket
PluginDir={libraries}/slurm-wlm
SlurmctldPort={ports[0]}
SlurmctldPidFile={place}/run/slurmctld.pid
SlurmdPidFile={place}/run/slurmd.%n.pid
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/run/%n
SlurmctldLogFile={place}/log/slurmctld.log
SlurmdLogFile={place}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=30
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 Gres=gpu:{gpus}\n"


def programs():
    """Return the directory of the unpacked packages, fetched once."""
    root = CACHE / "slurm"
    with turn(CACHE):
        if not (root / "usr/sbin/slurmstepd").exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                subprocess.run(
                    ["apt-get", "-q", "download", *PACKAGES], cwd=folder, check=True, capture_output=True
                )
                for package in Path(folder).glob("*.deb"):
                    subprocess.run(["dpkg", "-x", package, root], check=True)
            for name in ("slurmctld", "slurmd", "slurmstepd"):  # Slurm decides by its name what it is
                (root / "usr/sbin" / name).symlink_to(f"{name}-wlm")
    return root


class Slurm:
    """A running cluster; `env` has what its programs need."""

    def __init__(self, place, root, nodes, devices):
        machine = f"{os.uname().machine}-linux-gnu"
        libraries = root / "usr/lib" / machine
        self.place, self.sbin, self.nodes = place, root / "usr/sbin", nodes
        self.gpus = len(list(Path("/").glob(devices[1:])))
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM")},
            "PATH": f"{root}/usr/bin:{self.sbin}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": f"{libraries}:{libraries}/slurm-wlm:{root}/lib/{machine}",
            "SLURM_CONF": str(place / "slurm.conf"),
        }
        ports, host = free_ports(len(nodes) + 1), socket.gethostname().partition(".")[0]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        lines = [
            NODE.format(name=name, host=host, port=port, gpus=self.gpus)
            for name, port in zip(nodes, ports[1:], strict=True)
        ]
        for folder in ("state", "log", "munge", *(f"run/{name}" for name in nodes)):
            (place / folder).mkdir(parents=True)
        conf = CONF.format(host=host, user=user, place=place, libraries=libraries, ports=ports)
        (place / "slurm.conf").write_text(conf + "".join(lines))
        # Without systemd the plugin of version 2 does not start; no cgroup is used here.
        (place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (place / "gres.conf").write_text(f"NodeName={','.join(nodes)} Name=gpu File={devices}\n")

    def start(self):
        """Start the daemons and wait until all nodes are idle."""
        key = self.place / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        others = ("socket", "pid-file", "log-file", "seed-file")
        files = [f"--{name}={self.place}/munge/{name.partition('-')[0]}" for name in others]
        self.run("munged", "--force", f"--key-file={key}", *files)
        self.run("slurmctld")
        for name in self.nodes:
            self.start_node(name)
        deadline = time.monotonic() + 30
        while self.run("sinfo", "--noheader", "--format=%T %D").strip() != f"idle {len(self.nodes)}":
            assert time.monotonic() < deadline, self.run("sinfo")
            time.sleep(0.1)

    def start_node(self, name):
        """Start the daemon of one node."""
        self.run("slurmd", "-d", self.sbin / "slurmstepd", "-N", name)

    def run(self, *argv, check=True, **env):
        """Run a program of Slurm and return what it prints."""
        done = subprocess.run(
            argv,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    def allocate(self, *options):
        """Return the id of an allocation that lasts until it is cancelled."""
        words = ("--exclusive", "--no-kill", f"--gpus-per-node={self.gpus}", *options)
        self.run("salloc", "--no-shell", f"--nodes={len(self.nodes)}", *words)
        return self.run("squeue", "--noheader", "--format=%i", "--sort=-i").split()[0]

    def batch(self):
        """Return the id of a batch job that runs on all nodes until it is cancelled, and may be requeued.

        Allocations that there are have to make room.
        """
        self.run("scancel", "--me")
        words = ("--parsable", "--exclusive", "--no-kill", f"--gpus-per-node={self.gpus}", "--requeue")
        words += (f"--nodes={len(self.nodes)}", "--output=/dev/null", "--wrap=sleep infinity")
        job = self.run("sbatch", *words)
        deadline = time.monotonic() + 30
        while self.run("squeue", "--noheader", f"--jobs={job.strip()}", "--format=%T").strip() != "RUNNING":
            assert time.monotonic() < deadline, self.run("squeue")
            time.sleep(0.1)
        return job.strip()

    def steps(self):
        """Return the ids of all steps that run."""
        return self.run("squeue", "--steps", "--noheader", "--format=%i").split()

    def stop(self):
        """End everything: the allocations first, then the daemons."""
        self.run("scancel", "--me", check=False)
        for file in [*self.place.glob("run/*.pid"), self.place / "munge/pid"]:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)


@contextlib.contextmanager
def one_host_slurm(nodes=NODES, devices="/dev/tty[0-1]"):
    """Give a running cluster, and end it afterwards; `devices` is the pattern of a node's GPUs."""
    place = Path(tempfile.mkdtemp(prefix="scalebook-slurm-"))
    place.chmod(0o755)  # munged wants that others can come to its socket
    slurm = Slurm(place, programs(), nodes, devices)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(place, ignore_errors=True)
