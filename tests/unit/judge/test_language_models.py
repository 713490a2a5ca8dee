# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Published rates of language models: publishers' TFLOP/s follow from them, and like stands by like."""

from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.judge import language_models
from ansible.module_utils.scalebook.pages.catalogue import sentence

DATA = Path(__file__).resolve().parents[3] / "data"
MODELS = yaml.safe_load((DATA / "models.yml").read_text())
RATES = language_models.read((DATA / "llm-published.csv").read_text().splitlines())
GPUS = language_models.gpu_patterns((DATA / "gpus.csv").read_text().splitlines())
(COMPILED,) = [each for each in RATES if each.tokens_per_s == 6667]
OURS = COMPILED._replace(source="ours", tokens_per_s=7000.0, gpus=2, bsz=1, checkpointing="full", power_w=700)


def test_every_published_rate_is_of_a_known_model_and_gpu():
    assert len(RATES) == 122
    assert {each.gpu for each in RATES} <= set(GPUS)
    assert all(each.model in MODELS[each.family]["models"] and each.link for each in RATES)


@pytest.mark.parametrize(
    ("source", "half_of_attention", "count"), [("llm-foundry", False, 77), ("Megatron-Bridge", True, 12)]
)
def test_published_tflops_follow_from_the_published_tokens(source, half_of_attention, count):
    """NVIDIA counts the half of attention that a causal mask leaves, MosaicML the whole."""
    ratios = {}
    for rate in (each for each in RATES if each.source.startswith(source)):
        operations = language_models.operations(MODELS, rate.family, rate.model, rate.seq)
        ratios[rate] = rate.tokens_per_s * operations[half_of_attention] / 1e12 / rate.tflops
    odd = {
        (each.source, each.model): round(value, 2) for each, value in ratios.items() if abs(value - 1) > 0.017
    }
    assert len(ratios) == count
    # 731 TFLOP/s are of 1,627 tokens/s, not of the 1,664 beside them.
    assert odd == ({("Megatron-Bridge 26.04.01", "70B"): 1.02} if half_of_attention else {})


@pytest.mark.parametrize(("dtype", "peak"), [("bf16", 989.4), ("fp8", 1978.9)])
def test_published_mfu_is_of_the_peak_of_its_precision(dtype, peak):
    for rate in (each for each in RATES if each.mfu and each.dtype == dtype):
        whole, _ = language_models.operations(MODELS, rate.family, rate.model, rate.seq)
        assert rate.tokens_per_s * whole / 1e10 / peak == pytest.approx(rate.mfu, rel=0.02)


def test_the_operations_of_llama_3_are_those_of_torchtitan():
    assert language_models.operations(MODELS, "llama3", "8B", 8192)[0] == pytest.approx(57.914e9, rel=1e-4)
    assert language_models.operations(MODELS, "llama3", "8B", 8192)[1] == pytest.approx(51.472e9, rel=1e-4)


def test_a_rate_of_the_same_model_sequence_precision_and_gpu_has_a_quotient():
    (pair,) = [each for each in language_models.beside([OURS], RATES) if each["tokens_per_s"] == 6667]
    assert (pair["differs"], pair["ratio"]) == ([], pytest.approx(7000 / 6667))
    assert [sentence(each) for each in pair["remarks"]] == [
        "batch 2 there, 1 here",
        "checkpointing selective there, full here",
        "500 W there",
        "FSDP",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seq": 4096}, "sequences of 8192 tokens there, 4096 here"),
        ({"dtype": "fp32"}, "bf16 there, fp32 here"),
        ({"gpu": "A100"}, "H100 there, A100 here"),
        ({"family": "gpt2"}, "llama3 8B there, gpt2 8B here"),
    ],
)
def test_a_rate_that_differs_in_one_of_them_has_the_reason_instead(change, reason):
    (pair,) = language_models.beside([OURS._replace(**change)], [COMPILED])
    assert (pair["ratio"], [sentence(each) for each in pair["differs"]]) == (None, [reason])


@pytest.mark.parametrize("change", [{"seq": 2048, "dtype": "fp8"}, {"model": "70B"}])
def test_a_rate_that_differs_in_more_or_in_size_is_left_out(change):
    assert language_models.beside([OURS._replace(**change)], [COMPILED]) == []


def test_another_model_of_the_same_size_is_compared_by_its_tflops():
    ours = OURS._replace(model="1B")
    (pair,) = [each for each in language_models.beside([ours], RATES) if each["tokens_per_s"] == 29157]
    assert [sentence(each) for each in pair["differs"]] == [
        "gpt2 mpt-1B there, llama3 1B here, 373 TFLOP/s per GPU there"
    ]


def test_of_our_rates_the_one_at_the_nearest_number_of_gpus_is_compared():
    ours = [OURS._replace(gpus=gpus, tokens_per_s=1000.0 * gpus) for gpus in (1, 4, 64)]
    (pair,) = language_models.beside(ours, [COMPILED])
    assert (pair["gpus"], pair["gpus_here"], pair["tokens_per_s_here"]) == (8, 4, 4000.0)


@pytest.mark.parametrize(
    ("compiled", "remark"), [(True, "compiled there, eager here"), (False, "eager there, compiled here")]
)
def test_the_compiler_is_named_where_only_one_of_them_has_it(compiled, remark):
    theirs = COMPILED._replace(compiled=compiled)
    (pair,) = language_models.beside([OURS._replace(compiled=not compiled)], [theirs])
    assert remark in [sentence(each) for each in pair["remarks"]]


def test_batch_and_checkpointing_of_theirs_are_named_where_ours_are_not_known():
    (pair,) = language_models.beside([OURS._replace(checkpointing="", bsz=None)], [COMPILED])
    remarks = [sentence(each) for each in pair["remarks"]]
    assert remarks[:2] == ["batch 2 there", "checkpointing selective there"]


def test_what_a_publisher_does_not_say_is_named():
    (pair,) = language_models.beside([OURS], [COMPILED._replace(checkpointing="", bsz=None)])
    remarks = [sentence(each) for each in pair["remarks"]]
    assert remarks[:2] == ["batch there not known", "checkpointing there not known"]


@pytest.mark.parametrize(
    ("name", "gpu"),
    [("NVIDIA H100 80GB HBM3", "H100"), ("h100", "H100"), ("H100 PCIe", "H100 PCIe"), ("H900", "")],
)
def test_a_gpu_has_the_name_of_the_table(name, gpu):
    assert language_models.gpu_of(GPUS, name) == gpu


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("source,", "", "the columns of published rates"),
        (",5762,", ",fast,", "line 2 of the published rates"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(old, new, problem):
    lines = (DATA / "llm-published.csv").read_text().replace(old, new, 1).splitlines()
    with pytest.raises(language_models.LanguageModelError, match=problem):
        language_models.read(lines)
