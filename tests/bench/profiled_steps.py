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

WARMUP = 2  # steps with a first profiler, which is thrown away: its start takes long


def wait_for_gpu():
    """Wait until the GPU has done what was started: the steps of a profile are whole, on the GPU too."""
    import torch

    if torch.cuda.is_available():
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
            self.profile.stop()
            wait_for_gpu()
            self.profile, self.begun = self.started(), time.time_ns()
        elif number == WARMUP + self.steps:
            wait_for_gpu()
            ended = time.time_ns()
            self.profile.stop()
            self.write(ended)

    def started(self):
        """Return a profiler that has been started."""
        import torch

        # Watching what the processor does would slow it down, which often decides.
        kinds = torch.profiler.ProfilerActivity
        watched = kinds.CUDA if torch.cuda.is_available() else kinds.CPU
        profile = torch.profiler.profile(activities=[watched])
        profile.start()
        return profile

    def write(self, ended):
        """Write the trace, when its steps were, and how long those before the profile took."""
        path = Path(self.folder, "rank%s-%d.json" % (os.environ.get("RANK", "0"), os.getpid()))
        self.profile.export_chrome_trace(str(path.with_suffix(".trace.json")))
        before = self.stamps[max(0, self.after - 2 * self.steps - 1) : self.after]
        seconds = (before[-1] - before[0]) / (len(before) - 1)
        about = {"argv": sys.argv, "steps": self.steps, "seconds_before": seconds}
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
