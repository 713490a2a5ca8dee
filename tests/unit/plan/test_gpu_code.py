# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which stack has code for which GPUs: the stacks of the project against what nvidia-smi printed.

The answer of the H200 is what `nvidia-smi --query-gpu=compute_cap --format=csv,noheader` of driver 580.159.04
printed on 23 November 2026, that of the H100 is in tests/data/preflight/h100-more.txt; those of V100 and
A100 are made up, from https://developer.nvidia.com/cuda-gpus.
"""

import pytest
from ansible.module_utils.scalebook.plan import declared, gpu_code
from ansible.module_utils.scalebook.plan.declared import StackError
from ansible.module_utils.scalebook.workloads import load_workloads
from role_files import ROLES

V100, A100, H100, H200 = "7.0\n7.0\n", "8.0\n", "9.0\n", "9.0\n"
WARNS = H200 + "WARNING: infoROM is corrupted at gpu 0000:05:00.0\n"
OLD_DRIVER = 'Field "compute_cap" is not a valid field to query.\n'


def choose(answer, *names, **more):
    stacks = declared.stacks(str(ROLES.parent / "playbooks/vars"))
    return gpu_code.choose({"NODE1": answer}, names, load_workloads([str(ROLES)]), stacks, **more)


@pytest.mark.parametrize("answer", [V100, "", OLD_DRIVER])
def test_the_declared_stack_stays_where_nothing_speaks_against_it(answer):
    assert choose(answer, "tf2_bert") == {"stack_name": "", "said": ""}


@pytest.mark.parametrize("name", ["tf2_bert", "tf2_resnet50"])
@pytest.mark.parametrize(("answer", "number"), [(A100, "8.0"), (H100, "9.0"), (WARNS, "9.0")])
def test_gpus_that_the_declared_stack_has_no_code_for_get_the_other_one(answer, number, name):
    choice = choose(answer, name)
    assert choice["stack_name"] == "modern"
    assert choice["said"] == (
        "stack_name=modern is used: the CUDA 10.2 software of stack dlperf2020 has code for compute "
        f"capability 3.5 to 7.5, a GPU of NODE1 has {number}."
    )


@pytest.mark.parametrize("name", ["tf2_bert", "tf2_resnet50"])
@pytest.mark.parametrize("answer", [A100, H100, H200])
def test_a_stack_without_code_for_the_gpus_is_refused_with_the_one_to_use(answer, name):
    with pytest.raises(
        StackError, match=r"stack_name=dlperf2020: the CUDA 10.2 .* Fix: -e stack_name=modern$"
    ):
        choose(answer, name, stack_name="dlperf2020")


@pytest.mark.parametrize("name", ["tf2_bert", "tf2_resnet50"])
@pytest.mark.parametrize("answer", [V100, A100, H100, H200])
def test_tensorflow_of_today_has_code_for_all_of_them(answer, name):
    assert choose(answer, name, stack_name="modern")["stack_name"] == "modern"


@pytest.mark.parametrize("name", ["tf1_resnet50", "horovod_tf1_bert"])
def test_tensorflow_1_is_for_a_v100_and_not_for_an_a100(name):
    assert choose(V100, name)["said"] == ""
    with pytest.raises(
        StackError, match=r"TensorFlow 1.15.5 for CUDA 10.0 .* 3.5 to 7.5, a GPU of NODE1 has 8.0"
    ):
        choose(A100, name)


def test_torch_of_today_is_refused_on_a_v100():
    with pytest.raises(
        StackError, match=r"torch for CUDA 13.0 .* 7.5 to 12.1, a GPU of NODE1 has 7.0, and no other"
    ):
        choose(V100, "torch_bert")


@pytest.mark.parametrize("variable", ["bing_bert_python", "horovod_tf1_bert_venv", "tf1_resnet50_venv"])
def test_an_environment_of_the_users_own_is_not_judged(variable):
    name = variable.rpartition("_")[0]
    assert choose(H200, name, variables={variable: "/opt/own"})["stack_name"] == ""
    with pytest.raises(StackError, match="no other stack has"):
        choose(H200, name, variables={variable: ""})


def test_an_environment_that_a_role_fills_is_not_the_users_own():
    """oneflow_venv says where it is, not what is in it."""
    with pytest.raises(StackError, match=r"Fix: device=cpu, or other GPUs$"):
        choose(H200, "oneflow_resnet50", variables={"oneflow_venv": "/opt/oneflow"})


def test_a_workload_that_is_installed_for_cpus_is_not_judged():
    assert choose(H200, "paddle_bert", variables={"paddle_bert_device": "cpu"})["stack_name"] == ""
    with pytest.raises(StackError, match="6.1 to 8.9"):
        choose(H200, "paddle_bert", variables={"paddle_bert_device": "gpu"})


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("bing_bert", "bing_bert_python"),
        ("tf1_resnet50", "tf1_resnet50_venv"),
        ("horovod_tf1_bert", "horovod_tf1_bert_venv"),
    ],
)
def test_a_workload_of_one_stack_only_is_refused_with_what_helps(name, variable):
    fix = f"no other stack has. Fix: an environment of your own, {variable}=…, or device=cpu$"
    with pytest.raises(StackError, match=fix):
        choose(H200, name)


def test_an_environment_of_the_users_own_is_no_fix_where_another_workload_takes_none():
    with pytest.raises(StackError, match=r"no other stack has. Fix: device=cpu, or other GPUs$"):
        choose(H200, "bing_bert", "oneflow_bert")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("mxnet_resnet50", "3.5 to 7.5"),
        ("gluoncv_resnet50", "3.5 to 7.5"),
        ("oneflow_resnet50", "6.0 to 8.9"),
        ("oneflow_bert", "6.0 to 8.9"),
        ("oneflow_wide_deep", "6.0 to 8.9"),
        ("paddle_resnet50", "6.1 to 8.9"),
        ("paddlecv_resnet50", "3.5 to 7.5"),
        ("paddle_bert", "6.1 to 8.9"),
    ],
)
def test_a_workload_that_takes_no_environment_of_the_users_own_is_not_told_to(name, problem):
    with pytest.raises(StackError, match=f"{problem}, .* has 9.0, and no other stack has. Fix: device=cpu"):
        choose(H200, name)


@pytest.mark.parametrize(
    "name", ["oneflow_resnet50", "oneflow_wide_deep", "oneflow_bert", "paddle_resnet50", "paddle_bert"]
)
def test_a_workload_with_other_software_than_its_stack_is_judged_by_its_own(name):
    assert choose(A100, name) == {"stack_name": "", "said": ""}


P100 = "6.0\n"


def test_paddlecv_trains_where_only_paddle_1_8_has_code():
    assert choose(P100, "paddlecv_resnet50") == {"stack_name": "", "said": ""}
    with pytest.raises(StackError, match="PaddlePaddle 2.6.2 .* 6.1 to 8.9, a GPU of NODE1 has 6.0"):
        choose(P100, "paddle_resnet50")


def test_paddlecv_is_for_a_v100_and_refused_on_newer_gpus():
    assert choose(V100, "paddlecv_resnet50", stack_name="dlperf2020")["stack_name"] == "dlperf2020"
    for answer, number in ((A100, "8.0"), (H100, "9.0")):
        with pytest.raises(StackError, match=f"3.5 to 7.5, a GPU of NODE1 has {number}, and no other stack"):
            choose(answer, "paddlecv_resnet50", stack_name="dlperf2020")


def test_one_node_with_other_gpus_decides_for_all():
    stacks = declared.stacks(str(ROLES.parent / "playbooks/vars"))
    answers = {"NODE1": V100, "NODE2": A100}
    choice = gpu_code.choose(answers, ["tf2_bert"], load_workloads([str(ROLES)]), stacks)
    assert choice["stack_name"] == "modern" and "NODE2" in choice["said"]


@pytest.mark.parametrize(("answer", "number"), [(V100, "7.0"), (A100, "8.0"), ("8.9\n8.6\n", "8.6")])
def test_fp8_is_refused_on_gpus_without_it(answer, number):
    assert gpu_code.dtype_refusal({"NODE1": H100, "NODE2": answer}, ["bf16", "fp8"]) == (
        f"dtype=fp8 needs GPUs of compute capability 8.9 or newer, a GPU of NODE2 has {number}. "
        "Fix: dtype=bf16 or fp16, or other GPUs"
    )


@pytest.mark.parametrize(
    ("answer", "dtypes"), [(H100, ["fp8"]), (A100, ["bf16", "fp16"]), ("", ["fp8"]), (OLD_DRIVER, ["fp8"])]
)
def test_other_dtypes_and_newer_or_unknown_gpus_are_not_refused(answer, dtypes):
    assert not gpu_code.dtype_refusal({"NODE1": answer}, dtypes)
