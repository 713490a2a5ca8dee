# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sampler: known loads come out of it, and whatever happens to it, the run goes on."""

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import fake_nvml
import pytest
from ansible.module_utils.scalebook.pages.catalogue import in_words, sentence
from ansible.module_utils.scalebook.read.telemetry import quantity, read_file, summary

ROOT = Path(__file__).parents[3]
FILES = ROOT / "roles/campaign/files"
sys.path.append(str(FILES))
import gpu_sources  # noqa: E402
import host_sources  # noqa: E402
import nvml  # noqa: E402
import sampling  # noqa: E402
import telemetry  # noqa: E402

pytestmark = pytest.mark.slow

STEPS = {"literal": "step=", "pattern": r"step=(?P<step>\d+)", "warmup": 2, "last": 4}
BURN = """
import os, time
end = time.process_time() + 1.5
while time.process_time() < end: pass
print("burnt", sum(os.times()[:2]), flush=True)
"""


def await_that(condition, complaint):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.02)


def cells(path, column="at"):
    """Return what is in a column of the readings so far, without empty cells."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [row[column] for row in rows if row[column]]


class Sampler:
    """A sampler that runs by itself."""

    def __init__(self, tmp_path, *options, interval=0.05, env=None):
        self.path = tmp_path / "N.telemetry.csv"
        self.process = subprocess.Popen(
            [
                sys.executable,
                *telemetry.WITHOUT,
                FILES / "sampler.py",
                "--out",
                self.path,
                "--interval",
                str(interval),
                *options,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**(env or os.environ), "JOB_DIR": str(tmp_path), "SCALEBOOK_RUN": "c/case/1"},
        )

    def mark(self, word):
        """Return when the reading with the mark has been taken."""
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()
        await_that(lambda: word in cells(self.path, "mark"), f"no reading is marked {word}")

    def await_readings(self, count, column="at"):
        """Return when there are as many more readings, with a value in the column."""
        count += len(cells(self.path, column))
        await_that(
            lambda: len(cells(self.path, column)) >= count or self.process.poll() is not None, "no readings"
        )
        assert self.process.poll() is None, self.process.stdout.read().decode()

    def end(self):
        """Return what it says, and the readings."""
        said = self.process.communicate(timeout=20)[0].decode()
        return json.loads(said.splitlines()[-1]), read_file(self.path)


def sample(tmp_path, *options, **more):
    sampler = Sampler(tmp_path, *options, **more)
    sampler.await_readings(4)
    return sampler.end()


def sample_gpus(tmp_path, fault="", gpus="0", readings=4, more=0, interval=0.05, column="gpu:0:power"):
    """Take so many readings with a value in the column, and more readings of any kind."""
    sampler = Sampler(tmp_path, "--gpus", gpus, env=fake_nvml.environment(fault), interval=interval)
    sampler.await_readings(readings, column)
    sampler.await_readings(more)
    return sampler.end()


def whole(readings, name):
    """Return the quantity over all readings."""
    return quantity(readings, name, 0, len(readings.at) - 1)


# What it says of itself


def test_its_memory_is_its_own_and_not_that_of_the_process_that_started_it(tmp_path):
    """ru_maxrss is that of the parent where the parent is larger, and run_node may be."""
    code = (
        "import subprocess, sys; kept = b'x' * (96 << 20); "
        "print(subprocess.run(sys.argv[1:], input=b'', capture_output=True).stdout.decode())"
    )
    argv = [sys.executable, FILES / "sampler.py", "--out", tmp_path / "N.csv", "--interval", "1"]
    shown = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    assert 5e6 < json.loads(shown.stdout.splitlines()[0])["memory_bytes"] < 30e6


def test_pages_of_files_that_nothing_was_written_to_are_let_go_and_come_back():
    """What a program has written to pages of a library, its tables of addresses above all, must stay."""
    code = """
import nvml
def sizes():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith(("Rss:", "Anonymous:"))]
before = sizes()
nvml.drop_pages()
after = sizes()
import json, decimal
print(json.dumps([before, after, str(decimal.Decimal(2).sqrt())]))
"""
    argv = [sys.executable, *telemetry.WITHOUT, "-c", f"import sys; sys.path.append({str(FILES)!r}){code}"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True)
    (resident, private), (after, kept), root = json.loads(shown.stdout)
    assert after < resident - 1000  # kB
    assert kept >= private
    assert root.startswith("1.41421356")


def test_it_loads_no_module_that_takes_memory(tmp_path):
    """Each of these costs 1 to 3 MB of the 30 that it may have, with what it imports itself."""
    argv = [sys.executable, *telemetry.WITHOUT, "-X", "importtime", FILES / "sampler.py"]
    argv += ["--out", tmp_path / "N.csv", "--interval", "1", "--gpus", "0"]
    shown = subprocess.run(argv, input=b"", capture_output=True, env=fake_nvml.environment(), check=True)
    loaded = {line.rpartition("|")[2].strip() for line in shown.stderr.decode().splitlines()}
    assert {"sampling", "host_sources", "gpu_sources", "nvml"} <= loaded
    assert not loaded & {"argparse", "json", "re", "site", "subprocess", "threading", "typing"}


@pytest.mark.parametrize(
    "value", [{'a"\\\n': [1, "é€😀\udc80\x7f", 0.25, 1e300, -3]}, [True, False, None, 1, 0], "", {}, []]
)
def test_what_it_writes_as_json_is_json(value):
    assert json.loads(sampling.as_json(value)) == value


# What it reads


def test_a_node_without_gpus_has_the_rest_and_a_reason(tmp_path):
    said, readings = sample(tmp_path)
    assert {name.partition(":")[0] for name in readings.kinds} >= {"cpu", "core", "memory", "network", "job"}
    assert sentence(readings.absent["gpu"]) == "the job uses no GPU"
    assert not [name for name in readings.kinds if name.startswith("gpu")]
    assert said["reason"] is None and said["readings"] >= 4
    cores = os.cpu_count()
    assert readings.about["cores"] == cores == sum(name.startswith("core:") for name in readings.kinds)
    busy, tick = whole(readings, "cpu::busy"), 1 / os.sysconf("SC_CLK_TCK")
    # /proc/stat counts whole ticks, so each end of the few readings may be off by one per core.
    assert 0 <= busy["mean"] * busy["seconds"] <= cores * (busy["seconds"] + 2 * tick)


def test_a_process_that_burns_a_core_is_seen_to_two_per_cent(tmp_path):
    sampler = Sampler(tmp_path)
    sampler.await_readings(1)
    sampler.mark("first")
    burning = subprocess.Popen(
        [sys.executable, "-c", f"import time{BURN}time.sleep(60)"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "JOB_DIR": str(tmp_path), "SCALEBOOK_RUN": "c/case/1"},
    )
    burnt = float(burning.stdout.readline().split()[1])
    sampler.mark("last")
    _, readings = sampler.end()
    burning.kill()
    burning.wait()
    last = readings.marks.index("last")
    job = quantity(readings, "job::busy", readings.marks.index("first"), last)
    seconds = job["seconds"]
    assert job["total"] / seconds == pytest.approx(burnt / seconds, abs=0.02)
    machine = quantity(readings, "cpu::busy", readings.marks.index("first"), last)
    assert machine["total"] >= job["total"] - 0.02 * seconds
    assert quantity(readings, "job::memory", 0, last)["max"] > 4e6


def test_processes_that_share_a_processor_wait_for_it(tmp_path):
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}]){BURN.replace('1.5', '0.4')}"
    sampler = Sampler(tmp_path)
    sampler.await_readings(1)
    words = {**os.environ, "JOB_DIR": str(tmp_path), "SCALEBOOK_RUN": "c/case/1"}
    argv = [sys.executable, "-c", f"{code}time.sleep(60)"]
    burning = [subprocess.Popen(argv, stdout=subprocess.PIPE, env=words) for _ in range(2)]
    burnt = [float(process.stdout.readline().split()[1]) for process in burning]
    sampler.mark("last")
    _, readings = sampler.end()
    for process in burning:
        process.kill()
        process.wait()
    queued = readings.values["job::queued"][readings.marks.index("last")]
    # The one waits while the other computes, but for what they did not do at the same time.
    assert queued >= 0.5 * min(burnt)


def test_the_busiest_thread_of_a_job_and_the_next_are_told_apart_from_their_sum(tmp_path):
    """The one computes, or would if it had a processor; the other sleeps most of the time; 40 more always."""
    code = """
import threading, time
def work(part):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        began = time.thread_time()
        while time.thread_time() < began + 0.4 * part: pass
        time.sleep(0.4 * (1 - part))
for _ in range(20):
    threading.Thread(target=time.sleep, args=[60], daemon=True).start()
print("begun", flush=True)
work(%s)
"""
    words = {**os.environ, "JOB_DIR": str(tmp_path), "SCALEBOOK_RUN": "c/case/1"}
    sampler = Sampler(tmp_path)
    sampler.await_readings(1)
    argv = [[sys.executable, "-c", code % part] for part in (1, 0.05)]
    working = [subprocess.Popen(each, stdout=subprocess.PIPE, env=words) for each in argv]
    for process in working:
        process.stdout.readline()
    sampler.mark("first")
    time.sleep(2)
    sampler.mark("last")
    _, readings = sampler.end()
    for process in working:
        process.kill()
        process.wait()
    made = summary(readings, *(readings.at[readings.marks.index(mark)] for mark in ("first", "last")))
    shares = [made["quantities"][f"job::{name}"]["mean"] for name in ("busiest_thread", "next_thread")]
    assert 0.9 <= shares[0] <= 1.1
    assert 0.02 <= shares[1] <= 0.6


def test_a_thread_counts_from_its_second_reading_on(monkeypatch):
    second = 10**9
    later = {1: (3 * second, second), 2: (50 * second, 0)}
    given = iter([{}, {1: (0, 0)}, {1: (second, second // 2)}, later])
    clock = iter([10.0, 20.0, 30.0, 40.0])
    share = host_sources.JobShare(b"JOB_DIR=none")
    monkeypatch.setattr(host_sources.procfs, "threads", lambda _: next(given))
    monkeypatch.setattr(host_sources.time, "monotonic", lambda: next(clock))
    # (queued, busiest, next): of a job with one thread no other one is busy.
    assert [share._threads() for _ in range(4)] == [
        [None, None, None],
        [0.0, None, None],
        [0.5, 0.15, 0.0],
        [1.0, 0.25, 0.0],
    ]


@pytest.fixture
def share(monkeypatch):
    """The share of a job that this process starts: it is the starter, and not the sampler."""
    monkeypatch.setattr(os, "getppid", os.getpid)
    monkeypatch.setattr(os, "getpid", lambda: 0)
    return host_sources.JobShare(b"JOB_DIR=searched")


@pytest.fixture
def start():
    """Start processes, of the job where they are given its environment; all of them are ended in the end."""
    there = []

    def started(*argv, env=None, **more):
        words = {**os.environ, "JOB_DIR": "searched"} if env is None else env
        there.append(subprocess.Popen(argv, env=words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more))
        # Popen returns in the middle of exec, when the environment is not there yet.
        environment = Path(f"/proc/{there[-1].pid}/environ")
        await_that(environment.read_bytes, "it has no environment")
        return there[-1]

    yield started
    for process in there:
        process.kill()
        process.communicate()


OTHER = {"PATH": os.environ["PATH"]}
"""An environment that does not tell of the job."""


def looked_at(share, monkeypatch):
    """Return the pids of which the search looks at a file."""
    read, pids = host_sources.procfs.read, set()

    def noted(path):
        pids.add(int(path.split("/")[2]))
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(host_sources.procfs, "read", noted)
        share.search()
    return pids


def test_the_search_for_a_job_looks_once_at_what_is_older_and_at_threads_of_the_kernel(
    share, start, monkeypatch
):
    own = start("sleep", "60").pid
    assert len(looked_at(share, monkeypatch)) > 2
    assert share.pids == [own]
    younger = start("sleep", "60", env=OTHER).pid
    born = host_sources.procfs.started(os.getppid())[0]
    for pid in looked_at(share, monkeypatch):
        there = host_sources.procfs.started(pid)
        assert pid in (own, younger) or there is None or there[0] >= born


def test_a_process_that_becomes_the_jobs_later_is_found(share, start):
    """Between its fork and its exec it has the environment of what started it."""
    late = start("sh", "-c", "read line; JOB_DIR=searched exec sleep 60", env=OTHER)
    share.search()
    assert share.pids == []
    late.stdin.write(b"\n")
    late.stdin.flush()
    cmdline = Path(f"/proc/{late.pid}/cmdline")
    await_that(lambda: cmdline.read_bytes().startswith(b"sleep"), "it does not exec")
    share.search()
    assert share.pids == [late.pid]


def test_a_process_stays_the_jobs_when_it_loses_its_environment_and_its_parent(share, start):
    first = start("sh", "-c", "env -i sleep 60 & echo $!; read line")
    child = int(first.stdout.readline())
    share.search()
    assert share.pids == sorted([first.pid, child])
    first.kill()
    first.wait()
    share.search()
    assert share.pids == [child]
    os.kill(child, signal.SIGKILL)
    await_that(lambda: not Path(f"/proc/{child}").exists(), "nobody asks how it ended")
    share.search()
    assert share.pids == []


@pytest.mark.parametrize("older", [True, False])
def test_a_pid_that_is_given_again_is_another_process(share, start, older):
    """Else the job's share would lack a process, or have one that is not the job's."""
    last = Path("/proc/sys/kernel/ns_last_pid")
    if not os.access(last, os.W_OK):
        pytest.skip("root: the next pid cannot be chosen here")
    share.since += 10**9 if older else 0
    first = start("sleep", "60")
    share.search()
    assert share.pids == [] if older else [first.pid]
    share.since -= 10**9 if older else 0
    for _ in range(20):  # another program may take the pid meanwhile
        first.kill()
        first.communicate()
        last.write_text(str(first.pid - 1))
        second = start("sleep", "60", env=None if older else OTHER)
        if second.pid == first.pid:
            break
        second.kill()
        second.communicate()
    assert second.pid == first.pid
    share.search()
    assert share.pids == ([second.pid] if older else [])


def test_a_process_that_has_just_ended_keeps_its_time(share, start):
    """Its parent, which is not of the job, has not asked yet how it ended."""
    burning = start(sys.executable, "-c", BURN.replace("1.5", "0.3") + "input()")
    burnt = float(burning.stdout.readline().split()[1])
    assert share.read(full=True)[0] >= burnt - 0.02
    burning.kill()
    stat = Path(f"/proc/{burning.pid}/stat")
    await_that(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", "it did not end")
    assert share.read(full=True)[0] >= burnt - 0.02


def test_the_processors_that_the_job_may_use_are_noted_where_that_is_not_all(tmp_path, monkeypatch):
    assert "job_cores" not in host_sources.Processors().about or os.cpu_count() > len(os.sched_getaffinity(0))
    last = os.cpu_count() - 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {last} if last else set())
    assert host_sources.Processors().about["job_cores"] == ([last] if last else [])


def test_bytes_written_to_the_disk_are_counted(tmp_path):
    size = 24 << 20
    disks = host_sources.Disks([str(tmp_path)])
    written = [index for index, (name, _, _) in enumerate(disks.columns) if name.endswith(":written")]
    before = disks.read()
    with (tmp_path / "data").open("wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())
    after = disks.read()
    assert sum(after[index] - before[index] for index in written) >= 0.99 * size


def test_bytes_sent_over_loopback_are_counted_apart(tmp_path):
    network = host_sources.Network()
    column = [name for name, _, _ in network.columns].index("network:lo:received")
    size = 8 << 20
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver = server.accept()[0]
        before = network.read()[column]
        code = f"import socket, sys; socket.socket(fileno={sender.fileno()}).sendall(bytes({size}))"
        sending = subprocess.Popen([sys.executable, "-c", code], pass_fds=[sender.fileno()])
        received = 0
        while received < size:
            received += len(receiver.recv(1 << 20))
        assert network.read()[column] - before >= size
        sending.wait()
        sender.close()
        receiver.close()


@pytest.mark.parametrize("speed", [65535.0, 4294967295.0, 0.0, -1.0])
def test_a_speed_that_the_driver_does_not_know_is_no_capacity(monkeypatch, speed):
    monkeypatch.setattr(host_sources, "number", lambda _: speed)
    assert host_sources.Network().about["network_megabits"] == {}


def test_a_port_of_infiniband_without_a_rate_has_no_capacity(tmp_path):
    (tmp_path / "mlx5_0/ports/1/counters").mkdir(parents=True)
    (tmp_path / "mlx5_0/ports/1/rate").write_text("0 Gb/sec\n")
    assert host_sources.InfiniBand(str(tmp_path)).about == {"infiniband_megabits": {}}


def test_infiniband_counts_words_of_four_bytes(tmp_path):
    counters = tmp_path / "mlx5_0/ports/1/counters"
    counters.mkdir(parents=True)
    (counters / "port_rcv_data").write_text("250\n")
    (counters / "port_xmit_data").write_text("1000\n")
    (counters.parent / "rate").write_text("200 Gb/sec (4X HDR)\n")
    ports = host_sources.InfiniBand(str(tmp_path))
    assert ports.columns[0] == ("infiniband:mlx5_0/1:received", "counter", "B")
    assert ports.read() == [1000.0, 4000.0]
    assert ports.about == {"infiniband_megabits": {"mlx5_0/1": 200000.0}}


def test_the_energy_of_the_host_goes_on_where_its_counter_starts_again(tmp_path):
    package = tmp_path / "intel-rapl:0"
    for path in (package, package / "intel-rapl:0:0", tmp_path / "intel-rapl:0:0"):
        path.mkdir()
        (path / "energy_uj").write_text("4000000")
        (path / "max_energy_range_uj").write_text("5000000")
    energy = host_sources.HostEnergy(str(tmp_path))
    assert [name for name, _, _ in energy.columns] == ["host:0:energy"]
    assert energy.read() == [4.0]
    (package / "energy_uj").write_text("500000")
    assert energy.read() == [5.5]


def test_what_is_not_there_is_absent_with_its_reason(tmp_path):
    with pytest.raises(host_sources.Absent, match="absent.no-port"):
        host_sources.InfiniBand(str(tmp_path))
    with pytest.raises(host_sources.Absent, match="absent.no-package"):
        host_sources.HostEnergy(str(tmp_path))


def test_a_directory_that_no_disk_holds_has_none():
    assert host_sources.disk_of("/proc") is None
    assert host_sources.disk_of("/not/there") is None


# GPUs


def test_an_h200_tells_everything(tmp_path):
    said, readings = sample_gpus(tmp_path, gpus="0,3", readings=7, interval=0.2)
    assert (said["reason"], readings.absent.get("gpu"), readings.absent.get("gpu:late")) == (None, None, None)
    for gpu in (0, 3):
        means = {name: whole(readings, f"gpu:{gpu}:{name}") for name, _, _ in gpu_sources.QUANTITIES}
        values = {name: value["mean"] for name, value in means.items()}
        assert values["energy"] == pytest.approx(689, rel=0.02)  # watts, from the counter
        assert (values["utilization"], values["power"]) == (100, 689)
        assert (values["sm_active"], values["sm_occupancy"]) == (96.1, 14.2)
        assert (values["pipe_tensor_active"], values["dram_active"]) == (93.3, 16.5)
        assert (values["throttle_power_cap"], values["throttle_thermal"]) == (1, 0)
        assert means["nvlink_sent"]["total"] == 0
        assert readings.about["gpus"][str(gpu)]["power_limit"] == 700
    link = [value for value in readings.values["gpu:0:nvlink_received"] if value is not None]
    assert link[0] == 7 * 1024


def test_a_pcie_counter_that_starts_again_is_added_up(tmp_path):
    _, readings = sample_gpus(tmp_path)
    received, sent = (readings.values[f"gpu:0:pcie_{way}"] for way in ("received", "sent"))
    assert received[-1] == 127673436 + 2**32 - 4285291504
    assert sent[-1] == 296559316 - 256129624


def test_pcie_counters_that_start_again_too_often_are_absent(tmp_path):
    _, readings = sample_gpus(tmp_path, "flood")
    assert "too often at this rate" in sentence(readings.absent["gpu:0:pcie"])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_an_answer_that_is_no_number_is_an_empty_cell(value):
    # On an H200 (driver 580.159.04) a NaN ended the samplers of two runs out of four.
    assert sampling.cell(value) == ""


@pytest.mark.parametrize(("value", "cell"), [(689.0, "689"), (0, "0"), (96.1, "96.1000")])
def test_numbers_are_cells_with_at_most_four_decimals(value, cell):
    assert sampling.cell(value) == cell


def test_the_memory_of_a_gpu_is_what_nvidia_smi_says(tmp_path):
    _, readings = sample_gpus(tmp_path)
    assert whole(readings, "gpu:0:memory")["mean"] == pytest.approx(26293 << 20)


def test_what_an_older_gpu_does_not_know_is_absent_not_zero(tmp_path):
    _, readings = sample_gpus(tmp_path, "old")
    assert readings.absent["gpu:0:gpm"] == readings.absent["gpu:0:nvlink"]
    assert sentence(readings.absent["gpu:0:gpm"]) == "NVML: Not Supported"
    assert "every 4 GiB" in sentence(readings.absent["gpu:0:pcie"])
    assert set(readings.values["gpu:0:sm_active"]) == {None}
    assert whole(readings, "gpu:0:power")["mean"] == 689


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("none", "NVML: Driver Not Loaded"),
        ("open", "the driver did not answer when it was opened"),
    ],
)
def test_without_the_driver_the_host_is_still_read(tmp_path, fault, reason):
    said, readings = sample_gpus(tmp_path, fault, readings=0, more=12)
    assert sentence(readings.absent["gpu"]) == reason
    assert said["reason"] is None
    assert whole(readings, "memory::used")["mean"] > 0


def test_a_driver_that_hangs_does_not_keep_the_host_from_being_read(tmp_path):
    _, readings = sample_gpus(tmp_path, "hang", readings=1, more=12)
    assert sentence(readings.absent["gpu:late"]).startswith("the driver did not answer within 0.2 s, ")
    power = readings.values["gpu:0:power"]
    assert power[-3:] == [None, None, None]
    # It hangs after two readings; on a busy machine one of them is late too.
    assert 1 <= power.count(689.0) <= 2
    assert len([value for value in readings.values["memory::used"] if value is not None]) >= 12


def test_whatever_goes_wrong_while_gpus_are_read_is_a_reason():
    class Broken(gpu_sources.Gpus):
        def values(self, gpu, full):
            raise OSError("the library is gone")

    source = gpu_sources.Patient(gpu_sources.columns(["0"]), lambda: Broken(["0"]))
    await_that(lambda: source.source, "it does not start")
    assert set(source.read()) == {None}
    await_that(lambda: source.reason, "it goes on")
    assert in_words(source.closing()[0]) == {"gpu": "OSError: the library is gone"}


def test_without_the_library_of_the_driver_there_is_a_reason(monkeypatch):
    monkeypatch.setattr(nvml, "LIBRARY", "libnothing.so.1")
    with pytest.raises(host_sources.Absent, match=r"libnothing\.so\.1: cannot open shared object file"):
        gpu_sources.open_gpus(["0"])


def test_a_driver_of_2022_tells_what_it_knows(tmp_path):
    """It has other names for functions, and none for those of GPM."""
    env = fake_nvml.environment("", "-DOLD_DRIVER")
    sampler = Sampler(tmp_path, "--gpus", "0", env=env)
    sampler.await_readings(2, "gpu:0:power")
    _, readings = sampler.end()
    assert sentence(readings.absent["gpu:0:gpm"]) == "NVML: this driver has no nvmlGpmQueryDeviceSupport"
    assert whole(readings, "gpu:0:throttle_power_cap")["mean"] == 1
    assert whole(readings, "gpu:0:memory")["mean"] == pytest.approx(26293 << 20)


# What takes long


def test_what_takes_long_is_read_only_as_often_as_it_may(monkeypatch):
    times = iter([0, 5e-3, 0, 1e-3, 0, 1e-3, 0, 9e-3, 0, 9e-3, 0, 9e-3])
    monkeypatch.setattr(host_sources.time, "clock_gettime", lambda _: next(times))
    pace = host_sources.Pace(allowed=4e-4)
    turns = ""
    for _ in range(22):
        turns += "-x"[pace.turn(full=False)]
        if turns[-1] == "x":
            with pace:
                pass
    # The first one, which fills caches, does not count; 1 ms is two and a half times what is allowed.
    assert turns == "xx--x--x--x---------x-"
    assert pace.turn(full=True)


@pytest.mark.parametrize(("by_ends", "between"), [(False, 9), (True, 29)])
def test_a_counter_that_is_needed_at_the_ends_is_read_less_often_once_the_first_end_is_marked(
    monkeypatch, by_ends, between
):
    """Without a mark, on a node whose log has no steps, each tenth reading is needed."""
    clock = iter(range(1000))
    monkeypatch.setattr(host_sources.time, "clock_gettime", lambda _: next(clock))
    pace = host_sources.Pace(by_ends=by_ends)
    rests = []
    for full in (False, False, True, True):
        assert pace.turn(full)
        with pace:
            pass
        rests.append(pace.rest)
    assert rests == [0, 9, between, between]


def test_the_ends_are_enough_of_the_energy_and_of_nvlink(monkeypatch):
    """PCIe's counters start again too soon, and the other quantities have a course to be seen."""
    monkeypatch.setattr(nvml, "LIBRARY", f"{fake_nvml.compiled().name}/libnvidia-ml.so.1")
    source = gpu_sources.open_gpus(["0"])
    assert {name for name, pace in source.paces["0"].items() if pace.by_ends} == {"energy", "nvlink"}


def test_what_is_cheap_of_a_job_is_read_each_time_although_its_threads_are_not(tmp_path, monkeypatch):
    def slow(pids):
        end = time.thread_time() + 5e-3
        while time.thread_time() < end:
            pass
        return {1: (0, 10**9)}

    monkeypatch.setattr(host_sources.procfs, "threads", slow)
    share = host_sources.JobShare(b"JOB_DIR=none")
    sampler = sampling.Sampler(sampling.Table(str(tmp_path / "N.telemetry.csv")), 1, [share])
    sampler.describe()
    for mark in ["first", *[""] * 19, "last"]:
        sampler.take(mark)
    values = {column: cells(tmp_path / "N.telemetry.csv", f"job::{column}") for column in ("busy", "queued")}
    assert values["busy"].count("-") == 0
    assert values["queued"].count("-") == 17


def test_a_counter_that_takes_long_is_read_at_both_ends_of_the_window_and_rarely_between(tmp_path):
    sampler = Sampler(tmp_path, "--gpus", "0", env=fake_nvml.environment("slow"))
    sampler.await_readings(3, "gpu:0:power")
    sampler.mark("first")
    sampler.await_readings(6)
    sampler.mark("last")
    _, readings = sampler.end()
    first, last = (readings.marks.index(mark) for mark in ("first", "last"))
    values = readings.values["gpu:0:nvlink_sent"]
    assert values[first] is not None and values[last] is not None
    assert readings.put_off["gpu:0:nvlink_sent"] >= set(range(first + 1, last))
    assert "gpu:0:nvlink_sent" not in summary(readings, readings.at[first], readings.at[last])["absent"]


# Slices of a GPU (MIG), by the stand-in: made, not recorded


@pytest.mark.parametrize(
    ("name", "memory", "active"), [("0", 5 << 30, 71.5), ("MIG-made-2", 2 << 30, 12.5), ("1", None, 96.1)]
)
def test_where_mig_is_on_the_slice_is_read_and_nothing_of_the_whole_gpu(tmp_path, name, memory, active):
    _, readings = sample_gpus(tmp_path, "mig", name, column=f"gpu:{name}:sm_active")
    there = {
        column.split(":")[2]
        for column, values in readings.values.items()
        if column.startswith("gpu:") and any(value is not None for value in values)
    }
    activities = {"sm_active", "sm_occupancy", "pipe_tensor_active", "dram_active"}
    assert whole(readings, f"gpu:{name}:sm_active")["max"] == active
    if memory is None:
        assert {"power", "energy", "utilization", *activities} <= there
        assert "gpu:1" not in readings.absent
    else:
        assert there == {"memory", *activities}
        assert whole(readings, f"gpu:{name}:memory")["max"] == memory
        assert (
            sentence(readings.absent[f"gpu:{name}"])
            == "it is a slice (MIG), and the rest is of the whole GPU"
        )
        assert readings.about["gpus"] == {name: {"name": "NVIDIA H200 MIG 3g.71gb", "memory_bytes": 71 << 30}}


def test_what_a_slice_does_not_tell_is_absent_from_the_record_and_never_zero(tmp_path):
    _, readings = sample_gpus(tmp_path, "mig", column="gpu:0:sm_active")
    made = summary(readings, readings.at[0], readings.at[-1])
    assert "gpu:0:memory" in made["quantities"]
    assert not {"gpu:0:power", "gpu:0:utilization", "gpu:0:energy"} & made["quantities"].keys()
    assert [name for name in made["absent"] if name.startswith("gpu")] == ["gpu:0"]


@pytest.mark.parametrize(
    ("fault", "name", "reason"),
    [
        ("undivided", "0", "MIG is on for GPU 0, and there is no slice of it"),
        ("mig", "GPU-unknown", "NVML: Not Found"),
    ],
)
def test_a_slice_that_is_not_there_is_a_reason(tmp_path, fault, name, reason):
    _, readings = sample(tmp_path, "--gpus", name, env=fake_nvml.environment(fault))
    assert sentence(readings.absent["gpu"]) == reason


def test_what_names_no_gpu_is_not_one():
    visible = "0,GPU-8f2c-41,MIG-GPU-8f2c/1/0,-1,NoDevFiles,,1:2,3\n"
    assert sampling.names_in(visible) == ["0", "GPU-8f2c-41", "MIG-GPU-8f2c/1/0"]


def test_gpus_of_amd_are_said_not_to_be_read(monkeypatch):
    assert sentence(sampling.none_used()) == "the job uses no GPU"
    monkeypatch.setattr(os.path, "exists", lambda path: path == "/dev/kfd")
    assert sentence(sampling.none_used()) == "the job uses no GPU; those of AMD are not read"


# Several jobs on a node


def test_of_two_jobs_on_a_node_each_has_its_own_share_and_its_own_gpus(tmp_path):
    both = []
    for name, gpu in (("busy", "0"), ("idle", "1")):
        (tmp_path / name).mkdir()
        both.append(Sampler(tmp_path / name, "--gpus", gpu, env=fake_nvml.environment()))
        both[-1].await_readings(1)
    environment = {**os.environ, "JOB_DIR": str(tmp_path / "busy"), "SCALEBOOK_RUN": "c/case/1"}
    burning = subprocess.Popen(
        [sys.executable, "-c", f"{BURN}time.sleep(60)"],
        stdout=subprocess.PIPE,
        env=environment,
    )
    burnt = float(burning.stdout.readline().split()[1])
    for one in both:
        one.mark("last")
        time.sleep(0.3)
    busy, idle = [one.end()[1] for one in both]
    burning.kill()
    burning.wait()
    assert whole(busy, "job::busy")["total"] >= 0.9 * burnt
    assert whole(idle, "job::busy")["total"] == 0
    assert whole(idle, "cpu::busy")["total"] >= 0.9 * burnt
    gpus = [{name.split(":")[1] for name in each.kinds if name.startswith("gpu:")} for each in (busy, idle)]
    assert gpus == [{"0"}, {"1"}]


# Its life


def run_node(directory, script, settings='{"interval": 0.05}', env=None, while_running=None, files=FILES):
    """Return the closing record of a run with telemetry. AWAIT in its script waits for while_running()."""
    directory.mkdir(parents=True, exist_ok=True)
    values = {"SCALEBOOK_RUN": "c/case/1", "NODE": "NODE1", "TASK_INDEX": "0", "PORT": "0"}
    values.update(JOB_DIR=directory, CUDA_VISIBLE_DEVICES="0" if env else "")
    texts = {
        "watch.json": json.dumps(STEPS),
        "telemetry.json": settings,
        "job.env": "".join(f"{name}={value}\n" for name, value in values.items()),
        "run.sh": script.replace("AWAIT", f"until [ -e {directory}/go ]; do sleep 0.02; done"),
    }
    for name, text in texts.items():
        (directory / name).write_text(text)
    process = subprocess.Popen(
        [sys.executable, files / "run_node.py", f"NODE1={directory}"],
        env={**(env or os.environ), "OMPI_COMM_WORLD_RANK": "0"},
        stderr=subprocess.PIPE,
    )
    if while_running:
        while_running()
    (directory / "go").touch()
    process.communicate(timeout=40)
    return json.loads((directory / "exit.json").read_text())


def samplers(directory):
    """Return the pids of the samplers of a job."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        ours = any(word.startswith(str(directory).encode()) for word in words)
        if ours and state != "Z" and any(word.endswith(b"sampler.py") for word in words):
            found.append(int(path.name))
    return found


def await_sampler(directory, readings=1):
    await_that(
        lambda: len(cells(directory / "NODE1.telemetry.csv")) >= readings, "the sampler does not start"
    )
    return samplers(directory)[0]


SCRIPT = "echo step=1; AWAIT; echo step=2; sleep 0.3; echo step=4"


def stamps(directory):
    """Return when the window's steps were logged."""
    lines = (directory / "NODE1.log").read_text().splitlines()
    return [float(line.split()[0]) for line in lines if line.endswith(("step=2", "step=4"))]


def test_a_run_has_readings_at_both_ends_of_its_window(tmp_path):
    said = run_node(tmp_path, SCRIPT, while_running=lambda: await_sampler(tmp_path))
    assert said["status"] == "exited" and said["rc"] == 0
    assert said["telemetry"]["reason"] is None
    assert said["telemetry"]["file"] == "NODE1.telemetry.csv.xz"
    readings = read_file(tmp_path / "NODE1.telemetry.csv.xz")
    marked = {mark: at for at, mark in zip(readings.at, readings.marks, strict=True) if mark}
    for at, step in zip((marked["first"], marked["last"]), stamps(tmp_path), strict=True):
        assert 0 <= at - step < 0.3
    assert samplers(tmp_path) == []


def run_burning(directory, command):
    """Check that the job's share of the window is what its processes say they burnt."""
    # The window begins and ends with a reading that must find the script.
    first, last = (
        f"echo step={step}; until grep -q ,{mark}, {directory}/NODE1.telemetry.csv; do sleep 0.02; done"
        for step, mark in ((2, "first"), (4, "last"))
    )
    script = f"AWAIT; {first}; {command}; {last}"
    run_node(directory, script, while_running=lambda: await_sampler(directory))
    readings = read_file(directory / "NODE1.telemetry.csv.xz")
    job = quantity(readings, "job::busy", readings.marks.index("first"), readings.marks.index("last"))
    burnt = float((directory / "NODE1.log").read_text().partition("burnt ")[2].split()[0])
    assert job["total"] == pytest.approx(burnt, abs=0.02 * job["seconds"] + 0.02)


def test_the_job_has_its_own_share_without_the_sampler(tmp_path):
    run_burning(tmp_path, f"{sys.executable} -c '{BURN}'")


def test_a_process_that_overwrites_its_environment_counts_by_its_parent(tmp_path):
    """As stress-ng does, and workers with setproctitle; /proc then shows other words, or none."""
    tmp_path.joinpath("part.sh").write_text(f"{sys.executable} -c '{BURN}'\n")
    run_burning(tmp_path, f"env -i sh {tmp_path}/part.sh; true")


@pytest.mark.parametrize("settings", ['{"interval": 0}', "{}", "no JSON"])
def test_where_nothing_is_asked_nothing_is_measured(tmp_path, settings):
    said = run_node(tmp_path, "echo step=1", settings)
    assert "telemetry" not in said
    assert not list(tmp_path.glob("*telemetry.csv*"))


def test_a_sampler_that_is_killed_leaves_its_readings_and_a_reason(tmp_path):
    said = run_node(tmp_path, SCRIPT, while_running=lambda: os.kill(await_sampler(tmp_path), signal.SIGKILL))
    assert (said["status"], said["rc"]) == ("exited", 0)
    assert sentence(said["telemetry"]["reason"]).startswith("the sampler was ended by signal 9")
    assert read_file(tmp_path / "NODE1.telemetry.csv.xz").kinds


def test_a_sampler_that_is_stopped_is_killed_and_the_run_counts(tmp_path):
    began = time.monotonic()
    said = run_node(tmp_path, SCRIPT, while_running=lambda: os.kill(await_sampler(tmp_path), signal.SIGSTOP))
    assert (said["status"], said["rc"]) == ("exited", 0)
    assert sentence(said["telemetry"]["reason"]) == "the sampler did not end when it was asked to"
    assert samplers(tmp_path) == []
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("fault", ["hang", "open"])
def test_a_driver_that_hangs_costs_the_run_nothing(tmp_path, fault):
    job = tmp_path / "job"
    said = run_node(
        job, SCRIPT, env=fake_nvml.environment(fault), while_running=lambda: await_sampler(job, 8)
    )
    assert (said["status"], said["rc"]) == ("exited", 0)
    assert said["telemetry"]["reason"] is None
    assert samplers(tmp_path) == []


def test_a_sampler_that_cannot_start_is_a_reason(tmp_path):
    shutil.copytree(FILES, tmp_path / "bin")
    (tmp_path / "bin/sampler.py").write_text("print('no sampler here')\nraise SystemExit(3)\n")
    said = run_node(tmp_path / "job", "sleep 0.2", files=tmp_path / "bin")
    assert (said["status"], said["rc"]) == ("exited", 0)
    assert in_words(said["telemetry"]) == {
        "file": None,
        "reason": "the sampler ended with exit code 3: no sampler here",
    }


def test_when_run_node_is_killed_its_sampler_ends(tmp_path):
    def kill():
        parent = int(Path(f"/proc/{await_sampler(tmp_path)}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
        await_that(lambda: not samplers(tmp_path), "the sampler lives on")
        (tmp_path / "exit.json").write_text("{}")

    run_node(tmp_path, "sleep 60", while_running=kill)


def test_the_sampler_bears_the_mark_of_its_job(tmp_path):
    marks = []

    def read():
        environment = Path(f"/proc/{await_sampler(tmp_path)}/environ").read_bytes().split(b"\0")
        marks.extend(word for word in environment if word.startswith(b"SCALEBOOK_JOB="))

    run_node(tmp_path, SCRIPT, env={**os.environ, "SCALEBOOK_JOB": str(tmp_path)}, while_running=read)
    assert marks == [f"SCALEBOOK_JOB={tmp_path}".encode()]


def test_a_full_disk_ends_the_readings_not_the_run(tmp_path):
    size = "size=4800k"  # some hundred kilobytes above what the sampler leaves free
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", tmp_path], capture_output=True)
    if mount.returncode:
        pytest.skip("root: a small file system cannot be mounted here")
    try:
        script = f"AWAIT; echo step=2; head -c 800000 /dev/zero > {tmp_path}/data; sleep 0.4; echo step=4"
        said = run_node(tmp_path, script, while_running=lambda: await_sampler(tmp_path))
        assert (said["status"], said["rc"]) == ("exited", 0)
        assert sentence(said["telemetry"]["reason"]) == f"less than 4 MB free in {tmp_path}"
        assert read_file(tmp_path / "NODE1.telemetry.csv.xz").at
    finally:
        subprocess.run(["umount", tmp_path], check=True)
