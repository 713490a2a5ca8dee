# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The loop of steps of the trainers with torch, without torch."""

import gc
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from role_files import load


@pytest.fixture
def torch_run(monkeypatch):
    for name in ("torch", "torch.distributed"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    monkeypatch.setitem(sys.modules, "trainer_kit", MagicMock())
    yield load("workload", "torch_run")
    gc.enable()
    gc.unfreeze()


@pytest.fixture
def done(monkeypatch):
    """Steps, and the end of the compile workers, in their order."""
    happened = []
    compiler = SimpleNamespace(shutdown_compile_workers=lambda: happened.append("workers ended"))
    monkeypatch.setitem(sys.modules, "torch._inductor.async_compile", compiler)
    return happened


def take(torch_run, done, steps, warmup):
    def step(number):
        done.append(number)
        return SimpleNamespace(item=lambda: 0.5)

    return torch_run.take_steps(lambda **_: None, steps, warmup, SimpleNamespace(type="cpu"), step)


def test_compile_workers_end_before_the_window(torch_run, done):
    take(torch_run, done, steps=6, warmup=4)
    assert done == [1, 2, "workers ended", 3, 4, 5, 6]


def test_compile_workers_go_on_where_the_wait_for_them_would_be_measured(torch_run, done):
    """The step after it takes the wait, and the window begins with the end of the only step of warm-up."""
    take(torch_run, done, steps=3, warmup=1)
    assert done == [1, 2, 3]


def test_a_run_that_compiles_nothing_has_no_workers_to_end(torch_run, done, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._inductor.async_compile")
    assert len(take(torch_run, done, steps=4, warmup=2)) == 4


@pytest.mark.parametrize(("share", "expected"), [(0, 1.0), (0.5, 2.5), (0.95, 3.85), (1, 4.0)])
def test_a_quantile_is_linear_between_neighbours(torch_run, share, expected):
    assert torch_run.quantile([1.0, 2.0, 3.0, 4.0], share) == pytest.approx(expected)


def test_the_times_of_the_steps_after_the_warm_up_are_summed_up(torch_run):
    """Two steps of warm-up, then steps of 1, 2 and 6 seconds."""
    rate, times = torch_run.rate([0.0, 10.0, 11.0, 13.0, 19.0], 2)
    assert rate == pytest.approx(3 / 9)
    expected = {"median": "2000.000", "p95": "5600.000", "p99": "5920.000", "low": "1000.000"}
    expected.update(high="6000.000")
    assert times == {**{f"step_ms_{name}": text for name, text in expected.items()}, "steps_counted": 3}
