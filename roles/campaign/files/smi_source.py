#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nvidia-smi tells of GPUs, for a Python without nvidia-ml-py.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import shutil
import subprocess
import threading
import time
from typing import Dict, List, Sequence

from gpu_sources import KIB, Gpus
from host_sources import Absent, Value


def divided(program: str) -> List[str]:
    """Return the numbers of the GPUs that nvidia-smi lists with slices."""
    found, gpu = [], ""
    try:
        listed = subprocess.check_output([program, "-L"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return []  # the readings show it
    for line in listed.decode("ascii", "replace").splitlines():
        if line.startswith("GPU "):
            gpu = line[4:].partition(":")[0]
        elif line.strip().startswith("MIG "):
            found.append(gpu)
    return found


class Smi(Gpus):
    """GPUs through one nvidia-smi that prints all the time: slower and coarser than NVML."""

    QUERY = (
        ("utilization", "utilization.gpu", 1.0),
        ("memory", "memory.used", KIB * KIB),
        ("power", "power.draw", 1.0),
        ("sm_clock", "clocks.sm", 1.0),
        ("memory_clock", "clocks.mem", 1.0),
        ("temperature", "temperature.gpu", 1.0),
    )

    def __init__(self, gpus: Sequence[str], interval: float, program: str = "nvidia-smi") -> None:
        super().__init__(gpus)
        if not shutil.which(program):
            raise Absent("neither nvidia-ml-py nor nvidia-smi is installed")
        with_slices = divided(program)
        if not all(gpu.isdigit() and gpu not in with_slices for gpu in gpus):
            raise Absent("nvidia-ml-py is not installed, and nvidia-smi tells nothing of a slice (MIG)")
        words = ", ".join(name for name, _, _ in self.QUERY)
        self.absent = {"gpu": "nvidia-ml-py is not installed, and nvidia-smi gives only " + words}
        self.stale = 3 * interval
        self.latest: Dict[str, Dict[str, float]] = {}
        self.heard: Dict[str, float] = {}
        asked = ",".join(["index"] + [word for _, word, _ in self.QUERY])
        argv = [program, "--query-gpu=" + asked, "--format=csv,noheader,nounits"]
        argv += ["--id=" + ",".join(gpus), "--loop-ms=%d" % (1000 * interval)]
        try:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise Absent("%s: %s" % (program, error.strerror)) from error
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None  # it is a pipe
        for line in self.process.stdout:
            words = [word.strip() for word in line.decode("ascii", "replace").split(",")]
            if len(words) != len(self.QUERY) + 1 or not words[0].isdigit():
                continue
            values = {}
            for word, (name, _, unit) in zip(words[1:], self.QUERY):  # noqa: B905 - see above
                try:
                    values[name] = float(word) * unit
                except ValueError:  # [N/A]
                    continue
            self.latest[words[0]] = values
            self.heard[words[0]] = time.monotonic()

    def values(self, gpu: str, full: bool) -> Dict[str, Value]:
        """Return what was printed last, unless that is long ago."""
        fresh = time.monotonic() - self.heard.get(gpu, 0.0) <= self.stale
        return {**self.latest.get(gpu, {})} if fresh else {}
