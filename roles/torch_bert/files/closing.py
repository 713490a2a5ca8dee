# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The end of a run: the ranks trained one model, what share of its peak a device reached, and leaving."""

import atexit
import os
import sys

import sizes
import torch
import torch.distributed as dist


def agree(model, device):
    """Whether all ranks hold the same weights: gradients were really summed."""
    total = torch.stack([p.detach().double().sum() for p in model.parameters()]).sum().to(device)
    low, high = total.clone(), total.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    return low.item() == high.item()


def arithmetic(rate, flops, device, dtype, tf32):
    """Words for the report: what `rate` samples/s of one device, at `flops` operations each, are on it.

    `tf32` says whether fp32 may use the tensor cores of a GPU. Without a known peak there is no share of it.
    """
    on_gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if on_gpu else "cpu"
    kind = "tf32" if dtype == "fp32" and tf32 and on_gpu else dtype
    reached, peak = rate * flops / 1e12, sizes.peak(name, kind)
    words = {"gflop_per_sample": "%.2f" % (flops / 1e9), "tflops_per_device": "%.2f" % reached}
    if peak:
        words["peak_tflops"] = peak
        words["peak_of"] = "dense-%s-%s" % (kind, name.replace(" ", "-"))
        words["mfu"] = "%.4f" % (reached / peak)
    return words


def leave():
    """End this process with status 0 once all ranks are here; what is registered for the end is done.

    Not by way of the interpreter's own end: a thread of gloo may hold a tensor until then, and freeing it in
    the middle of that aborts the process (pytorch/pytorch#190489). The run has done everything, and would
    count as failed.
    """
    dist.barrier()
    dist.destroy_process_group()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
