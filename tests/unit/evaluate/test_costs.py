# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Time, cost and energy of every option: for a million samples, for an epoch and for the whole training."""

import pytest
from ansible.module_utils.scalebook.evaluate import content, costs, document
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from test_evaluation import EXAMPLE, WORKLOADS, option

PRICE = {
    "gpu": "H200", "per": "gpu hour", "amount": 3.6, "currency": "CNY", "source": "made", "date": "-",
    "years": None, "use": None,
}  # fmt: skip
GIVEN = {
    "task": {"name": "", "samples": 1994187, "epochs": 2.0},
    "electricity": 0.5, "deadline_hours": None, "budget": None,
}  # fmt: skip


def cost_of(options, **changes):
    (found,) = costs.of_options({**GIVEN, **changes}, options, [PRICE])
    return found


def rows(options, **changes):
    return cost_of(options, **changes)["rows"]


def named(found):
    return catalogue.in_words([each["name"] for each in found])


def test_the_training_is_all_its_epochs():
    (row,) = rows([option(rate=100)], electricity=None)
    assert row["hours"] == pytest.approx(2 * 1994187 / 100 / 3600)
    # Eight GPUs at 3.6 an hour.
    assert row["cost"] == pytest.approx(row["hours"] * 8 * 3.6)


def test_the_table_has_a_million_samples_and_an_epoch_the_data_set():
    given = {**EXAMPLE, **GIVEN, "electricity": None, "platform": "", "texts": {}, "criteria": {}}
    blocks = content.blocks(document.document(given, [], [option(rate=100)], [PRICE], WORKLOADS, {}))
    (table,) = [block for block in blocks if "Time and cost of all options" in getattr(block, "caption", "")]
    seconds = [table.rows[0][key] for key in ("million time", "epoch time", "seconds")]
    assert seconds == pytest.approx([samples / 100 for samples in (1e6, 1994187, 2 * 1994187)])


def test_measured_energy_has_its_own_cost_which_the_cost_includes():
    (row,) = rows([{**option(rate=100), "joules": 3.6}])
    assert row["kwh"] == pytest.approx(3.6 * 2 * 1994187 / 3.6e6)
    assert row["energy_cost"] == pytest.approx(row["kwh"] * 0.5)
    assert row["cost"] == pytest.approx(row["hours"] * 8 * 3.6 + row["energy_cost"])


def test_energy_that_was_not_measured_is_not_zero():
    (row,) = rows([option()])
    assert (row["kwh"], row["energy_cost"]) == (None, None)


def test_samples_of_other_sizes_are_not_the_same_training():
    short, long, unknown = (
        {**option(rate=rate), "size": size, "name": size}
        for size, rate in (("128", 400), ("512", 100), (NOT_RECORDED, 200))
    )
    found = costs.of_options(GIVEN, [short, long, unknown], [PRICE])
    assert [(catalogue.sentence(cost["name"]), named(cost["rows"])) for cost in found] == [
        ("a base, sequence length = 128", ["128"]),
        ("a base, sequence length = 512", ["512"]),
        ("a base", [NOT_RECORDED]),
    ]


def test_a_size_is_named_where_a_model_is_trained_with_several():
    assert named([cost_of([option(rate=100), option(rate=200)])]) == ["a base"]
    images = [{**option(), "unit": "images", "size": size} for size in ("64", "224")]
    found = costs.of_options(GIVEN, [*images, option("b")], [PRICE])
    assert named(found) == ["a base, image size = 64", "a base, image size = 224", "b base"]


UNMEASURED = {**option(rate=200), "name": "unmeasured"}
MEASURED = {**option(rate=100), "name": "measured", "joules": 3.6}


def test_a_cost_without_its_energy_is_not_known():
    first, second = rows([UNMEASURED, MEASURED])
    assert (first["name"], first["cost"] is not None) == ("measured", True)
    assert (second["name"], second["hourly"], second["cost"]) == ("unmeasured", 8 * 3.6, None)


@pytest.mark.parametrize("what", ["offers", "cheapest", "front", "within_deadline", "within_budget"])
def test_an_option_whose_cost_is_not_known_is_compared_by_no_cost(what):
    found = cost_of([UNMEASURED, MEASURED], deadline_hours=1e6, budget=1e6)
    assert named(found[what]) == ["measured"]


def test_an_option_whose_cost_is_not_known_can_be_the_fastest():
    (fastest,) = cost_of([UNMEASURED, MEASURED])["fastest"]
    assert (fastest["name"], fastest["cost"], fastest["energy_cost"]) == ("unmeasured", None, None)
    assert (fastest["least"][1], fastest["most"][1]) == (None, None)


def test_without_a_price_of_electricity_energy_counts_nowhere():
    found = cost_of([UNMEASURED, MEASURED], electricity=None)
    assert named(found["cheapest"]) == ["unmeasured"]
    assert found["energy_unknown"] == []


@pytest.mark.parametrize("options", [[UNMEASURED, MEASURED], [UNMEASURED]])
def test_the_document_says_whose_cost_is_not_known_and_why(options):
    given = {**EXAMPLE, **GIVEN, "platform": "", "texts": {}, "criteria": {}}
    blocks = content.blocks(document.document(given, [], options, [PRICE], WORKLOADS, {}))
    paragraphs = [block.text for block in blocks if type(block).__name__ == "Paragraph"]
    assert ENGLISH("evaluation.energy-unknown", names=["unmeasured"]) in paragraphs
    assert ENGLISH("evaluation.no-cost") not in paragraphs


@pytest.mark.parametrize(("options", "said"), [([UNMEASURED, MEASURED], 1), ([UNMEASURED], 0)])
def test_the_lowest_cost_is_said_where_a_cost_is_known(options, said):
    given = {**EXAMPLE, **GIVEN, "platform": "", "texts": {}, "criteria": {}}
    messages = document.document(given, [], options, [PRICE], WORKLOADS, {})["conclusion"]
    codes = [each["code"] for each in messages]
    assert (codes.count("evaluation.lowest-cost-of"), codes.count("evaluation.shortest-time-of")) == (said, 1)


def test_an_option_without_a_price_has_its_time_all_the_same():
    first, second = rows([{**option(rate=200), "gpu": "NVIDIA B200"}, option(rate=100)], electricity=None)
    assert (first["hourly"], second["hourly"]) == (8 * 3.6, None)
    assert (second["cost"], second["hours"]) == (None, 2 * 1994187 / 200 / 3600)
