# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sampler with a clock at each of its parts, for tests/bench/telemetry, which describes what it prints.

usage: traced_sampler.py FOLDER_OF_THE_SAMPLER TRIED OPTIONS_OF_THE_SAMPLER

It imports nothing that the sampler does not: its memory is to be that of a sampler.
"""

import os
import sys
import time


def status():
    """Return the memory of this process in bytes: resident, the most resident, proportional, private."""
    found = {}
    for path in ("/proc/self/status", "/proc/self/smaps_rollup"):
        file = os.open(path, os.O_RDONLY)
        text = os.read(file, 1 << 14).decode()
        os.close(file)
        for line in text.splitlines():
            words = line.split()
            if words[-1:] == ["kB"]:
                found[words[0]] = int(words[1]) * 1024
    private = found["Private_Clean:"] + found["Private_Dirty:"]
    return [found["VmRSS:"], found["VmHWM:"], found["Pss:"], private]


MEMORY = [("Python itself", status())]
sys.path.insert(0, sys.argv.pop(1))
TRIED = sys.argv.pop(1).split(",")
"""Words of --try of tests/bench/telemetry."""

import sampling  # noqa: E402

MEMORY.append(("the sampler's modules", status()))
import host_sources  # noqa: E402
import procfs  # noqa: E402

SPENT = {}
"""Seconds of processor time and how often, by kind of reading ("start", "full", "other") and part."""

KIND = ["start"]
OPENED = []
"""Not empty once NVML is open."""

PROCESS = {"start": 0.0, "full": 0.0, "other": 0.0}
"""Seconds of processor time of all threads, by kind of reading, with those since the reading before."""

READINGS = {"full": 0, "other": 0}
BEFORE = [0.0]


def clock():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def add(part, seconds):
    kind = KIND[0] if OPENED or not part.startswith("NVML: ") else "start"
    row = SPENT.setdefault(kind, {}).setdefault(part, [0.0, 0])
    row[0] += seconds
    row[1] += 1


def timed(owner, name, part):
    """Put a clock at a function of a module or a class; `part` is its name, or makes it of the arguments."""
    function = getattr(owner, name)

    def wrapped(*given, **named):
        began = clock()
        try:
            return function(*given, **named)
        finally:
            add(part(*given) if callable(part) else part, clock() - began)

    setattr(owner, name, wrapped)


PLACES = {
    "Rss:": 0,
    "Pss:": 1,
    "Private_Clean:": 2,
    "Private_Dirty:": 2,
    "AnonHugePages:": 3,
    "FilePmdMapped:": 3,
}


def mappings():
    """Return [resident, proportional, private, in huge pages] in bytes by what is mapped."""
    found = {}
    with open("/proc/self/smaps") as file:  # noqa: PTH123 - pathlib takes memory
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                row = found.setdefault(words[5] if len(words) > 5 else "anonymous", [0, 0, 0, 0])
            elif words[0] in PLACES:
                row[PLACES[words[0]]] += int(words[1]) * 1024
    return found


def title(_, name, *given):
    """Return the function of NVML, with the numbers that tell its calls apart."""
    words = [each for each in given if isinstance(each, int)]
    if name == "nvmlDeviceGetFieldValues":
        words = [field.fieldId for field in given[-1]._obj]
    return "NVML: " + name[4:] + "".join(" %d" % word for word in words)


for source in (
    host_sources.Processors,
    host_sources.Memory,
    host_sources.Disks,
    host_sources.Network,
    host_sources.InfiniBand,
    host_sources.HostEnergy,
):
    timed(source, "read", "host: " + source.__name__)
timed(host_sources.JobShare, "search", "job: search for its processes")
timed(procfs, "usage_of", "job: time and memory of its processes")
timed(host_sources.JobShare, "_threads", "job: waiting of its threads")
timed(sampling.Table, "write", "writing")

if "--gpus" in sys.argv and sampling.names_in(sys.argv[sys.argv.index("--gpus") + 1]):
    import gpu_sources
    import nvml

    system = nvml.ctypes.CDLL(None)
    if "no-huge-pages" in TRIED:
        system.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
    if "small-stack" in TRIED:
        gpu_sources._thread.stack_size(1 << 20)
    if "arena" in TRIED:
        system.mallopt(-8, 1)  # M_ARENA_MAX
    if "mmap-threshold" in TRIED:
        system.mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD
    MEMORY.append(("the modules for GPUs", status()))

    class Library(nvml.Library):
        def call(self, name, *given):
            if name == "nvmlInit_v2" and "no-attach" in TRIED:
                name, given = "nvmlInitWithFlags", (2,)
            super().call(name, *given)

        def __init__(self):
            nvml.ctypes.CDLL(nvml.LIBRARY)
            MEMORY.append(("NVML loaded", status()))
            if "trim-before" in TRIED:
                system.malloc_trim(0)
                MEMORY.append(("given back before nvmlInit", status()))
            super().__init__()
            MEMORY.append(("nvmlInit, and pages let go", status()))
            if "trim" in TRIED:
                system.malloc_trim(0)
                MEMORY.append(("given back after nvmlInit", status()))

    OTHER_FIELDS = ([83], [185], [186], [138, 139], [197, 198], [83, 186, 138, 139, 197, 198])
    """Energy, mean power and power in fields; NVLink and PCIe again; all but the mean power at once."""

    def ask_others(self, full=False):
        """Read, and ask what the sampler does not: it counts for no reading."""
        values = read(self, full)
        if "fields" in TRIED:
            first = clock()
            for device in self.devices.values():
                for numbers in OTHER_FIELDS:
                    fields = [(number, nvml.ALL_LINKS if number in (138, 139) else 0) for number in numbers]
                    began = clock()
                    try:
                        call(self.library, *fields_of(device.handle, fields))
                    except nvml.NvmlError:
                        continue
                    add("not asked: fields " + " ".join(map(str, numbers)), clock() - began)
            BEFORE[0] += clock() - first
        return values

    def fields_of(handle, fields):
        asked = (nvml.Field * len(fields))(*(nvml.Field(*each) for each in fields))
        return "nvmlDeviceGetFieldValues", handle, len(fields), nvml.ctypes.byref(asked)

    call = nvml.Library.call
    timed(Library, "call", title)
    nvml.Library = Library
    open_gpus = gpu_sources.open_gpus

    def opened(gpus):
        """Open NVML; that it may end after the first reading does not make it a part of that."""
        source = open_gpus(gpus)
        OPENED.append(True)
        if KIND[0] != "start":
            PROCESS["start"] += clock()
            BEFORE[0] += clock()
        return source

    gpu_sources.open_gpus = opened

    def opened_before(gpus):
        """Return the source of an open NVML; should the driver hang, so does this sampler."""
        source = opened(gpus)
        return gpu_sources.Patient(source.columns, lambda: source)

    if "main-thread" in TRIED:
        gpu_sources.without_waiting = opened_before
    timed(gpu_sources.Nvml, "read", "GPU thread")
    read = gpu_sources.Nvml.read
    gpu_sources.Nvml.read = ask_others
    timed(gpu_sources.Patient, "read", "handing over to the GPU thread")

take = sampling.Sampler.take


def taken(self, mark=""):
    """Take a reading."""
    if KIND[0] == "start":
        PROCESS["start"] = BEFORE[0] = time.process_time()
    kind = KIND[0] = "full" if mark else "other"
    began = clock()
    take(self, mark)
    add("reading", clock() - began)
    now = time.process_time()
    PROCESS[kind] += now - BEFORE[0]
    READINGS[kind] += 1
    count = sum(READINGS.values())
    if count < 4:
        MEMORY.append(("reading %d" % count, status()))
    BEFORE[0] = time.process_time()


sampling.Sampler.take = taken
leave = os._exit


def finish(code):
    MEMORY.append(("the end", status()))
    said = {
        "memory": MEMORY,
        "spent": SPENT,
        "process": PROCESS,
        "readings": READINGS,
        "mappings": mappings(),
    }
    sys.stdout.write(sampling.as_json(said) + "\n")
    sys.stdout.flush()
    leave(code)


sampling.os._exit = finish
sampling.main()
