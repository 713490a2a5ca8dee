#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Hold torch_bert's fused layer against the plain one in double precision, on a GPU with torch and Triton.

    python3 tests/gpu/fused_layer.py

Prints the relative error of the output and of every gradient; ends with status 1 where one is larger than
rounding explains. Run by hand: neither CI nor scripts/test has a GPU.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "roles/pytorch/files"))

import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402
from bert_attention import sdpa  # noqa: E402
from bert_fused import FusedLayer  # noqa: E402
from bert_model import NORM_EPSILON, Layer, Norm  # noqa: E402
from fused_kernels import add_norm, add_norm_backward  # noqa: E402

SIZE = {"hidden": 768, "heads": 12, "intermediate": 3072}
BATCH, SEQ = 8, 128
# Roundings add up: some ten of them, each of half a unit in the last place.
LIMITS = {torch.bfloat16: 0.02, torch.float16: 0.0025}
DROPPED = 0.1


class ExactNorm(Norm):
    """model.Norm in the precision of its input."""

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, NORM_EPSILON)


def error(value, exact):
    """|value - exact| / |exact|."""
    value, exact = value.detach().double(), exact.detach().double()
    return float((value - exact).norm() / exact.norm())


def layers():
    """A fused layer with weights at random, and a plain one in double precision with the same."""
    fused = FusedLayer(SIZE, 0.0, None).cuda()
    for name, parameter in fused.named_parameters():
        torch.nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.05)
    plain = Layer(SIZE, 0.0, sdpa).cuda().double()
    plain.load_state_dict(fused.state_dict())
    plain.attention_norm.__class__ = plain.output_norm.__class__ = ExactNorm
    return fused, plain


def compare(dtype, lengths):
    """{name: error} of output and gradients."""
    fused, plain = layers()
    x = torch.randn(BATCH, SEQ, SIZE["hidden"], device="cuda", dtype=dtype, requires_grad=True)
    exact = x.detach().double().requires_grad_()
    keys = torch.randint(-(2**31), 2**31 - 1, (3, 2), device="cuda", dtype=torch.int32)
    grad = torch.randn_like(x)
    out, wanted = fused(x, lengths, keys), plain(exact, lengths, keys)
    out.backward(grad)
    wanted.backward(grad.double())
    errors = {"output": error(out, wanted), "x": error(x.grad, exact.grad)}
    for (name, ours), theirs in zip(fused.named_parameters(), plain.parameters(), strict=True):
        errors[name] = error(ours.grad, theirs.grad)
    return errors


def compare_dropout(dtype):
    """{name: error} of the norm's gradient with dropout, whose mask the forward pass shows."""
    rows, width = 4096, SIZE["hidden"]
    y, x, grad = (torch.randn(rows, width, device="cuda", dtype=dtype) for _ in range(3))
    bias, weight, beta = (torch.randn(width, device="cuda") for _ in range(3))
    bias += 100  # what was not dropped shows
    keys = torch.tensor([12345, -987654], dtype=torch.int32, device="cuda")
    _, normed = add_norm(y, bias, x, weight, beta, keys, DROPPED)
    to_y, to_x, *_ = add_norm_backward(grad, normed, weight, keys, DROPPED)
    mask = ((normed[0].double() - x.double()).abs() > 50).double()
    return {
        "share dropped": abs(float(1 - mask.mean()) - DROPPED),
        "y": error(to_y, to_x.double() * mask / (1 - DROPPED)),
    }


def main():
    """Compare everything; return the exit status."""
    torch.manual_seed(2020)
    lengths = torch.randint(1, SEQ + 1, (BATCH,), device="cuda", dtype=torch.int32)
    bad = 0
    for dtype, limit in LIMITS.items():
        found = {
            "full": compare(dtype, None),
            "padded": compare(dtype, lengths),
            "dropout": compare_dropout(dtype),
        }
        for kind, errors in found.items():
            print(dtype, kind, " ".join(f"{name} {value:.5f}" for name, value in errors.items()))
            bad += sum(not value < limit for value in errors.values())
    print(f"{bad} errors are too large")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
