# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The closing line of a trainer: operations per second and device, and the share of its peak (MFU).

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import re
from typing import Any, Dict, Optional

# Dense peaks in TFLOP/s as in data/gpus.csv, which names their sources and which nodes do not have. A name
# counts if the expression matches the whole of it: an H200 NVL or an L40 must not take the peaks of an H200
# or an L4. fp32 is without tensor cores, tf32 with them.
PEAKS = (
    (r"(NVIDIA )?B200", {"bf16": 2250.0, "fp16": 2250.0, "tf32": 1100.0, "fp32": 80.0}),
    (r"(NVIDIA )?H100 PCIe", {"bf16": 756.5, "fp16": 756.5, "tf32": 378.3, "fp32": 51.2}),
    (r"(NVIDIA )?H100 NVL", {"bf16": 835.5, "fp16": 835.5, "tf32": 417.7, "fp32": 60.0}),
    (r"(NVIDIA )?H100 80GB HBM3", {"bf16": 989.4, "fp16": 989.4, "tf32": 494.7, "fp32": 66.9}),
    (r"(NVIDIA )?H200", {"bf16": 989.4, "fp16": 989.4, "tf32": 494.7, "fp32": 66.9}),
    (r"(NVIDIA )?A100 80GB PCIe", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    (r"(NVIDIA )?A100-SXM4?-80GB", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    (r"(NVIDIA )?A100-(SXM4|PCIE)-40GB", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    (r"(NVIDIA )?(Tesla )?V100S-PCIE-32GB", {"fp16": 130.0, "fp32": 16.4}),
    (r"(NVIDIA )?(Tesla )?V100-PCIE-(16|32)GB", {"fp16": 112.0, "fp32": 14.0}),
    (r"(NVIDIA )?(Tesla )?V100-SXM2-(16|32)GB", {"fp16": 125.0, "fp32": 15.7}),
    (r"(NVIDIA )?Tesla P40", {"fp32": 12.0}),
    (r"(NVIDIA )?L40S", {"bf16": 362.1, "fp16": 362.1, "tf32": 183.2, "fp32": 91.6}),
    (r"(NVIDIA )?L4", {"bf16": 121.0, "fp16": 121.0, "tf32": 60.0, "fp32": 30.3}),
    (r"(NVIDIA )?A10", {"bf16": 125.0, "fp16": 125.0, "tf32": 62.5, "fp32": 31.2}),
    (r"(NVIDIA )?RTX A6000", {"bf16": 154.8, "fp16": 154.8, "tf32": 77.4, "fp32": 38.7}),
    (r"(NVIDIA )?GeForce RTX 3090 Ti", {"bf16": 80.0, "fp16": 80.0, "tf32": 40.0, "fp32": 40.0}),
)


def peak(device: str, dtype: str) -> Optional[float]:
    """Return the dense peak of a device in TFLOP/s by its name, or None where the table does not have it."""
    for pattern, peaks in PEAKS:
        if re.fullmatch(pattern, device):
            return peaks.get(dtype)
    return None


def closing_line(rate: float, flops: float, device: str, dtype: str, tf32: bool) -> Dict[str, Any]:
    """Return the values of the closing line for `rate` samples/s per device, of `flops` operations each.

    `device` is the name of the GPU, or `cpu`; `tf32` says whether fp32 may use the tensor cores of a GPU.
    Without a known peak there is no share of it, and `peak_of` of a GPU is `unknown`.
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
    elif device != "cpu":
        values["peak_of"] = "unknown"
    return values
