# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Commands that may hang: in a driver, or on a file system that does not answer.

Modules that run on nodes import this file, so it keeps to Python 3.6.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
from typing import Any, Tuple


def run_limited(*command: str, **options: Any) -> Tuple[int, str, str]:
    """Return (status, stdout, stderr) of a command.

    `seconds` (20) are its limit, other options those of Popen. Raise TimeoutError when it has not ended by
    then, OSError when it cannot be started. What hangs in the kernel cannot be ended, and what it has started
    may hold its output open: neither is waited for.
    """
    seconds = float(options.pop("seconds", 20))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, **options
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):  # it ended just now
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the kernel
                process.wait(1)
            raise TimeoutError("no answer within %g s" % seconds) from None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return process.returncode, texts[0], texts[1]
