# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A row of a workload that declares `published` is a rate per token and GPU, and stands by published ones."""

from pathlib import Path

import claim_check
import pytest
import yaml
from ansible.module_utils.scalebook.judge import language_models
from ansible.module_utils.scalebook.judge.language_rates import Table, rate_of, tabulate
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import markdown
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import published_tables
from ansible.module_utils.scalebook.store.load import Campaign
from ansible.module_utils.scalebook.workload import Workload
from ansible.module_utils.scalebook.workloads import load_workloads
from report_records import case
from row_runs import run

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "data"
TABLE = Table(
    language_models.read((DATA / "llm-published.csv").read_text().splitlines()),
    language_models.gpu_patterns((DATA / "gpus.csv").read_text().splitlines()),
)
H100 = [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H100 80GB HBM3"}] * 8}]
DECLARED = Workload(
    name="lm", published="llama3", size="seq_length", unit="sequences", compiler="torch.compile"
)
SETTINGS = {"seq_length": 8192, "checkpointing": "selective"}


def document(declared=DECLARED, hardware=H100, rate=8.0, published_rows=None, language=None, **fields):
    of = case(
        **{
            **{
                "workload": "lm",
                "model": "8B",
                "dtype": "bf16",
                "xla": True,
                "bsz": 2,
                "nodes": 1,
                "gpus": 8,
            },
            **{"devices": 8, "device": "gpu", "settings": SETTINGS, **fields},
        }
    )
    runs = [run(of, repeat, rate, unit="sequences") for repeat in (1, 2, 3)]
    campaign = Campaign("night", cases={of["name"]: of}, runs=runs, hardware=hardware)
    return build_results(campaign, {"lm": declared}, published_rows, language=language)


def compared(**fields):
    made = document(**fields)
    return tabulate(
        made["groups"], made["rows"], made["hardware"], {"lm": fields.get("declared", DECLARED)}, TABLE
    )


def test_a_row_in_sequences_is_a_rate_of_tokens_per_gpu():
    made = document()
    rate = rate_of(made["rows"][0], made["hardware"], DECLARED, TABLE.gpus, "ours")
    assert (rate.tokens_per_s, rate.gpu, rate.gpus, rate.checkpointing) == (8192.0, "H100", 8, "selective")


@pytest.mark.parametrize("fields", [{"device": "cpu"}, {"settings": {}}, {"declared": Workload(name="lm")}])
def test_a_row_on_processors_or_without_a_length_has_no_such_rate(fields):
    made = document(**fields)
    assert (
        rate_of(made["rows"][0], made["hardware"], fields.get("declared", DECLARED), TABLE.gpus, "") is None
    )


def test_a_group_stands_beside_the_published_rates_of_its_model():
    (entry,) = compared()
    comparable = [
        (each["source"], each["gpus"], each["tokens_per_s"]) for each in entry["pairs"] if each["ratio"]
    ]
    assert comparable == [
        ("torchtitan", 8, 5762.0),
        ("torchtitan", 8, 6667.0),
        ("torchtitan", 128, 5605.0),
        ("torchtitan", 128, 6514.0),
    ]
    assert {round(each["ratio"], 2) for each in entry["pairs"] if each["tokens_per_s"] == 6667} == {1.23}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"model": "3B", "settings": {"seq_length": 777}}, "nothing was published of this model"),
        ({"device": "cpu"}, "no rate per token and GPU is known of it"),
    ],
)
def test_a_group_that_nothing_stands_beside_has_the_reason(fields, reason):
    (entry,) = compared(**fields)
    assert entry["pairs"] == [] and sentence(entry["reason"]).startswith(reason)


def test_a_report_that_compares_has_the_entries_in_its_document():
    made = document()
    assert "published" not in made
    assert document(language=TABLE)["published"] == compared()


def test_a_workload_of_language_models_is_not_looked_for_in_dlperfs_tables():
    assert [each["title"] for each in document(published_rows=[])["compare"]]
    assert document(published_rows=[], language=TABLE)["compare"] == []


@pytest.mark.parametrize(
    "text",
    ["500 W there", "batch 2 there, 4 here", "not comparable: fp8 there, bf16 here"]
    + ["torchtitan.md, lines 27, 28, 44, 45, 29, 46", "Cisco/results/hpf_n8/llama31_8b; "],
)
def test_the_report_shows_remarks_reasons_and_links(text):
    assert text in markdown.rendered(
        published_tables.rates(document(bsz=4, language=TABLE)["published"], ENGLISH)
    )


@pytest.mark.parametrize(
    ("seq", "line"),
    [
        (8192, "torchtitan, 2024-12: 6,667 tokens/s per GPU on 8, ratio 1.229; 500 W there; FSDP"),
        (4096, "nothing was published of the same model, sequence, precision and GPU"),
    ],
)
def test_the_terminal_shows_what_compares_or_that_nothing_does(seq, line):
    made = document(settings={**SETTINGS, "seq_length": seq}, rate=8.0 * 8192 / seq, language=TABLE)
    assert line in "\n".join(published_tables.rate_lines(made["published"]))


def test_a_workload_that_declares_nothing_is_left_out():
    assert compared(declared=Workload(name="lm")) == []


def test_every_declared_family_is_one_of_the_models():
    declared = {each.published for each in load_workloads([str(ROOT / "roles")]).values()} - {""}
    assert declared <= set(yaml.safe_load((DATA / "models.yml").read_text()))


# -- the module ----------------------------------------------------------------------------------------------

CLAIM = {
    "model": "llama3-8b",
    "seq": 8192,
    "gpu": "H100",
    "gpus": 8,
    "dtype": "fp8",
    "tokens_per_second": 14451.0,
}


def judged(tmp_path, language="en", **changes):
    params = {
        **CLAIM,
        "data": str(DATA),
        "results": str(tmp_path),
        "workloads": {},
        "report_language": language,
    }
    return claim_check.run({**params, **changes}, check=False)


def test_the_module_shows_arithmetic_peaks_verdict_and_what_compares(tmp_path):
    shown = judged(tmp_path)["display"]
    for text in (
        "llama3 8B, sequences of 8192 tokens, fp8, 8 H100: 14,451 tokens/s per GPU",
        "57.91 GFLOP per token",
        "MFU 42.3 % of 1978.9 TFLOP/s, the dense fp8 peak",
        "possible: the most that anyone published for H100 in fp8 is 960 TFLOP/s per GPU (MLPerf 4.1, NVIDIA",
        "torchtitan, 2024-12: 8,532 tokens/s per GPU on 8, ratio 1.694; batch 2 there",
    ):
        assert text in shown


def test_the_module_says_it_in_chinese(tmp_path):
    assert "可能：H100 在 fp8 下已公布的最高值为每 GPU 960 TFLOP/s" in judged(tmp_path, "zh")["display"]


def test_an_unknown_gpu_is_refused_with_those_that_are_known(tmp_path):
    with pytest.raises(ValueError, match="gpu=H900: allowed are B200, H100 PCIe"):
        judged(tmp_path, gpu="H900")
