# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Profile some steps of any training with torch, from within its process; for tests/bench/torch_profile.

A line in a .pth file of the environment calls `watch`. The training is not changed: what counts steps is
torch's own hook after each step of an optimizer.
"""

import functools
import importlib.abc
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

WARMUP = 2  # steps after the start of the profiler, which takes long, before it records


def on_gpu():
    """Return whether the training uses a GPU, as far as there is one."""
    import torch

    return torch.cuda.is_available()


def wait_for_gpu():
    """Wait until the GPU has done what was started: the steps of a profile are whole, on the GPU too."""
    import torch

    if on_gpu():
        torch.cuda.synchronize()


class Steps:
    """The steps of the first optimizer that takes one."""

    def __init__(self, folder, after, steps):
        self.folder, self.after, self.steps = folder, after, steps
        self.optimizer, self.profile, self.begun, self.stamps = None, None, 0, []

    def taken(self, optimizer, _args, _kwargs):
        """Count a step; start the profiler after `after` of them, and end it."""
        self.optimizer = self.optimizer or optimizer
        if optimizer is not self.optimizer:
            return
        self.stamps.append(time.monotonic())
        number = len(self.stamps) - self.after
        if number == 0:
            self.profile = self.started()
        elif number == WARMUP:
            wait_for_gpu()
            self.profile.step()
            self.begun = time.time_ns()
        elif number == WARMUP + self.steps:
            wait_for_gpu()
            ended = time.time_ns()
            self.profile.stop()
            self.write(ended)

    def started(self):
        """Return a profiler that has been started, and records from its next step on."""
        from torch.profiler import ProfilerActivity, profile, schedule

        # Watching what the processor does would slow it down, which often decides.
        watched = ProfilerActivity.CUDA if on_gpu() else ProfilerActivity.CPU
        # It is stopped within the second step.
        made = profile(activities=[watched], schedule=schedule(wait=0, warmup=1, active=2, repeat=1))
        made.start()
        return made

    def write(self, ended):
        """Write the trace, when its steps were, and how long those before the profile took."""
        path = Path(self.folder, "rank%s-%d.json" % (os.environ.get("RANK", "0"), os.getpid()))
        self.profile.export_chrome_trace(str(path.with_suffix(".trace.json")))
        before = self.stamps[max(0, self.after - 2 * self.steps - 1) : self.after]
        seconds = (before[-1] - before[0]) / (len(before) - 1)
        about = {"argv": sys.argv, "gpu": on_gpu(), "steps": self.steps, "seconds_before": seconds}
        path.write_text(json.dumps({**about, "begun_ns": self.begun, "ended_ns": ended}))


class Finder(importlib.abc.MetaPathFinder):
    """Calls `found` with the module of torch's optimizers when it has been imported."""

    def __init__(self, found):
        self.found = found

    def find_spec(self, name, path, target=None):
        """Return the module's own spec, with a loader that calls `found` too."""
        if name != "torch.optim.optimizer":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            self.found(module)

        spec.loader.exec_module = exec_module
        return spec


@functools.cache
def watch(folder, after, steps):
    """Profile `steps` steps after the first `after` of this process, if it trains.

    Once: Python reads the .pth files of an environment that sees the system's packages twice.
    """
    hook = Steps(folder, after, steps).taken
    sys.meta_path.insert(0, Finder(lambda module: module.register_optimizer_step_post_hook(hook)))
