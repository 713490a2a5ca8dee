# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train a small model with a fixed seed, and return a digest of its losses and weights.

Equal devices with the same software have the same digest, bit for bit; one that computes wrong numbers does
not.  Every operation is one that PyTorch calls deterministic, and the numbers come from the processor.
"""

import hashlib
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # required for deterministic matrix products

import torch  # noqa: E402 - reads the variable above

STEPS = 200
WIDTH = {"cuda": 2048, "cpu": 128}
BATCH = 256


def digest(device: torch.device, dtype: torch.dtype) -> str:
    """Return the digest of a training with numbers of `dtype`."""
    width = WIDTH[device.type]
    source = torch.Generator().manual_seed(2020)
    weights = [torch.randn(width, width, generator=source) / width**0.5 for _ in range(4)]
    weights = [each.to(device, dtype).requires_grad_() for each in weights]
    inputs = torch.randn(BATCH, width, generator=source).to(device, dtype)
    targets = torch.randn(BATCH, width, generator=source).to(device, dtype)
    total = hashlib.sha256()
    for _ in range(STEPS):
        values = inputs
        for each in weights:
            values = torch.relu(values @ each) + values
        loss = (values - targets).float().square().mean()
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for each, gradient in zip(weights, gradients):  # noqa: B905 - Python 3.6
                each -= 0.05 * gradient
        total.update(loss.item().hex().encode())
    for each in weights:
        total.update(each.detach().float().cpu().numpy().tobytes())
    return total.hexdigest()[:16]


def trace(name: str) -> str:
    """Return the digest of each number format on `name`, gpu or cpu, and the version of torch."""
    device = torch.device("cuda" if name == "gpu" else "cpu")
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(True)
    try:
        digests = [digest(device, dtype) for dtype in (torch.float32, torch.bfloat16)]
    finally:
        torch.use_deterministic_algorithms(False)
    return "%s torch %s" % (" ".join(digests), torch.__version__)
