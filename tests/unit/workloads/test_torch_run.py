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
