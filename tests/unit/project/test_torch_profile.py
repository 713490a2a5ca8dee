# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/torch_profile: what it makes of a trace of torch's profiler."""

import runpy
from pathlib import Path

import pytest

PROGRAM = runpy.run_path(str(Path(__file__).parents[2] / "bench/torch_profile"))
ABOUT = {"steps": 2, "begun_ns": 5_001_000_000, "ended_ns": 5_003_000_000}


def event(begin, end, name, cat="kernel"):
    return {"ph": "X", "cat": cat, "name": name, "ts": begin, "dur": end - begin}


def summary(*events):
    """Two steps of a millisecond each, from 1,000 to 3,000 µs after the trace's time zero."""
    return PROGRAM["summarize"]({"baseTimeNanoseconds": 5_000_000_000, "traceEvents": events}, ABOUT)


def test_kernels_at_the_same_time_keep_the_gpu_busy_once():
    found = summary(event(1000, 1600, "sm90_gemm"), event(1500, 2000, "ncclDevKernel"))
    assert (found["step"], found["busy"], found["kernels"]) == (1.0, 0.5, 1.0)


def test_what_is_before_or_after_the_steps_does_not_count():
    found = summary(event(900, 1100, "gemm"), event(2900, 3100, "gemm"), event(3100, 3200, "gemm"))
    assert (found["busy"], found["kernels"]) == (pytest.approx(0.1), 1.0)


def test_what_the_processor_does_is_not_the_gpus():
    assert summary(event(1000, 3000, "aten::mm", cat="cpu_op"))["busy"] == 0


def test_copies_keep_the_gpu_busy_and_are_no_kernels():
    found = summary(event(1000, 1200, "Memcpy DtoD", cat="gpu_memcpy"))
    assert (found["busy"], found["kernels"]) == (0.1, 0)


@pytest.mark.parametrize(
    ("kernel", "group"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "sums between devices"),
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32", "convolutions"),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", "matrix products"),
        ("pytorch_flash::flash_fwd_kernel", "attention"),
        ("triton_poi_fused_add_gelu_3", "element-wise operations"),
        ("triton_red_fused_native_layer_norm_5", "batch norm, layer norm, softmax"),
        ("void at::native::reduce_kernel<512, 1>", "reductions"),
        ("something_else", "others"),
    ],
)
def test_kernels_are_grouped_by_their_names(kernel, group):
    assert PROGRAM["group_of"](kernel) == group
