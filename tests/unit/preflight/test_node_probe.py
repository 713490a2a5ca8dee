# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""node_probe on this machine: it answers in time whatever hangs, and recognises processes of runs."""

import os
import socket
import stat
import subprocess
import sys
import time

import pytest
from preflight_site import DATA, ROOT, node_probe
from run_module import run_module


def run(env=None, **options):
    """Return the facts and failures of the module, by default without logins and GPUs."""
    # The login of whoever runs the tests is nobody's business here.
    options = {"work": "/tmp", "seconds": 10, "login_seconds": 0.1, **options}
    result = run_module("node_probe", env, **options)
    assert "failed" not in result, result["msg"]
    assert result["changed"] is False
    return {"facts": result["facts"], "failed": result["failures"]}


def tool(folder, name, text):
    """Put a program of our own in front of all others."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


# Watchdogs


def test_a_probe_that_hangs_is_given_up_and_the_others_answer():
    started = time.monotonic()
    values, failed = node_probe.bounded({"hangs": lambda: time.sleep(60), "works": lambda: 7}, 0.5)
    assert (values, failed) == ({"works": 7}, {"hangs": "no answer in 0.5 s"})
    assert time.monotonic() - started < 5


def test_a_file_that_nobody_writes_to_hangs_nothing(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    _, failed = node_probe.bounded({"fifo": lambda: (tmp_path / "fifo").read_text()}, 0.5)
    assert failed == {"fifo": "no answer in 0.5 s"}


def test_what_a_hanging_probe_started_is_ended_with_it(tmp_path):
    def hang():
        child = subprocess.Popen(["sleep", "60"])
        (tmp_path / "pid").write_text(str(child.pid))
        child.wait()

    node_probe.bounded({"hangs": hang}, 1.0)
    deadline = time.monotonic() + 5
    pid = (tmp_path / "pid").read_text()
    while node_probe.read_proc(pid, "cmdline").startswith("sleep") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not node_probe.read_proc(pid, "cmdline").startswith("sleep")


def test_a_probe_that_fails_says_why():
    _, failed = node_probe.bounded({"fails": lambda: node_probe.output_of("ls", "/nowhere at all")}, 5)
    assert "No such file or directory" in failed["fails"]


def test_a_probe_that_dies_is_told():
    _, failed = node_probe.bounded({"dies": lambda: os.kill(os.getpid(), 9)}, 5)
    assert failed == {"dies": "ended without an answer"}


def test_an_answer_of_a_megabyte_comes_whole():
    values, _ = node_probe.bounded({"long": lambda: "x" * 1_000_000}, 10)
    assert len(values["long"]) == 1_000_000


def test_a_driver_that_hangs_costs_its_own_answer_only(tmp_path):
    seen = run(tool(tmp_path / "bin", "nvidia-smi", "#!/bin/sh\nsleep 60\n"), gpus=True, seconds=2)
    assert seen["failed"]["smi"] == "no answer in 2 s"
    assert seen["facts"]["work"]["mb"] > 0
    assert seen["facts"]["seconds"] < 10


# The host


def test_this_machine_is_seen_in_little_time():
    facts = run(work=str(ROOT))["facts"]
    assert facts["work"]["path"] == str(ROOT)
    assert facts["work"]["writable"] is True
    assert facts["shm"]["size_mb"] > 0
    assert facts["host"]["name"] == socket.gethostname()
    assert facts["seconds"] < 10


def test_a_directory_that_is_not_there_yet_is_that_above_it(tmp_path):
    assert node_probe.space(str(tmp_path / "not" / "yet"))["path"] == str(tmp_path)


def test_a_slow_login_is_timed_and_given_up(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\n[ "$1" = -c ] || sleep 30\n')
    shell.chmod(0o755)
    monkeypatch.setattr(node_probe.pwd, "getpwuid", lambda uid: type("user", (), {"pw_shell": str(shell)}))
    started = time.monotonic()
    took = node_probe.login(0.7)
    assert took["command"] is not None and took["login"] is None
    assert time.monotonic() - started < 15


# The network


def test_the_address_that_traffic_leaves_from_is_known():
    assert node_probe.source("127.0.0.1") == "127.0.0.1"


def test_an_address_that_nobody_can_talk_to_says_why():
    assert not node_probe.source("no such name.invalid").replace(".", "").isdigit()


def test_a_port_that_nobody_listens_on_is_reached_and_one_that_is_not_routed_is_not():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        assert node_probe.door("127.0.0.1", listener.getsockname()[1], 1) == ""
        listener.listen()
        assert node_probe.door("127.0.0.1", listener.getsockname()[1], 1) == ""
    # A broadcast address: the kernel refuses by itself, as after an answer of ICMP.
    assert node_probe.door("255.255.255.255", 40000, 0.1) != ""


def test_what_selinux_and_firewalld_do_is_read(tmp_path, monkeypatch):
    (tmp_path / "sys/fs/selinux/booleans").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").write_text("1")
    (tmp_path / "sys/fs/selinux/booleans/use_nfs_home_dirs").write_text("0 0")
    monkeypatch.setenv("PATH", tool(tmp_path / "bin", "systemctl", "#!/bin/sh\necho active\n")["PATH"])
    label = b"unconfined_u:object_r:ssh_home_t:s0\0"
    monkeypatch.setattr(os, "getxattr", lambda path, name: label)
    assert node_probe.guards(f"{tmp_path}/") == {
        "selinux": True,
        "nfs_homes": False,
        "label": "unconfined_u:object_r:ssh_home_t:s0",
        "firewalld": True,
    }


def test_a_host_without_selinux_and_systemd_has_neither(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node_probe.guards(f"{tmp_path}/", str(tmp_path)) == {
        "selinux": False,
        "nfs_homes": False,
        "label": "",
        "firewalld": False,
    }


def test_a_peer_that_does_not_answer_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", tool(tmp_path / "bin", "ssh", "#!/bin/sh\nexec sleep 60\n")["PATH"])
    assert node_probe.meet({"name": "NODE2", "address": "10.11.0.3"}, 1.0) == {
        "error": "no answer within 1 s"
    }


def test_a_peer_is_reached_by_a_step_of_slurm_where_there_is_a_job(tmp_path):
    env = tool(tmp_path / "bin", "srun", '#!/bin/sh\necho "$*" >&2; exit 1\n')
    peers = [{"name": "NODE2", "address": "10.11.0.3"}]
    facts = run(env, peers=peers, login=True, steps="17")["facts"]
    assert "--jobid=17 --nodelist=NODE2 --nodes=1" in facts["peers"]["NODE2"]["error"]
    assert "login" not in facts and "peers" not in run(env, peers=peers, login=True, steps="-")["facts"]


def test_a_step_is_left_to_end_by_itself(tmp_path):
    clock = f"#!/bin/sh\nwhile read x; do date +%s.%N; done\nsleep 0.3\ntouch {tmp_path}/ended\n"
    env = tool(tmp_path / "bin", "srun", clock)
    facts = run(env, peers=[{"name": "NODE2", "address": "10.11.0.3"}], login=True, steps="17")["facts"]
    assert set(facts["peers"]["NODE2"]) == {"seconds", "offset"}
    assert (tmp_path / "ended").exists()


def test_a_peer_that_refuses_says_why(tmp_path):
    env = tool(tmp_path / "bin", "ssh", "#!/bin/sh\necho Host key verification failed. >&2; exit 255\n")
    seen = run(env, peers=[{"name": "NODE2", "address": "10.11.0.3"}], login=True)
    assert seen["facts"]["peers"]["NODE2"] == {"error": "Host key verification failed."}


# The last word of the command is what a login on the peer would run.
PEER = '#!/bin/sh\nfor word; do :; done\n{}\nexec sh -c "$word"\n'


def test_a_peers_clock_is_read_within_an_interval(tmp_path):
    env = tool(tmp_path / "bin", "ssh", PEER.format(""))
    said = run(env, peers=[{"name": "NODE2", "address": "10.11.0.3"}], login=True)["facts"]["peers"]["NODE2"]
    low, high = said["offset"]
    assert low <= 0 <= high
    assert high - low < 2


def test_a_slow_login_does_not_move_a_peers_clock(tmp_path):
    env = tool(tmp_path / "bin", "ssh", PEER.format("sleep 1"))
    said = run(env, peers=[{"name": "NODE2", "address": "10.11.0.3"}], login=True)["facts"]["peers"]["NODE2"]
    assert said["seconds"] >= 1
    assert said["offset"][0] <= 0 <= said["offset"][1]
    assert said["offset"][1] - said["offset"][0] < 1


def test_a_shell_that_greets_is_understood(tmp_path):
    env = tool(tmp_path / "bin", "ssh", PEER.format("echo Welcome; echo 17 users"))
    said = run(env, peers=[{"name": "NODE2", "address": "10.11.0.3"}], login=True)["facts"]["peers"]["NODE2"]
    assert "offset" in said


def test_who_holds_a_port_is_named():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        [held] = node_probe.listening([port])
    assert (held["port"], held["pid"]) == (port, os.getpid())
    assert node_probe.listening([port]) == []


# Processes of ours


def start(work, env=None):
    job = {"JOB_DIR": f"{work}/NODE1/night/1n1g/1"} if env is None else env
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={**os.environ, **job})


@pytest.fixture
def children():
    started = []
    yield started
    for child in started:
        child.kill()
        child.wait()


def test_a_process_of_a_run_is_known_by_its_environment(tmp_path, children):
    children.append(start(tmp_path))
    deadline = time.monotonic() + 5
    while not node_probe.our_processes(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)  # between fork and exec it has its parent's environment
    [found] = node_probe.our_processes(str(tmp_path))
    assert (found["pid"], found["run"]) == (children[0].pid, "night/1n1g/1")


def test_what_is_no_run_of_ours_is_let_be(tmp_path, children):
    children += [start(tmp_path / "elsewhere"), start(tmp_path / "work", env={})]
    time.sleep(0.5)
    assert node_probe.our_processes(str(tmp_path / "work")) == []


def others(work, pid):
    """Return the runs of others' jobs that the process belongs to, once it has its own command."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        found = [each for each in node_probe.other_processes(str(work)) if each["pid"] == pid]
        if found:
            return [(each["run"], each["user"]) for each in found]
        time.sleep(0.05)
    return []


def test_a_process_of_a_run_elsewhere_is_named_with_its_run_and_user(tmp_path, children):
    children.append(start(tmp_path / "elsewhere"))
    user = node_probe.user_name(os.getuid())
    assert others(tmp_path / "work", children[0].pid) == [("night/1n1g/1", user)]


def test_a_run_of_another_user_is_known_by_its_command(tmp_path, children, monkeypatch):
    """Its environment cannot be read."""
    program = tmp_path / "run_node.py"
    program.write_text("import time; time.sleep(60)")
    job = "NODE1=/srv/bob/work/NODE1/night/1n1g/1"
    children.append(subprocess.Popen([sys.executable, program, "--processes", "1", job]))
    read = node_probe.read_proc
    monkeypatch.setattr(
        node_probe, "read_proc", lambda pid, what: "" if what == "environ" else read(pid, what)
    )
    assert others(tmp_path / "work", children[0].pid) == [("night/1n1g/1", node_probe.user_name(os.getuid()))]


# GPUs


def recorded(folder, report):
    """Return the facts that a machine with the recorded report would give."""
    folder.mkdir()
    (folder / "report").write_text(report)
    script = f'#!/bin/sh\n[ "$1" = -q ] && exec cat {folder}/report\nexit 0\n'
    return run(tool(folder / "bin", "nvidia-smi", script), gpus=True)["facts"]


def test_the_drivers_report_comes_whole(tmp_path):
    report = (DATA / "h100-busy.xml").read_text()
    assert recorded(tmp_path / "smi", report)["smi"]["report"] == report


def test_a_warning_of_a_damaged_inforom_is_an_answer(tmp_path):
    warning = "WARNING: infoROM is corrupted at gpu 0000:05:00.0"
    script = f"#!/bin/sh\necho '<nvidia_smi_log/>'\necho '{warning}'\nexit 14\n"
    facts = run(tool(tmp_path / "bin", "nvidia-smi", script), gpus=True)["facts"]
    assert "infoROM is corrupted" in facts["smi"]["report"]


def test_versions_that_differ_are_an_error_with_what_was_printed(tmp_path):
    script = (DATA / "reported" / "nvidia-smi-mismatch").read_text()
    why = run(tool(tmp_path / "bin", "nvidia-smi", script), gpus=True)["failed"]["smi"]
    assert "Driver/library version mismatch\nNVML library version: 550.107" in why


def test_the_errors_of_gpus_and_of_switches_are_taken_from_the_kernels_log(tmp_path):
    lines = [
        "[1] NVRM: Xid (PCI:0000:05:00): 79, x",
        "[2] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 1, Fatal, x",
    ]
    script = "#!/bin/sh\ncat <<END\n" + "\n".join([*lines, "[3] NVRM: loading"]) + "\nEND\n"
    assert run(tool(tmp_path / "bin", "dmesg", script), gpus=True)["facts"]["xids"] == lines


def test_the_process_on_a_gpu_is_looked_up(tmp_path, children):
    children.append(start(tmp_path, env={}))
    pid = str(children[0].pid)
    report = (DATA / "h100-busy.xml").read_text().replace("<pid>446<", f"<pid>{pid}<")
    facts = recorded(tmp_path / "smi", report)
    process = facts["smi"]["processes"][pid]
    assert "time.sleep(60)" in process["command"]
    assert process["user"] == facts["host"]["user"]


def test_a_machine_without_gpus_is_no_failure(tmp_path):
    seen = run({"PATH": str(tmp_path)}, gpus=True)
    assert seen["facts"]["smi"] is None
    assert seen["facts"]["nvlink"] == ""


# How machines are set up, on trees of files with the names that Linux gives them


def tree(top, files):
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else f"{text}\n".encode())
    return f"{top}/"


def test_how_processors_save_power_is_read(tmp_path):
    cpu = "sys/devices/system/cpu/cpu"
    files = {f"{cpu}{index}/cpufreq/scaling_governor": "schedutil" for index in range(2)}
    files |= {f"{cpu}0/cpuidle/state1/{name}": name for name in ("name", "latency", "disable")}
    files |= {"sys/devices/system/node/node0/cpulist": "0-1", "proc/sys/kernel/numa_balancing": "1"}
    assert node_probe.processors(tree(tmp_path, files)) == {
        "governors": {"schedutil": 2},
        "idle": [{"name": "name", "latency": "latency", "disable": "disable"}],
        "numa_nodes": 1,
        "numa_balancing": "1",
    }


def test_ports_for_rdma_are_read_without_their_empty_gids(tmp_path):
    port = "sys/class/infiniband/mlx5_0/ports/1"
    files = {
        f"{port}/state": "4: ACTIVE",
        f"{port}/counters/symbol_error": "3",
        f"{port}/gids/0": "fe80:0000:0000:0000:a088:c203:0020:5b27",
        f"{port}/gids/1": "0000:0000:0000:0000:0000:0000:0000:0000",
        f"{port}/gid_attrs/types/0": "RoCE v2",
    }
    seen = node_probe.infiniband(tree(tmp_path, files))["mlx5_0/1"]
    assert (seen["state"], seen["errors"]["symbol_error"]) == ("4: ACTIVE", "3")
    assert seen["gids"] == {"0": ["fe80:0000:0000:0000:a088:c203:0020:5b27", "RoCE v2"]}


def config(*capabilities):
    """Return the configuration of a device with such extended capabilities, (number, second word) each."""
    head = bytes(256)
    for index, (number, word) in enumerate(capabilities, 1):
        following = 256 + 8 * index if index < len(capabilities) else 0
        header = number | 1 << 16 | following << 20
        head += header.to_bytes(4, "little") + word.to_bytes(4, "little")
    return head + bytes(4096 - len(head))


def test_acs_is_read_behind_other_capabilities():
    assert node_probe.acs(config((1, 0), (13, 0x001D_00FF))) == 0x1D
    assert node_probe.acs(config((1, 0))) == 0


def test_acs_that_only_root_may_read_is_not_known():
    assert node_probe.acs(config((13, 0x001D_00FF))[:64]) is None


def test_the_switch_ports_above_a_gpu_are_read_without_the_root_port(tmp_path):
    gpu = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0"
    files = {
        f"{gpu}/vendor": "0x10de",
        f"{gpu}/class": "0x030200",
        f"{gpu}/numa_node": "1",
        f"{gpu}/iommu_group/type": "DMA-FQ",
        f"{gpu}/../config": config((13, 0x001D_00FF)),
        f"{gpu}/../../config": config((13, 0x001D_00FF)),
    }
    top = tree(tmp_path, files)
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:17:00.0").symlink_to(tmp_path / gpu)
    assert node_probe.switches(top) == {
        "0000:17:00.0": {"numa_node": "1", "iommu": "DMA-FQ", "ports": {"0000:16:00.0": 0x1D}}
    }


DPKG = """#!/bin/sh
echo 'ii nvidia-driver-580 580.159.04'
echo 'rc nvidia-driver-570 570.1'
echo 'dpkg-query: no packages found matching cuda-drivers*' >&2
exit 1
"""


def test_packages_of_the_driver_are_read_where_some_are_not_installed(tmp_path, monkeypatch):
    apt = "#!/bin/sh\necho 'APT::Periodic::Unattended-Upgrade \"1\";'\necho 'APT::Architecture \"amd64\";'\n"
    tool(tmp_path / "bin", "apt-config", apt)
    monkeypatch.setenv("PATH", tool(tmp_path / "bin", "dpkg-query", DPKG)["PATH"])
    assert node_probe.upgrades() == {
        "settings": ['APT::Periodic::Unattended-Upgrade "1";'],
        "packages": ["ii nvidia-driver-580 580.159.04"],
    }


def test_what_dnf_replaces_by_itself_is_read_with_what_keeps_it_from_the_driver(tmp_path, monkeypatch):
    enabled = '#!/bin/sh\n[ "$2" = dnf-automatic.timer ] && echo enabled && exit\necho disabled\nexit 1\n'
    tool(tmp_path / "bin", "systemctl", enabled)
    packages = "#!/bin/sh\nprintf 'nvidia-driver\nkmod-nvidia-open-dkms\n'\n"
    monkeypatch.setenv("PATH", tool(tmp_path / "bin", "rpm", packages)["PATH"])
    top = tree(tmp_path, {"etc/dnf/automatic.conf": "apply_updates = yes\n", "etc/dnf/dnf.conf": "[main]\n"})
    assert node_probe.dnf_upgrades(top) == {
        "timers": ["dnf-automatic.timer"],
        "automatic": "apply_updates = yes",
        "dnf": "[main]",
        "locked": "",
        "packages": ["kmod-nvidia-open-dkms", "nvidia-driver"],
    }


def test_without_rpm_nothing_is_said_of_dnf(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node_probe.dnf_upgrades() is None
