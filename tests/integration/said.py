# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What ansible-playbook said of a failure."""


def failure(done):
    """Return the lines of a finished ansible-playbook that name the failed tasks, or else its last words."""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("fatal:", "failed:"))]
    return "\n".join(lines)[:2000] or f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
