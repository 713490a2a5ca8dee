#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: node_probe
short_description: Probe a machine before a campaign
description:
  - Collects facts of the machine, of its network and of its GPUs that decide whether runs can be trusted.
    Evaluates nothing and changes nothing; see M(preflight_report).
  - Every probe runs in a process of its own and is stopped when it does not answer, so that a file system or
    a driver that hangs costs only its own answer.
options:
  peers:
    description: Machines that this one must reach by ssh.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the machine.
        type: str
        required: true
      address:
        description: Its address.
        type: str
        required: true
  names:
    description: Names that must resolve.
    type: list
    elements: str
    default: []
  ports:
    description: Ports that runs will listen on.
    type: list
    elements: int
    default: []
  work:
    description: Directory of the node jobs.
    type: str
    required: true
  login:
    description: Whether to probe logins and the network too.
    type: bool
    default: false
  steps:
    description: >-
      The job of Slurm whose steps reach the peers, V(-) where another machine starts them. Without it each
      machine logs in to its peers by ssh.
    type: str
    default: ""
  gpus:
    description: Whether to probe the GPUs too.
    type: bool
    default: false
  seconds:
    description: Seconds after which a probe that does not answer is stopped.
    type: float
    default: 20
  login_seconds:
    description: Seconds that a login may take; one that takes twice as long is stopped.
    type: float
    default: 1
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Probe the machine
  node_probe:
    work: /opt/scalebook/work
    ports: [11111]
    gpus: true
"""

RETURN = r"""
facts:
  description: What each probe returned, by the name of the probe.
  returned: success
  type: dict
failures:
  description: Why a probe returned nothing, by the name of the probe.
  returned: success
  type: dict
  sample: {smi: no answer in 20 s}
"""

import contextlib
import glob
import json
import os
import pwd
import random
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Callable, Container, Dict, Iterable, List, Optional, Tuple, cast

from ansible.module_utils.basic import AnsibleModule

# Running probes


def bounded(probes: Dict[str, Callable[[], Any]], seconds: float) -> Tuple[Dict[str, Any], Dict[str, str]]:
    """Run `probes` {name: function} at the same time, each in a process of its own.

    Returns ({name: value}, {name: why there is no value}) after `seconds` at the latest.
    """
    values: Dict[str, Any] = {}
    failed: Dict[str, str] = {}
    waiting = selectors.DefaultSelector()
    for name in sorted(probes):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            answer(probes[name], writer)
        os.close(writer)
        waiting.register(reader, selectors.EVENT_READ, (name, pid, []))
    deadline = time.monotonic() + seconds
    while waiting.get_map() and time.monotonic() < deadline:
        for key, _ in waiting.select(deadline - time.monotonic()):
            name, pid, pieces = key.data
            pieces.append(os.read(key.fd, 1 << 16))
            if pieces[-1]:
                continue
            stop(waiting, key)
            try:
                value, why = json.loads(b"".join(pieces).decode())
            except ValueError:
                value, why = None, "ended without an answer"
            if why is None:
                values[name] = value
            else:
                failed[name] = why
    for key in list(waiting.get_map().values()):
        failed[key.data[0]] = "no answer in %g s" % seconds
        stop(waiting, key)
    return values, failed


def stop(waiting: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Stop a probe and the processes that it started, except for those that hang in the kernel."""
    waiting.unregister(key.fd)
    os.close(key.fd)
    for kill in (os.kill, os.killpg):
        try:
            kill(key.data[1], signal.SIGKILL)
        except OSError:
            continue  # it has ended, or has no process group of its own yet


def answer(probe: Callable[[], Any], writer: int) -> None:
    """Write what `probe` returns, or why it fails, and end this process."""
    os.setsid()
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(devnull, stream)  # a process that hangs must not hold the caller's output open
    try:
        text = json.dumps([probe(), None])
    except Exception as error:
        text = json.dumps([None, "%s: %s" % (type(error).__name__, error)])
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(text.encode())
    os._exit(0)


def output_of(*argv: str, well: Tuple[int, ...] = (0,)) -> str:
    """Return the standard output of a command; raises RuntimeError with its error message when it fails.

    `well` are the exit statuses with which it does not.
    """
    env = dict(os.environ, LC_ALL="C")
    pipe = subprocess.PIPE
    process = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=env)
    if process.returncode not in well:
        message = (process.stderr or process.stdout).decode("utf-8", "replace").strip()
        raise RuntimeError("%s: %s" % (argv[0], message[-300:] or "exit status %d" % process.returncode))
    return process.stdout.decode("utf-8", "replace")


# The host


def host() -> Dict[str, str]:
    """Return the host name, the user and the Python version."""
    user = pwd.getpwuid(os.getuid()).pw_name
    return {"name": socket.gethostname(), "user": user, "python": sys.version.split()[0]}


def limits() -> Dict[str, Any]:
    """Return the limits of this login; -1 is unlimited."""
    devices = "/sys/class/infiniband"
    rdma = os.path.isdir(devices) and bool(os.listdir(devices))
    return {"memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], "rdma": rdma}


def space(path: str) -> Dict[str, Any]:
    """Return the free space of the file system of `path`, or of its nearest parent directory that exists."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path)
    usage = os.statvfs(path)
    return {
        "path": path,
        "mb": usage.f_bavail * usage.f_frsize // 2**20,
        "size_mb": usage.f_blocks * usage.f_frsize // 2**20,
        "inodes": usage.f_favail if usage.f_files else None,  # some file systems count none
        "writable": os.access(path, os.W_OK) and not usage.f_flag & os.ST_RDONLY,
    }


def text_of(path: str) -> str:
    """Return a file of the kernel without its end of line, empty where it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def processors(top: str = "/") -> Dict[str, Any]:
    """Return how processors save power, by those of processor 0, and whether memory moves between NUMA nodes.

    https://docs.kernel.org/admin-guide/pm/cpuidle.html describes the files of idle states.
    """
    cpus = top + "sys/devices/system/cpu/cpu"
    states = sorted(glob.glob(cpus + "0/cpuidle/state*"))
    return {
        "governors": Counter(map(text_of, glob.glob(cpus + "[0-9]*/cpufreq/scaling_governor"))),
        "idle": [
            {name: text_of(state + "/" + name) for name in ("name", "latency", "disable")} for state in states
        ],
        "numa_nodes": len(glob.glob(top + "sys/devices/system/node/node[0-9]*")),
        "numa_balancing": text_of(top + "proc/sys/kernel/numa_balancing"),
    }


DRIVER_PACKAGES = ("nvidia-*", "libnvidia-*", "linux-modules-nvidia-*", "cuda-drivers*")


def upgrades() -> Optional[Dict[str, List[str]]]:
    """Return what apt does by itself, and the packages of the driver with their states; None without apt."""
    try:
        settings = output_of("apt-config", "dump").splitlines()
    except FileNotFoundError:
        return None
    form = "${db:Status-Abbrev}${Package} ${Version}\n"
    packages = output_of("dpkg-query", "-W", "-f", form, "unattended-upgrades", *DRIVER_PACKAGES, well=(0, 1))
    prefixes = ("APT::Periodic::Unattended-Upgrade ", "Unattended-Upgrade::Package-Blacklist:: ")
    return {
        "settings": [line for line in settings if line.startswith(prefixes)],
        "packages": [line for line in packages.splitlines() if line[1:2] == "i"],
    }


DNF_TIMERS = ("dnf-automatic.timer", "dnf-automatic-install.timer")
DNF_DRIVER_PACKAGES = ("*nvidia*", "cuda-drivers*")


def dnf_upgrades(top: str = "/") -> Optional[Dict[str, Any]]:
    """Return what dnf-automatic does by itself, and the packages of the driver; None without rpm.

    https://dnf.readthedocs.io/en/latest/automatic.html describes its timers and its file.
    """
    try:
        packages = output_of("rpm", "-qa", "--qf", "%{NAME}\n", *DNF_DRIVER_PACKAGES).split()
        states = {name: output_of("systemctl", "is-enabled", name, well=(0, 1, 3, 4)) for name in DNF_TIMERS}
    except FileNotFoundError:
        return None
    return {
        "timers": [name for name, state in states.items() if state.strip() == "enabled"],
        "automatic": text_of(top + "etc/dnf/automatic.conf"),
        "dnf": text_of(top + "etc/dnf/dnf.conf"),
        "locked": text_of(top + "etc/dnf/plugins/versionlock.list"),
        "packages": sorted(packages),
    }


def login(seconds: float) -> Dict[str, Any]:
    """Return the seconds that the user's shell takes to start as sshd starts it, and as a login shell.

    A shell that takes longer than twice `seconds` is not waited for: None.
    """
    shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    env = dict(os.environ, SHLVL="0", SSH_CLIENT="127.0.0.1 1 22")  # bash reads ~/.bashrc then
    took: Dict[str, Any] = {"shell": shell, "command": None, "login": None}
    with open(os.devnull, "r+b") as devnull:
        started = time.monotonic()
        streams: Dict[str, Any] = {"stdin": devnull, "stdout": devnull, "stderr": devnull}
        running = {
            kind: subprocess.Popen([shell, flag, "true"], env=env, **streams)
            for kind, flag in (("command", "-c"), ("login", "-lc"))
        }
        while running and time.monotonic() - started < 2 * seconds:
            for kind in [kind for kind in running if running[kind].poll() is not None]:
                took[kind] = round(time.monotonic() - started, 3)
                del running[kind]
            time.sleep(0.005)
    return took


# The network


def interfaces() -> Dict[str, Dict[str, Any]]:
    """Return {interface: {"addresses": ["10.11.0.2/24"], "mtu", "up"}} without the loopback."""
    result: Dict[str, Dict[str, Any]] = {}
    for line in output_of("ip", "-o", "addr", "show").splitlines():
        word = line.split()
        if word[1] != "lo" and word[2] in ("inet", "inet6"):
            result.setdefault(word[1].split("@")[0], {"addresses": []})["addresses"].append(word[3])
    for line in output_of("ip", "-o", "link", "show").splitlines():
        match = re.match(r"\d+: ([^:@]+)\S* <([^>]*)> mtu (\d+)", line)
        if match and match.group(1) in result:
            result[match.group(1)].update(mtu=int(match.group(3)), up="LOWER_UP" in match.group(2).split(","))
    return result


def source(address: str) -> str:
    """Return the source address of packets to `address`; no packet is sent."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address, 9, 0, socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            own: str = probe.getsockname()[0]
            return own
    except OSError as error:
        return error.strerror or str(error)


def resolve(name: str) -> List[str]:
    """Return the addresses that `name` resolves to on this machine."""
    try:
        return sorted(
            {cast(str, entry[4][0]) for entry in socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)}
        )
    except OSError:
        return []


def names(nodes: Iterable[str]) -> Dict[str, Any]:
    """Return {name: addresses} of the nodes and of this machine's own name."""
    own = socket.gethostname()
    resolved = {name: resolve(name) for name in nodes}
    return {"own": own, "own_addresses": resolved.get(own) or resolve(own), "nodes": resolved}


def nccl() -> List[str]:
    """Return the lines of /etc/nccl.conf and of the environment that choose an interface or a GID."""
    lines = []
    for path in ("/etc/nccl.conf", os.path.expanduser("~/.nccl.conf")):
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                lines += [line.strip() for line in file]
    lines += ["%s=%s" % pair for pair in os.environ.items()]
    return [line for line in lines if re.match(r"((NCCL|GLOO|TP)_SOCKET_IFNAME|NCCL_IB_GID_INDEX)=", line)]


# https://docs.kernel.org/admin-guide/abi-stable.html, sysfs-class-infiniband
PHYSICAL_ERRORS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
    "local_link_integrity_errors", "excessive_buffer_overrun_errors",
)  # fmt: skip


def infiniband(top: str = "/") -> Dict[str, Dict[str, Any]]:
    """Return {"mlx5_0/1": port}: ports for RDMA with their physical errors and GIDs {index: [GID, type]}."""
    ports = {}
    for place in sorted(glob.glob(top + "sys/class/infiniband/*/ports/*")):
        device, _, number = place.split("/")[-3:]
        port: Dict[str, Any] = {
            name: text_of("%s/%s" % (place, name)) for name in ("state", "phys_state", "rate", "link_layer")
        }
        port["errors"] = {name: text_of("%s/counters/%s" % (place, name)) for name in PHYSICAL_ERRORS}
        gids = {index: text_of("%s/gids/%s" % (place, index)) for index in os.listdir(place + "/gids")}
        port["gids"] = {
            index: [gid, text_of("%s/gid_attrs/types/%s" % (place, index))]
            for index, gid in gids.items()
            if gid.strip("0:")
        }
        ports["%s/%s" % (device, number)] = port
    return ports


def meet(peer: Dict[str, str], seconds: float, steps: str = "") -> Dict[str, Any]:
    """Reach one peer as mpirun or srun would; return how long it took and the offset of its clock.

    `offset` is the interval in which the peer's clock minus ours must be: the peer reads its clock after we
    send a line and before we receive one, over a connection that is already open.
    """
    ask = "exec sh -c 'while read x; do date +%s.%N; done'"
    argv = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", peer["address"], ask]
    if steps:
        node = ["--nodelist=" + peer["name"], "--nodes=1", "--ntasks=1"]
        how = ["--overlap", "--mpi=none", "--quiet", "--chdir=/", "--export=PATH", "--time=1"]
        argv = ["srun", "--jobid=" + steps] + node + how + ["sh", "-c", ask]
    began, pipe, offset = time.monotonic(), subprocess.PIPE, None
    process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        for turn in range(4):
            before = time.time()
            process.stdin.write(b"\n")
            theirs = read_clock(process.stdout, began + seconds)
            after = time.time()
            if turn == 0:
                took = time.monotonic() - began
            if offset is None or after - before < offset[1] - offset[0]:
                offset = [theirs - after, theirs - before]
        assert offset is not None
        if steps:  # the step of an srun that is killed may run on
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        return {"seconds": round(took, 3), "offset": [round(bound, 6) for bound in offset]}
    except TimeoutError:
        return {"error": "no answer within %.0f s" % seconds}
    except (OSError, EOFError) as error:
        process.kill()
        return {"error": process.stderr.read().decode("utf-8", "replace").strip()[-300:] or str(error)}
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def read_clock(stream: IO[bytes], deadline: float) -> float:
    """Return the time that a peer prints; its shell may print a greeting before."""
    received = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(stream, selectors.EVENT_READ)
        while not re.search(rb"(?:^|\n)\d+\.\d+\n$", received):
            left = deadline - time.monotonic()
            if left <= 0 or not waiting.select(left):
                raise TimeoutError
            piece = stream.read(4096)
            if not piece:
                raise EOFError("the connection ended")
            received += piece
    return float(received.split()[-1])


def meet_all(peers: List[Dict[str, str]], seconds: float, steps: str = "") -> Dict[str, Dict[str, Any]]:
    """Return {name: result of `meet`}, six at a time: sshd drops connections when too many are starting."""
    met: Dict[str, Dict[str, Any]] = {}
    deadline = time.monotonic() + seconds

    def meet_one(peer: Dict[str, str]) -> None:
        left = deadline - time.monotonic()
        met[peer["name"]] = meet(peer, left, steps) if left > 1 else {"error": "no time left to connect"}

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(meet_one, peers))
        # A second try for those that sshd dropped because too many connections were starting.
        busy = re.compile("closed by|reset by|kex_exchange")
        dropped = [peer for peer in peers if busy.search(met[peer["name"]].get("error", ""))]
        list(pool.map(meet_one, dropped))
    return met


def door(address: str, port: int, seconds: float) -> str:
    """Return why a connection to a port of a peer does not get to the peer's kernel; empty where it does."""
    try:
        socket.create_connection((address, port), seconds).close()
    except ConnectionRefusedError:
        return ""  # by the kernel, as nobody listens there; firewalls drop it or answer with ICMP
    except OSError as error:
        # The first is of Python until 3.9.
        late = isinstance(error, (socket.timeout, TimeoutError))
        return "no answer in %g s" % seconds if late else error.strerror or str(error)
    return ""


def doors(peers: List[Dict[str, str]], seconds: float) -> Dict[str, Dict[str, Any]]:
    """Return {name of the peer: port and error} for a port of those that mpirun and frameworks listen on."""
    ports = [random.randrange(32768, 60999) for _ in peers]  # noqa: S311 - no secret
    with ThreadPoolExecutor(32) as pool:
        errors = pool.map(lambda peer, port: door(peer["address"], port, seconds), peers, ports)
        results = [{"port": port, "error": error} for port, error in zip(ports, errors)]  # noqa: B905 - Python 3.6
        return dict(zip((peer["name"] for peer in peers), results))  # noqa: B905 - Python 3.6


def guards(top: str = "/", home: str = "~") -> Dict[str, Any]:
    """Return what SELinux and firewalld do here, and the label of the keys that may log in."""
    try:
        label = os.getxattr(os.path.expanduser(home) + "/.ssh/authorized_keys", "security.selinux")
    except OSError:
        label = b""
    try:
        firewalld = output_of("systemctl", "is-active", "firewalld", well=(0, 1, 3, 4)).strip() == "active"
    except (OSError, RuntimeError):
        firewalld = False
    return {
        "selinux": text_of(top + "sys/fs/selinux/enforce") == "1",
        "nfs_homes": text_of(top + "sys/fs/selinux/booleans/use_nfs_home_dirs").startswith("1"),
        "label": label.decode("ascii", "replace").strip("\0"),
        "firewalld": firewalld,
    }


# Processes


def read_proc(pid: str, what: str) -> str:
    """Return a file of /proc/<pid> as text, empty when it has gone or may not be read."""
    try:
        with open("/proc/%s/%s" % (pid, what), "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def user_name(number: Any) -> str:
    """Return the name of a user, or the number where it has no name on this machine."""
    try:
        return pwd.getpwuid(int(number)).pw_name
    except KeyError:
        return str(number)


def command_line(pid: str) -> List[str]:
    """Return the words of the command of a process."""
    return read_proc(pid, "cmdline").split("\0")[:-1]


def job_of(pid: str) -> str:
    """Return the directory of the node job that a process belongs to, empty where there is none.

    It is WORK/NODE1/CAMPAIGN/CASE/REPEAT. The environment of another user's process cannot be read, but the
    commands that start a job name it too.
    """
    env = dict(pair.split("=", 1) for pair in read_proc(pid, "environ").split("\0") if "=" in pair)
    job = env.get("SCALEBOOK_JOB") or env.get("JOB_DIR", "")
    words = [] if job else command_line(pid)
    if any(word.endswith(("/run_node.py", "/run_job.py")) for word in words[:3]):
        for word in words:
            _, equals, value = word.partition("=")
            job = job or (value if equals and value.startswith("/") and value.count("/") > 4 else "")
    return job


def run_of(job: str) -> str:
    """Return the run of a job's directory, CAMPAIGN/CASE/REPEAT."""
    return "/".join(job.split("/")[-3:])


def describe(pid: str, work_directory: str = "") -> Dict[str, Any]:
    """Return {"pid", "user", "command", "run"} of a process; `run` is that of a node job there."""
    words = command_line(pid)
    match = re.search(r"^Uid:\s+(\d+)", read_proc(pid, "status"), re.MULTILINE)
    job = job_of(pid)
    return {
        "pid": int(pid),
        "user": user_name(match.group(1)) if match else "?",
        "command": (" ".join(words) or read_proc(pid, "comm").strip())[:120],
        "run": run_of(job) if work_directory and job.startswith(work_directory + "/") else None,
    }


def our_processes(work_directory: str) -> List[Dict[str, Any]]:
    """Return the processes that belong to runs whose jobs are below `work_directory`."""
    own = str(os.getpid())
    processes = (describe(pid, work_directory) for pid in os.listdir("/proc") if pid.isdigit() and pid != own)
    return [process for process in processes if process["run"]]


def other_processes(work_directory: str) -> List[Dict[str, Any]]:
    """Return the processes of runs whose jobs are elsewhere: of other users, or of another scalebook_home."""
    jobs = {pid: job_of(pid) for pid in os.listdir("/proc") if pid.isdigit()}
    return [
        dict(describe(pid), run=run_of(job))
        for pid, job in jobs.items()
        if job and not job.startswith(work_directory + "/")
    ]


def listening(ports: Container[int], work_directory: str = "") -> List[Dict[str, Any]]:
    """Return the processes that listen on `ports`: [{"port", …}] with the fields of `describe`."""
    held = {}
    for table in ("tcp", "tcp6"):
        for line in read_proc("self", "net/" + table).splitlines()[1:]:
            word = line.split()
            port = int(word[1].rpartition(":")[2], 16)
            if word[3] == "0A" and port in ports:
                held[word[9]] = (port, int(word[7]))
    holders: Dict[str, Dict[str, Any]] = {}
    for pid in os.listdir("/proc") if held else ():
        if pid.isdigit():
            for link in sockets(pid):
                if link in held:
                    holders[link] = dict(describe(pid, work_directory), port=held[link][0])
    for inode in set(held) - set(holders):  # of another user
        port, user = held[inode]
        holders[inode] = {
            "port": port,
            "pid": None,
            "user": user_name(user),
            "command": "a process of another user",
            "run": None,
        }
    return sorted(holders.values(), key=lambda holder: (holder["port"], holder["pid"] or 0))


def sockets(pid: str) -> List[str]:
    """Return the inodes of the sockets that a process has open, as far as we may read them."""
    inodes = []
    try:
        for name in os.listdir("/proc/%s/fd" % pid):
            link = os.readlink("/proc/%s/fd/%s" % (pid, name))
            if link.startswith("socket:["):
                inodes.append(link[8:-1])
    except OSError:
        return inodes  # it has ended, or we may not read it
    return inodes


# GPUs

ANSWERED = (0, 14)
"""Statuses of nvidia-smi with an answer; 14 warns of a damaged infoROM."""


def on_the_bus(top: str = "/") -> List[str]:
    """Return the directories of the NVIDIA display or compute devices on the PCI bus."""
    return [
        device
        for device in sorted(glob.glob(top + "sys/bus/pci/devices/*"))
        if text_of(device + "/vendor") == "0x10de" and text_of(device + "/class").startswith("0x03")
    ]


def acs(config: bytes) -> Optional[int]:
    """Return the ACS control register in the configuration of a bridge; 0 without one, None if it is hidden.

    Extended capabilities begin at byte 256, which only root may read; that of ACS has number 13.
    """
    place = 256 if len(config) > 256 else None
    while place:
        header = int.from_bytes(config[place : place + 4], "little")
        if header & 0xFFFF == 13:
            return int.from_bytes(config[place + 6 : place + 8], "little")
        following = header >> 20
        place = following if following > place else 0
    return place


def switches(top: str = "/") -> Dict[str, Dict[str, Any]]:
    """Return {GPU: its NUMA node, the domain of its IOMMU, and {port: ACS} of the PCIe switches above it}.

    The root port, the first bridge of its path, is none of them: what passes it goes through the processor.
    """
    gpus = {}
    for device in on_the_bus(top):
        path = os.path.realpath(device)
        buses = re.findall(r"(?<=/)[0-9a-f]+:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?=/|$)", path)
        ports = {}
        for bus in buses[1:-1]:
            with open(path[: path.index(bus) + len(bus)] + "/config", "rb") as file:
                ports[bus] = acs(file.read(4096))
        gpus[buses[-1]] = {
            "numa_node": text_of(device + "/numa_node"),
            "iommu": text_of(device + "/iommu_group/type"),
            "ports": ports,
        }
    return gpus


def fabric_manager() -> str:
    """Return what the fabric manager says of its version, empty where it is not installed."""
    try:
        return output_of("nv-fabricmanager", "--version")
    except FileNotFoundError:
        return ""


def nvidia_smi() -> Optional[Dict[str, Any]]:
    """Return {"report", "processes": {pid: description}}; None where nvidia-smi is not installed.

    `report` is the output of `nvidia-smi -q -x`, a description is that of `describe`.
    """
    try:
        report = output_of("nvidia-smi", "-q", "-x", well=ANSWERED)
    except FileNotFoundError:
        return None
    except RuntimeError as error:
        raise RuntimeError("%s%s" % (error, loaded_module())) from error
    return {
        "report": report,
        "processes": {pid: describe(pid) for pid in re.findall(r"<pid>(\d+)</pid>", report)},
    }


def loaded_module() -> str:
    """Return in words the version of the driver's module that the kernel has loaded; empty for none."""
    version = text_of("/sys/module/nvidia/version")
    return "; loaded module: %s" % version if version else ""


def nvlink() -> str:
    """Return the output of `nvidia-smi nvlink --status`."""
    try:
        return output_of("nvidia-smi", "nvlink", "--status", well=ANSWERED)
    except FileNotFoundError:
        return ""


def xids() -> List[str]:
    """Return the lines of the kernel's log in which the driver reports errors, since the machine started.

    SXid are those of NVSwitches.
    """
    return [line for line in output_of("dmesg").splitlines() if "NVRM: Xid" in line or ": SXid (" in line]


def argument_spec() -> Dict[str, Any]:
    peer = {"name": {"type": "str", "required": True}, "address": {"type": "str", "required": True}}
    return {
        "peers": {"type": "list", "elements": "dict", "default": [], "options": peer},
        "names": {"type": "list", "elements": "str", "default": []},
        "ports": {"type": "list", "elements": "int", "default": []},
        "work": {"type": "str", "required": True},
        "login": {"type": "bool", "default": False},
        "steps": {"type": "str", "default": ""},
        "gpus": {"type": "bool", "default": False},
        "seconds": {"type": "float", "default": 20},
        "login_seconds": {"type": "float", "default": 1},
    }


def probes_for(options: Dict[str, Any]) -> Dict[str, Callable[[], Any]]:
    """Return {name: function} of the probes that the module's options ask for."""
    work_directory, peers, steps = options["work"], options["peers"], options["steps"]
    probes: Dict[str, Callable[[], Any]] = {
        "host": host,
        "limits": limits,
        "work": lambda: space(work_directory),
        "shm": lambda: space("/dev/shm"),  # noqa: S108 - only its size is read
        "ports": lambda: listening(options["ports"], work_directory),
        "ours": lambda: our_processes(work_directory),
        "others": lambda: other_processes(work_directory),
        "processors": processors,
    }
    if options["login"]:
        probes.update(
            interfaces=interfaces,
            names=lambda: names(options["names"]),
            routes=lambda: {peer["name"]: source(peer["address"]) for peer in peers},
            nccl=nccl,
        )
        if not steps:
            probes.update(login=lambda: login(options["login_seconds"]))
            probes.update(doors=lambda: doors(peers, min(3, 0.2 * options["seconds"])), guards=guards)
        if steps != "-":
            probes.update(peers=lambda: meet_all(peers, 0.9 * options["seconds"], steps))
    if options["gpus"]:
        probes.update(bus=lambda: len(on_the_bus()), smi=nvidia_smi, nvlink=nvlink, xids=xids)
        probes.update(
            fabric_manager=fabric_manager, switches=switches, infiniband=infiniband, upgrades=upgrades
        )
        probes.update(dnf_upgrades=dnf_upgrades)
    return probes


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    started = time.monotonic()
    facts, failures = bounded(probes_for(module.params), module.params["seconds"])
    facts["seconds"] = round(time.monotonic() - started, 3)
    module.exit_json(changed=False, facts=facts, failures=failures)


if __name__ == "__main__":
    main()
