# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A subnet for a test cluster of our own, and free ports."""

import contextlib
import socket
import subprocess


def free_net(*wanted):
    """Return the first of the /24 subnets `wanted` ("10.11.6") that no interface here has an address in.

    Another checkout on this machine may run the same tests.
    """
    taken = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=False).stdout
    return next((net for net in wanted if f"inet {net}." not in taken), wanted[0])


def free_ports(count):
    """Return ports that nobody listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
