# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A claimed rate is possible or not by its arithmetic; published rates are claims that must be possible."""

from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.judge import claim, language_models, mfu
from ansible.module_utils.scalebook.judge.language_models import LanguageModelError
from ansible.module_utils.scalebook.pages.catalogue import sentence

DATA = Path(__file__).resolve().parents[3] / "data"
MODELS = yaml.safe_load((DATA / "models.yml").read_text())
RATES = language_models.read((DATA / "llm-published.csv").read_text().splitlines())
GPUS = (DATA / "gpus.csv").read_text().splitlines()
PATTERNS, PEAKS = language_models.gpu_patterns(GPUS), mfu.read_peaks(GPUS)
(NEMO,) = [each for each in RATES if each.tokens_per_s == 14451]
CLAIM = NEMO._replace(source="claim", bsz=None)


def judged(rate=CLAIM, published=RATES, **changes):
    rate = rate._replace(**changes)
    return claim.check(rate, MODELS, PEAKS[PATTERNS[rate.gpu]], published)


def test_the_arithmetic_of_a_claim_is_that_of_its_publisher():
    """NVIDIA prints 744 TFLOP/s beside these tokens, and counts half of attention."""
    verdict = judged()
    assert round(verdict["tflops_half"]) == NEMO.tflops == 744
    assert round(verdict["tflops"]) == 837


def test_every_share_names_its_peak():
    shares = [(each["precision"], each["peak_tflops"], round(each["mfu"], 3)) for each in judged()["shares"]]
    assert shares == [("fp8", 1978.9, 0.423), ("bf16", 989.4, 0.846)]


@pytest.mark.parametrize("rate", RATES, ids=[each.link.rpartition("/")[2] for each in RATES])
def test_every_published_rate_is_possible(rate):
    assert judged(rate)["level"] == "possible"


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({"tokens_per_s": 16500.0}, "possible"),
        ({"tokens_per_s": 16600.0}, "unseen"),
        ({"tokens_per_s": 38400.0}, "unseen"),
        ({"tokens_per_s": 38500.0}, "impossible"),
        ({"dtype": "bf16"}, "unseen"),
        ({"dtype": "bf16", "tokens_per_s": 20000.0}, "impossible"),
        ({"gpu": "L40S", "tokens_per_s": 9000.0}, "possible"),
    ],
)
def test_the_level_follows_from_the_peak_and_from_what_was_published(changes, level):
    assert judged(**changes)["level"] == level


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"tokens_per_s": 115608.0}, "as the rate of all 8 GPUs it is 14,451 tokens/s per GPU"),
        ({"dtype": "bf16", "tokens_per_s": 20000.0}, "below the dense fp8 peak of 1978.9 TFLOP/s"),
        ({"tokens_per_s": 50000.0, "gpus": 1}, "below the fp8 peak with sparsity, 3957.8 TFLOP/s"),
    ],
)
def test_what_may_be_meant_by_an_impossible_rate_is_named(changes, hint):
    assert hint in " ".join(sentence(each) for each in judged(**changes)["hints"])


def test_what_was_published_of_the_same_stands_beside_it():
    comparable = [each for each in judged()["published"] if each["ratio"]]
    assert [each["tokens_per_s"] for each in comparable] == [8532, 8380, 14451, 11366, 8443]
    assert [round(each["ratio"], 2) for each in comparable] == [1.69, 1.72, 1.0, 1.27, 1.71]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("llama3-8b", ("llama3", "8B")),
        ("Llama-3.1 70B", ("llama3", "70B")),
        ("llama3.2_1b", ("llama3", "1B")),
        ("MPT-1B", ("gpt2", "mpt-1B")),
        ("gpt2-345M", ("gpt2", "345M")),
    ],
)
def test_a_model_is_found_by_the_names_that_people_write(name, place):
    assert claim.find_model(MODELS, name) == place


@pytest.mark.parametrize("name", ["llama2-7b", "resnet50", "bert-base", "", "llama3"])
def test_a_model_without_a_formula_for_tokens_is_refused_with_those_that_have_one(name):
    with pytest.raises(LanguageModelError, match=rf"model={name}: allowed are .*llama3-8B"):
        claim.find_model(MODELS, name)


def test_a_precision_that_the_gpu_does_not_have_is_refused():
    with pytest.raises(LanguageModelError, match="dtype=fp8: data/gpus.csv has no peak of V100 in it"):
        judged(gpu="V100")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_claim_has_sentences_in_every_language(language):
    verdict = judged(tokens_per_s=115608.0)
    lines = [sentence(each, language) for each in claim.sentences(CLAIM, verdict)]
    lines += [sentence(language_models.line(pair), language) for pair in verdict["published"]]
    assert "57.91" in lines[1] and "1978.9" in " ".join(lines)
