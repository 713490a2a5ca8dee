#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Look at one machine before a campaign and print what was seen as one JSON object.

usage: look.py ASK

ASK is a JSON object: `peers` [{"name", "address"}] that this machine must reach by ssh, `names` that it must
know, `ports` that runs will want, `work` (directory of the jobs), `login` and `gpus` (whether to look at
these), `seconds` for everything, `login_seconds` a login may take.  Printed is {"facts": {probe: value},
"failed": {probe: why}}.  Nothing is judged here, and nothing is changed.

Every probe runs in a process of its own and is given up when it does not answer: a file system or a driver
that hangs costs its own answer and no other.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import json
import os
import pwd
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

# Running probes


def bounded(probes, seconds):
    """Run `probes` {name: function} at once, each in a process of its own.

    Returns ({name: value}, {name: why there is none}) after `seconds` at the latest.
    """
    values, failed, waiting = {}, {}, selectors.DefaultSelector()
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
            give_up(waiting, key)
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
        give_up(waiting, key)
    return values, failed


def give_up(waiting, key):
    """End a probe and what it started; what hangs in the kernel is left to itself."""
    waiting.unregister(key.fd)
    os.close(key.fd)
    for kill in (os.kill, os.killpg):
        try:
            kill(key.data[1], signal.SIGKILL)
        except OSError:
            continue  # it is gone, or has no group of its own yet


def answer(probe, writer):
    """Write what `probe` returns, or why it does not, and end this process."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)  # who hangs must not hold the caller's output open
    try:
        text = json.dumps([probe(), None])
    except Exception as error:
        text = json.dumps([None, "%s: %s" % (type(error).__name__, error)])
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(text.encode())
    os._exit(0)


def said(*argv):
    """Return what a command prints; raises RuntimeError with its complaint when it fails."""
    env = dict(os.environ, LC_ALL="C")
    pipe = subprocess.PIPE
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=env)
    if done.returncode:
        complaint = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise RuntimeError("%s: %s" % (argv[0], complaint[-300:] or "exit status %d" % done.returncode))
    return done.stdout.decode("utf-8", "replace")


# The host


def host():
    """Return who and what this machine is."""
    user = pwd.getpwuid(os.getuid()).pw_name
    return {"name": socket.gethostname(), "user": user, "python": sys.version.split()[0]}


def limits():
    """Return the limits of this login; -1 is unlimited."""
    devices = "/sys/class/infiniband"
    rdma = os.path.isdir(devices) and bool(os.listdir(devices))
    return {"memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], "rdma": rdma}


def space(path):
    """Return the file system below `path`, or below the nearest directory there is."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return {
        "path": path,
        "mb": found.f_bavail * found.f_frsize // 2**20,
        "size_mb": found.f_blocks * found.f_frsize // 2**20,
        "inodes": found.f_favail if found.f_files else None,  # some file systems count none
        "writable": os.access(path, os.W_OK) and not found.f_flag & os.ST_RDONLY,
    }


def login(seconds):
    """Return the seconds that the user's shell takes to start as sshd starts it, and as a login shell.

    What takes longer than twice `seconds` is given up: None.
    """
    shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    env = dict(os.environ, SHLVL="0", SSH_CLIENT="127.0.0.1 1 22")  # bash reads ~/.bashrc then
    took = {"shell": shell, "command": None, "login": None}
    with open(os.devnull, "r+b") as nowhere:
        started = time.monotonic()
        streams = {"stdin": nowhere, "stdout": nowhere, "stderr": nowhere}
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


def interfaces():
    """Return {interface: {"addresses": ["10.11.0.2/24"], "mtu", "up"}} without the loopback."""
    found = {}
    for line in said("ip", "-o", "addr", "show").splitlines():
        word = line.split()
        if word[1] != "lo" and word[2] in ("inet", "inet6"):
            found.setdefault(word[1].split("@")[0], {"addresses": []})["addresses"].append(word[3])
    for line in said("ip", "-o", "link", "show").splitlines():
        match = re.match(r"\d+: ([^:@]+)\S* <([^>]*)> mtu (\d+)", line)
        if match and match.group(1) in found:
            found[match.group(1)].update(mtu=int(match.group(3)), up="LOWER_UP" in match.group(2).split(","))
    return found


def source(address):
    """Return the address that this machine would talk to `address` from; no packet is sent."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address, 9, 0, socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return probe.getsockname()[0]
    except OSError as error:
        return error.strerror or str(error)


def resolve(name):
    """Return the addresses of `name` here."""
    try:
        return sorted({found[4][0] for found in socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)})
    except OSError:
        return []


def names(wanted):
    """Return {name: addresses} of the nodes and of this machine's own name."""
    own = socket.gethostname()
    found = {name: resolve(name) for name in wanted}
    return {"own": own, "own_addresses": found.get(own) or resolve(own), "nodes": found}


def nccl():
    """Return the lines of /etc/nccl.conf and of the environment that name an interface."""
    lines = []
    for path in ("/etc/nccl.conf", os.path.expanduser("~/.nccl.conf")):
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                lines += [line.strip() for line in file]
    lines += ["%s=%s" % pair for pair in os.environ.items()]
    return [line for line in lines if re.match(r"(NCCL|GLOO|TP)_SOCKET_IFNAME=", line)]


def meet(peer, seconds):
    """Log in to one peer as mpirun would; return how long it took and what its clock says.

    `offset` is the interval in which the peer's clock minus ours must be: it read its clock between our
    sending a line and our receiving one, over a connection that is open already.
    """
    ask = "exec sh -c 'while read x; do date +%s.%N; done'"
    argv = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", peer["address"], ask]
    began, pipe, offset = time.monotonic(), subprocess.PIPE, None
    process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
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


def read_clock(stream, deadline):
    """Return the time that a peer prints; a shell may have a greeting of its own before."""
    told = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(stream, selectors.EVENT_READ)
        while not re.search(rb"(?:^|\n)\d+\.\d+\n$", told):
            left = deadline - time.monotonic()
            if left <= 0 or not waiting.select(left):
                raise TimeoutError
            piece = stream.read(4096)
            if not piece:
                raise EOFError("the connection ended")
            told += piece
    return float(told.split()[-1])


def meet_all(peers, seconds):
    """Return {name: what `meet` says}, a few at a time: sshd drops callers when too many come at once."""
    found, deadline = {}, time.monotonic() + seconds

    def meet_one(peer):
        left = deadline - time.monotonic()
        found[peer["name"]] = meet(peer, left) if left > 1 else {"error": "no time left to ask"}

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(meet_one, peers))
        # A full house is no closed one.
        full = re.compile("closed by|reset by|kex_exchange")
        list(
            pool.map(meet_one, [peer for peer in peers if full.search(found[peer["name"]].get("error", ""))])
        )
    return found


# Processes


def read_proc(pid, what):
    """Return a file of /proc/<pid> as text, empty when it is gone or not ours to read."""
    try:
        with open("/proc/%s/%s" % (pid, what), "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def user_name(number):
    """Return the name of a user, the number where it has none here."""
    try:
        return pwd.getpwuid(int(number)).pw_name
    except KeyError:
        return str(number)


def describe(pid, work=""):
    """Return {"pid", "user", "command", "run"} of a process; `run` is that of ours below `work`."""
    words = read_proc(pid, "cmdline").split("\0")[:-1]
    env = dict(pair.split("=", 1) for pair in read_proc(pid, "environ").split("\0") if "=" in pair)
    match = re.search(r"^Uid:\s+(\d+)", read_proc(pid, "status"), re.MULTILINE)
    job = env.get("SCALEBOOK_GANG") or env.get("JOB_DIR", "")
    return {
        "pid": int(pid),
        "user": user_name(match.group(1)) if match else "?",
        "command": (" ".join(words) or read_proc(pid, "comm").strip())[:120],
        # WORK/NODE1/CAMPAIGN/CASE/REPEAT
        "run": "/".join(job.split("/")[-3:]) if work and job.startswith(work + "/") else None,
    }


def our_processes(work):
    """Return the processes that belong to runs whose jobs are below `work`."""
    mine = str(os.getpid())
    found = (describe(pid, work) for pid in os.listdir("/proc") if pid.isdigit() and pid != mine)
    return [process for process in found if process["run"]]


def listening(ports, work=""):
    """Return who listens on `ports`: [{"port", …}], each as `describe` tells it."""
    held = {}
    for table in ("tcp", "tcp6"):
        for line in read_proc("self", "net/" + table).splitlines()[1:]:
            word = line.split()
            port = int(word[1].rpartition(":")[2], 16)
            if word[3] == "0A" and port in ports:
                held[word[9]] = (port, int(word[7]))
    found = {}
    for pid in os.listdir("/proc") if held else ():
        if pid.isdigit():
            for link in sockets(pid):
                if link in held:
                    found[link] = dict(describe(pid, work), port=held[link][0])
    for inode in set(held) - set(found):  # another user's
        port, user = held[inode]
        found[inode] = {
            "port": port,
            "pid": None,
            "user": user_name(user),
            "command": "a process of theirs",
            "run": None,
        }
    return sorted(found.values(), key=lambda one: (one["port"], one["pid"] or 0))


def sockets(pid):
    """Return the numbers of the sockets that a process has open, as far as we may look."""
    numbers = []
    try:
        for name in os.listdir("/proc/%s/fd" % pid):
            link = os.readlink("/proc/%s/fd/%s" % (pid, name))
            if link.startswith("socket:["):
                numbers.append(link[8:-1])
    except OSError:
        return numbers  # it ended, or is not ours to look into
    return numbers


# GPUs


def on_the_bus():
    """Return how many NVIDIA display or compute devices the PCI bus shows."""
    count = 0
    for device in os.listdir("/sys/bus/pci/devices") if os.path.isdir("/sys/bus/pci/devices") else ():
        about = []
        for what in ("vendor", "class"):
            with open("/sys/bus/pci/devices/%s/%s" % (device, what), encoding="ascii") as file:
                about.append(file.read().strip())
        count += about[0] == "0x10de" and about[1].startswith("0x03")
    return count


def nvidia_smi():
    """Return {"report", "processes": {pid: who}}; None where there is no such program.

    `report` is what `nvidia-smi -q -x` prints, `who` as `describe` tells it.
    """
    try:
        report = said("nvidia-smi", "-q", "-x")
    except FileNotFoundError:
        return None
    return {
        "report": report,
        "processes": {pid: describe(pid) for pid in re.findall(r"<pid>(\d+)</pid>", report)},
    }


def nvlink():
    """Return what `nvidia-smi nvlink --status` prints."""
    try:
        return said("nvidia-smi", "nvlink", "--status")
    except FileNotFoundError:
        return ""


def xids():
    """Return the lines of the kernel's log in which the driver tells of errors, since the machine started."""
    return [line for line in said("dmesg").splitlines() if "NVRM: Xid" in line]


def main():
    """Look, and print what was seen."""
    started, ask = time.monotonic(), json.loads(sys.argv[1])
    work, limit = ask["work"], ask["seconds"]
    probes = {
        "host": host,
        "limits": limits,
        "work": lambda: space(work),
        "shm": lambda: space("/dev/shm"),  # noqa: S108 - only looked at
        "ports": lambda: listening(ask["ports"], work),
        "ours": lambda: our_processes(work),
    }
    if ask["login"]:
        routes = {peer["name"]: peer["address"] for peer in ask["peers"]}
        probes.update(
            login=lambda: login(ask["login_seconds"]),
            interfaces=interfaces,
            names=lambda: names(ask["names"]),
            routes=lambda: {name: source(address) for name, address in routes.items()},
            nccl=nccl,
            peers=lambda: meet_all(ask["peers"], 0.9 * limit),
        )
    if ask["gpus"]:
        probes.update(bus=on_the_bus, smi=nvidia_smi, nvlink=nvlink, xids=xids)
    facts, failed = bounded(probes, limit)
    facts["seconds"] = round(time.monotonic() - started, 3)
    print(json.dumps({"facts": facts, "failed": failed}))


if __name__ == "__main__":
    main()
