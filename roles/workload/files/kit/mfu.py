# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The closing line of a trainer: operations per second and device, and the share of its peak (MFU).

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

from typing import Any, Dict, Optional

# Dense peaks in TFLOP/s from the vendor's data sheets: H100 (SXM and PCIe), H200, A100, V100, L4, L40S, A10.
# The first entry whose key is part of the device's name counts. fp32 is without tensor cores, tf32 with them.
PEAKS = (
    ("H100 PCIe", {"bf16": 756.5, "fp16": 756.5, "tf32": 378.3, "fp32": 51.2}),
    ("H100 NVL", {"bf16": 835.5, "fp16": 835.5, "tf32": 417.7, "fp32": 60.0}),
    ("H100", {"bf16": 989.4, "fp16": 989.4, "tf32": 494.7, "fp32": 66.9}),
    ("H200", {"bf16": 989.4, "fp16": 989.4, "tf32": 494.7, "fp32": 66.9}),
    ("A100", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    ("V100", {"fp16": 125.0, "fp32": 15.7}),
    ("L40S", {"bf16": 362.1, "fp16": 362.1, "tf32": 183.2, "fp32": 91.6}),
    ("L4", {"bf16": 121.0, "fp16": 121.0, "tf32": 60.0, "fp32": 30.3}),
    ("A10", {"bf16": 125.0, "fp16": 125.0, "tf32": 62.5, "fp32": 31.2}),
)


def peak(device: str, dtype: str) -> Optional[float]:
    """Return the dense peak of a device in TFLOP/s by its name, or None where the table does not have it."""
    for key, peaks in PEAKS:
        if key in device:
            return peaks.get(dtype)
    return None


def closing_line(rate: float, flops: float, device: str, dtype: str, tf32: bool) -> Dict[str, Any]:
    """Return the values of the closing line for `rate` samples/s per device, of `flops` operations each.

    `device` is the name of the GPU, or `cpu`; `tf32` says whether fp32 may use the tensor cores of a GPU.
    Without a known peak there is no share of it.
    """
    kind = "tf32" if dtype == "fp32" and tf32 and device != "cpu" else dtype
    reached, highest = rate * flops / 1e12, peak(device, kind)
    values: Dict[str, Any] = {
        "gflop_per_sample": "%.2f" % (flops / 1e9),
        "tflops_per_device": "%.2f" % reached,
    }
    if highest:
        values["peak_tflops"] = highest
        values["peak_of"] = "dense-%s-%s" % (kind, device.replace(" ", "-"))
        values["mfu"] = "%.4f" % (reached / highest)
    return values
