# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for pynvml with the answers that one H200 gave under a matrix product in bf16.

FAKE_NVML in the environment says what goes wrong: `hang` at the third reading, `open` (nvmlInit hangs), `old`
(a GPU before Hopper: no GPM, no NVLink), `none` (no driver), `crash` (an error that is not NVML's),
`flood` (PCIe at 60 GiB/s), `slow` (the counters of NVLink take 5 ms),
`mig` (GPU 0 is divided), `undivided` (MIG is on, but there is no slice).
The slices are made after NVIDIA's manual, not recorded: NVML tells the memory of a slice and GPM's activities
in it, and is not to be asked for the rest.
"""

import os
import time

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 138, 139
NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES = 197, 198
NVML_ERROR_NOT_SUPPORTED = 3
NVML_GPM_METRICS_GET_VERSION = 1
nvmlMemory_v2 = 0x02000028

FAULT = os.environ.get("FAKE_NVML", "")
TEXTS = {3: "Not Supported", 6: "Not Found", 9: "Driver Not Loaded"}
ACTIVE = {2: 96.1, 3: 14.2, 7: 93.3, 10: 16.5, 20: 8.1, 21: 60000.0 if FAULT == "flood" else 68.7}
# Readings of the counters of PCIe bytes, sent and received, a second apart, of an H200 on 23 November 2026
# (torch_bert at batch 512): that of received bytes starts again.
PCIE = [(256129624, 4285291504), (269618632, 36419212), (283020644, 81603872), (296559316, 127673436)]
RESERVED = 28214951936 - (26293 << 20)
POWER = 689.0
BEGAN = time.monotonic()
asked = []
read = {}


# The first and the third place have a slice: (number of its GPU instance, bytes in use, SM active).
SLICES = {0: (1, 5 << 30, 71.5), 2: (5, 2 << 30, 12.5)}


class Slice(int):
    """The handle of a slice: its place."""


class NVMLError(Exception):
    """NVML's own errors; `str` is their text."""

    def __str__(self):
        return TEXTS[self.args[0]]


class Answer:
    """A structure of NVML."""

    def __init__(self, **values):
        self.__dict__.update(values)


def nvmlInit():
    if FAULT == "open":
        time.sleep(3600)
    if FAULT == "none":
        raise NVMLError(9)


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetHandleByUUID(uuid):
    if not uuid.startswith("MIG-made-"):
        raise NVMLError(6)
    return Slice(uuid.rpartition("-")[2])


def nvmlDeviceGetMigMode(handle):
    if FAULT == "old":
        raise NVMLError(3)
    divided = int(FAULT in ("mig", "undivided") and handle == 0)
    return [divided, divided]


def nvmlDeviceGetMaxMigDeviceCount(handle):
    return 7


def nvmlDeviceGetMigDeviceHandleByIndex(handle, index):
    # The first place is free, so that it is looked for.
    if FAULT != "mig" or index - 1 not in SLICES:
        raise NVMLError(6)
    return Slice(index - 1)


def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle):
    assert isinstance(handle, Slice)
    return 0


def nvmlDeviceGetGpuInstanceId(handle):
    return SLICES[handle][0]


def nvmlDeviceGetName(handle):
    return "NVIDIA H200 MIG 3g.71gb" if isinstance(handle, Slice) else "NVIDIA H200"


def nvmlDeviceGetMemoryInfo(handle, version=None):
    if isinstance(handle, Slice):
        return Answer(total=71 << 30, used=SLICES[handle][1])
    if version and FAULT == "old":
        raise NVMLError(3)
    return Answer(total=150754820096, used=(26293 << 20) + (0 if version else RESERVED))


def nvmlDeviceGetEnforcedPowerLimit(handle):
    return 700000


def nvmlDeviceGetUtilizationRates(handle):
    assert not isinstance(handle, Slice)
    asked.append(handle)
    if FAULT == "hang" and len(asked) == 3:
        time.sleep(3600)
    if FAULT == "crash" and len(asked) == 3:
        raise OSError("the library is gone")
    return Answer(gpu=100)


def nvmlDeviceGetPowerUsage(handle):
    assert not isinstance(handle, Slice)
    return round(1000 * POWER)


def nvmlDeviceGetTotalEnergyConsumption(handle):
    return round(1000 * POWER * (time.monotonic() - BEGAN))


def nvmlDeviceGetClockInfo(handle, clock):
    return {NVML_CLOCK_SM: 1980, NVML_CLOCK_MEM: 3201}[clock]


def nvmlDeviceGetTemperature(handle, sensor):
    return 61


def nvmlDeviceGetCurrentClocksEventReasons(handle):
    return 0x04


def nvmlDeviceGetFieldValues(handle, fields):
    if fields[0] == NVML_FI_DEV_PCIE_COUNT_TX_BYTES:
        read[handle] = read.get(handle, -1) + 1
        counts = list(PCIE[min(read[handle], len(PCIE) - 1)])
    else:
        assert [scope for _, scope in fields] == [0xFFFFFFFF, 0xFFFFFFFF]
        end = time.thread_time() + 0.005
        while FAULT == "slow" and time.thread_time() < end:
            pass
        counts = [5, 7]
    refused = NVML_ERROR_NOT_SUPPORTED if FAULT == "old" and counts[0] == 5 else 0
    return [Answer(nvmlReturn=refused, valueType=3, value=Answer(ullVal=count)) for count in counts]


def nvmlGpmQueryDeviceSupport(handle):
    return Answer(isSupportedDevice=int(FAULT != "old"))


def nvmlGpmSampleAlloc():
    return Answer(taken=None, instance=None)


def nvmlGpmSampleGet(handle, sample):
    sample.taken = time.monotonic()


def nvmlGpmMigSampleGet(handle, instance, sample):
    assert not isinstance(handle, Slice)
    sample.taken, sample.instance = time.monotonic(), instance


def c_nvmlGpmMetricsGet_t():
    return Answer(metrics=[Answer(metricId=0, nvmlReturn=0, value=0.0) for _ in range(98)])


def nvmlGpmMetricsGet(asked_for):
    assert asked_for.version == NVML_GPM_METRICS_GET_VERSION
    assert asked_for.sample1.taken < asked_for.sample2.taken
    assert asked_for.sample1.instance == asked_for.sample2.instance
    of_slice = {instance: {2: active} for instance, _, active in SLICES.values()}
    active = {**ACTIVE, **of_slice.get(asked_for.sample1.instance, {})}
    for metric in asked_for.metrics[: asked_for.numMetrics]:
        metric.value = active[metric.metricId]
