#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's driver tells of GPUs: through NVML where nvidia-ml-py is installed, else through nvidia-smi.

`utilization` says that some kernel ran, `sm_active` on how many multiprocessors one did. The activities
have the names of DCGM; they come from GPM, which is there from Hopper on. `pipe_tensor_active` is the HMMA
pipe, the only counter of FP16, BF16 and TF32.

A GPU is named as CUDA_VISIBLE_DEVICES does: by its number, or by the UUID of a GPU or of a slice (MIG). Where
MIG is on for a GPU, the number means its first slice, as for CUDA, and the slice is what is read.

Runs on the nodes' own Python, 3.6 or later; pynvml where it can be imported.
"""

import os
import re
import threading
import time
from abc import abstractmethod
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from host_sources import ALLOWED, PUT_OFF, Absent, Column, Pace, Source, Value

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

ALL_LINKS = 0xFFFFFFFF
"""The scope of an NVLink field that adds up the links."""

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


def names_in(visible: str) -> List[str]:
    """Return the names of the GPUs in a value of CUDA_VISIBLE_DEVICES."""
    return [word for word in visible.split(",") if re.match(r"(\d+|(GPU|MIG)-[\w/-]+)\Z", word)]


def none_used() -> str:
    """Return why a job without GPUs of NVIDIA has no readings of GPUs."""
    return "the job uses no GPU" + ("; those of AMD are not read" if os.path.exists("/dev/kfd") else "")


def columns(gpus: Sequence[str]) -> List[Column]:
    """Return the columns of these GPUs: known before the driver has answered, which can take long."""
    return [("gpu:%s:%s" % (gpu, name), kind, unit) for gpu in gpus for name, kind, unit in QUANTITIES]


class Gpus(Source):
    """GPUs; `absent` says why a quantity has no value."""

    def __init__(self, gpus: Sequence[str]) -> None:
        super().__init__()
        self.gpus = list(gpus)
        self.columns = columns(gpus)
        self.absent: Dict[str, str] = {}

    @abstractmethod
    def values(self, gpu: str, full: bool) -> Dict[str, Value]:
        """Return the values of one GPU, by quantity; `full`: nothing may be put off."""

    def read(self, full: bool = False) -> List[Value]:
        """Return the values in the order of the columns."""
        read = {gpu: self.values(gpu, full) for gpu in self.gpus}
        return [read[gpu].get(name) for gpu in self.gpus for name, _, _ in QUANTITIES]


class Device(NamedTuple):
    """What NVML is asked by: the handle of a GPU or of a slice, that of the whole GPU, the slice's number."""

    handle: Any
    whole: Any
    instance: Optional[int]


def find_device(nvml: Any, gpu: str) -> Device:
    """Return the GPU of this name, or the slice that CUDA takes by it; raise NVMLError or Absent."""
    by = nvml.nvmlDeviceGetHandleByUUID if "-" in gpu else nvml.nvmlDeviceGetHandleByIndex
    handle = by(gpu if "-" in gpu else int(gpu))
    if gpu.startswith("MIG-"):
        whole = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        return Device(handle, whole, nvml.nvmlDeviceGetGpuInstanceId(handle))
    try:
        divided = nvml.nvmlDeviceGetMigMode(handle)[0]
    except (nvml.NVMLError, AttributeError):  # a GPU, a driver or bindings that know no slices
        divided = 0
    if not divided:
        return Device(handle, handle, None)
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError:
            continue  # there is none at this index
        return Device(part, handle, nvml.nvmlDeviceGetGpuInstanceId(part))
    raise Absent("MIG is on for GPU %s, and there is no slice of it" % gpu)


class Nvml(Gpus):
    """GPUs through NVML. Each quantity that a GPU does not know is left out, with NVML's own reason."""

    def __init__(self, nvml: Any, gpus: Sequence[str]) -> None:
        super().__init__(gpus)
        self.nvml = nvml
        try:
            nvml.nvmlInit()
            self.devices = {gpu: find_device(nvml, gpu) for gpu in gpus}
        except nvml.NVMLError as error:
            raise Absent("NVML: %s" % error) from error
        self.asked = {gpu: self._questions(gpu) for gpu in gpus}
        self.paces = {gpu: {name: Pace(ALLOWED / 2) for name in self.asked[gpu]} for gpu in gpus}
        self.activities: Dict[str, Activities] = {}
        self.rates: Dict[str, Dict[str, float]] = {gpu: {} for gpu in gpus}
        self.pcie = {gpu: Wrapping() for gpu in gpus}
        for gpu, device in self.devices.items():
            if device.instance is not None:
                self.absent["gpu:%s" % gpu] = "it is a slice (MIG), and the rest is of the whole GPU"
        self.about = {"gpus": {gpu: self._facts(gpu) for gpu in gpus}}

    def _facts(self, gpu: str) -> Dict[str, Any]:
        facts: Dict[str, Any] = {}
        nvml, handle = self.nvml, self.devices[gpu].handle
        for name, ask in (
            ("name", lambda: _words(nvml.nvmlDeviceGetName(handle))),
            ("memory_bytes", lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
            ("power_limit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000.0),
        ):
            if name == "power_limit" and self.devices[gpu].instance is not None:
                continue  # the whole GPU's
            try:
                facts[name] = ask()
            except nvml.NVMLError:
                continue  # a fact that it does not tell
        return facts

    def _questions(self, gpu: str) -> Dict[str, Callable[[], Dict[str, Value]]]:
        """Return what is asked of a GPU, by quantity or group."""
        nvml, device = self.nvml, self.devices[gpu]
        handle = device.handle
        questions: Dict[str, Callable[[], Dict[str, Value]]] = {
            "utilization": lambda: {"utilization": nvml.nvmlDeviceGetUtilizationRates(handle).gpu},
            "memory": lambda: {"memory": self._memory(handle)},
            "power": lambda: {"power": nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0},
            "energy": lambda: {"energy": nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000.0},
            "sm_clock": lambda: {"sm_clock": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)},
            "memory_clock": lambda: {
                "memory_clock": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)
            },
            "temperature": lambda: {
                "temperature": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            },
            "throttle": lambda: self._throttle(handle),
            "nvlink": lambda: {**self._fields(handle, "nvlink")},
            "gpm": lambda: self._gpm(gpu, device),
            "pcie": lambda: self._pcie(gpu, handle),
        }
        return {name: questions[name] for name in (questions if device.instance is None else OF_SLICES)}

    def values(self, gpu: str, full: bool) -> Dict[str, Value]:
        """Ask one question after the other; what a GPU refuses it is not asked again."""
        nvml, asked = self.nvml, self.asked[gpu]
        found: Dict[str, Value] = {}
        for name in list(asked):
            pace = self.paces[gpu][name]
            if not pace.turn(full):
                found.update(dict.fromkeys(GROUPS.get(name, (name,)), PUT_OFF))
                continue
            try:
                with pace:
                    found.update(asked[name]())
            except (nvml.NVMLError, AttributeError) as error:  # an older driver, or older bindings
                del asked[name]
                self.absent["gpu:%s:%s" % (gpu, name)] = "NVML: %s" % error
            except UnknownError as error:
                del asked[name]
                self.absent["gpu:%s:%s" % (gpu, name)] = str(error)
        return found

    def _memory(self, handle: Any) -> int:
        """Return the bytes that programs use, as nvidia-smi does; version 1 adds what the driver keeps."""
        nvml = self.nvml
        try:
            return int(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used)
        except (nvml.NVMLError, AttributeError, TypeError):  # an older driver, or older bindings
            return int(nvml.nvmlDeviceGetMemoryInfo(handle).used)

    def _pcie(self, gpu: str, handle: Any) -> Dict[str, Value]:
        """Return the bytes since the first reading."""
        if "gpm" not in self.asked[gpu]:
            raise UnknownError(
                "its counters start again every 4 GiB, and without GPM nothing tells how often"
            )
        return {**self.pcie[gpu].add(self._fields(handle, "pcie"), self.rates[gpu], time.monotonic())}

    def _throttle(self, handle: Any) -> Dict[str, Value]:
        try:
            ask = self.nvml.nvmlDeviceGetCurrentClocksEventReasons
        except AttributeError:  # its name before 2023
            ask = self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        reasons = int(ask(handle))
        return {
            "throttle_power_cap": float(bool(reasons & POWER_CAP)),
            "throttle_thermal": float(bool(reasons & THERMAL)),
            "throttle_hardware": float(bool(reasons & HARDWARE)),
        }

    def _fields(self, handle: Any, group: str) -> Dict[str, float]:
        """Return the counters of a bus: PCIe counts bytes, NVLink KiB."""
        nvml = self.nvml
        if group == "pcie":
            fields = [nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES]
            unit = 1.0
        else:
            numbers = (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX)
            fields = [(number, ALL_LINKS) for number in numbers]
            unit = KIB
        found = {}
        values = nvml.nvmlDeviceGetFieldValues(handle, fields)
        for name, value in zip(("sent", "received"), values):  # noqa: B905 - strict is of Python 3.10
            if value.nvmlReturn:
                raise nvml.NVMLError(value.nvmlReturn)
            found["%s_%s" % (group, name)] = _number(value) * unit
        return found

    def _gpm(self, gpu: str, device: Device) -> Dict[str, Value]:
        """Return the activities since the reading before; none at the first."""
        if gpu not in self.activities:
            self.activities[gpu] = Activities(self.nvml, device)
        found = self.activities[gpu].read()
        self.rates[gpu] = {name: value for name, value in found.items() if name.endswith("_rate")}
        return {name: value for name, value in found.items() if name not in self.rates[gpu]}


class Activities:
    """GPM's metrics of one GPU: two samples and a question, made once, because they are large."""

    def __init__(self, nvml: Any, device: Device) -> None:
        self.nvml, self.device = nvml, device
        if not nvml.nvmlGpmQueryDeviceSupport(device.whole).isSupportedDevice:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        self.before, self.now = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        self.filled = False
        self.question = nvml.c_nvmlGpmMetricsGet_t()
        self.question.version = nvml.NVML_GPM_METRICS_GET_VERSION
        self.question.numMetrics = len(GPM)
        self.answers = [self.question.metrics[index] for index in range(len(GPM))]
        for answer, (_, metric) in zip(self.answers, GPM):  # noqa: B905 - strict is of Python 3.10
            answer.metricId = metric

    def read(self) -> Dict[str, float]:
        """Return the metrics between the sample before and a new one."""
        nvml, question = self.nvml, self.question
        if self.device.instance is None:
            nvml.nvmlGpmSampleGet(self.device.whole, self.now)
        else:
            nvml.nvmlGpmMigSampleGet(self.device.whole, self.device.instance, self.now)
        self.before, self.now = self.now, self.before
        if not self.filled:
            self.filled = True
            return {}
        question.sample1, question.sample2 = self.now, self.before  # the older one, the new one
        nvml.nvmlGpmMetricsGet(question)
        answers = zip(GPM, self.answers)  # noqa: B905 - strict is of Python 3.10
        return {name: float(answer.value) for (name, _), answer in answers if not answer.nvmlReturn}


class UnknownError(Exception):
    """A quantity that the driver's answer does not tell."""


class Wrapping:
    """Counters of 32 bits, added up over their starting again."""

    def __init__(self) -> None:
        self.last: Dict[str, float] = {}
        self.total: Dict[str, float] = {}
        self.at = 0.0

    def add(self, counters: Dict[str, float], rates: Dict[str, float], now: float) -> Dict[str, float]:
        """Return the bytes since the first reading; raise UnknownError where one may have wrapped twice."""
        for name, value in counters.items():
            # GPM leaves out the overhead of the packets, a third of what is sent in small ones.
            if 2 * rates.get(name + "_rate", 0.0) * KIB * KIB * (now - self.at) > PCIE_RANGE and self.last:
                raise UnknownError("its counters start again every 4 GiB, which is too often at this rate")
            moved = (value - self.last.get(name, value)) % PCIE_RANGE
            self.total[name] = self.total.get(name, 0.0) + moved
            self.last[name] = value
        self.at = now
        return dict(self.total)


def _words(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _number(field: Any) -> float:
    """Return the value of an NVML field, a union whose member depends on its type."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal")
    return float(getattr(field.value, members[field.valueType]))


def open_gpus(gpus: Sequence[str], interval: float) -> Gpus:
    """Return the source for these GPUs, or raise Absent."""
    try:
        import pynvml
    except ImportError:
        import smi_source  # here, because it brings modules that take memory

        return smi_source.Smi(gpus, interval)
    return Nvml(pynvml, gpus)


class Patient(Source):
    """Asks a source in a thread of its own: a driver that hangs must not keep the others from being read.

    `make` returns the source; that too can hang. A reading that is not there after `patience` seconds has no
    values, and `late` counts it.
    """

    def __init__(self, names: List[Column], make: Callable[[], Gpus], patience: float = 0.2) -> None:
        super().__init__()
        self.columns = names
        self.patience = patience
        self.late = 0
        self.source: Optional[Gpus] = None
        self.reason = ""
        self.asked, self.answered = threading.Event(), threading.Event()
        self.waiting = self.full = False
        self.values: List[Value] = []
        threading.Thread(target=self._serve, args=(make,), daemon=True).start()

    def _serve(self, make: Callable[[], Gpus]) -> None:
        try:
            self.source = make()
            while True:
                self.asked.wait()
                self.asked.clear()
                self.values = self.source.read(self.full)
                self.answered.set()
        except Absent as error:
            self.reason = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a driver or its bindings do, the run goes on
            self.reason = "%s: %s" % (type(error).__name__, error)

    def read(self, full: bool = False) -> List[Value]:
        """Return the values, each None where the driver does not answer in time."""
        nothing: List[Value] = [None] * len(self.columns)
        if self.reason or self.source is None:
            return nothing
        if self.waiting and self.answered.is_set():
            self.answered.clear()  # the answer to an earlier question
            self.waiting = False
        if not self.waiting:
            self.full = full
            self.asked.set()
            self.waiting = True
            if self.answered.wait(self.patience):
                self.answered.clear()
                self.waiting = False
                return self.values
        self.late += 1
        return nothing

    def absent(self) -> Dict[str, str]:
        """Return why values are missing, by source."""
        found = dict(self.source.absent) if self.source else {}
        if self.reason:
            found["gpu"] = self.reason
        elif self.source is None:
            found["gpu"] = "the driver did not answer when it was opened"
        elif self.late:
            found["gpu:late"] = "the driver did not answer within %g s, %d times" % (self.patience, self.late)
        return found
