# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The faults a campaign has to survive: how each is injected, what must be said of it, and when."""

import contextlib
import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from . import link, slurm
from .base import CHECKOUT
from .base import run as command
from .campaign import WORK, Campaign
from .processes import NodeView

HELPERS = CHECKOUT / "tests/helpers"
STALL = 8
RENDEZVOUS = 20
"""Seconds that the campaign of these faults allows for silence, and for the first step."""

VARIABLES = {
    "scripted_sync": True,
    "scripted_step": 0.05,
    "campaign_stall": STALL,
    "campaign_rendezvous": RENDEZVOUS,
    "campaign_timeout": 120,
}

DRIVER_HANGS, CLOCK_SET_BY = "/run/driver-hangs", "/run/clock-set-by"
"""Files of a node that make its stand-in of NVIDIA's driver hang, and its clock jump by so many seconds."""

Inject = Callable[[Campaign, NodeView], Any]


@dataclass(frozen=True)
class Fault:
    """A fault that hits a run: what it does to a node, and the record that has to follow.

    `limit` are the seconds from the fault to the record, `status` what the record may say ("ok": the
    run survives it), `words` what its reason must name ({node} is the node's name), `nodes` which
    numbers it may hit. After `lost`, the node is out of the campaign. `says` is what the record must say of
    the node's readings, or in a note, although the run counts.
    """

    name: str
    limit: float
    status: tuple[str, ...]
    words: tuple[str, ...]
    inject: Inject
    undo: Inject | None = None
    nodes: tuple[int, ...] = (1, 2, 3)
    lost: bool = False
    says: str = ""


def _send(what: str, number: int = signal.SIGKILL) -> Inject:
    def inject(_: Campaign, node: NodeView) -> None:
        node.send(what, number)

    return inject


def _engine(verb: str) -> Inject:
    def inject(campaign: Campaign, node: NodeView) -> None:
        campaign.cluster.engine(verb, campaign.cluster.name(node.number))

    return inject


def _link(state: str) -> Inject:
    def inject(campaign: Campaign, node: NodeView) -> None:
        link.switch(campaign.cluster, node.number, state)

    return inject


def _flap(campaign: Campaign, node: NodeView) -> None:
    link.switch(campaign.cluster, node.number, "down")
    time.sleep(5)
    link.switch(campaign.cluster, node.number, "up")


def _fill(_: Campaign, node: NodeView) -> None:
    fill(node.path(f"{WORK}/{node.name}/filler"))


def _fill_nearly(_: Campaign, node: NodeView) -> None:
    """Leave 2 MB: enough for the log, less than what the sampler leaves to it."""
    place = node.path(f"{WORK}/{node.name}")
    there = os.statvfs(place)
    place.joinpath("filler").write_bytes(b"\0" * (there.f_bavail * there.f_frsize - (2 << 20)))


def _free(_: Campaign, node: NodeView) -> None:
    node.path(f"{WORK}/{node.name}/filler").unlink(missing_ok=True)


def fill(path: Path) -> None:
    """Fill the file system of `path` to the last block."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1 << 8, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass


def _write(path: str, text: str = "") -> Inject:
    def inject(_: Campaign, node: NodeView) -> None:
        node.path(path).write_text(text)

    return inject


def _remove(path: str) -> Inject:
    def undo(_: Campaign, node: NodeView) -> None:
        node.path(path).unlink(missing_ok=True)

    return undo


NODE_DIES = Fault("node dies", 15, ("failed",), ("reason.lost", "{node}"), _engine("kill"), lost=True)

DURING_A_RUN = (
    Fault("rank killed", 5, ("failed",), ("{node}", "SIGKILL"), _send("trainer")),
    Fault("run_node killed", 5, ("failed",), ("{node}", "SIGKILL"), _send("run_node")),
    Fault("mpirun killed", 5, ("failed",), ("mpirun", "SIGKILL"), _send("mpirun"), nodes=(1,)),
    Fault("orted killed", 10, ("failed",), ("reason.lost-contact", "{node}"), _send("orted"), nodes=(2, 3)),
    # The ranks end, and mpirun waits for its daemon.
    Fault(
        "orted freezes",
        75,
        ("ok",),
        (),
        _send("orted", signal.SIGSTOP),
        nodes=(2, 3),
        says="its processes on {node} were stopped",
    ),
    Fault("rank hangs", STALL + 5, ("hung",), ("{node}", "reason.stopped"), _send("trainer", signal.SIGSTOP)),
    NODE_DIES,
    Fault("link down", 20, ("failed",), ("reason.lost", "{node}"), _link("down"), _link("up"), lost=True),
    Fault("link back after 5 s", 25, ("ok", "failed"), (), _flap, nodes=(1, 2, 3)),
    Fault(
        "node freezes",
        STALL + 20,
        ("failed",),
        ("reason.lost", "{node}"),
        _engine("pause"),
        _engine("unpause"),
        lost=True,
    ),
    Fault("disk full on a node", 10, ("failed",), ("{node}", "No space left on device"), _fill, _free),
    # Measuring is never the cause of a failed run: its number stands, and the record says what is missing.
    Fault("sampler killed", 25, ("ok",), (), _send("sampler"), says="the sampler was ended by signal 9"),
    Fault(
        "sampler hangs",
        25,
        ("ok",),
        (),
        _send("sampler", signal.SIGSTOP),
        says="the sampler did not end when it was asked to",
    ),
    Fault("disk nearly full on a node", 25, ("ok",), (), _fill_nearly, _free, says="less than 4 MB free"),
    Fault(
        "driver stops answering",
        25,
        ("ok",),
        (),
        _write(DRIVER_HANGS),
        _remove(DRIVER_HANGS),
        says="the driver did not answer within",
    ),
    Fault(
        "clock jumps",
        25,
        ("ok",),
        (),
        _write(CLOCK_SET_BY, "3600"),  # forward: the trainer itself would sleep for an hour after a jump back
        _remove(CLOCK_SET_BY),
        says="run.clock-set",
    ),
)


def _start_slurmd(campaign: Campaign, node: NodeView) -> None:
    slurm.restart(campaign.cluster, node.number, "slurmd")


def _restart_slurmctld(campaign: Campaign, node: NodeView) -> None:
    node.send("slurmctld")
    time.sleep(3)
    slurm.restart(campaign.cluster, node.number, "slurmctld")


def _cancel_step(campaign: Campaign, _: NodeView) -> None:
    steps = slurm.ask(campaign.cluster, "squeue", "--steps", "--noheader", "--format=%i").split()
    slurm.ask(campaign.cluster, "scancel", *steps)


BY_MPIRUN = ("mpirun killed", "orted killed", "orted freezes")
"""Faults of processes that only mpirun has."""

IN_A_STEP = (
    # slurmstepd goes on without it, as does the run; a node on which none is to be started is lost.
    Fault("slurmd killed", 40, ("ok",), (), _send("slurmd"), _start_slurmd),
    Fault("step cancelled", 20, ("failed",), ("reason.cancelled",), _cancel_step),
    Fault("slurmctld restarted", 40, ("ok",), (), _restart_slurmctld, nodes=(1,)),
)
"""Faults of a Slurm whose slurmctld is on NODE1."""


def small_disks(campaign: Campaign, size: str = "12m") -> None:
    """Give each node's job directories a file system so small that it can be filled in an instant.

    It is large enough for the sampler, which does not write where less than 4 MB are free.
    """
    for node in campaign.nodes:
        place = f"{WORK}/{node.name}"
        node.path(place).mkdir(parents=True, exist_ok=True)
        here = ["nsenter", "-t", str(node.pid), "-m"]
        if command([*here, "mountpoint", "-q", place], check=False).returncode:
            command([*here, "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place])


PRELOAD, CLOCK, DRIVER = "/etc/ld.so.preload", "/usr/lib/set_clock.so", "/usr/lib/libnvidia-ml.so.1"


def stand_ins(campaign: Campaign) -> None:
    """Give each node a driver of NVIDIA's that can hang, and a clock that can jump: neither does so yet."""
    driver = library("fake_nvml.c", HANGS_WITH=DRIVER_HANGS)
    clock = library("set_clock.c", SET_BY=CLOCK_SET_BY)
    for node in campaign.nodes:
        for path in (DRIVER_HANGS, CLOCK_SET_BY):
            node.path(path).unlink(missing_ok=True)
        if not node.path(PRELOAD).exists():
            node.path(DRIVER).write_bytes(driver)
            node.path(CLOCK).write_bytes(clock)
            node.path(PRELOAD).write_text(f"{CLOCK}\n")


def without_stand_ins(campaign: Campaign) -> None:
    """Leave no node with the driver and the clock of stand_ins."""
    campaign.refresh()
    for node in campaign.nodes:
        for path in (PRELOAD, CLOCK, DRIVER, DRIVER_HANGS, CLOCK_SET_BY):
            node.path(path).unlink(missing_ok=True)


@functools.cache
def library(source: str, **files: str | Path) -> bytes:
    """Return a C file of tests/helpers as a shared library, with the names of files that it looks at."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.so")
        names = [f'-D{name}="{path}"' for name, path in files.items()]
        command(["gcc", "-shared", "-fPIC", *names, "-o", str(made), str(HELPERS / source)])
        return made.read_bytes()


def stub(campaign: Campaign, node: NodeView, text: str) -> Callable[[], None]:
    """Put `text` in the place of the node's trainer; return what puts it back."""
    path = node.path(f"/opt/scalebook/{campaign.workload}/trainer.py")
    before = path.read_bytes()
    path.write_text(text)

    def back() -> None:
        path.write_bytes(before)

    return back


EAT = "kept = []\nwhile True:\n    kept.append(b'x' * (1 << 24))\n"
"""A trainer that takes memory until it is killed."""


def little_memory(campaign: Campaign, node: NodeView) -> Callable[[], None]:
    """Leave the node little memory; return what gives it the rest back."""

    def limit(size: str) -> None:
        campaign.cluster.engine("update", "--memory", size, campaign.cluster.name(node.number))

    limit("400m")
    return lambda: limit("1000g")


def driver_silent(node: NodeView) -> Callable[[], None]:
    """Give the node an nvidia-smi that does not answer; return what removes it."""
    path = node.path("/usr/local/bin/nvidia-smi")
    path.write_text("#!/bin/sh\nsleep 100000\n")
    path.chmod(0o755)
    return lambda: path.unlink(missing_ok=True)


class Second(NamedTuple):
    """How a second ansible-playbook beside the first has ended; `cpu` are seconds of processors."""

    seconds: float
    cpu: float
    status: int
    said: str


def second(campaign: Campaign, log: Path, limit: float, /, **variables: Any) -> Second:
    """Start a second ansible-playbook beside the first. It is killed after `limit` seconds.

    `variables` are arguments of Campaign.popen.
    """
    began, before = time.monotonic(), _cpu()
    process = campaign.popen(log, **{"campaign": "second", **variables})
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(limit)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    status = process.wait()
    return Second(time.monotonic() - began, _cpu() - before, status, log.read_text(errors="replace"))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


USER, NOBODY = "second", 65534
"""A user of the nodes, and the user of the control node who logs in as it."""


def ordinary_user(campaign: Campaign, folder: Path, hidepid: int) -> dict[str, Any]:
    """Return arguments of `second` for a user who is root neither here nor there, with /proc mounted so.

    Its key and its inventory are in `folder`.
    """
    access, own = campaign.cluster.access, folder / USER
    own.mkdir(exist_ok=True)
    key = own / access.key.name
    if not key.exists():
        shutil.copy(access.key, key)
        text = (access.inventory / "hosts.yml").read_text().replace(str(access.key), str(key))
        text = text.replace("ansible_user: root", f"ansible_user: {USER}")
        text = re.sub("(ansible_control_path: ).*", rf"\g<1>'{own}/%%C'", text)
        (own / "hosts.yml").write_text(text)
        for path in (own, *own.iterdir()):
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o700 if path.is_dir() else 0o600)
        folder.chmod(0o711)
    add = (
        f"id {USER} >/dev/null 2>&1 || useradd --create-home --shell /bin/bash {USER}; cd ~{USER}; "
        f"install -d -m 700 -o {USER} .ssh; cat >.ssh/authorized_keys; chown {USER} .ssh/*"
    )
    for node in campaign.nodes:
        name = campaign.cluster.name(node.number)
        campaign.cluster.engine(
            "exec", "-i", name, "sh", "-ec", add, data=access.key.with_suffix(".pub").read_bytes()
        )
    script = f"mount -t proc -o hidepid={hidepid} proc /proc; exec setpriv --reuid={NOBODY} --regid={NOBODY} "
    before = ["unshare", "--mount", "sh", "-ec", script + '--clear-groups "$@"', "sh"]
    environment = {"HOME": str(own), "ANSIBLE_HOME": str(own / "ansible"), "LD_PRELOAD": ""}
    return {"before": before, "inventory": own / "hosts.yml", "environment": environment}


def hide_processes(campaign: Campaign, hidepid: int) -> None:
    """Mount /proc of the nodes so that users see the processes of others (0) or not (2)."""
    for node in campaign.nodes:
        command(
            ["nsenter", "-t", str(node.pid), "-m", "-p"]
            + ["mount", "-o", f"remount,hidepid={hidepid}", "/proc"]
        )


def problem_with(fault: Fault, node: NodeView, record: dict[str, Any]) -> str:
    """Return what is wrong with the record of a run that `fault` hit on `node`, "" when nothing is."""
    reason = str(record.get("reason"))
    if record["status"] not in fault.status:
        return f"{fault.name} on {node.name}: {record['status']}, {reason}"
    missing = [word for word in fault.words if word.format(node=node.name) not in reason]
    if missing:
        return f"{fault.name} on {node.name}: the reason does not name {missing[0]}: {reason}"
    readings = [part for part in record.get("telemetry") or [] if part["node"] == node.name]
    said = [(part.get("reason"), part.get("absent")) for part in readings], record.get("notes")
    says = fault.says.format(node=node.name)
    if says not in str(said):
        return f"{fault.name} on {node.name}: the record does not say {says}: {said}"
    return ""
