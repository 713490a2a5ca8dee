# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Lists of prices: what is read, what is refused, and what an hour costs."""

import csv
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.judge import prices

DATA = Path(__file__).resolve().parents[3] / "data"

ENTRY = {
    "gpu": "V100", "per": "gpu hour", "amount": 5.3, "currency": "CNY", "source": "a list", "date": "2022-08",
}  # fmt: skip


def of(**changes):
    (price,) = prices.read([{**ENTRY, **changes}])
    return price


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"amount": 0}, "price 1: amount=0: allowed are numbers above 0"),
        ({"amount": "5,3"}, "price 1: amount=5,3: allowed are numbers above 0"),
        ({"per": "hour"}, "price 1: per=hour: allowed are gpu hour, node hour, node month, gpu, node"),
        ({"per": "gpu"}, "price 1: lacks use, years"),
        ({"per": "gpu", "years": 4, "use": 70}, "price 1: use=70: allowed are numbers up to 1"),
        ({"years": 4}, "price 1: has unknown years"),
    ],
)
def test_a_wrong_entry_is_refused_by_its_number(changes, refusal):
    with pytest.raises(prices.PriceError) as error:
        of(**changes)
    assert refusal in str(error.value)


@pytest.mark.parametrize("name", ["source", "date"])
def test_a_price_without_source_or_date_is_refused(name):
    with pytest.raises(prices.PriceError, match=f"lacks {name}"):
        prices.read([{key: value for key, value in ENTRY.items() if key != name}])


@pytest.mark.parametrize(
    ("changes", "hour"),
    [
        ({}, 5.3 * 16),
        ({"per": "node hour"}, 5.3 * 2),
        ({"per": "node month", "amount": 730.5}, 2),
        ({"per": "gpu", "amount": 8766, "years": 4, "use": 0.5}, 8.0),
        ({"per": "node", "amount": 8766, "years": 4, "use": 0.5}, 1.0),
    ],
)
def test_an_hour_of_two_nodes_with_eight_gpus_costs(changes, hour):
    assert prices.hourly(of(**changes), nodes=2, gpus=8) == pytest.approx(hour)


@pytest.mark.parametrize(
    ("driver", "gpu", "belongs"),
    [
        ("Tesla V100-SXM2-32GB", "V100", True),
        ("Tesla V100S-PCIE-32GB", "V100", False),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe", True),
        ("NVIDIA A100-SXM4-80GB", "A100 PCIe", False),
        ("NVIDIA H200", "H100", False),
    ],
)
def test_a_price_belongs_to_a_gpu_by_whole_words(driver, gpu, belongs):
    assert bool(prices.of_gpu([of(gpu=gpu)], driver)) == belongs


def test_the_price_with_most_words_counts():
    found = prices.of_gpu([of(gpu="A100"), of(gpu="A100 PCIe", amount=9.3)], "NVIDIA A100-PCIE-40GB")
    assert [price["amount"] for price in found] == [9.3]


def shipped(name):
    return prices.read(yaml.safe_load((DATA / name).read_text())["prices"])


def test_the_purchase_prices_are_those_of_the_published_table():
    with (DATA / "microbench-published.csv").open(newline="") as file:
        table = [row for row in csv.DictReader(file) if row["benchmark"] == "price"]
    wanted = {row["gpu"]: (float(row["value"]), row["unit"]) for row in table}
    bought = shipped("purchase-prices.yml")
    assert {price["gpu"]: (price["amount"], price["currency"]) for price in bought} == wanted


@pytest.mark.parametrize("name", ["prices.yml", "purchase-prices.yml"])
def test_a_gpu_of_a_shipped_list_has_one_currency(name):
    currencies = {}
    for price in shipped(name):
        currencies.setdefault(price["gpu"], set()).add(price["currency"])
    assert [gpu for gpu, found in currencies.items() if len(found) > 1] == []


def test_the_hours_in_which_a_bought_card_works_pay_for_it():
    (card,) = prices.of_gpu(shipped("purchase-prices.yml"), "Tesla V100-SXM2-32GB")
    worked = prices.HOURS_PER_YEAR * card["years"] * card["use"]
    assert prices.hourly(card, nodes=1, gpus=1) * worked == pytest.approx(card["amount"])


@pytest.mark.parametrize(
    ("driver", "amount"),
    [
        ("NVIDIA A100-SXM4-80GB", 16000),
        ("NVIDIA RTX A6000", 4000),
        ("NVIDIA GeForce RTX 3090 Ti", 1500),
        ("NVIDIA GeForce RTX 4090", 2200),
        ("NVIDIA GeForce RTX 3090", None),
    ],
)
def test_a_purchase_price_is_found_by_the_name_that_the_driver_reports(driver, amount):
    found = prices.of_gpu(shipped("purchase-prices.yml"), driver)
    assert [price["amount"] for price in found] == ([amount] if amount else [])
