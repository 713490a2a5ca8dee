#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""NVML, the library that comes with NVIDIA's driver: what the sampler needs of it to ask it.

Functions, numbers and structures are those of nvml.h. NVIDIA's package nvidia-ml-py has all of them, and
takes 5 of the 30 MB that the sampler may have.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import ctypes
from ctypes import (
    byref,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_longlong,
    c_size_t,
    c_uint,
    c_ulong,
    c_ulonglong,
    c_ushort,
    c_void_p,
)

TYPE_CHECKING = False  # module typing takes 2 MB
if TYPE_CHECKING:
    from typing import Any, List, Tuple

LIBRARY = "libnvidia-ml.so.1"

NOT_SUPPORTED = 3
"""NVML_ERROR_NOT_SUPPORTED."""

CLOCK_SM, CLOCK_MEM = 1, 2
TEMPERATURE_GPU = 0
NVLINK_SENT, NVLINK_RECEIVED = 138, 139
"""NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX and _RX, in KiB."""

PCIE_SENT, PCIE_RECEIVED = 197, 198
"""NVML_FI_DEV_PCIE_COUNT_TX_BYTES and _RX_BYTES."""

ALL_LINKS = 0xFFFFFFFF
"""The scope of an NVLink field that adds up the links."""

GPM_METRICS = 333
"""What a question to GPM has room for: NVML_GPM_METRIC_MAX of 2026, should a driver clear all of it."""


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(ctypes.Structure):
    """nvmlMemory_v2_t, which tells what programs use without what the driver keeps for itself."""

    _fields_ = [
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    ]


class Utilization(ctypes.Structure):
    """nvmlUtilization_t."""

    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class Value(ctypes.Union):
    """nvmlValue_t; a field's valueType is the place of the member that holds it."""

    _fields_ = [
        ("dVal", c_double),
        ("uiVal", c_uint),
        ("ulVal", c_ulong),
        ("ullVal", c_ulonglong),
        ("sllVal", c_longlong),
        ("siVal", c_int),
        ("usVal", c_ushort),
    ]


class Field(ctypes.Structure):
    """nvmlFieldValue_t."""

    _fields_ = [
        ("fieldId", c_uint),
        ("scopeId", c_uint),
        ("timestamp", c_int64),
        ("latencyUsec", c_int64),
        ("valueType", c_uint),
        ("nvmlReturn", c_uint),
        ("value", Value),
    ]


class GpmSupport(ctypes.Structure):
    """nvmlGpmSupport_t."""

    _fields_ = [("version", c_uint), ("isSupportedDevice", c_uint)]


class GpmMetric(ctypes.Structure):
    """nvmlGpmMetric_t; `words` are two names and the unit."""

    _fields_ = [("metricId", c_uint), ("nvmlReturn", c_uint), ("value", c_double), ("words", c_char_p * 3)]


class GpmMetrics(ctypes.Structure):
    """nvmlGpmMetricsGet_t."""

    _fields_ = [
        ("version", c_uint),
        ("numMetrics", c_uint),
        ("sample1", c_void_p),
        ("sample2", c_void_p),
        ("metrics", GpmMetric * GPM_METRICS),
    ]


DONTNEED = 4
"""MADV_DONTNEED."""


def drop_pages() -> None:
    """Let go of the pages of files that nothing was written to, code above all: what is used comes back.

    They count as resident, and Python has needed most of them to start alone.
    """
    system = ctypes.CDLL(None)
    try:
        with open("/proc/self/smaps", "rb") as file:
            for line in file:
                words = line.split()
                if not words[0].endswith(b":"):
                    place, rights, path = words[0], words[1], words[-1]
                elif words[:2] == [b"Anonymous:", b"0"] and rights in (b"r--p", b"r-xp") and path[:1] == b"/":
                    first, end = (int(word, 16) for word in place.split(b"-"))
                    system.madvise(c_void_p(first), c_size_t(end - first), DONTNEED)
    except OSError:
        return  # a kernel that does not show it: the sampler has more memory then


class NvmlError(Exception):
    """What NVML says in place of an answer."""


class Library:
    """The library, opened. Raises OSError where there is none, and NvmlError where it has no driver."""

    def __init__(self) -> None:
        self.functions = ctypes.CDLL(LIBRARY)
        self.functions.nvmlErrorString.restype = c_char_p
        drop_pages()  # nvmlInit needs little of Python, and what is read later little of what that needs
        self.call("nvmlInit_v2")
        drop_pages()

    def error(self, number: int) -> NvmlError:
        """Return the error that NVML gave this number."""
        words = self.functions.nvmlErrorString(number) or b"error %d" % number
        return NvmlError(words.decode("ascii", "replace"))

    def call(self, name: str, *arguments: "Any") -> None:
        """Call a function of the library, or raise NvmlError."""
        try:
            function = getattr(self.functions, name)
        except AttributeError as error:
            raise NvmlError("this driver has no %s" % name) from error
        returned = function(*arguments)
        if returned:
            raise self.error(returned)

    def number(self, name: str, *arguments: "Any") -> int:
        """Return the number that a function writes to its last parameter."""
        value = c_ulonglong()  # or of 32 bits: the machines of NVIDIA's drivers have the lower half first
        self.call(name, *arguments, byref(value))
        return value.value

    def handle(self, name: str, *arguments: "Any") -> c_void_p:
        """Return the handle that a function writes to its last parameter."""
        pointer = c_void_p()
        self.call(name, *arguments, byref(pointer))
        return pointer

    def fill(self, name: str, handle: c_void_p, structure: "Any") -> "Any":
        """Return the structure, filled by a function."""
        self.call(name, handle, byref(structure))
        return structure

    def name(self, handle: c_void_p) -> str:
        """Return what a GPU or a slice is called."""
        words = ctypes.create_string_buffer(96)
        self.call("nvmlDeviceGetName", handle, words, len(words))
        return words.value.decode("utf-8", "replace")

    def mig_mode(self, handle: c_void_p) -> bool:
        """Tell whether a GPU is divided into slices."""
        now = c_uint()
        self.call("nvmlDeviceGetMigMode", handle, byref(now), byref(c_uint()))
        return bool(now.value)

    def memory_used(self, handle: c_void_p) -> int:
        """Return the bytes that programs use, as nvidia-smi does; older drivers add what they keep."""
        memory = MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
        try:
            return int(self.fill("nvmlDeviceGetMemoryInfo_v2", handle, memory).used)
        except NvmlError:
            return int(self.fill("nvmlDeviceGetMemoryInfo", handle, Memory()).used)

    def fields(self, handle: c_void_p, *places: "Tuple[int, int]") -> "List[float]":
        """Return the values of fields, each given by its number and its scope."""
        answers = (Field * len(places))(*(Field(*each) for each in places))
        self.call("nvmlDeviceGetFieldValues", handle, len(places), byref(answers))
        values = []
        for field in answers:
            if field.nvmlReturn:
                raise self.error(field.nvmlReturn)
            values.append(float(getattr(field.value, Value._fields_[field.valueType][0])))
        return values
