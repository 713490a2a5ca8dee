# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Time, cost and best value, from the 19 published runs of HF Trainer and from made ones."""

import csv
import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.evaluate import costs
from ansible.module_utils.scalebook.evaluate import published as tables
from ansible.module_utils.scalebook.judge import prices

ROOT = Path(__file__).resolve().parents[3]
MILLION = 1e6


@pytest.fixture(scope="module")
def published():
    return tables.of_trainer((ROOT / "data/hf-trainer-published.csv").open())


@pytest.fixture(scope="module")
def price_list():
    return prices.read(yaml.safe_load((ROOT / "data/prices.yml").read_text())["prices"])


@pytest.fixture(scope="module")
def offers(published, price_list):
    by_the_hour = [price for price in price_list if price["per"] == "gpu hour"]
    return costs.offers(published, by_the_hour, MILLION)


def names(found):
    return [offer["name"] for offer in found]


def test_every_published_run_is_an_option(published):
    assert len(published) == 19


def test_the_published_columns_agree_with_each_other():
    for row in csv.DictReader((ROOT / "data/hf-trainer-published.csv").open()):
        steps = int(row["global_step"]) / float(row["train_runtime_s"])
        assert float(row["train_steps_per_s"]) == pytest.approx(steps, abs=0.00051), row["row"]
        # 1024 samples were evaluated with all devices.
        batch = int(row["bsz_per_device"]) * int(row["gpus"])
        evaluated = -(-1024 // batch) / float(row["eval_runtime_s"])
        assert float(row["eval_steps_per_s"]) == pytest.approx(evaluated, abs=0.00051), row["row"]


def test_the_cheapest_per_sample_is_one_v100_with_fp16(offers):
    (best,) = costs.best(offers, costs.COST)
    assert best["name"] == "V100_1gpu_8 fp16"
    assert best["cost"] == pytest.approx(MILLION / 23.419 / 3600 * 5.3)


def test_the_fastest_is_one_a100_with_fp16(offers):
    (best,) = costs.best(offers, costs.HOURS)
    assert best["name"] == "A100_1gpu_8 fp16"
    assert best["hours"] == pytest.approx(MILLION / 35.552 / 3600)


def test_only_these_two_are_worth_their_price(offers):
    assert names(costs.front(offers)) == ["A100_1gpu_8 fp16", "V100_1gpu_8 fp16"]


def test_a_node_by_the_month_costs_as_much_with_one_gpu_as_with_eight(price_list):
    (month,) = [price for price in price_list if price["per"] == "node month"]
    assert prices.hourly(month, 1, 1) == prices.hourly(month, 1, 8) == pytest.approx(68.6, abs=0.01)


def test_four_gpus_were_slower_than_one(published):
    found = {each["option"]: each["alone"] for each in costs.slower_than_one(published)}
    assert found == {
        "V100_4gpu_8 fp16": "V100_1gpu_8 fp16",
        "V100_2gpu_8 fp16": "V100_1gpu_8 fp16",
        "A100_4gpu_4 fp32": "A100_1gpu_4 fp32",
        "A100_2gpu_4 fp32": "A100_1gpu_4 fp32",
        "A100_4gpu_8 fp16": "A100_1gpu_8 fp16",
        "A100_2gpu_8 fp16": "A100_1gpu_8 fp16",
    }


def test_a_deadline_leaves_the_cheapest_that_meets_it(offers):
    assert names(costs.cheapest_within(offers, hours=10)) == ["A100_1gpu_8 fp16"]
    assert costs.cheapest_within(offers, hours=1) == []


def test_a_budget_leaves_the_fastest_within_it(offers):
    assert names(costs.fastest_within(offers, cost=70)) == ["V100_1gpu_8 fp16"]


def test_among_bought_cards_the_v100_is_the_cheapest_too(published):
    bought = prices.read(yaml.safe_load((ROOT / "data/purchase-prices.yml").read_text())["prices"])
    found = costs.offers(published, bought, MILLION)
    (best,) = costs.best(found, costs.COST)
    assert best["name"] == "V100_1gpu_8 fp16"
    assert best["cost"] == pytest.approx(MILLION / 23.419 / 3600 * 3500 / (3 * 8766 * 0.5))


# -- made ones ---------------------------------------------------------------------------------------------


def option(name="a", rate=100.0, spread=0.0, nodes=1, gpus=1, joules=None, gpu="Tesla V100-SXM2-32GB"):
    return {
        "name": name, "source": "made", "family": "bert", "workload": "w", "model": "base", "gpu": gpu,
        "nodes": nodes, "gpus": gpus, "bsz": 8, "dtype": "fp16", "xla": False, "unit": "samples",
        "rate": rate, "slowest": rate * (1 - spread), "fastest": rate * (1 + spread), "runs": 5,
        "efficiency": None, "joules": joules, "group": "g", "variant": "",
    }  # fmt: skip


HOURLY = {
    "gpu": "V100", "per": "gpu hour", "amount": 3.6, "currency": "CNY",
    "source": "made", "date": "2026", "years": None, "use": None,
}  # fmt: skip


def test_a_difference_within_the_noise_is_a_tie():
    found = costs.offers([option("a", 100, 0.02), option("b", 101, 0.02)], [HOURLY], MILLION)
    assert names(costs.best(found, costs.HOURS)) == ["b", "a"]
    assert sorted(names(costs.front(found))) == ["a", "b"]


def test_energy_is_paid_by_the_kilowatt_hour():
    (offer,) = costs.offers([option(joules=3.6)], [HOURLY], MILLION, electricity=0.5)
    assert offer["energy_cost"] == pytest.approx(0.5)
    assert offer["cost"] == pytest.approx(MILLION / 100 / 3600 * 3.6 + 0.5)


@pytest.mark.parametrize(
    ("joules", "electricity", "known"), [(None, 0.5, False), (3.6, 0.5, True), (None, 0.0, True)]
)
def test_a_cost_is_known_with_measured_energy_or_without_a_price_of_it(joules, electricity, known):
    found = costs.offers([option(joules=joules)], [HOURLY], MILLION, electricity)
    assert [offer["cost"] is not None for offer in found] == [known]


def test_an_option_without_a_price_has_no_offer():
    assert costs.offers([option(gpu="NVIDIA H200"), option(gpu=None)], [HOURLY], MILLION) == []


def test_prices_in_two_currencies_are_refused():
    with pytest.raises(costs.ComparisonError, match="the prices are in CNY and USD"):
        costs.offers([option()], [HOURLY, {**HOURLY, "currency": "USD"}], MILLION)


OTHER = {**HOURLY, "gpu": "H200", "currency": "USD"}


def test_a_price_of_another_gpu_may_be_in_another_currency():
    assert len(costs.offers([option()], [HOURLY, OTHER], MILLION)) == 1


def test_electricity_has_one_currency():
    with pytest.raises(costs.ComparisonError, match="give them in one currency"):
        costs.offers([option()], [HOURLY, OTHER], MILLION, electricity=0.5)


@pytest.mark.parametrize(("gpu", "amount"), [("NVIDIA H200", 3.99), ("NVIDIA H100 80GB HBM3", 3.2)])
def test_the_gpus_of_the_campaigns_have_a_price_with_address_and_day(price_list, gpu, amount):
    (price,) = prices.of_gpu(price_list, gpu)
    assert (price["amount"], price["currency"]) == (amount, "USD")
    assert "https://" in price["source"] and re.fullmatch(r"\d{4}-\d\d-\d\d", price["date"])
