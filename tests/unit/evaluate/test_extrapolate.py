# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Efficiency on more machines than were measured: known parameters come out, and intervals cover."""

import random

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.evaluate import criteria, extrapolate


def amdahl(machines, alone=1.05, growth=0.004):
    return 1 / (alone + growth * (machines - 1))


def option(nodes, efficiency, **other):
    values = {"name": f"w {nodes}n8g", "source": "c", "workload": "w", "model": "m", "gpu": "V100"}
    values.update(gpus=8, bsz=64, dtype="fp16", xla=False, nodes=nodes, machines=nodes, efficiency=efficiency)
    values.update(variant="", size="128", group="g")
    return {**values, **other}


def test_the_parameters_of_an_exact_curve_come_out():
    made = extrapolate.fit([(n, amdahl(n)) for n in (1, 2, 4)], 20)
    assert made["growth"] == pytest.approx(0.004)
    assert made["alone"] == pytest.approx(1.05)
    assert made["efficiency"] == pytest.approx(1 / 1.126)
    assert made["most"] - made["least"] < 1e-6


@pytest.mark.parametrize("counts", [(1, 2, 4), (1, 2, 4, 8), (1, 2, 3, 4, 5, 6, 8)])
def test_the_interval_covers_the_true_efficiency_in_95_percent(counts):
    noise, drawn, covered, made = random.Random(20), 2000, 0, 0
    for _ in range(drawn):
        try:
            fit = extrapolate.fit([(n, amdahl(n) * noise.gauss(1, 0.005)) for n in counts], 20)
        except extrapolate.RefusedError:
            continue
        made += 1
        covered += fit["least"] <= amdahl(20) <= fit["most"]
    assert made > 0.95 * drawn
    assert covered / made == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    ("counts", "machines", "why"),
    [
        ((1, 2), 8, message("evaluation.refused-few", measured=2, needed=3)),
        ((1, 2, 4), 33, message("evaluation.refused-far", machines=33, times=8, measured=4)),
    ],
)
def test_too_little_is_refused_with_the_reason(counts, machines, why):
    with pytest.raises(extrapolate.RefusedError) as error:
        extrapolate.fit([(n, amdahl(n)) for n in counts], machines)
    assert error.value.message == why


def test_measurements_without_a_line_are_refused():
    with pytest.raises(extrapolate.RefusedError, match="scattered"):
        extrapolate.fit([(1, 0.9), (2, 0.4), (4, 0.9)], 20)


def test_a_repeated_number_of_machines_is_one_number():
    with pytest.raises(extrapolate.RefusedError, match="refused-few.*'measured': 2"):
        extrapolate.fit([(1, 0.9), (2, 0.8), (2, 0.81)], 4)


def test_only_curves_that_end_below_the_criterion_are_extrapolated():
    short = [option(n, amdahl(n)) for n in (1, 2, 4)]
    long = [option(n, amdahl(n), dtype="fp32") for n in (1, 8, 32)]
    alone = [option(1, 1.0, dtype="bf16")]
    (made,) = extrapolate.of_options([*short, *long, *alone], 20)
    assert (made["name"], made["refused"]) == ("w 4n8g", None)
    assert made["fit"]["measured"] == [(n, pytest.approx(amdahl(n))) for n in (1, 2, 4)]


@pytest.mark.parametrize("field", ["variant", "size", "group"])
def test_options_that_differ_are_curves_of_their_own(field):
    steep = [option(n, amdahl(n, growth=0.2)) for n in (1, 2, 4)]
    flat = [option(n, amdahl(n), **{field: "another"}) for n in (1, 2, 4)]
    made = extrapolate.of_options([*steep, *flat], 20)
    assert [each["fit"]["growth"] for each in made] == [pytest.approx(0.2), pytest.approx(0.004)]


@pytest.mark.parametrize(("efficiency", "shown"), [(0.97, 0.97), (1.01, 1.0)])
def test_what_is_extrapolated_ends_at_100_percent(efficiency, shown):
    scatter = (1.02, 0.98, 1.01, 0.99)
    made = extrapolate.fit([(n, efficiency * by) for n, by in zip((1, 2, 4, 8), scatter, strict=True)], 20)
    assert made["least"] < made["efficiency"] <= made["most"] == 1
    assert made["efficiency"] == pytest.approx(shown, abs=0.05)


def test_an_interval_that_ends_at_100_percent_covers_as_often():
    true, noise, covered = amdahl(20, alone=1.0, growth=0.0005), random.Random(20), []
    for _ in range(2000):
        measured = [(n, amdahl(n, 1.0, 0.0005) * noise.gauss(1, 0.005)) for n in (1, 2, 4, 8)]
        try:
            fit = extrapolate.fit(measured, 20)
        except extrapolate.RefusedError:
            continue
        covered.append(fit["least"] <= true <= fit["most"])
    assert len(covered) > 0.95 * 2000
    assert sum(covered) / len(covered) > 0.94


def test_a_curve_that_is_above_100_percent_is_refused():
    with pytest.raises(extrapolate.RefusedError) as error:
        extrapolate.fit([(n, 1.1 + 0.01 * n) for n in (1, 2, 4)], 20)
    assert error.value.message == message("evaluation.refused-above", machines=20)


def test_an_extrapolation_judges_nothing():
    options = [option(n, amdahl(n)) for n in (1, 2, 4)]
    assert extrapolate.of_options(options, 20)[0]["fit"]["efficiency"] > 0.8
    assert criteria.scaling(options, 80.0, 20)["verdict"] == criteria.NOT_MEASURED


def test_nodes_that_share_one_machine_are_no_curve():
    simulated = [option(nodes, amdahl(nodes), machines=1) for nodes in (1, 2, 4)]
    assert extrapolate.of_options(simulated, 20) == []
