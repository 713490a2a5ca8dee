# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Operations per sample from the declarations: formulas, what is refused, and the figures of the trainers."""

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.workload import WorkloadError
from ansible.module_utils.scalebook.workloads import load_workloads
from model_operations import flops_of_bert
from role_files import ROLES, load
from test_workloads import changed

WORKLOADS = load_workloads([str(ROLES)])
bert_sizes = load("workload", "bert_sizes")
GOOD = {"sample": "2 * size * length", "source": "none", "models": {"tiny": {"size": 64}}, "tf32": "tf32"}


def case(model, **settings):
    return {"model": model, "settings": settings}


@pytest.mark.parametrize(
    ("workload", "model", "gflop"),
    [("tf2_bert", "base", "69.93"), ("torch_bert", "base", "69.93"), ("torch_bert", "large", "240.64")],
)
def test_bert_at_128_words_has_the_operations_that_trainers_print(workload, model, gflop):
    found = flops.of_case(WORKLOADS[workload].flops, case(model, seq_length=128, predictions=20))
    assert f"{found / 1e9:.2f}" == gflop


@pytest.mark.parametrize("workload", ["torch_bert", "deepspeed_bert", "bing_bert"])
@pytest.mark.parametrize("model", sorted(bert_sizes.MODELS))
@pytest.mark.parametrize(("length", "predictions"), [(128, 20), (512, 76)])
def test_the_declared_operations_are_those_of_the_trainer(workload, model, length, predictions):
    declared = flops.of_case(
        WORKLOADS[workload].flops, case(model, seq_length=length, predictions=predictions)
    )
    assert declared == flops_of_bert(bert_sizes.MODELS[model], length, predictions)


def test_the_classifier_has_no_head_of_masked_words():
    declared = flops.of_case(WORKLOADS["horovod_bert"].flops, case("base", length=64))
    assert declared == flops_of_bert(bert_sizes.MODELS["base"], 64, 0)


def test_a_declaration_without_sizes_of_the_model_gives_no_operations():
    with pytest.raises(flops.FlopsError, match="no sizes of the model other"):
        flops.of_case(WORKLOADS["tf2_bert"].flops, case("other"))


def test_a_record_from_before_a_setting_gives_no_operations():
    with pytest.raises(flops.FlopsError, match="the case has no seq_length"):
        flops.of_case(WORKLOADS["tf2_bert"].flops, case("base", version="2.3"))


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("2 *", "is not a formula"),
        ("hidden", "the case has no hidden"),
        ("max(size, 1)", "is neither a number, a name nor arithmetic"),
        ("(1).real", "is neither a number, a name nor arithmetic"),
        ("9 ** 9 ** 9", "a power of"),
        ("size / 0", "division by zero"),
        ("'a' * size", "not a number"),
    ],
)
def test_what_is_not_arithmetic_is_refused(formula, problem):
    with pytest.raises(flops.FlopsError, match=problem):
        flops.evaluate(formula, {"size": 64})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"models": {"huge": {}}}, "huge is not in model_names"),
        ({"sample": "size * width"}, "model tiny: the case has no width"),
        ({"tf32": "maybe"}, "'maybe' is not true, false or a setting"),
        ({"unit": "samples"}, "unknown key 'unit'; allowed are models, sample, source, tf32"),
    ],
)
def test_a_declaration_with_a_wrong_formula_is_refused_when_it_is_loaded(tmp_path, change, problem):
    with pytest.raises(WorkloadError, match=f"hf_mlm.*flops: .*{problem}"):
        load_workloads(changed(tmp_path, flops={**GOOD, **change}))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"model": "bart"}, "flops.model: 'bart'; data/models.yml has bert, gpt2, llama3, resnet50"),
        ({"with": {"words": 128}}, "flops.with: the formula of bert has no words"),
        ({"models": "tiny"}, "flops.with and the sizes of models must be dicts"),
        ({"with": "length"}, "flops.with and the sizes of models must be dicts"),
        ({"sizes": {}}, "flops: unknown key 'sizes'"),
    ],
)
def test_a_shared_model_that_cannot_be_used_is_refused_when_it_is_loaded(tmp_path, change, problem):
    with pytest.raises(WorkloadError, match=f"torch_bert.*: {problem}"):
        load_workloads(changed(tmp_path, "torch_bert", flops={"model": "bert", "tf32": "tf32", **change}))


def test_sizes_that_differ_from_those_of_the_shared_model_count():
    sizes = WORKLOADS["tf2_bert"].flops.models
    assert (sizes["tiny"]["layers"], sizes["base"]["layers"], sorted(sizes)) == (1, 12, ["base", "tiny"])


def test_tf32_is_that_of_the_setting_that_the_declaration_names():
    assert flops.tensor_cores(flops.Flops(**GOOD), case("tiny", tf32=True))
    assert not flops.tensor_cores(flops.Flops(**GOOD), case("tiny", tf32=False))
    assert not flops.tensor_cores(flops.Flops(**{**GOOD, "tf32": False}), case("tiny", tf32=True))


@pytest.mark.parametrize(("launcher", "value"), [("mpirun", 0), ("horovodrun", 3)])
def test_a_formula_can_ask_whether_a_name_is_a_text(launcher, value):
    names = {"launcher": launcher, "nodes": 4}
    assert flops.evaluate("(launcher == 'horovodrun') * (nodes - 1)", names) == value


@pytest.mark.parametrize("formula", ["nodes == 1", "'a' == 'a'", "1 < nodes < 3", "nodes != 'a'"])
def test_other_comparisons_are_refused(formula):
    with pytest.raises(flops.FlopsError, match="does not compare a name with a text"):
        flops.evaluate(formula, {"nodes": 1})
