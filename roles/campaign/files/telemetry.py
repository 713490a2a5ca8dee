#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sampler of a node as run_node sees it: started, given the window, ended, its file packed.

Measuring is never the cause of a failed run: nothing here raises, and nothing waits for longer than
PATIENCE. What goes wrong becomes the reason in the closing record.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import Any, Dict, Optional, Tuple

from messages import message

SETTINGS = "telemetry.json"
"""The file in the job's directory that asks for it: {"interval", "directories"}."""

WITHOUT = ("-E", "-s", "-S")
"""What the sampler's Python leaves out: what is installed (module site alone may take 5 MB), and settings."""

PATIENCE = 1.0
"""Seconds that the sampler has for its last reading."""


def read_settings(directory: str) -> Dict[str, Any]:
    """Return the content of the directory's telemetry.json, {} where nothing is to be measured."""
    try:
        with open(os.path.join(directory, SETTINGS), encoding="utf-8") as file:
            settings: Dict[str, Any] = json.load(file)
            return settings
    except (OSError, ValueError):
        return {}


class Telemetry:
    """The sampler of one node, or nothing where `settings` ask for none."""

    def __init__(self, settings: Dict[str, Any], directory: str, name: str, env: Dict[str, str]) -> None:
        self.path = os.path.join(directory, name + ".telemetry.csv")
        self.process: "Optional[subprocess.Popen[bytes]]" = None
        self.reason: Optional[Dict[str, Any]] = None
        self.used: Dict[str, Any] = {}
        self.wanted = float(settings.get("interval") or 0) > 0
        if not self.wanted:
            return
        argv = [
            sys.executable,
            *WITHOUT,
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "sampler.py"),
        ]
        argv += ["--out", self.path, "--interval", str(settings["interval"])]
        argv += ["--gpus", env.get("CUDA_VISIBLE_DEVICES", "")]
        for place in [directory] + list(settings.get("directories") or []):
            argv += ["--directory", place]
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )
            assert self.process.stdin is not None  # it is a pipe
            os.set_blocking(self.process.stdin.fileno(), False)
        except OSError as error:
            self.reason = message("sampler.not-started", why=error.strerror)

    @property
    def pid(self) -> int:
        """The sampler's number, 0 without one."""
        return self.process.pid if self.process else 0

    def mark(self, word: str) -> None:
        """Have a reading taken now, because the window's `first` or `last` step was logged."""
        if self.process is not None and self.process.stdin is not None:
            try:
                os.write(self.process.stdin.fileno(), word.encode() + b"\n")
            except (OSError, ValueError):
                return  # it has ended: end() says how

    def end(self) -> None:
        """End the sampler, keep what it says of itself, and why it did not end well."""
        if self.process is None:
            return
        last_line = self._last_word(self.process)
        try:
            code = self.process.wait(PATIENCE / 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.reason = message("sampler.did-not-end")
            try:
                self.process.wait(PATIENCE / 2)
            except subprocess.TimeoutExpired:
                self.reason = message("sampler.cannot-be-killed")
        else:
            if code:
                self.reason = message("sampler.signal" if code < 0 else "sampler.exit", number=abs(code))
                if last_line:
                    printed = message("text", text=last_line)
                    self.reason = message("reason.because", what=self.reason, why=printed)
        if last_line.startswith("{"):
            try:
                self.used = json.loads(last_line)
            except ValueError:
                return  # cut short: it was killed, which is the reason
        self.reason = self.reason or self.used.get("reason")

    def _last_word(self, process: "subprocess.Popen[bytes]") -> str:
        """Return the last line that the sampler prints once its standard input ends, "" where none comes."""
        assert process.stdin is not None and process.stdout is not None  # they are pipes
        process.stdin.close()
        output, deadline = b"", time.monotonic() + PATIENCE
        while select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            more = os.read(process.stdout.fileno(), 4096)
            if not more:
                break
            output = (output + more)[-4096:]
        return (output.decode("utf-8", "replace").strip().splitlines() or [""])[-1][:300]

    def record(self) -> Optional[Dict[str, Any]]:
        """Return what the closing record says of it; None where nothing was to be measured."""
        if not self.wanted:
            return None
        file, reason = pack(self.path) if os.path.exists(self.path) else (None, None)
        keys = ("readings", "cpu_seconds", "memory_bytes")
        about = {"file": file, "reason": self.reason or reason}
        return dict(about, **{key: self.used[key] for key in keys if key in self.used})


def pack(path: str) -> Tuple[str, Optional[Dict[str, Any]]]:
    """Compress the file `path`, and return the name of what is there and why it is not compressed.

    With the least effort: half a second for an hour of readings, and a few MB of memory.
    """
    try:
        import lzma
    except ImportError:
        return os.path.basename(path), message("sampler.no-lzma")
    try:
        with open(path, "rb") as plain, lzma.open(path + ".xz", "wb", preset=0) as packed:
            shutil.copyfileobj(plain, packed)
        os.remove(path)
    except OSError as error:
        if os.path.exists(path + ".xz"):
            os.remove(path + ".xz")
        return os.path.basename(path), message("sampler.not-packed", why=error.strerror)
    return os.path.basename(path) + ".xz", None
