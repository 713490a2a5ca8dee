#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's driver tells of GPUs, through NVML.

`utilization` says that some kernel ran, `sm_active` on how many multiprocessors one did. The activities
have the names of DCGM; they come from GPM, which is there from Hopper on. `pipe_tensor_active` is the HMMA
pipe, the only counter of FP16, BF16 and TF32.

A GPU is named as CUDA_VISIBLE_DEVICES does: by its number, or by the UUID of a GPU or of a slice (MIG). Where
MIG is on for a GPU, the number means its first slice, as for CUDA, and the slice is what is read.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import _thread
import ctypes
import time
from abc import abstractmethod

import nvml
from host_sources import PUT_OFF, Absent, Pace, Source
from messages import message

TYPE_CHECKING = False  # module typing takes 2 MB
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

    from host_sources import Column, Value
    from messages import Message

QUANTITIES = (
    # name, kind, unit
    ("utilization", "gauge", "%"),
    ("memory", "gauge", "B"),
    ("power", "gauge", "W"),
    ("energy", "counter", "J"),
    ("sm_clock", "gauge", "MHz"),
    ("memory_clock", "gauge", "MHz"),
    ("temperature", "gauge", "C"),
    # Whether the clocks were held down for this reason: the mean is the share of the time.
    ("throttle_power_cap", "gauge", ""),
    ("throttle_thermal", "gauge", ""),
    ("throttle_hardware", "gauge", ""),
    ("pcie_sent", "counter", "B"),
    ("pcie_received", "counter", "B"),
    ("nvlink_sent", "counter", "B"),
    ("nvlink_received", "counter", "B"),
    ("sm_active", "gauge", "%"),
    ("sm_occupancy", "gauge", "%"),
    ("pipe_tensor_active", "gauge", "%"),
    ("dram_active", "gauge", "%"),
)

GPM = (
    # name, number of NVML's metric; PCIe's in MiB/s, only to know that its counters did not go round twice
    ("sm_active", 2),
    ("sm_occupancy", 3),
    ("pipe_tensor_active", 7),
    ("dram_active", 10),
    ("pcie_sent_rate", 20),
    ("pcie_received_rate", 21),
)

# Bits of nvmlDeviceGetCurrentClocksEventReasons.
POWER_CAP, THERMAL, HARDWARE = 0x04, 0x20 | 0x40, 0x08 | 0x80

KIB = 1024.0

PCIE_RANGE = 1 << 32
"""NVML's counters of PCIe bytes have 32 bits: they start again every 4 GiB (seen on an H200, driver 580)."""


GROUPS = {
    "throttle": ("throttle_power_cap", "throttle_thermal", "throttle_hardware"),
    "nvlink": ("nvlink_sent", "nvlink_received"),
    "gpm": ("sm_active", "sm_occupancy", "pipe_tensor_active", "dram_active"),
    "pcie": ("pcie_sent", "pcie_received"),
}
"""Quantities that one question to NVML answers; the others are asked for one by one."""

OF_SLICES = ("memory", "gpm")
"""What NVML tells of a slice. Asked for the rest it refuses, or answers for the whole GPU."""


def columns(gpus: "Sequence[str]") -> "List[Column]":
    """Return the columns of these GPUs: known before the driver has answered, which can take long."""
    return [("gpu:%s:%s" % (gpu, name), kind, unit) for gpu in gpus for name, kind, unit in QUANTITIES]


BY_ENDS = ("energy", "nvlink")
"""Of these counters the two ends of the window are enough: the power shows the course. Those of PCIe must be
read more often than they start again, and GPM tells the course of the activities."""


class Gpus(Source):
    """GPUs; `absent` says why a quantity has no value."""

    def __init__(self, gpus: "Sequence[str]") -> None:
        super().__init__()
        self.gpus = list(gpus)
        self.columns = columns(gpus)
        self.absent: "Dict[str, Message]" = {}

    @abstractmethod
    def values(self, gpu: str, full: bool) -> "Dict[str, Value]":
        """Return the values of one GPU, by quantity; `full`: nothing may be put off."""

    def read(self, full: bool = False) -> "List[Value]":
        """Return the values in the order of the columns."""
        read = {gpu: self.values(gpu, full) for gpu in self.gpus}
        return [read[gpu].get(name) for gpu in self.gpus for name, _, _ in QUANTITIES]


class Device:
    """What NVML is asked by: the handle of a GPU or of a slice, that of the whole GPU, the slice's number."""

    def __init__(self, handle: "Any", whole: "Any", instance: "Optional[int]" = None) -> None:
        self.handle, self.whole, self.instance = handle, whole, instance


def find_device(library: nvml.Library, gpu: str) -> Device:
    """Return the GPU of this name, or the slice that CUDA takes by it; raise NvmlError or Absent."""
    if "-" in gpu:
        handle = library.handle("nvmlDeviceGetHandleByUUID", gpu.encode())
    else:
        handle = library.handle("nvmlDeviceGetHandleByIndex_v2", int(gpu))
    if gpu.startswith("MIG-"):
        whole = library.handle("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
        return Device(handle, whole, library.number("nvmlDeviceGetGpuInstanceId", handle))
    try:
        divided = library.mig_mode(handle)
    except nvml.NvmlError:  # a GPU or a driver that knows no slices
        divided = False
    if not divided:
        return Device(handle, handle)
    for index in range(library.number("nvmlDeviceGetMaxMigDeviceCount", handle)):
        try:
            part = library.handle("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        except nvml.NvmlError:
            continue  # there is none at this index
        return Device(part, handle, library.number("nvmlDeviceGetGpuInstanceId", part))
    raise Absent("absent.no-slice", gpu=gpu)


class Nvml(Gpus):
    """GPUs through NVML. Each quantity that a GPU does not know is left out, with NVML's own reason."""

    def __init__(self, library: nvml.Library, gpus: "Sequence[str]") -> None:
        super().__init__(gpus)
        self.library = library
        try:
            self.devices = {gpu: find_device(library, gpu) for gpu in gpus}
        except nvml.NvmlError as error:
            raise Absent("absent.nvml", why=str(error)) from error
        self.asked = {gpu: self._questions(gpu) for gpu in gpus}
        self.paces = {gpu: {name: Pace(by_ends=name in BY_ENDS) for name in self.asked[gpu]} for gpu in gpus}
        self.activities: Dict[str, Activities] = {}
        self.rates: Dict[str, Dict[str, float]] = {gpu: {} for gpu in gpus}
        self.pcie = {gpu: Wrapping() for gpu in gpus}
        for gpu, device in self.devices.items():
            if device.instance is not None:
                self.absent["gpu:%s" % gpu] = message("absent.of-whole-gpu")
        self.about = {"gpus": {gpu: self._facts(gpu) for gpu in gpus}}

    def _facts(self, gpu: str) -> "Dict[str, Any]":
        facts: Dict[str, Any] = {}
        library, device = self.library, self.devices[gpu]
        questions: Dict[str, Callable[[], Any]] = {
            "name": lambda: library.name(device.handle),
            "memory_bytes": lambda: (
                library.fill("nvmlDeviceGetMemoryInfo", device.handle, nvml.Memory()).total
            ),
        }
        if device.instance is None:  # it is the whole GPU's
            questions["power_limit"] = lambda: (
                library.number("nvmlDeviceGetEnforcedPowerLimit", device.handle) / 1000.0
            )
        for name, ask in questions.items():
            try:
                facts[name] = ask()
            except nvml.NvmlError:
                continue  # a fact that it does not tell
        return facts

    def _questions(self, gpu: str) -> "Dict[str, Callable[[], Dict[str, Value]]]":
        """Return what is asked of a GPU, by quantity or group."""
        device = self.devices[gpu]
        handle, number = device.handle, self.library.number
        questions: Dict[str, Callable[[], Dict[str, Value]]] = {
            "utilization": lambda: {"utilization": self._utilization(handle)},
            "memory": lambda: {"memory": self.library.memory_used(handle)},
            "power": lambda: {"power": number("nvmlDeviceGetPowerUsage", handle) / 1000.0},
            "energy": lambda: {"energy": number("nvmlDeviceGetTotalEnergyConsumption", handle) / 1000.0},
            "sm_clock": lambda: {"sm_clock": number("nvmlDeviceGetClockInfo", handle, nvml.CLOCK_SM)},
            "memory_clock": lambda: {
                "memory_clock": number("nvmlDeviceGetClockInfo", handle, nvml.CLOCK_MEM)
            },
            "temperature": lambda: {
                "temperature": number("nvmlDeviceGetTemperature", handle, nvml.TEMPERATURE_GPU)
            },
            "throttle": lambda: self._throttle(handle),
            "nvlink": lambda: self._nvlink(handle),
            "gpm": lambda: self._gpm(gpu, device),
            "pcie": lambda: self._pcie(gpu, handle),
        }
        return {name: questions[name] for name in (questions if device.instance is None else OF_SLICES)}

    def values(self, gpu: str, full: bool) -> "Dict[str, Value]":
        """Ask one question after the other; what a GPU refuses it is not asked again."""
        questions = self.asked[gpu]
        answers: Dict[str, Value] = {}
        for name in list(questions):
            pace = self.paces[gpu][name]
            if not pace.turn(full):
                answers.update(dict.fromkeys(GROUPS.get(name, (name,)), PUT_OFF))
                continue
            try:
                with pace:
                    answers.update(questions[name]())
            except nvml.NvmlError as error:
                del questions[name]
                self.absent["gpu:%s:%s" % (gpu, name)] = message("absent.nvml", why=str(error))
            except Absent as error:
                del questions[name]
                self.absent["gpu:%s:%s" % (gpu, name)] = error.message
        return answers

    def _utilization(self, handle: "Any") -> float:
        return float(self.library.fill("nvmlDeviceGetUtilizationRates", handle, nvml.Utilization()).gpu)

    def _pcie(self, gpu: str, handle: "Any") -> "Dict[str, Value]":
        """Return the bytes since the first reading."""
        if "gpm" not in self.asked[gpu]:
            raise Absent("absent.wraps-unseen")
        sent_bytes, received = self.library.fields(handle, (nvml.PCIE_SENT, 0), (nvml.PCIE_RECEIVED, 0))
        counters = {"pcie_sent": sent_bytes, "pcie_received": received}
        return {**self.pcie[gpu].add(counters, self.rates[gpu], time.monotonic())}

    def _nvlink(self, handle: "Any") -> "Dict[str, Value]":
        counters = [(number, nvml.ALL_LINKS) for number in (nvml.NVLINK_SENT, nvml.NVLINK_RECEIVED)]
        sent_kib, received = self.library.fields(handle, *counters)
        return {"nvlink_sent": sent_kib * KIB, "nvlink_received": received * KIB}

    def _throttle(self, handle: "Any") -> "Dict[str, Value]":
        try:
            reasons = self.library.number("nvmlDeviceGetCurrentClocksEventReasons", handle)
        except nvml.NvmlError:  # its name before 2023
            reasons = self.library.number("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return {
            "throttle_power_cap": float(bool(reasons & POWER_CAP)),
            "throttle_thermal": float(bool(reasons & THERMAL)),
            "throttle_hardware": float(bool(reasons & HARDWARE)),
        }

    def _gpm(self, gpu: str, device: Device) -> "Dict[str, Value]":
        """Return the activities since the reading before; none at the first."""
        if gpu not in self.activities:
            self.activities[gpu] = Activities(self.library, device)
        activities = self.activities[gpu].read()
        self.rates[gpu] = {name: value for name, value in activities.items() if name.endswith("_rate")}
        return {name: value for name, value in activities.items() if name not in self.rates[gpu]}


class Activities:
    """GPM's metrics of one GPU: two samples and a question, made once, because they are large."""

    def __init__(self, library: nvml.Library, device: Device) -> None:
        self.library, self.device = library, device
        support = nvml.GpmSupport(version=1)
        if not library.fill("nvmlGpmQueryDeviceSupport", device.whole, support).isSupportedDevice:
            raise library.error(nvml.NOT_SUPPORTED)
        self.before, self.now = library.handle("nvmlGpmSampleAlloc"), library.handle("nvmlGpmSampleAlloc")
        self.filled = False
        self.question = nvml.GpmMetrics(version=1, numMetrics=len(GPM))
        self.answers = [self.question.metrics[index] for index in range(len(GPM))]
        for answer, (_, metric) in zip(self.answers, GPM):  # noqa: B905 - strict is of Python 3.10
            answer.metricId = metric

    def read(self) -> "Dict[str, float]":
        """Return the metrics between the sample before and a new one."""
        device, question = self.device, self.question
        if device.instance is None:
            self.library.call("nvmlGpmSampleGet", device.whole, self.now)
        else:
            self.library.call("nvmlGpmMigSampleGet", device.whole, device.instance, self.now)
        self.before, self.now = self.now, self.before
        if not self.filled:
            self.filled = True
            return {}
        question.sample1, question.sample2 = self.now, self.before  # the older one, the new one
        self.library.call("nvmlGpmMetricsGet", ctypes.byref(question))
        answers = zip(GPM, self.answers)  # noqa: B905 - strict is of Python 3.10
        return {name: float(answer.value) for (name, _), answer in answers if not answer.nvmlReturn}


class Wrapping:
    """Counters of 32 bits, added up over their starting again."""

    def __init__(self) -> None:
        self.last: Dict[str, float] = {}
        self.total: Dict[str, float] = {}
        self.at = 0.0

    def add(self, counters: "Dict[str, float]", rates: "Dict[str, float]", now: float) -> "Dict[str, float]":
        """Return the bytes since the first reading; raise Absent where one may have wrapped twice."""
        for name, value in counters.items():
            # GPM leaves out the overhead of the packets, a third of what is sent in small ones.
            if 2 * rates.get(name + "_rate", 0.0) * KIB * KIB * (now - self.at) > PCIE_RANGE and self.last:
                raise Absent("absent.wraps-often")
            moved = (value - self.last.get(name, value)) % PCIE_RANGE
            self.total[name] = self.total.get(name, 0.0) + moved
            self.last[name] = value
        self.at = now
        return dict(self.total)


def open_gpus(gpus: "Sequence[str]") -> Gpus:
    """Return the source for these GPUs, or raise Absent."""
    try:
        return Nvml(nvml.Library(), gpus)
    except OSError as error:
        raise Absent("text", text=str(error)) from error
    except nvml.NvmlError as error:
        raise Absent("absent.nvml", why=str(error)) from error


class Patient(Source):
    """Asks a source in a thread of its own: a driver that hangs must not keep the others from being read.

    `make` returns the source; that too can hang. A reading that is not there after `patience` seconds has no
    values, and `late` counts it.
    """

    def __init__(self, names: "List[Column]", make: "Callable[[], Gpus]", patience: float = 0.2) -> None:
        super().__init__()
        self.columns = names
        self.patience = patience
        self.late = 0
        self.source: Optional[Gpus] = None
        self.reason: "Optional[Message]" = None
        # Both are held until there is a question, or an answer to it. Module threading takes 0.8 MB.
        self.asked, self.answered = _thread.allocate_lock(), _thread.allocate_lock()
        self.asked.acquire()
        self.answered.acquire()
        self.waiting = self.full = False
        self.values: List[Value] = []
        _thread.start_new_thread(self._serve, (make,))

    def _serve(self, make: "Callable[[], Gpus]") -> None:
        try:
            self.source = make()
            while True:
                self.asked.acquire()
                self.values = self.source.read(self.full)
                self.answered.release()
        except Absent as error:
            self.reason = error.message
        except Exception as error:  # noqa: BLE001 - whatever a driver does, the run goes on
            self.reason = message("text", text="%s: %s" % (type(error).__name__, error))

    def read(self, full: bool = False) -> "List[Value]":
        """Return the values, each None where the driver does not answer in time."""
        nothing: List[Value] = [None] * len(self.columns)
        if self.reason or self.source is None:
            return nothing
        if self.waiting and self.answered.acquire(False):
            self.waiting = False  # that was the answer to an earlier question
        if not self.waiting:
            self.full = full
            self.waiting = True
            self.asked.release()
            if self.answered.acquire(timeout=self.patience):
                self.waiting = False
                return self.values
        self.late += 1
        return nothing

    def closing(self) -> "Tuple[Dict[str, Message], Dict[str, Any]]":
        """Return why values are missing, by source, and what the GPUs are."""
        absent = dict(self.source.absent) if self.source else {}
        if self.reason:
            absent["gpu"] = self.reason
        elif self.source is None:
            absent["gpu"] = message("absent.gpu-silent")
        elif self.late:
            absent["gpu:late"] = message("absent.gpu-late", seconds=self.patience, count=self.late)
        return absent, self.source.about if self.source else {}


def without_waiting(gpus: "Sequence[str]") -> Patient:
    """Return the source for these GPUs that does not wait for the driver."""
    return Patient(columns(gpus), lambda: open_gpus(gpus))
