# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Time, cost and energy of every option: for a million samples, for an epoch and for the whole training."""

import pytest
from ansible.module_utils.scalebook.evaluate import costs
from test_evaluation import option

PRICE = {
    "gpu": "H200", "per": "gpu hour", "amount": 3.6, "currency": "CNY", "source": "made", "date": "-",
    "years": None, "use": None,
}  # fmt: skip
GIVEN = {
    "task": {"name": "", "samples": 1994187, "epochs": 2.0},
    "electricity": 0.5, "deadline_hours": None, "budget": None,
}  # fmt: skip


def rows(options, **changes):
    (found,) = costs.of_options({**GIVEN, **changes}, options, [PRICE])
    return found["rows"]


def test_an_epoch_is_the_data_set_and_the_training_all_its_epochs():
    (row,) = rows([option(rate=100)])
    assert row["million"]["hours"] == pytest.approx(1e6 / 100 / 3600)
    assert row["epoch"]["hours"] == pytest.approx(1994187 / 100 / 3600)
    assert row["total"]["hours"] == pytest.approx(2 * row["epoch"]["hours"])
    # Eight GPUs at 3.6 an hour.
    assert row["epoch"]["cost"] == pytest.approx(row["epoch"]["hours"] * 8 * 3.6)


def test_measured_energy_has_its_own_cost_which_the_cost_includes():
    (row,) = rows([{**option(rate=100), "joules": 3.6}])
    assert row["kwh"] == pytest.approx(3.6 * 2 * 1994187 / 3.6e6)
    assert row["energy_cost"] == pytest.approx(row["kwh"] * 0.5)
    assert row["total"]["cost"] == pytest.approx(row["total"]["hours"] * 8 * 3.6 + row["energy_cost"])


def test_energy_that_was_not_measured_is_not_zero():
    (row,) = rows([option()])
    assert (row["kwh"], row["energy_cost"]) == (None, None)


def test_an_option_without_a_price_has_its_time_all_the_same():
    first, second = rows([{**option(rate=200), "gpu": "NVIDIA B200"}, option(rate=100)])
    assert (first["hourly"], second["hourly"]) == (8 * 3.6, None)
    assert (second["total"]["cost"], second["total"]["hours"]) == (None, 2 * 1994187 / 200 / 3600)
