# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reads what may be made to harm in a process that has little memory and time."""

import os
import resource
from pathlib import Path

from ansible.module_utils.scalebook.contracts import why_of
from ansible.module_utils.scalebook.pages.catalogue import sentence

MEMORY = 250 << 20
"""Address space that reading may take; Python with these modules has about 50 MB itself."""
SECONDS = 10


def answer(read, path):
    """Return what a process with little memory says when it reads `path`; only a ValueError is a refusal."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        try:
            said = f"accepted {str(read(path))[:400]}"
        except ValueError as error:
            said = f"refused: {sentence(why_of(error))}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(send, said.encode(errors="replace"))
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        said = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0, "it took too long"
    return said
