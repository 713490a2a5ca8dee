# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/torch_profile: what it makes of a trace of torch's profiler."""

import runpy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
PROGRAM = runpy.run_path(str(BENCH / "torch_profile"))
ABOUT = {"gpu": True, "steps": 2, "begun_ns": 1_000_000, "ended_ns": 3_000_000}


def event(begin, end, name, cat="kernel"):
    return {"ph": "X", "cat": cat, "name": name, "ts": begin, "dur": end - begin}


def summary(*events, gpu=True):
    """Two steps of a millisecond each."""
    return PROGRAM["summarize"]({"traceEvents": events}, {**ABOUT, "gpu": gpu})


def test_kernels_at_the_same_time_keep_the_gpu_busy_once():
    found = summary(event(1000, 1600, "sm90_gemm"), event(1500, 2000, "ncclDevKernel"))
    assert (found["step"], found["busy"], found["count"]) == (1.0, 0.5, 1.0)


def test_kernels_of_a_stream_that_overlap_count_whole():
    found = summary(event(1000, 1600, "sm90_gemm"), event(1500, 2000, "sm80_gemm"))
    assert found["groups"] == [("matrix products", [pytest.approx(0.55), 1.0])]


def test_what_the_processor_does_is_not_the_gpus():
    assert summary(event(1000, 3000, "aten::mm", cat="cpu_op"))["busy"] == 0


def test_copies_keep_the_gpu_busy_and_are_no_kernels():
    found = summary(event(1000, 1200, "Memcpy DtoD", cat="gpu_memcpy"))
    assert (found["busy"], found["count"]) == (0.1, 0)


def test_without_a_gpu_an_operator_takes_what_the_operators_that_it_calls_do_not():
    calls = event(1000, 1600, "aten::linear", cat="cpu_op")
    called = event(1100, 1500, "aten::copy_", cat="cpu_op")
    other = event(1500, 1700, "aten::relu", cat="cpu_op") | {"tid": 2}
    found = summary(calls, called, other, event(1000, 3000, "step", cat="user_annotation"), gpu=False)
    groups = {name: ms for name, (ms, _count) in found["groups"]}
    assert groups == {
        "matrix products": pytest.approx(0.1),
        "copies and zeroing": pytest.approx(0.2),
        "element-wise operations": pytest.approx(0.1),
    }
    assert (found["busy"], found["count"]) == (pytest.approx(0.35), 1.5)


@pytest.mark.parametrize(
    ("kernel", "group"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "sums between devices"),
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32", "convolutions"),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16", "convolutions"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "attention"),
        ("void cudnn::fusion::compute_dot_do_o_specialized<true, 64>", "attention"),
        ("_attention_backward", "attention"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x256", "matrix products"),
        (
            "triton_poi_fused__native_batch_norm_legit_functional_convolution_backward_54",
            "batch norm, layer norm, softmax",
        ),
        ("void at::native::GammaBetaBackwardCUDAKernelTemplate<float>", "batch norm, layer norm, softmax"),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", "matrix products"),
        ("pytorch_flash::flash_fwd_kernel", "attention"),
        ("triton_poi_fused_add_gelu_3", "element-wise operations"),
        ("triton_red_fused_native_layer_norm_5", "batch norm, layer norm, softmax"),
        ("void at::native::reduce_kernel<512, 1>", "reductions"),
        ("aten::addmm", "matrix products"),
        ("triton_tem_fused_mm_3", "matrix products"),
        ("triton_per_fused_addmm_native_layer_norm_4", "batch norm, layer norm, softmax"),
        ("multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float>>", "optimizer and clipping"),
        ("something_else", "others"),
    ],
)
def test_kernels_are_grouped_by_their_names(kernel, group):
    assert PROGRAM["group_of"](kernel) == group


def test_a_process_whose_pth_file_is_read_twice_is_profiled_once(monkeypatch, tmp_path):
    # Python does so in a virtual environment that sees the system's packages.
    monkeypatch.setattr(sys, "meta_path", [])
    watch = runpy.run_path(str(BENCH / "profiled_steps.py"))["watch"]
    watch(str(tmp_path), 40, 10)
    watch(str(tmp_path), 40, 10)
    assert len(sys.meta_path) == 1
